"""Looking at pairs before a model is trained on them: what is odd, where, and what to do."""
