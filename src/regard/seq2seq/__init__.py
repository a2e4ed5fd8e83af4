"""Trainable transducers: from pairs of texts to a model that rewrites one into the other."""
