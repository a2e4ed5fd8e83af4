"""The part that every argument plays."""

import pytest

from regard.check.roles.cast import cast
from regard.check.roles.reading import read


def parts(source: str, entry: str = "attend") -> dict[str, str]:
    return {p.name: p.role for p in cast(read(source, entry))}


@pytest.mark.parametrize(
    ("arguments", "roles"),
    [
        ("q, k, v", ["query", "key", "value"]),
        ("state, encoder, W, U, v", ["query", "key", "array", "array", "vector"]),
        ("source, memory_bank, lengths", ["query", "key", "lengths"]),
        ("x, memory, x_mask", ["query", "key", "mask"]),
        ("h_t, H_s", ["query", "key"]),
        ("x, num_heads", ["self", "number"]),
        ("query, key, value, past_key, past_value", ["query", "key", "value", "past", "past"]),
    ],
)
def test_arguments_are_read_together(arguments, roles):
    source = f"def attend({arguments}):\n    return {arguments.split(',')[0]}\n"
    assert list(parts(source).values()) == roles


def test_what_an_embedding_looks_up_is_ids():
    source = (
        "import torch.nn as nn\n"
        "class Reader(nn.Module):\n"
        "    def __init__(self, vocab, width):\n"
        "        self.words = nn.Embedding(vocab, width)\n"
        "    def forward(self, x):\n"
        "        return self.words(x)\n"
    )
    assert parts(source, "Reader") == {"x": "ids"}


def test_a_switch_keeps_its_default_and_weights_are_asked_for():
    source = "def attend(q, k, causal=False, need_weights=False):\n    return q\n"
    found = {p.name: p.value for p in cast(read(source, "attend"))}
    assert "causal" not in found
    assert found["need_weights"] is True


def test_a_mask_belongs_to_the_argument_that_its_name_mentions():
    source = "def attend(x, memory, memory_mask):\n    return x\n"
    about = {p.name: p.about for p in cast(read(source, "attend"))}
    assert about["memory_mask"] == "memory"


def test_a_step_that_may_be_missing_counts_and_is_left_out():
    source = "class A:\n    def forward(self, layer_in, mask=None, step=None):\n        pass\n"
    assert parts(source, "A") == {"layer_in": "self", "mask": "mask"}


def test_what_a_masked_softmax_takes_are_scores():
    source = (
        "import torch\n\n\n"
        "def masked_softmax(vector, mask):\n"
        "    return torch.nn.functional.softmax(vector * mask, dim=-1)\n"
    )
    assert parts(source, "masked_softmax") == {"vector": "scores", "mask": "mask"}
    other = source.replace("masked_softmax", "attend")
    assert parts(other, "attend")["vector"] != "scores"
