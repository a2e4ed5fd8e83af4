"""Published figures measured again with regard's own models, and what did not come out."""
