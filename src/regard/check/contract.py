"""What an author declares about their own attention code.

A contract says which axes the arguments and results have, which argument is a mask and with
which polarity, which score and scale are meant. It never says what is wrong. What a contract
leaves out is guessed by :mod:`regard.check.roles`, and every guess is recorded in
:attr:`Contract.guessed` so that a finding can say on which guess it stands.
"""

import difflib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.check.expressions import checked_sizes, refuse_without_value
from regard.check.sizes import names_in
from regard.errors import InputError, explain

__all__ = ["KINDS", "Contract", "Returned", "read_contract"]

KINDS = (
    "keep",
    "drop",
    "keep_int",
    "drop_int",
    "keep_uint8",
    "keep_float01",
    "drop_float01",
    "additive",
    "bias",
    "lengths",
    "token_ids",
    "token_ids_pad0",
    "token_lists",
    "state_tuple",
    "weights",
    "zero_padded",
)
_SCORES = (
    *("additive", "dot", "general", "concat", "scaled_dot", "location", "pooling"),
    *("cosine", "none"),
)
_FIELDS = (
    *("target", "init", "inputs", "kinds", "values", "returns", "weights", "score", "scale"),
    *("activation", "causal", "window", "positions", "convention", "mode", "dtype", "sizes"),
    *("layer", "padding", "all_masked", "mask", "random", "reweighted"),
    "sparse",
)
# What the command line calls some of them, and people try.
_OTHERWISE = {"axes": "inputs", "kind": "kinds", "value": "values", "size": "sizes"}
_OTHERWISE |= {"paper": "convention", "outputs": "returns", "return": "returns"}


@dataclass(frozen=True)
class Returned:
    """One result: its name, its axes, and its role where it is no plain context."""

    name: str
    axes: str
    role: str = ""


@dataclass(frozen=True)
class Contract:
    """The statements of ``check-contract``: see the module's text.

    ``inputs`` maps argument names, in call order, to axes such as ``"batch T_enc d_h"``;
    an empty text is a scalar. ``weights`` names the result that is the alignment, if it is
    returned, and ``sums_over`` the axes (indices) over which it sums to one.

    ``positions`` may be "content": what lies between a key and a query counts in their score,
    as gates that forget do, or earlier queries that choose what later ones no longer see.
    ``random`` says that something is drawn in eval mode too: the code is then run with every
    draw at its mean. ``reweighted`` says that weights are changed after the softmax, so that
    they sum to nothing known. ``sparse`` says that a query reads some of the keys that it may
    read, which ones is the code's own choice: blocks, tokens that see all, sampled points.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    init: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    returns: tuple[Returned, ...] = ()
    weights: str | None = None
    sums_over: tuple[int, ...] = ()
    score: str | None = None
    scale: str | None = None
    activation: str = "tanh"
    causal: str | None = None  # "top_left" | "bottom_right"
    window: int | None = None
    positions: bool | str = False
    convention: str | None = None  # "bahdanau" | "luong"
    mode: str = "eval"
    dtype: str = "float32"
    sizes: Mapping[str, int] = field(default_factory=dict)
    layer: str | None = None
    padding: str = "right"
    all_masked: str | None = None
    mask: str | None = None  # "keep" | "drop": what True means in masks without a kind
    random: bool = False
    reweighted: bool = False
    sparse: bool = False
    target: str = ""
    # What was not declared but guessed: field or argument -> how, with the flag to change it.
    guessed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], where: str = "contract") -> "Contract":
        """Read a contract from the JSON or TOML form.

        Raises
        ------
        InputError
            If a key is unknown or a value is not of the form it must have.
        """
        for key in data:
            if key not in _FIELDS:
                near = difflib.get_close_matches(str(key), _FIELDS, 1)
                near = [_OTHERWISE[key]] if key in _OTHERWISE else near
                raise _bad(where, f"one of {', '.join(_FIELDS)}", key, near)
        inputs = _texts(where, "inputs", data.get("inputs") or {})
        kinds = _texts(where, "kinds", data.get("kinds") or {})
        for name, kind in kinds.items():
            if kind not in KINDS and not kind.startswith("indices:"):
                near = difflib.get_close_matches(kind, KINDS, 1)
                expected = f"kinds.{name} one of {', '.join(KINDS)} or indices:NAME"
                raise _bad(where, expected, kind, near)
            if inputs and name not in inputs:
                near = difflib.get_close_matches(name, list(inputs), 1)
                raise _bad(where, f"kinds of the inputs {', '.join(inputs)}", name, near)
        returns = tuple(_returned(where, r) for r in data.get("returns") or ())
        weights = data.get("weights") or {}
        output, over = _weights(where, weights, returns)
        init, values = dict(data.get("init") or {}), dict(data.get("values") or {})
        sizes = checked_sizes(where, data.get("sizes") or {})
        scale = None if data.get("scale") is None else str(data["scale"])
        refuse_without_value(
            where,
            sizes,
            {f"inputs.{name}": axes for name, axes in inputs.items()}
            | {f"returns.{r.name}": r.axes for r in returns},
            {f"init.{name}": value for name, value in init.items()}
            | {f"values.{name}": value for name, value in values.items()}
            | ({"scale": scale} if scale not in (None, "learned") else {}),
        )
        return cls(
            inputs=inputs,
            init=init,
            kinds=kinds,
            values=values,
            returns=returns,
            weights=output,
            sums_over=over,
            score=_one_of(where, "score", data.get("score"), _SCORES),
            scale=scale,
            activation=str(data.get("activation") or "tanh"),
            causal=_causal(where, data.get("causal")),
            window=_window(where, data.get("window")),
            positions=data.get("positions") or False,
            convention=_one_of(
                where, "convention", data.get("convention"), ("bahdanau", "luong")
            ),
            mode=_one_of(where, "mode", data.get("mode"), ("eval", "train")) or "eval",
            dtype=_one_of(
                where,
                "dtype",
                data.get("dtype"),
                ("float16", "bfloat16", "float32", "float64"),
            )
            or "float32",
            sizes=sizes,
            layer=data.get("layer"),
            padding=_one_of(where, "padding", data.get("padding"), ("left", "right"))
            or "right",
            all_masked=_one_of(where, "all_masked", data.get("all_masked"), ("zeros", "any")),
            mask=_one_of(where, "mask", data.get("mask"), ("keep", "drop")),
            random=_switch(where, "random", data.get("random")),
            reweighted=_switch(where, "reweighted", data.get("reweighted")),
            sparse=_switch(where, "sparse", data.get("sparse")),
            target=str(data.get("target") or ""),
        )

    def with_(self, **changes: Any) -> "Contract":
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def axes(self, name: str) -> tuple[str, ...]:
        """Axis tokens of an input, for instance ``("batch", "T_enc", "d_h")``."""
        return tuple(self.inputs[name].split())

    def out_axes(self, name: str) -> tuple[str, ...]:
        """Axis tokens of a result."""
        return next(tuple(r.axes.split()) for r in self.returns if r.name == name)

    @property
    def out_names(self) -> tuple[str, ...]:
        """Names of the results in order."""
        return tuple(r.name for r in self.returns)

    @property
    def every_axis(self) -> tuple[str, ...]:
        """Every named axis of inputs, results, constructor and values, each once."""
        texts = [*self.inputs.values(), *(r.axes for r in self.returns)]
        given = list(self.init.values())
        given += [w for v in given if isinstance(v, Mapping) for w in v.values()]
        given += self.values.values()
        texts += [v for v in given if isinstance(v, str)]
        return tuple(dict.fromkeys(name for text in texts for name in names_in(text)))

    @property
    def every_token(self) -> frozenset[str]:
        """Every axis of inputs and results as it is written, sums and products whole."""
        texts = (*self.inputs.values(), *(r.axes for r in self.returns))
        return frozenset(token for text in texts for token in text.split())

    @property
    def key_axis(self) -> str | None:
        """Token of the axis that queries choose from: ``T_enc``, ``T``, ``T_mem+1``."""
        if self.weights in self.out_names and self.sums_over:
            tokens = self.out_axes(str(self.weights))
            return tokens[self.sums_over[-1]]
        tokens = tuple(t for axes in self.inputs.values() for t in axes.split())
        for wanted in ("T_enc", "T_mem+T_dec", "T_mem+T"):
            if wanted in tokens:
                return wanted
        if self.new_axis is not None:
            return f"T_mem+{self.new_axis}"
        if "T" in tokens:
            return "T"
        if "height" in tokens and "width" in tokens:
            return "height*width"
        return None

    @property
    def new_axis(self) -> str | None:
        """Token of the keys that join a cache of ``T_mem``: ``1`` in a step, else ``T_dec``.

        Every cached argument has a new one with the same axes but for this one, and there is
        a query beside them; a memory that is read as it is has no such partner.
        """
        given = [tuple(a.split()) for n, a in self.inputs.items() if n not in self.kinds]
        given = [axes for axes in given if axes]
        cached = Counter(axes for axes in given if "T_mem" in axes)
        for token in ("T_dec", "T", "1") if cached else ():
            new = Counter[tuple[str, ...]]()
            for axes, count in cached.items():
                new[tuple(token if t == "T_mem" else t for t in axes)] += count
            if new <= Counter(given) and new.total() + cached.total() < len(given):
                return token
        return None

    @property
    def query_axis(self) -> str | None:
        """Token of the axis of queries, ``None`` where there is a single query."""
        tokens = {t for axes in self.inputs.values() for t in axes.split()}
        tokens |= {t for r in self.returns for t in r.axes.split()}
        for wanted in ("T_dec", "T"):
            if wanted in tokens:
                return wanted
        if {"height", "width"} <= tokens:
            return "height*width"
        return None

    @property
    def is_self_attention(self) -> bool:
        """Whether queries and keys lie on one axis."""
        return self.key_axis is not None and self.key_axis == self.query_axis


def read_contract(path: str | Path) -> Contract:
    """Read a contract file, JSON or TOML by its suffix.

    Raises
    ------
    InputError
        If the file is missing, cannot be parsed, or states something unknown.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            explain(
                "check: the contract cannot be read",
                expected="a JSON or TOML file",
                got=f"{path}: {error}",
            )
        ) from None
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            explain(
                "check: the contract cannot be parsed",
                expected=f"{'TOML' if path.suffix == '.toml' else 'JSON'} in {path}",
                got=str(error),
            )
        ) from None
    if not isinstance(data, dict):
        raise _bad(str(path), "a table of statements", type(data).__name__, ())
    return Contract.from_mapping(data, str(path))


def _bad(where: str, expected: str, got: Any, near: Any) -> InputError:
    return InputError(
        explain(
            f"check: {where} states something unknown",
            expected=expected,
            got=repr(got),
            help=f"did you mean {near[0]!r}?" if near else None,
        )
    )


def _texts(where: str, key: str, data: Any) -> dict[str, str]:
    if not isinstance(data, Mapping) or not all(isinstance(v, str) for v in data.values()):
        raise _bad(where, f"{key}: a table of texts", json.dumps(data)[:60], ())
    return {str(k): v for k, v in data.items()}


def _one_of(where: str, key: str, value: Any, allowed: tuple[str, ...]) -> str | None:
    if value is None or value is False:
        return None
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, 1)
        raise _bad(where, f"{key} one of {', '.join(allowed)}", value, near)
    return str(value)


def _switch(where: str, key: str, value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise _bad(where, f"{key}: true or false", value, ())
    return bool(value)


def _causal(where: str, value: Any) -> str | None:
    if value is True:
        return "top_left"
    return _one_of(where, "causal", value, ("top_left", "bottom_right"))


def _window(where: str, value: Any) -> int | None:
    if value is None or value is False:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _bad(where, "window: a count of keys of at least 1", value, ())
    return value


def _returned(where: str, data: Any) -> Returned:
    if not isinstance(data, Mapping) or not isinstance(data.get("axes"), str):
        raise _bad(where, 'returns: tables {"name": ..., "axes": ...}', str(data)[:60], ())
    return Returned(str(data.get("name", "")), data["axes"], str(data.get("role") or ""))


def _weights(
    where: str, data: Mapping[str, Any], returns: tuple[Returned, ...]
) -> tuple[str | None, tuple[int, ...]]:
    if not data:
        return None, ()
    output = data.get("output")
    names = [r.name for r in returns]
    if output is not None and not names:
        pass  # one of the results that are guessed: they are looked at later
    elif output not in names:
        near = difflib.get_close_matches(str(output), names, 1)
        raise _bad(where, f"weights.output one of the results {', '.join(names)}", output, near)
    over = data.get("sums_to_one_over", -1)
    over = tuple(over) if isinstance(over, list | tuple) else (over,)
    tokens = next((r.axes.split() for r in returns if r.name == output), None)
    for i in over:
        count = 0 if tokens is None else len(tokens)
        if type(i) is not int or (tokens is not None and not -count <= i < count):
            expected = (
                f"weights.sums_to_one_over: numbers of the {count or ''} axes, -1 the last"
            )
            raise _bad(where, expected, i, ())
    return str(output), over
