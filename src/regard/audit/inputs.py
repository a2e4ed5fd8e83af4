"""What an audit asks about: one input."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

__all__ = ["Input", "fingerprint", "steps_of"]


@dataclass(frozen=True)
class Input:
    """One thing that the model answers, and whose weights would be shown.

    Of a sequence-to-sequence model it is one output step: the source, and what had been
    written before.

    Parameters
    ----------
    tokens : tuple of str, length T_enc
        What the weights lie on, in order.
    before : tuple of str, optional
        The target's tokens before this step; None for a model that writes nothing.
    fixed : frozenset of int
        Positions that no erasure touches, as an encoder's own [CLS] and [SEP].
    gold : frozenset of int, optional
        Positions that a person marked as the ones that matter.
    label : str, optional
        The right answer, for whoever counts accuracies.
    """

    tokens: tuple[str, ...]
    before: tuple[str, ...] | None = None
    fixed: frozenset[int] = frozenset()
    gold: frozenset[int] | None = None
    label: str | None = None

    @property
    def free(self) -> tuple[int, ...]:
        """Positions that may be erased, in order."""
        return tuple(i for i in range(len(self.tokens)) if i not in self.fixed)

    @property
    def text(self) -> str | None:
        """A short name of the text that a step belongs to; None of what is no step."""
        if self.before is None:
            return None
        form = json.dumps([self.tokens, sorted(self.fixed)], ensure_ascii=True)
        return hashlib.sha256(form.encode()).hexdigest()[:16]

    def without(self, positions: Iterable[int]) -> "Input":
        """Return the input with these positions left out."""
        gone = set(positions)
        kept = [i for i in range(len(self.tokens)) if i not in gone]
        place = {old: new for new, old in enumerate(kept)}
        return replace(
            self,
            tokens=tuple(self.tokens[i] for i in kept),
            fixed=frozenset(place[i] for i in self.fixed if i in place),
            gold=None
            if self.gold is None
            else frozenset(place[i] for i in self.gold if i in place),
        )

    def with_tokens(self, tokens: Mapping[int, str]) -> "Input":
        """Return the input with other tokens in these places."""
        return replace(
            self, tokens=tuple(tokens.get(i, token) for i, token in enumerate(self.tokens))
        )


def steps_of(
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[tuple[int, int]] | None = None,
) -> list[Input]:
    """Return one input for each output step of a sequence pair, the target taken as written.

    Parameters
    ----------
    source, target : sequence of str
    links : iterable of (source position, target position), optional
        Gold links, from 0: each step's gold are the sources linked to it. A step without any
        link has none.
    """
    linked: dict[int, set[int]] = {}
    for s, t in links or ():
        linked.setdefault(t, set()).add(s)
    return [
        Input(
            tuple(source),
            before=tuple(target[:t]),
            gold=frozenset(linked[t]) if t in linked else None,
            label=target[t],
        )
        for t in range(len(target))
    ]


def fingerprint(inputs: Sequence[Input]) -> str:
    """Return a short name for the inputs: equal for equal ones, in the same order."""
    digest = hashlib.sha256()
    for one in inputs:
        gold = None if one.gold is None else sorted(one.gold)
        form = [one.tokens, one.before, sorted(one.fixed), gold, one.label]
        digest.update(json.dumps(form, ensure_ascii=True).encode())
    return digest.hexdigest()[:16]
