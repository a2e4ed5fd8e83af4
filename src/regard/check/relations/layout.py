"""Named axes of arguments and results, and arguments changed at one named place.

A contract's token may be a product (``heads*d_head``, ``batch*beam``); such an axis is opened
into its factors, so that an example, a head or a position can be picked by name wherever it
lies. Results come out in one order: ``(batch, query, features)`` for contexts and
``(batch, heads, query, key)`` for weights, absent axes with size one.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.probe import Probe
from regard.check.relations.base import Bench
from regard.check.relations.opened import MASKS, Axes, keep_of
from regard.check.subject import Outcome

__all__ = ["Axes", "Layout", "keep_of", "layout"]

_QUERY = re.compile(r"(^|_)(q|qs|quer(y|ies)|latents?|targets?|tgt)(_|$)", re.IGNORECASE)
_KEY = re.compile(r"(^|_)(k|ks|keys?)(_|$)", re.IGNORECASE)
_VALUE = re.compile(r"(^|_)(v|vs|vals?|values?)(_|$)", re.IGNORECASE)
_STATE = re.compile(
    r"(^|_)(q|query|s|s_t|h|h_t|state|hidden|decoder|dec|target|tgt|cell|x|word|step)(_|$)",
    re.IGNORECASE,
)


class Layout:
    """What the axes of one bench's arguments and results mean."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.contract, self.sizes = bench, bench.contract, bench.sizes
        self.inputs = {n: self._open(a.split()) for n, a in self.contract.inputs.items()}
        self.outputs = {r.name: self._open(r.axes.split()) for r in self.contract.returns}
        every = {
            n for axes in (*self.inputs.values(), *self.outputs.values()) for n in axes.names
        }
        self.has_batch = "batch" in every
        self.batch = self.sizes["batch"] if self.has_batch else 1
        self.joined = ""  # set where keys come in two arguments, cached and new
        key, query = self.contract.key_axis, self.contract.query_axis
        masks = {n for n, kind in self.contract.kinds.items() if kind in MASKS}
        self.new = self.contract.new_axis or query or ""
        if key is None and "T_mem" in every and query is not None:
            key = f"T_mem+{query}"
        elif key is None and "T_mem+1" in self.contract.every_token:
            key, self.new = "T_mem+1", "1"  # one step, made into a key inside
        whole = any(key in a.split() for n, a in self.contract.inputs.items() if n not in masks)
        if self.new and key == f"T_mem+{self.new}" and not whole:
            self.joined = key
        self.keys, self.queries = self._factors(key), self._factors(query)
        if not self.queries and "beam" in every:
            self.queries = ("beam",)
        self.is_self = bool(self.keys) and self.keys == self.queries

    @property
    def probe(self) -> Probe:
        """The arguments of the plain run."""
        return self.bench.probe

    # -- sizes -----------------------------------------------------------------

    @property
    def n_keys(self) -> int:
        """How many keys each query chooses from."""
        return int(np.prod([self.sizes.value(n) for n in self.keys])) if self.keys else 0

    @property
    def n_queries(self) -> int:
        """How many queries each example has."""
        return int(np.prod([self.sizes.value(n) for n in self.queries])) if self.queries else 1

    @property
    def key_name(self) -> str:
        """Name of the key axis for a message."""
        return "*".join(self.keys)

    # -- roles of the arguments --------------------------------------------------

    @property
    def content(self) -> list[str]:
        """Arguments that carry content: no masks, no learned arrays, no plain numbers."""
        return [n for n in self.probe.content() if not self.is_learned(n)]

    def is_learned(self, name: str) -> bool:
        """Whether an argument is a learned array: features only, and not a lone state.

        A function of one example has no batch axis that would tell a state from a vector.
        """
        if self.is_table(name):
            return True
        is_lone = not self.has_batch and len(self.inputs[name].names) == 1
        return self.probe.is_parameter(name) and not (is_lone and bool(_STATE.search(name)))

    def is_table(self, name: str) -> bool:
        """Whether an argument holds a row for each position or distance, for all examples."""
        if not self.contract.positions or not self.has_batch or name in self.contract.kinds:
            return False
        axes = self.inputs[name]
        return bool(axes.at(*self.keys, *self.queries)) and not axes.at("batch")

    def key_parts(self) -> list[str]:
        """Arguments with content at each key position (values too); queries left out."""
        if self.joined:
            cached = [n for n in self.content if self._is_cached(n)]
            wanted = [self._but_for_time(n) for n in cached]
            new = [
                n
                for n in self.content
                if n not in cached and self._but_for_time(n) in wanted and not _QUERY.search(n)
            ]
            # Queries have the axes of new keys, and come first.
            new = new[max(0, len(new) - len(cached)) :]
            return [*(new or self._projected_inside(cached)), *cached]
        parts = [n for n in self.content if self.inputs[n].at(*self.keys)]
        # Earlier weights and biases lie along the keys and are no keys.
        parts = [n for n in parts if self.contract.kinds.get(n) not in ("weights", "bias")]
        if self.is_self and len(parts) > 1:
            only = [n for n in parts if not _QUERY.search(n)]
            return only if only else parts
        return parts

    def _projected_inside(self, cached: list[str]) -> list[str]:
        """What new keys are made of where none are given: the queries' own input, as in GPT.

        That the new steps are keys too is told by a causal pattern or by a longer cache.
        """
        results = [t for r in self.contract.returns for t in r.axes.split()]
        if not cached or not (self.contract.causal or self.joined in results):
            return []
        return [n for n in self.content if n not in cached and self.inputs[n].at(self.new)][:1]

    @property
    def own_rows(self) -> np.ndarray:
        """Pairs (query, key) that are one position, whose content is both."""
        shift = 0 if self.is_self else self.n_keys - self.n_queries
        same = np.arange(self.n_keys)[None] == np.arange(self.n_queries)[:, None] + shift
        parts = self.key_parts()
        if self.is_self:
            return same if len(parts) == 1 else np.zeros_like(same)
        cached = [n for n in parts if self._is_cached(n)]
        inside = self._projected_inside(cached) if self.joined else []
        if self.joined and not inside and not self.query_parts():
            inside = [n for n in parts if n not in cached]  # latents ask, and are keys too
        return same if inside and parts == [*inside, *cached] else np.zeros_like(same)

    def query_parts(self) -> list[str]:
        """Arguments with content for the queries and for no key."""
        taken = set(self.key_parts())
        return [n for n in self.content if n not in taken and not self._second_memory(n)]

    def value_parts(self) -> list[str]:
        """Arguments that are values and no keys, by their names."""
        parts = self.key_parts()
        named = [n for n in parts if _VALUE.search(n)]
        cached = [n for n in parts if self.joined and self._is_cached(n)]
        if 2 * len(cached) == len(parts):  # new ones first; one of a pair has a telling name
            named = [n for p in zip(parts, cached, strict=False) if {*p} & {*named} for n in p]
        rest = [n for n in parts if n not in named]
        return named if any(_KEY.search(n) for n in rest) or len(rest) == 1 else []

    def _is_cached(self, name: str) -> bool:
        return bool(self.inputs[name].at("T_mem"))

    def _but_for_time(self, name: str) -> tuple[str, ...]:
        """Axes of an argument with one token for cached and new positions."""
        names = list(self.inputs[name].names)
        for token in ("T_mem", self.new):
            if token in names:
                names[names.index(token)] = self.joined
                break
        return tuple(names)

    def _second_memory(self, name: str) -> bool:
        """A memory beside the one whose weights are declared, as (batch, n_features, d_h)."""
        names = self.inputs[name].names
        return "batch" in names and any(n.startswith("n_") for n in names)

    # -- results ----------------------------------------------------------------

    def contexts(self) -> Iterator[str]:
        """Results that are neither weights nor indices, nor keys that are handed back."""
        for returned in self.contract.returns:
            if (
                returned.name != self.contract.weights
                and returned.role not in ("index", "log_weights")
                and not self._is_of_keys(returned.name)
            ):
                yield returned.name

    def _is_of_keys(self, name: str) -> bool:
        """Whether a result has a row for each key and none for a query, as a longer cache."""
        if not self.keys or self.is_self or not (self.queries or self.joined):
            return False
        axes = self.outputs[name]
        return bool(axes.at(*self.keys)) and not axes.at(*self.queries)

    def context(self, outcome: Outcome, name: str) -> np.ndarray | None:
        """A result as (batch, query, features), or None if it has not its declared shape."""
        opened = self._opened(outcome, name)
        if opened is None:
            return None
        array, axes = opened
        batch, query = axes.at("batch"), axes.at(*self.queries)
        rest = tuple(i for i in range(array.ndim) if i not in (*batch, *query))
        array = array.transpose(*batch, *query, *rest)
        n = int(np.prod([axes.shape[i] for i in query])) if query else 1
        return array.reshape(axes.shape[batch[0]] if batch else 1, n, -1)

    def alignment(self, outcome: Outcome) -> np.ndarray | None:
        """The returned weights as (batch, heads, query, key), or None."""
        name = self.contract.weights
        if name is None:
            return None
        opened = self._opened(outcome, name)
        if opened is None:
            return None
        array, axes = opened
        n_tokens = len(self.contract.out_axes(name))
        over = {i % n_tokens for i in self.contract.sums_over}
        key = tuple(i for i, t in enumerate(axes.token) if t in over)
        batch = tuple(i for i in axes.at("batch") if i not in key)
        query = tuple(i for i in axes.at(*self.queries) if i not in key)
        rest = tuple(i for i in range(array.ndim) if i not in (*key, *batch, *query))
        array = array.transpose(*batch, *rest, *query, *key)
        sizes = [
            int(np.prod([axes.shape[i] for i in part])) for part in (batch, rest, query, key)
        ]
        array = array.reshape(sizes)
        role = next(r.role for r in self.contract.returns if r.name == name)
        with np.errstate(over="ignore"):
            return np.exp(array) if role == "log_weights" else array

    def _opened(self, outcome: Outcome, name: str) -> tuple[np.ndarray, Axes] | None:
        array = outcome.get(name)
        if array is None or array.dtype == object or name not in self.outputs:
            return None
        axes = self.outputs[name]
        if tuple(array.shape) != self.sizes.shape(" ".join(self.contract.out_axes(name))):
            return None
        return array.reshape(axes.shape), axes

    # -- who may attend -----------------------------------------------------------

    def pattern(self) -> np.ndarray:
        """What is declared beside the masks, causal and window: (query, key) booleans."""
        rows, total = self.n_queries, self.n_keys
        q, k = np.arange(rows)[:, None], np.arange(total)[None]
        if self.contract.causal == "bottom_right":
            q = q + total - rows
        keep = np.ones((rows, total), dtype=bool)
        if self.contract.causal:
            keep &= k <= q
        if self.contract.window is not None:
            keep &= (q - k < self.contract.window) & (k - q < self.contract.window)
        return keep

    def key_masks(self) -> list[str]:
        """Arguments that say who may be attended to."""
        found = []
        for name, kind in self.contract.kinds.items():
            if kind not in MASKS or name not in self.probe.args:
                continue
            axes = self.inputs[name]
            is_over_keys = kind == "lengths" or bool(axes.at(*self.keys))
            if kind == "lengths":
                mask = self.probe.masks.get(name)
                is_over_keys = mask is None or mask.axis in self.keys
            if is_over_keys:
                found.append(name)
        return found

    def keep(self, name: str, value: Any = None) -> np.ndarray:
        """A mask argument as (batch, query, key) booleans, absent axes with size one."""
        kind = self.contract.kinds[name]
        value = self.probe.args[name] if value is None else value
        array = keep_of(kind, value, self.n_keys)
        if kind == "lengths":
            return array[:, None, :]
        axes = self.inputs[name]
        if kind == "zero_padded":
            axes = Axes(axes.names[:-1], axes.shape[:-1], axes.token[:-1])
        array = array.reshape(axes.shape)
        n_key = len(self.keys)
        place = [i for i, n in enumerate(axes.names) if n in self.keys]
        key = tuple(place[-n_key:])
        batch = axes.at("batch")
        query = tuple(i for i in axes.at(*self.queries) if i not in key)
        for i in reversed(range(array.ndim)):  # heads and unit axes: all alike
            if i not in (*key, *batch, *query):
                array = array.take(0, axis=i)
                key, batch, query = (
                    tuple(j - (j > i) for j in part) for part in (key, batch, query)
                )
        array = array.transpose(*batch, *query, *key)
        rows = self.n_queries if query else 1
        return array.reshape(self.batch if batch else 1, rows, self.n_keys)

    def allowed(self) -> np.ndarray:
        """Who may attend to whom in the plain run: (batch, query, key) booleans."""
        keep = np.broadcast_to(self.pattern(), (self.batch, self.n_queries, self.n_keys)).copy()
        for name in self.key_masks():
            keep &= self.keep(name)
        return keep

    # -- arguments changed ----------------------------------------------------------

    def noised(self, name: str, salt: int = 1, scale: float = 1.0, **where: Any) -> Any:
        """A copy of an argument with fresh content where the named axes have these indices.

        ``where`` maps an axis name to an index, a slice or a list of indices; an axis that
        the argument does not have restricts nothing. Padding that is part of the content
        (zero rows, token 0) stays padding.
        """
        value = self.probe.args[name]
        if isinstance(value, tuple):
            return tuple(self._mixed(name, v, salt, scale, where) for v in value)
        return self._mixed(name, value, salt, scale, where)

    def _mixed(
        self,
        name: str,
        value: np.ndarray,
        salt: int,
        scale: float,
        where: dict[str, Any],
    ) -> np.ndarray:
        axes, kind = self.inputs[name], self.contract.kinds.get(name, "")
        fresh = value.copy()
        if kind.startswith(("token_ids", "indices")):
            vocab = self.sizes[kind[8:]] if kind.startswith("indices:") else self.sizes["vocab"]
            low = 0 if kind.startswith("indices:") else 1
            shift = 1 + np.abs(self.probe.noise(name, value.shape, salt) * 97).astype(int)
            step = shift % max(1, vocab - low - 1) + 1
            other = (value - low + step) % (vocab - low) + low
            if kind == "token_ids_pad0":
                other = np.where(value == 0, 0, other)
        elif kind == "weights":
            e = np.exp(self.probe.noise(name, value.shape, salt))
            other = e / e.sum(-1, keepdims=True)
        else:
            spread = max(0.3, float(value.std())) if value.size > 1 else 1.0
            other = value + scale * spread * self.probe.noise(name, value.shape, salt)
            if kind == "zero_padded":
                other = other * np.any(value != 0, axis=-1, keepdims=True)
        index = self._index(axes, where)
        fresh.reshape(axes.shape)[index] = other.reshape(axes.shape)[index]
        return fresh

    def _index(self, axes: Axes, where: dict[str, Any]) -> tuple[Any, ...]:
        picks = [np.arange(n) for n in axes.shape]
        for i, name in enumerate(axes.names):
            if name in where:
                picks[i] = np.atleast_1d(np.arange(axes.shape[i])[where[name]])
        return np.ix_(*picks) if picks else ()

    def at_key(self, j: int, salt: int = 1, scale: float = 1.0) -> dict[str, Any]:
        """Arguments with other content at key position ``j``."""
        if self.joined:
            cached = self.sizes["T_mem"]
            changes = {}
            for name in self.key_parts():
                is_past = self._is_cached(name)
                if is_past and j < cached:
                    changes[name] = self.noised(name, salt, scale, T_mem=j)
                elif not is_past and j >= cached:
                    changes[name] = self.noised(name, salt, scale, **{self.new: j - cached})
            return changes
        index = np.unravel_index(j, [self.sizes.value(n) for n in self.keys])
        where = {n: int(i) for n, i in zip(self.keys, index, strict=True)}
        return {n: self.noised(n, salt, scale, **where) for n in self.key_parts()}

    # -- reading of tokens ------------------------------------------------------------

    def _factors(self, token: str | None) -> tuple[str, ...]:
        if token is None:
            return ()
        if re.search(r"[-+/()]", token):
            return (token,)
        return tuple(token.split("*"))

    def _open(self, tokens: list[str]) -> Axes:
        names: list[str] = []
        owner: list[int] = []
        for i, token in enumerate(tokens):
            for factor in self._factors(token):
                names.append(factor)
                owner.append(i)
        shape = tuple(int(self.sizes.value(n)) for n in names)
        return Axes(tuple(names), shape, tuple(owner))


def layout(bench: Bench) -> Layout:
    """The layout of a bench, made once."""
    found = bench.__dict__.get("_layout")
    if found is None:
        found = bench.__dict__["_layout"] = Layout(bench)
    return found
