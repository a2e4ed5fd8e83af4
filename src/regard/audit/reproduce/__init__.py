"""Published figures measured again with regard's own models, and where they did not come out."""
