"""What a model would have written, had it looked elsewhere: its weights changed, step by step.

Three changes, after the tests of the debate on whether attention explains: weights are permuted
[1]_, made uniform [2]_, and taken away from one position, the others being scaled up [3]_. Each
step is changed alone, with the target's own symbols before it, and its distribution is compared
with the one that the model's own weights give.

References
----------
.. [1] Jain and Wallace, "Attention is not Explanation", NAACL 2019, section 4.2.1.
   arXiv:1902.10186
.. [2] Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019, section 3.2.
   arXiv:1908.04626
.. [3] Serrano and Smith, "Is Attention Interpretable?", ACL 2019, section 3.1.
   arXiv:1906.03731
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.alignment.counterfactual import Alteration, ByPosition, Counterfactual
from regard.errors import InputError, explain
from regard.nn.altered import reading
from regard.nn.memory import Memory
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.follow import quiet
from regard.seq2seq.search.written import written_out

__all__ = ["SHUFFLES", "Changed", "changed_steps", "counterfactuals"]

SHUFFLES = 10
"""Permutations of each row, of which the mean distance and the commonest answer are told."""

_MOST = 1 << 22  # numbers that the values of one call may have


@dataclass(frozen=True)
class Changed:
    """The steps of one target under other weights; ids of a target's vocabulary.

    Attributes
    ----------
    own : (T_dec,)
        The symbol that each step puts first.
    weights : (T_dec, T_enc)
        The model's own; of an ensemble the mean.
    shuffled, uniform, ablated : (ids, distances)
        Both (T_dec, shuffles), (T_dec, 1) and (T_dec, T_enc): the symbol put first, and the
        total variation distance from the distribution of the model's own weights.
    """

    own: NDArray[np.int64]
    weights: NDArray[np.float64]
    shuffled: tuple[NDArray[np.int64], NDArray[np.float64]]
    uniform: tuple[NDArray[np.int64], NDArray[np.float64]]
    ablated: tuple[NDArray[np.int64], NDArray[np.float64]]


def counterfactuals(
    changed: Changed, symbols: Sequence[str]
) -> dict[Alteration, Counterfactual]:
    """Return what a record keeps of changed steps.

    Parameters
    ----------
    changed : Changed
    symbols : sequence of str
        What people read for each id.

    Returns
    -------
    found : dict of Counterfactual
        ``permute``, ``uniform`` and ``ablate``: the position with the largest weight, and every
        position by itself.
    """

    def named(ids: NDArray[np.int64]) -> list[str]:
        return [symbols[int(i)] for i in ids]

    before = named(changed.own)
    ids, moved = changed.shuffled
    commonest = np.array([Counter(row).most_common(1)[0][0] for row in ids.tolist()])
    strongest = changed.weights.argmax(1)[:, None]
    left, left_moved = changed.ablated
    return {
        "permute": Counterfactual(
            named(commonest),
            moved.mean(1).tolist(),
            unaltered=before,
            how=f"with each row's weights shuffled ({ids.shape[1]} times: the commonest word "
            "and the mean distance)",
        ),
        "uniform": Counterfactual(
            named(changed.uniform[0][:, 0]),
            changed.uniform[1][:, 0].tolist(),
            unaltered=before,
            how="with every row's weights made equal",
        ),
        "ablate": Counterfactual(
            named(np.take_along_axis(left, strongest, 1)[:, 0]),
            np.take_along_axis(left_moved, strongest, 1)[:, 0].tolist(),
            unaltered=before,
            how="without each row's largest weight, the others scaled up",
            positions=ByPosition([named(row) for row in left], left_moved),
        ),
    }


def changed_steps(
    model: Seq2Seq | Ensemble,
    source: Sequence[int],
    target: Sequence[int],
    *,
    end: bool = False,
    shuffles: int = SHUFFLES,
    seed: int = 0,
) -> Changed:
    """Read one target to a model, and at each step ask it with other weights too.

    Parameters
    ----------
    model : Seq2Seq or Ensemble
        Members of an ensemble that attend are all changed in the same way.
    source, target : sequence of int
        Ids, without begin and end; neither is empty.
    end : bool
        Ask at the step of the end too.
    shuffles : int
        At least 1.
    seed : int
        Of the shuffles.

    Raises
    ------
    InputError
        The model has no attention, or `shuffles` is below 1.

    Notes
    -----
    A step that looks at nothing (monotonic attention behind its last key) has no weights to
    change and stays as it is. A position that has all of a row's weight leaves nothing behind.
    One target takes T_dec steps with shuffles + 1 + T_enc rows each.
    """
    if not model.attends or shuffles < 1:
        raise InputError(
            explain(
                "changed_steps(): there are no weights to change"
                if not model.attends
                else "changed_steps(): `shuffles` is refused",
                expected="a model with attention" if not model.attends else "at least 1",
                got='attention "none"' if not model.attends else str(shuffles),
            )
        )
    members = model.members if isinstance(model, Ensemble) else [model]
    device = next(model.parameters()).device
    given = torch.tensor([list(source)], device=device)
    ids = torch.from_numpy(written_out([target])[0]).to(device)
    steps, states = len(target) + end, len(source)
    random = np.random.default_rng(seed)
    tops = np.zeros((steps, 1 + shuffles + 1 + states), dtype=np.int64)
    moved = np.zeros(tops.shape)
    looked = np.zeros((steps, states))
    with quiet(model):
        begun = [member.start(given) for member in members]
        memories, at = [memory for memory, _ in begun], [state for _, state in begun]
        for step in range(steps):
            orders = np.argsort(random.random((shuffles, states)), axis=1)
            own, every, after = [], [], []
            for member, memory, state in zip(members, memories, at, strict=True):
                scores, state_after, weights = member.step(ids[:, step], memory, state)
                after.append(state_after)
                mine = torch.softmax(scores.double(), -1)
                if weights is None:
                    own.append(mine)
                    every.append(mine.expand(tops.shape[1] - 1, -1))
                    continue
                looked[step] += weights[0].double().cpu().numpy()
                others = _others(weights[0], torch.from_numpy(orders).to(device))
                own.append(mine)
                begin = (ids[:, step], memory, state)
                every.append(_asked(member, *begin, own=weights, others=others))
            at = after
            first, rest = torch.stack(own).mean(0), torch.stack(every).mean(0)
            both = _answerable(torch.cat([first, rest]))
            first = both[:1]
            tops[step] = both.argmax(-1).cpu().numpy()
            moved[step] = ((both - first).abs().sum(-1) / 2).clamp(0, 1).cpu().numpy()
    edges = (1, 1 + shuffles, 2 + shuffles, tops.shape[1])
    parts = [slice(*pair) for pair in itertools.pairwise(edges)]
    return Changed(
        tops[:, 0],
        looked / sum(member.attends for member in members),
        *((tops[:, part], moved[:, part]) for part in parts),
    )


def _answerable(probabilities: Tensor) -> Tensor:
    """Return the probabilities of what may be answered, as searches and forcing have them."""
    scores = forbid_reserved(torch.log(probabilities))
    return torch.softmax(scores, -1)


def _others(weights: Tensor, orders: Tensor) -> Tensor:
    """Return the weights (T_enc,) shuffled, made equal, and without each position."""
    mass, states = weights.sum(), len(weights)
    even = torch.full_like(weights, 1 / states)[None] * mass
    without = weights.repeat(states, 1).fill_diagonal_(0)
    left = without.sum(1, keepdim=True)
    scaled = torch.where(left > 0, without / left.clamp_min(1e-38) * mass, without)
    return torch.cat([weights[orders], even, scaled])


def _asked(
    member: Seq2Seq,
    previous: Tensor,
    memory: Memory,
    state: Any,
    *,
    own: Tensor,
    others: Tensor,
) -> Tensor:
    """Return the distributions (rows, symbols) of one step with each row of weights."""
    size = max(1, _MOST // memory.value[0].numel())
    found = []
    for part in torch.split(others, size):
        rows = torch.zeros(len(part), dtype=torch.long, device=part.device)
        many, states = member.take(memory, state, rows)
        altered = reading(many, own.expand(len(part), -1), part)
        scores, _, _ = member.step(previous.expand(len(part)), altered, states)
        found.append(torch.softmax(scores.double(), -1))
    return torch.cat(found)
