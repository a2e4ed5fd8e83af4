"""Which operand of a failed product is shown, and the axes that it should have."""

from types import SimpleNamespace

import pytest

from regard.check.cause.crash import culprit

_SIZES = {"batch": 2, "T_dec": 3, "T_enc": 11, "d_s": 5, "d_h": 7}


def _node(axes, op="input", inputs=(), index=0):
    names = tuple(axes.split())
    shape = tuple(_SIZES[name] for name in names)
    return SimpleNamespace(axes=names, shape=shape, op=op, inputs=inputs, index=index)


@pytest.mark.parametrize(
    ("left", "right", "at", "expected"),
    [
        ("batch T_dec d_s", "d_h d_s", 1, "d_s d_h"),
        ("batch T_dec d_h", "batch T_enc d_h", 1, "batch d_h T_enc"),
        ("batch T_enc T_dec", "batch T_enc d_h", 0, "batch T_dec T_enc"),
    ],
)
def test_an_operand_that_fits_turned_is_wrong_and_is_asked_to_be_turned(
    left, right, at, expected
):
    # The other operand was made later, which decides only where neither fits turned.
    operands = [_node(left, "transpose", index=1 + at), _node(right, "transpose", index=2 - at)]
    node, wanted = culprit(_node("batch T_dec T_enc", "matmul", operands))
    assert node is operands[at]
    assert wanted == tuple(expected.split())


def test_where_neither_fits_turned_the_later_operand_is_shown():
    operands = [_node("batch T_dec d_s"), _node("batch T_enc d_h", "linear", index=1)]
    node, wanted = culprit(_node("batch T_dec T_enc", "matmul", operands))
    assert node is operands[1]
    assert wanted == ("batch", "d_s", "d_h")
