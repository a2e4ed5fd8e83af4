"""What a model looked at: alignments as data and as pictures.

One head of one sentence is an :class:`Alignment`, all heads of it a :class:`Record`, and many
records a :class:`Collection`. Pictures have modules of their own, since some need matplotlib::

    from regard.alignment import Alignment, Collection, Record
    from regard.alignment.explorer import explorer
    from regard.alignment.heatmap import heatmap, save
"""

from regard.alignment.collection import Collection
from regard.alignment.counterfactual import Counterfactual
from regard.alignment.matrix import Alignment
from regard.alignment.record import Record

__all__ = ["Alignment", "Collection", "Counterfactual", "Record"]
