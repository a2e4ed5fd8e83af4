"""Align: an aligner of words, trained on nothing but a corpus of sentence pairs.

Every target word looks at the source words, and one of them, or none, is taken to have made
it: attention whose choice is a hidden variable rather than an average [1]_. Two such models,
one for each direction, are trained to agree, and links are read from what both believe *after*
they have seen the target word, which is far sharper than the attention before it.

References
----------
.. [1] Deng, Kim, Chiu, Guo and Rush, "Latent Alignment and Variational Attention",
   NeurIPS 2018. arXiv:1807.03756
"""
