"""Mistakes that people make, on every entry point: what raises, when, and what it says.

The culprit of each mistake is declared here, by hand; the whole texts are committed beside this
file as a table to be read. `pytest tests/errors --snapshot-update` writes them anew.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import regard as rg

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from regard import nn  # noqa: E402

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN, D_V, HEADS = 2, 3, 13, 5, 7, 11, 17, 3
ARITHMETIC = ("mm", "bmm", "addmm", "matmul", "tanh", "softmax", "_softmax", "exp", "einsum")


class Text(SingleFileSnapshotExtension):
    """One readable file a snapshot."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class Watch(TorchDispatchMode):
    """Notes every operation that computes something."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in ARITHMETIC:
            self.done.append(name)
        return func(*args, **(kwargs or {}))


def t(*shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.float64)


def yes(*shape: int) -> Any:
    return torch.ones(*shape, dtype=torch.bool)


PARAMS = {
    "additive": {"W_a": t(D_ATTN, D_S), "U_a": t(D_ATTN, D_H), "v_a": t(D_ATTN)},
    "general": {"W": t(D_S, D_H)},
    "concat": {"W_c": t(D_ATTN, D_S + D_H), "v_c": t(D_ATTN)},
}

# ruff: noqa: E501 - one mistake a line reads best

# What each call gets when nothing is wrong. A mistake replaces or adds one argument.
SEQUENCE = {
    "query": t(BATCH, T_DEC, D_S),
    "key": t(BATCH, T_ENC, D_H),
    "value": t(BATCH, T_ENC, D_V),
    "mask": yes(BATCH, T_DEC, T_ENC),
}
STEP = {"decoder_state": t(BATCH, D_S), "encoder_states": t(BATCH, T_ENC, D_H)}

Mistake = tuple[str, dict[str, Any], str, type]


def sequence_mistakes(d_s: int, d_h: int) -> list[Mistake]:
    """Mistakes in query, key, value and masks; sizes as the entry point has them."""
    shape, backend, mask = rg.ShapeError, rg.BackendError, rg.MaskError
    return [
        ("query without its step axis", {"query": t(BATCH, d_s)}, "query", shape),
        ("query of batch 1", {"query": t(1, T_DEC, d_s)}, "query|key", shape),
        ("key of batch 1", {"key": t(1, T_ENC, d_h)}, "key", shape),
        ("key without its batch axis", {"key": t(T_ENC, d_h)}, "key", shape),
        (
            "key and value of different lengths",
            {"value": t(BATCH, T_ENC + 6, D_V)},
            "value",
            shape,
        ),
        ("value of another batch", {"value": t(BATCH + 3, T_ENC, D_V)}, "value", shape),
        ("mask of the wrong length", {"mask": yes(BATCH, T_DEC, T_ENC - 2)}, "mask", shape),
        ("mask with one row for all", {"mask": yes(BATCH, 1, T_ENC)}, "mask", shape),
        ("mask for one example", {"mask": yes(1, T_DEC, T_ENC)}, "mask", shape),
        ("mask over the keys alone", {"mask": yes(BATCH, T_ENC)}, "mask", shape),
        ("mask transposed", {"mask": yes(BATCH, T_ENC, T_DEC)}, "mask", shape),
        ("mask of integers", {"mask": yes(BATCH, T_DEC, T_ENC).long()}, "mask", mask),
        ("mask of floats", {"mask": t(BATCH, T_DEC, T_ENC)}, "mask", mask),
        ("mask as a list", {"mask": [[True] * T_ENC] * T_DEC}, "mask", backend),
        ("query of integers", {"query": t(BATCH, T_DEC, d_s).long()}, "query", backend),
        ("key in single precision", {"key": t(BATCH, T_ENC, d_h).float()}, "key", backend),
        ("query from NumPy", {"query": t(BATCH, T_DEC, d_s).numpy()}, "query|key", backend),
        ("key as nested lists", {"key": t(BATCH, T_ENC, d_h).tolist()}, "key", backend),
        (
            "lengths for another batch",
            {"key_lengths": torch.ones(3).long()},
            "key_lengths",
            shape,
        ),
        ("lengths as floats", {"key_lengths": torch.ones(BATCH)}, "key_lengths", backend),
        ("a length above T_enc", {"key_lengths": torch.tensor([3, 14])}, "key_lengths", mask),
        ("a negative length", {"key_lengths": torch.tensor([3, -1])}, "key_lengths", mask),
    ]


CAUSAL: Mistake = ("causal without a corner", {"causal": True}, "causal", rg.ConventionError)


def step_mistakes() -> list[Mistake]:
    """Mistakes in one decoder step's arguments."""
    shape, backend = rg.ShapeError, rg.BackendError
    return [
        ("a sequence of states", {"decoder_state": t(BATCH, 1, D_S)}, "decoder_state", shape),
        ("states of batch 1", {"encoder_states": t(1, T_ENC, D_H)}, "encoder_states", shape),
        ("one example's states", {"encoder_states": t(T_ENC, D_H)}, "encoder_states", shape),
        ("states in half precision", {"encoder_states": t(BATCH, T_ENC, D_H).half()},
         "encoder_states", backend),
        ("state of integers", {"decoder_state": t(BATCH, D_S).int()}, "decoder_state", backend),
        ("mask over steps too", {"mask": yes(BATCH, 1, T_ENC)}, "mask", shape),
        ("mask of integers", {"mask": yes(BATCH, T_ENC).int()}, "mask", rg.MaskError),
    ]  # fmt: skip


PARAMETER_MISTAKES: dict[str, list[Mistake]] = {
    "additive": [
        ("W_a transposed", {"W_a": t(D_S, D_ATTN)}, "W_a", rg.ShapeError),
        ("U_a transposed", {"U_a": t(D_H, D_ATTN)}, "U_a", rg.ShapeError),
        ("U_a made for the query", {"U_a": t(D_ATTN, D_S)}, "U_a|key", rg.ShapeError),
        ("v_a as a column", {"v_a": t(D_ATTN, 1)}, "v_a", rg.ShapeError),
        ("v_a of another size", {"v_a": t(D_ATTN + 2)}, "v_a", rg.ShapeError),
    ],
    "general": [
        ("W transposed", {"W": t(D_H, D_S)}, "W", rg.ShapeError),
        ("W as a vector", {"W": t(D_S)}, "W", rg.ShapeError),
    ],
    "concat": [
        ("W_c for the query alone", {"W_c": t(D_ATTN, D_S)}, "W_c", rg.ShapeError),
        ("v_c of another size", {"v_c": t(D_ATTN + 2)}, "v_c|W_c", rg.ShapeError),
    ],
    "dot": [("sizes that differ", {"key": t(BATCH, T_ENC, D_H)}, "key|query", rg.ShapeError)],
    "scaled_dot": [
        ("sizes that differ", {"key": t(BATCH, T_ENC, D_H)}, "key|query", rg.ShapeError)
    ],
}


def attend(score: str) -> Callable[..., Any]:
    return lambda **given: rg.attend(
        given.pop("query"), given.pop("key"), given.pop("value"), score=score, **given
    )


def entry_points() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], list[Mistake]]]:
    """Return name, call, right arguments and mistakes of every way in."""
    for score in ("additive", "general", "concat", "dot", "scaled_dot"):
        params = PARAMS.get(score, {})
        d_h = D_S if score in ("dot", "scaled_dot") else D_H
        right = {**SEQUENCE, "key": t(BATCH, T_ENC, d_h), **params}
        mistakes = [*sequence_mistakes(D_S, d_h), CAUSAL, *PARAMETER_MISTAKES[score]]
        yield f"attend(score={score!r})", attend(score), right, mistakes
        function = getattr(rg.scores, score)
        pair = {name: right[name] for name in ("query", "key")}
        of_pair = [m for m in mistakes if set(m[1]) <= {"query", "key", *params}]
        yield f"scores.{score}", function, {**pair, **params}, of_pair
    for name, params in (("additive", "W_a U_a v_a"), ("general", "W"), ("concat", "W_c v_c")):
        function = getattr(rg, f"{name}_attention")
        right = {**STEP, **{p: PARAMS[name][p] for p in params.split()}}
        own = [m for m in PARAMETER_MISTAKES[name] if m[0] != "U_a made for the query"]
        yield f"{name}_attention", function, right, [*step_mistakes(), *own]
    wide = [("sizes that differ", {"decoder_state": t(BATCH, D_S)}, "encoder_states|decoder_state",
             rg.ShapeError)]  # fmt: skip
    equal = {**STEP, "decoder_state": t(BATCH, D_H)}
    yield "dot_attention", rg.dot_attention, equal, wide
    many = {"query": t(BATCH, T_DEC, HEADS * D_S), "key": t(BATCH, T_ENC, HEADS * D_S),
            "value": t(BATCH, T_ENC, HEADS * D_V), "heads": HEADS}  # fmt: skip
    yield "multi_head", rg.multi_head, many, [
        ("heads that do not divide", {"heads": 2}, "query", rg.ShapeError),
        ("a mask for other heads", {"mask": yes(BATCH, 5, T_DEC, T_ENC)}, "mask", rg.ShapeError),
        ("a parameter for one head", {"score": "general", "W": t(D_S, D_S)}, "W", rg.ShapeError),
    ]  # fmt: skip
    local = {**SEQUENCE, "D": 2.0, "score": "general", "W": PARAMS["general"]["W"]}
    reach = ("a window without width", {"D": 0.0}, "D", rg.ConventionError)
    lone = ("W_p without v_p", {"W_p": t(19, D_S)}, "v_p", rg.ConventionError)
    yield "local_attend", rg.local_attend, local, [*sequence_mistakes(D_S, D_H), reach, lone]
    yield from self_attention()
    yield from modules()
    yield from decoders()


def self_attention() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], list[Mistake]]]:
    """One sequence, and what normalises its scores."""
    shape, backend = rg.ShapeError, rg.BackendError
    x, square = t(BATCH, T_ENC, D_S), yes(BATCH, T_ENC, T_ENC)
    right = {"x": x, "W_q": t(D_ATTN, D_S), "W_k": t(D_ATTN, D_S), "W_v": t(D_V, D_S)}
    yield (
        "self_attention",
        rg.self_attention,
        right,
        [
            ("W_q transposed", {"W_q": t(D_S, D_ATTN)}, "W_q", shape),
            ("W_v for another sequence", {"W_v": t(D_V, D_H)}, "W_v", shape),
            ("W_k into another space", {"W_k": t(D_ATTN + 2, D_S)}, "W_k|W_q", shape),
            ("a mask over the keys alone", {"mask": yes(BATCH, T_ENC)}, "mask", shape),
            ("a mask of integers", {"mask": square.int()}, "mask", rg.MaskError),
            (
                "lengths for another batch",
                {"key_lengths": torch.ones(3).long()},
                "key_lengths",
                shape,
            ),
            ("a sequence in single precision", {"x": x.float()}, "x|W_q", backend),
        ],
    )
    yield (
        "softmax",
        rg.softmax,
        {"scores": t(BATCH, T_DEC, T_ENC)},
        [
            (
                "a mask of the wrong length",
                {"mask": yes(BATCH, T_DEC, T_ENC - 2)},
                "mask",
                shape,
            ),
            ("a mask of floats", {"mask": t(BATCH, T_DEC, T_ENC)}, "mask", rg.MaskError),
            ("scores of integers", {"scores": t(T_DEC, T_ENC).long()}, "scores", backend),
        ],
    )


def module_call(module: Any) -> Callable[..., Any]:
    return lambda **given: module(
        given.pop("query"), given.pop("key"), given.pop("value"), **given
    )


def modules() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], list[Mistake]]]:
    """The nn modules, float64."""
    wrong_query = ("query of another size", {"query": t(BATCH, T_DEC, D_S + 8)}, "query",
                   rg.ShapeError)  # fmt: skip
    wrong_key = ("key of another size", {"key": t(BATCH, T_ENC, D_H + 6)}, "key", rg.ShapeError)
    for name, module in (
        ("nn.AdditiveAttention", nn.AdditiveAttention(D_S, D_H, D_ATTN)),
        ("nn.LuongAttention(general)", nn.LuongAttention(D_S, D_H, "general")),
        ("nn.LuongAttention(concat)", nn.LuongAttention(D_S, D_H, "concat", D_ATTN)),
    ):
        mistakes = [*sequence_mistakes(D_S, D_H), wrong_query, wrong_key]
        yield name, module_call(module.double()), SEQUENCE, mistakes
    d = HEADS * D_S
    attention = nn.MultiHeadAttention(d, HEADS).double()
    right = {"query": t(BATCH, T_DEC, d), "key": t(BATCH, T_ENC, d), "value": t(BATCH, T_ENC, d),
             "mask": yes(BATCH, T_DEC, T_ENC)}  # fmt: skip
    yield (
        "nn.MultiHeadAttention",
        module_call(attention),
        right,
        [m for m in [*sequence_mistakes(d, d), CAUSAL] if m[0] != "value of another batch"],
    )


def decoders() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], list[Mistake]]]:
    """The decoders' doors: prepare, forward, step, start."""
    shape = rg.ShapeError
    states, inputs, first = t(BATCH, T_ENC, D_H), t(BATCH, T_DEC, D_ATTN), t(BATCH, D_S)
    for kind, decoder in (
        ("BahdanauDecoder", nn.BahdanauDecoder(D_ATTN, D_S, D_H, 19)),
        ("LuongDecoder", nn.LuongDecoder(D_ATTN, D_S, D_H, score="general")),
    ):
        decoder.double()
        memory = decoder.prepare(states)
        other = nn.BahdanauDecoder(D_ATTN, D_S, D_H, 19).double()
        yield f"nn.{kind}.prepare", decoder.prepare, {"encoder_states": states}, [
            ("states without a batch", {"encoder_states": t(T_ENC, D_H)}, "encoder_states", shape),
            ("states of another size", {"encoder_states": t(BATCH, T_ENC, D_S)}, "encoder_states",
             shape),
            ("states in single precision", {"encoder_states": states.float()}, "encoder_states",
             rg.BackendError),
            ("lengths for another batch", {"key_lengths": torch.ones(3).long()}, "key_lengths",
             shape),
        ]  # fmt: skip
        right = {"inputs": inputs, "memory": memory, "initial_state": first}
        yield f"nn.{kind}", decoder, right, [
            ("inputs of one step", {"inputs": t(BATCH, D_ATTN)}, "inputs", shape),
            ("inputs of another size", {"inputs": t(BATCH, T_DEC, D_S)}, "inputs", shape),
            ("a state of batch 1", {"initial_state": t(1, D_S)}, "initial_state", shape),
            ("a state of the encoder's size", {"initial_state": t(BATCH, D_H)}, "initial_state",
             shape),
            ("another decoder's memory", {"memory": other.prepare(states)}, "memory",
             rg.ConventionError),
        ]  # fmt: skip
        right = {"input": t(BATCH, D_ATTN), "memory": memory, "state": decoder.start(first)}
        yield f"nn.{kind}.step", decoder.step, right, [
            ("a bare tensor as state", {"state": first}, "state", rg.ConventionError),
            ("another decoder's state", {"state": other.start(first)}, "state",
             rg.ConventionError),
            ("an input with a step axis", {"input": t(BATCH, 1, D_ATTN)}, "input", shape),
        ]  # fmt: skip
        yield f"nn.{kind}.start", decoder.start, {"initial_state": first}, [
            ("a state with layers", {"initial_state": t(1, BATCH, D_S)}, "initial_state", shape),
            ("a state of another size", {"initial_state": t(BATCH, D_H)}, "initial_state", shape),
        ]  # fmt: skip


POINTS = {name: (call, right, mistakes) for name, call, right, mistakes in entry_points()}


def _culprits(text: str) -> set[str]:
    """Return the names in backticks on the first line."""
    return set(text.partition("\n")[0].split("`")[1::2])


@pytest.mark.parametrize("point", POINTS)
def test_the_right_arguments_are_accepted(point):
    call, right, _ = POINTS[point]
    call(**right)


@pytest.mark.parametrize("point", POINTS)
def test_every_mistake_names_its_culprit_before_any_arithmetic(point, snapshot):
    call, right, mistakes = POINTS[point]
    told = []
    for what, changed, culprit, kind in mistakes:
        with Watch() as watch, pytest.raises(kind) as caught:
            call(**{**right, **changed})
        text = str(caught.value)
        if culprit == "causal":
            assert "causal" in text.partition("\n")[0], text
        else:
            assert _culprits(text) & set(culprit.split("|")), f"{point}, {what}:\n{text}"
        assert "expected" in text, text
        assert "got" in text, text
        assert watch.done == [], f"{point}, {what}: {watch.done} ran first"
        told.append(f"# {what}\n{kind.__name__}: {text}\n")
    assert "\n".join(told) == snapshot(extension_class=Text)


def test_there_are_more_than_seven_and_twenty_mistakes():
    kinds = {
        (what, culprit)
        for _, _, mistakes in POINTS.values()
        for what, _, culprit, _ in mistakes
    }
    assert len(kinds) >= 27
