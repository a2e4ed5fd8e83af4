"""What is known of a target before it runs: what is declared, said, and meant."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from regard.check.contract import Contract
from regard.check.roles.candidate import Axes
from regard.check.roles.cast import Part, cast, is_grouping
from regard.check.roles.intent import Intent, intent
from regard.check.roles.layouts import Layouts, layouts
from regard.check.roles.polarity import Meaning, forms_of, meaning_of
from regard.check.roles.reading import Reading
from regard.check.roles.sizing import given
from regard.check.roles.statements import shapes
from regard.check.roles.words import axis_of
from regard.check.subject import Loaded

__all__ = ["Known"]

_PLAIN_KEY = re.compile(r"^(k|K|key|keys|ks)$")


@dataclass(frozen=True)
class Known:
    """Everything about a target that needs no run.

    ``stated`` is the declared part of the contract, ``flags`` the fields given one by one.
    ``mask`` is what True means in every mask (``keep``, ``drop`` or "" for nothing stated),
    ``roles`` the parts of arguments that a project states by name.
    """

    loaded: Loaded
    reading: Reading
    stated: Contract
    flags: frozenset[str] = field(default_factory=frozenset)
    mask: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def cast(self) -> tuple[Part, ...]:
        """The part of every argument."""
        parts = cast(self.reading)
        known = {p.name for p in parts}
        for parameter in self.reading.parameters:
            if parameter.name in self.stated.inputs and parameter.name not in known:
                parts = (*parts, Part(parameter.name, "other"))
        return tuple(replace(p, role=self.roles.get(p.name, p.role)) for p in parts)

    @cached_property
    def intent(self) -> Intent:
        """What the author means to compute."""
        return intent(self.reading, self.cast)

    @cached_property
    def meanings(self) -> dict[str, Meaning]:
        """What the words say of every mask."""
        masks = [p.name for p in self.cast if p.role in ("mask", "bias")]
        found = {name: meaning_of(name, self.reading) for name in masks}
        if not self.mask:
            return found
        stated = Meaning(self.mask, True, "declared")
        return {
            n: m if m.polarity in ("additive", "bias") else stated for n, m in found.items()
        }

    @cached_property
    def optional(self) -> tuple[tuple[Part, ...], ...]:
        """The arguments to give: all, then without those that have a default."""
        masks = tuple(p for p in self.cast if not p.optional or p.role in ("mask", "lengths"))
        needed = tuple(p for p in self.cast if not p.optional or p.name in self.stated.inputs)
        sets = [self.cast]
        sets += [s for s in (masks, needed) if s and s != self.cast]
        return tuple(sets[:2] if sets[1:] and sets[1] == sets[-1] else sets)

    @cached_property
    def declared(self) -> frozenset[str]:
        """Fields that are declared, ``kinds.mask`` and the like among them."""
        plain = Contract()
        names = ("score", "scale", "causal", "window", "positions", "convention", "mode")
        more = ("dtype", "layer", "padding", "all_masked", "activation", "weights", "returns")
        most = ("random", "reweighted", "sparse")
        found = {
            n for n in (*names, *more, *most) if getattr(self.stated, n) != getattr(plain, n)
        }
        found |= {k for k in self.flags if k != "kinds"}
        if self.mask:
            found |= {f"kinds.{n}" for n, m in self.meanings.items() if m.how == "declared"}
        found |= {f"kinds.{n}" for n in self.stated.kinds}
        found |= {f"inputs.{n}" for n in self.stated.inputs}
        return frozenset(found)

    @cached_property
    def base(self) -> Contract:
        """What is declared and what is meant, without axes."""
        fields = {k: v for k, v in self.intent.fields.items() if k not in self.declared}
        fields["dtype"] = "float32"  # set at the end: what half precision breaks is a finding
        sizes = dict(self.stated.sizes)
        if any(is_grouping(p.name) for p in self.cast):
            sizes = {"vocab": 4, **sizes}  # three groups, of several tokens each
        base = replace(self.stated, inputs={}, sizes=sizes, **fields)  # type: ignore[arg-type]
        scale = given(self.reading).get("scale")
        if isinstance(scale, float) and base.scale is None:
            return replace(base, scale=str(scale))
        return base

    @cached_property
    def joins(self) -> tuple[str, ...]:
        """Whether queries and keys may lie on one axis: what to try, in order."""
        roles = {p.role for p in self.cast}
        if self.intent.causal == "top_left" and not roles & {"past", "second", "step"}:
            known = "causal" in self.intent.stated or self.intent.patterned
            stated = known or self.intent.is_self
            return ("always", "never") if stated else ("never", "maybe")
        if self.intent.is_self and "query" in roles:
            return "never", "maybe"
        if self._is_alike and not roles & {"past", "second", "step"}:
            return "never", "always"
        cross = any(p.role == "key" and not _PLAIN_KEY.match(p.name) for p in self.cast)
        return ("never",) if cross or "past" in roles else ("never", "maybe")

    @cached_property
    def _is_alike(self) -> bool:
        """Whether one shape with one word for time is stated for queries, keys and values."""
        said: dict[str, set[tuple[str, ...]]] = {}
        for shape in shapes(self.reading):
            if shape.firm and shape.name:
                said.setdefault(shape.name, set()).add(tuple(w.lower() for w in shape.words))
        content = [p.name for p in self.cast if p.role in ("query", "key", "value")]
        if len(content) < 3 or not all(n in said for n in content):
            return False
        common = set.intersection(*(said[n] for n in content))
        return any("time" in {axis_of(w) for w in words} for words in common)

    def layouts(self, parts: tuple[Part, ...]) -> Layouts:
        """Candidates of the axes; declared ones have no rival."""
        found = layouts(self.reading, parts)
        axes = dict(found.axes)
        for name, text in self.stated.inputs.items():
            if name in axes:
                axes[name] = (Axes(tuple(text.split()), 0.0, "declared"),)
        return replace(found, axes=axes)

    def forms(self, parts: tuple[Part, ...]) -> dict[str, tuple[str, ...]]:
        """Kinds to try for every argument that is no plain array of floats."""
        forms = {
            p.name: forms_of(p.name, self.meanings[p.name], self.reading)
            for p in parts
            if p.name in self.meanings
        }
        words, code = self.reading.words, self.reading.code
        for part in parts:
            if part.role == "ids" and is_grouping(part.name):
                forms[part.name] = ("token_ids",)
            elif part.role == "ids":
                zero = re.search(
                    rf"\b0 is (the )?[<\[]?pad|padding_idx|\b{part.name} [!=]= 0\b",
                    f"{words} {code}",
                )
                tested = re.search(rf"\b{part.name} (!=|==|>) ", code) or zero
                forms[part.name] = ("token_ids_pad0",) if zero and tested else ("token_ids",)
            elif part.role in ("self", "key", "value") and re.search(
                r"zeros? (rows?|vectors?)[^.]*padd|rows of zeros are padding", words
            ):
                forms[part.name] = ("zero_padded",)
            elif part.role in ("query", "other") and re.search(
                rf"\b(h|hidden|\w+), ?(c|cell|\w+) = {part.name}\b(?!\.)", code
            ):
                forms[part.name] = ("state_tuple", "")
        given = {p.name for p in parts}
        forms |= {n: (k,) for n, k in self.stated.kinds.items() if n in given}
        return forms
