"""Other packages' attentions, described in their own words."""
