"""What a model looked at: alignments as data and as pictures.

:mod:`regard.alignment.heatmap` needs matplotlib and is therefore imported by its own name::

    from regard.alignment import Alignment
    from regard.alignment.heatmap import heatmap, save
"""

from regard.alignment.matrix import Alignment

__all__ = ["Alignment"]
