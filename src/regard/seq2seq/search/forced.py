"""A target that is known: what a model makes of it, symbol by symbol, and where it looks."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.follow import arrayed, quiet
from regard.seq2seq.search.stepper import Stepper
from regard.seq2seq.search.written import Followed, written_out

__all__ = ["forced"]


def forced(
    model: Stepper,
    source: Tensor,
    source_lengths: Tensor | None,
    targets: Sequence[Sequence[int]],
    rows: Sequence[int] | None = None,
) -> Followed:
    """Read targets to a model, as teacher forcing does.

    Parameters
    ----------
    model : Stepper
        Left in the mode that it came in; runs without dropout here.
    source, source_lengths : Tensor
        (batch, T_enc), and (batch,) or None.
    targets : sequence of sequences of int
        Ids, without begin and end; at least one target.
    rows : sequence of int, optional
        The example of each target; by default there is one target for each.

    Returns
    -------
    followed : Followed
        A symbol that is never answered (unknown, padding) has the log-probability minus
        infinity; what follows it is computed all the same.

    Notes
    -----
    The decoder forms its own query, so no row has to be shifted: with Bahdanau's attention row
    t was asked for with s_{t-1}, with Luong's with s_t, and both belong to symbol t.
    """
    ids, answers = (torch.from_numpy(each).to(source.device) for each in written_out(targets))
    log_probs: list[NDArray[np.float32]] = []
    looked: list[NDArray[np.float32]] = []
    with quiet(model):
        memory, state = model.start(source, source_lengths)
        if rows is not None:
            chosen = torch.tensor(rows, device=source.device)
            memory, state = model.take(memory, state, chosen)
        for step in range(ids.shape[1]):
            scores, state, weights = model.step(ids[:, step], memory, state)
            each = torch.log_softmax(forbid_reserved(scores), dim=-1)
            log_probs.append(arrayed(each.gather(1, answers[:, step : step + 1]).squeeze(1)))
            if weights is not None:
                looked.append(arrayed(weights))
    return Followed(np.stack(log_probs, 1), np.stack(looked, 1) if looked else None)
