"""Shapes that authors write down."""

import pytest

from regard.check.roles.reading import read
from regard.check.roles.statements import shapes


def stated(source: str, entry: str = "attend") -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for shape in shapes(read(source, entry)):
        if shape.firm:
            found.setdefault(shape.name, shape.words)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q: (batch, T_dec, d); k, v: (batch, T_enc, d).", {"q", "k", "v"}),
        ("Args:\n        q (Tensor): queries of shape ``[B, T, D]``\n", {"q"}),
        ("Sums.\n\n    :param k: keys, shape (batch_size, src_len, size)\n", {"k"}),
    ],
)
def test_shapes_in_docstrings_belong_to_the_arguments_they_follow(text, expected):
    source = f'def attend(q, k, v):\n    """{text}"""\n    return q\n'
    assert set(stated(source)) == expected


def test_a_comment_in_the_style_of_tutorials_states_a_shape():
    source = (
        "def attend(hidden, memory):\n"
        "    #hidden = [batch size, dec hid dim]\n"
        "    #memory = [src len, batch size, enc hid dim * 2]\n"
        "    return hidden\n"
    )
    assert stated(source) == {
        "hidden": ("batch size", "dec hid dim"),
        "memory": ("src len", "batch size", "enc hid dim * 2"),
    }


def test_a_comment_before_the_first_statement_speaks_of_arguments_and_a_later_one_need_not():
    source = (
        "def attend(hidden, memory):\n"
        "    # hidden (B, 1, H), True = whatever\n"
        "    memory = memory.transpose(0, 1)  # memory (T, B, H)\n"
        "    return hidden\n"
    )
    assert stated(source) == {"hidden": ("B", "1", "H")}


def test_an_annotation_states_a_shape():
    source = 'def attend(q: Float[Tensor, "batch T_dec d"]):\n    return q\n'
    assert stated(source) == {"q": ("batch", "T_dec", "d")}


def test_a_comment_beside_an_argument_states_its_shape():
    source = "def attend(\n    q,  # (batch, steps, dim)\n    k,\n):\n    return q\n"
    assert stated(source) == {"q": ("batch", "steps", "dim")}


def test_the_shape_of_a_result_is_not_that_of_an_argument():
    source = 'def attend(q):\n    """Returns: (batch, T_dec, d) for each q."""\n    return q\n'
    assert stated(source) == {}


def test_a_product_sign_between_shapes_is_no_argument_called_x():
    source = (
        "def attend(x):\n    y = x @ x.mT  # (B, T, D) x (B, D, T) -> (B, T, T)\n    return y\n"
    )
    assert stated(source) == {}


def test_arguments_of_a_call_are_no_shape():
    source = "def attend(keys):\n    # keys.transpose(1, 2) swaps them\n    return keys\n"
    assert stated(source) == {}


def test_a_helper_says_what_it_is_given():
    source = (
        "def join(states):\n"
        '    """(layers * 2, batch, n) -> (layers, batch, 2 * n)"""\n'
        "    return states\n"
        "def attend(h, memory):\n"
        "    return join(h)[-1] @ memory\n"
    )
    assert stated(source) == {"h": ("layers * 2", "batch", "n")}
