"""Several models that answer together: the mean of their probabilities.

On disk an ensemble is a directory with a file ``ensemble.json`` that names the directories of
its members, which lie inside it::

    {"format": 1, "members": ["0", "1", "2"]}
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.errors import InputError, explain
from regard.files import read_json, write_json
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.checkpoint import Description, load_model
from regard.seq2seq.claim import ENSEMBLE
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.search import Stepper
from regard.seq2seq.vocab import Vocab

__all__ = ["Ensemble", "Together", "joined", "load_any", "save_ensemble"]

_FORMAT = 1


class Ensemble(nn.Module):
    r"""Models with the same symbols, run side by side.

    .. math:: P(y_t | y_{<t}, X) = \frac{1}{M} \sum_m P_m(y_t | y_{<t}, X)

    Parameters
    ----------
    members : sequence of Seq2Seq
        At least one. They may differ in everything but the sizes of their vocabularies.

    Raises
    ------
    InputError
        There is none, or their vocabularies differ in size.

    Notes
    -----
    It has the doors of :class:`~regard.seq2seq.model.Seq2Seq` that searches use. Weights are
    the mean of those members that attend. Time and memory are the members' sums.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        super().__init__()
        sizes = {(m.config.source_symbols, m.config.target_symbols) for m in members}
        if len(sizes) != 1:
            raise InputError(
                explain(
                    "Ensemble(): `members` do not go together",
                    expected="at least one model, all with vocabularies of the same sizes",
                    got=", ".join(f"{s} and {t} symbols" for s, t in sorted(sizes)) or "none",
                )
            )
        self._members = nn.ModuleList(members)
        # A module begins in training mode; searches put members back into its mode.
        self.train(any(member.training for member in members))

    @property
    def members(self) -> list[Seq2Seq]:
        """The models, in their order."""
        return cast(list[Seq2Seq], list(self._members))

    @property
    def config(self) -> ModelConfig:
        """The shape of the first member."""
        return self.members[0].config

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return any(member.attends for member in self.members)

    def start(self, source: Tensor, source_lengths: Tensor | None = None) -> tuple[Any, Any]:
        """Encode a batch with every member; as :meth:`Seq2Seq.start`."""
        return self._together.start(source, source_lengths)

    def step(
        self, previous: Tensor, memory: Any, state: Any
    ) -> tuple[Tensor, Any, Tensor | None]:
        """Take one step; as :meth:`Seq2Seq.step`.

        Returns
        -------
        symbol_scores : (batch, target_symbols)
            Logarithms of the mean probabilities.
        state
        weights : (batch, T_enc) or None
        """
        return self._together.step(previous, memory, state)

    def take(
        self, memory: Any, state: Any, rows: Tensor, *, same_sources: bool = False
    ) -> tuple[Any, Any]:
        """Go on with these rows; as :meth:`Seq2Seq.take`."""
        return self._together.take(memory, state, rows, same_sources=same_sources)

    @property
    def _together(self) -> "Together":
        return Together(self.members)


class Together:
    """Steppers side by side, as one.

    Parameters
    ----------
    members : sequence of Stepper
        Of the same symbols.
    """

    def __init__(self, members: Sequence[Stepper]) -> None:
        self._members = members

    @property
    def training(self) -> bool:
        """Whether any member is in training mode."""
        return any(member.training for member in self._members)

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return any(member.attends for member in self._members)

    def eval(self) -> "Together":
        """Turn dropout off."""
        return self.train(False)

    def train(self, mode: bool = True) -> "Together":
        """Turn dropout on or off."""
        for member in self._members:
            member.train(mode)
        return self

    def start(self, source: Tensor, source_lengths: Tensor | None = None) -> tuple[Any, Any]:
        """Encode a batch with every member."""
        begun = [member.start(source, source_lengths) for member in self._members]
        return [memory for memory, _ in begun], [state for _, state in begun]

    def step(
        self, previous: Tensor, memory: list[Any], state: list[Any]
    ) -> tuple[Tensor, list[Any], Tensor | None]:
        """Take one step with every member; scores are logarithms of the mean probabilities."""
        steps = [
            member.step(previous, mine, at)
            for member, mine, at in zip(self._members, memory, state, strict=True)
        ]
        each = torch.stack([torch.log_softmax(scores, -1) for scores, _, _ in steps])
        scores = torch.logsumexp(each, 0) - math.log(len(steps))
        looked = [weights for _, _, weights in steps if weights is not None]
        weights = torch.stack(looked).mean(0) if looked else None
        return scores, [after for _, after, _ in steps], weights

    def take(
        self, memory: list[Any], state: list[Any], rows: Tensor, *, same_sources: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """Go on with these rows."""
        taken = [
            member.take(mine, at, rows, same_sources=same_sources)
            for member, mine, at in zip(self._members, memory, state, strict=True)
        ]
        return [mine for mine, _ in taken], [at for _, at in taken]


def joined(
    models: Sequence[tuple[Seq2Seq, Description]], names: Sequence[str]
) -> tuple[Seq2Seq | Ensemble, Description]:
    """Make one model of several; of one, itself.

    Parameters
    ----------
    models : sequence of (model, description)
    names : sequence of str
        What to call each of them in messages.

    Returns
    -------
    model, description
        The description is the first one's, with the longest lengths of all.

    Raises
    ------
    InputError
        Two vocabularies differ, if only in their order: the ids of one would mean something
        else to the other.
    """
    if len(models) == 1:
        return models[0]
    first = models[0][1]
    for (_, other), name in zip(models[1:], names[1:], strict=True):
        for side in ("source", "target"):
            mine, theirs = getattr(first, side), getattr(other, side)
            if mine != theirs:
                raise InputError(
                    explain(
                        f"{name}: its {side} vocabulary is not that of {names[0]}",
                        expected=f"{len(mine)} ids of kind {mine.kind}, the same in each model",
                        got=_difference(mine, theirs),
                        because="models that answer together must mean the same by an id",
                        help="train them on the same data with the same symbols",
                    )
                )
    descriptions = [description for _, description in models]
    together = replace(
        first,
        longest_source=max(d.longest_source for d in descriptions),
        longest_target=max(d.longest_target for d in descriptions),
        made_by={"ensemble": [d.made_by for d in descriptions]},
    )
    return Ensemble([model for model, _ in models]).eval(), together


def load_any(directory: str | Path) -> tuple[Seq2Seq | Ensemble, Description]:
    """Read a model directory or an ensemble's, ready for use on the CPU.

    Raises
    ------
    InputError
        As :func:`~regard.seq2seq.checkpoint.load_model` does, or ``ensemble.json`` is damaged,
        or its members do not go together.
    """
    directory = Path(directory)
    path = directory / ENSEMBLE
    if not path.is_file():
        return load_model(directory)
    members = _members(path)
    models = [load_model(member) for member in members]
    return joined(models, [str(member) for member in members])


def save_ensemble(directory: str | Path, members: Sequence[str]) -> None:
    """Write ``ensemble.json``.

    Parameters
    ----------
    directory : path
        Of the ensemble.
    members : sequence of str
        Names of the model directories in it.
    """
    write_json(Path(directory) / ENSEMBLE, {"format": _FORMAT, "members": list(members)})


def _members(path: Path) -> list[Path]:
    form = read_json(path)
    fits = (
        isinstance(form, dict)
        and isinstance(form.get("members"), list)
        and len(form["members"]) > 0
        and all(isinstance(name, str) and name for name in form["members"])
    )
    if not fits or form.get("format") != _FORMAT:
        raise InputError(
            explain(
                f"{path}: this is no ensemble",
                expected=f'{{"format": {_FORMAT}, "members": [name, ...]}}',
                got=repr(form)[:80],
            )
        )
    for name in form["members"]:
        # A directory that is copied must stay whole, and may not read what lies outside it.
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(
                explain(
                    f"{path}: a member lies outside the ensemble",
                    expected="names of directories beside this file",
                    got=repr(name)[:80],
                )
            )
    return [path.parent / name for name in form["members"]]


def _difference(mine: Vocab, theirs: Vocab) -> str:
    missing = [mine.label(s) for s in mine.symbols if s not in set(theirs.symbols)]
    more = [theirs.label(s) for s in theirs.symbols if s not in set(mine.symbols)]
    parts = [f"{len(theirs)} ids of kind {theirs.kind}"]
    if missing:
        parts.append(f"without {' '.join(map(repr, missing[:5]))}")
    if more:
        parts.append(f"with {' '.join(map(repr, more[:5]))}")
    return ", ".join(parts)
