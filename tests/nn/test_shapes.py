import pytest
import torch

from regard.errors import BackendError, MaskError, ShapeError
from regard.nn.shapes import fit, positive


def _text(error, *args, **kwargs):
    with pytest.raises(error) as caught:
        fit(*args, **kwargs)
    return str(caught.value)


def test_arguments_that_fit_pass_in_silence():
    fit(
        "f",
        {"d_s": 5},
        torch.float32,
        query=(torch.zeros(2, 3, 5), "float *batch T_dec d_s"),
        key=(torch.zeros(2, 7, 11), "float *batch T_enc d_h"),
        mask=(None, "bool *batch T_dec T_enc | None"),
        key_lengths=(torch.tensor([3, 7]), "int *batch"),
    )


def test_none_is_refused_by_name_where_the_annotation_does_not_allow_it():
    assert _text(BackendError, "f", {}, query=(None, "float *batch T_dec d_s")) == (
        "f(): `query` is no array\n"
        "  expected  a floating-point array query (*batch, T_dec, d_s)\n"
        "  got       None"
    )


def test_tensors_on_two_devices_are_refused_by_name():
    query = (torch.zeros(2, 3, 5), "float *batch T_dec d_s")
    key = (torch.zeros(2, 7, 11, device="meta"), "float *batch T_enc d_h")
    assert _text(BackendError, "f", {}, query=query, key=key) == (
        "f(): `key` and `query` are on different devices\n"
        "  expected  `key` on cpu\n"
        "  got       `key` on meta\n"
        "  because   `query` is on cpu\n"
        "  help      move one of them: nothing is moved silently"
    )


def test_the_constructions_size_is_named_where_an_argument_disagrees_with_it():
    assert _text(
        ShapeError, "f", {"d_s": 5}, query=(torch.zeros(2, 3, 7), "float *batch T_dec d_s")
    ) == (
        "f(): `query` does not fit the module on axis d_s\n"
        "  expected  query (2, T_dec=3, d_s=5)\n"
        "  got       query (2, 3, 7)\n"
        "  because   the module was built with d_s = 5"
    )


def test_a_turned_mask_is_told_from_one_that_is_simply_wrong():
    key = (torch.zeros(2, 7, 11), "float *batch T_enc d_h")
    query = (torch.zeros(2, 3, 5), "float *batch T_dec d_s")
    turned = torch.ones(2, 7, 3, dtype=torch.bool)
    text = _text(
        ShapeError, "f", {}, key=key, query=query, mask=(turned, "bool *batch T_dec T_enc")
    )
    assert text == (
        "f(): `mask` does not fit `query` on axis T_dec\n"
        "  expected  mask (2, T_dec=3, T_enc=7)\n"
        "  got       mask (2, 7, 3)\n"
        "  because   T_dec = 3 comes from `query`\n"
        "  help      the transpose of `mask` would fit"
    )
    wrong = torch.ones(2, 3, 1, dtype=torch.bool)
    text = _text(
        ShapeError, "f", {}, key=key, query=query, mask=(wrong, "bool *batch T_dec T_enc")
    )
    assert "axis T_enc" in text
    assert "help" not in text
    text = _text(
        ShapeError, "f", {}, key=key, query=query, mask=(turned[:1], "bool *batch T_dec T_enc")
    )
    assert "axis batch" in text
    assert "help" not in text


def test_leading_axes_must_be_equal_and_size_one_does_not_broadcast():
    text = _text(
        ShapeError,
        "f",
        {},
        key=(torch.zeros(2, 7, 11), "float *batch T_enc d_h"),
        query=(torch.zeros(1, 3, 5), "float *batch T_dec d_s"),
    )
    assert text == (
        "f(): `query` does not fit `key` on axis batch\n"
        "  expected  query (2, T_dec=3, d_s=5)\n"
        "  got       query (1, 3, 5)\n"
        "  because   batch = (2,) comes from `key`"
    )


def test_a_missing_step_axis_is_recognised():
    assert _text(ShapeError, "f", {}, query=(torch.zeros(5), "float *batch T_dec d_s")) == (
        "f(): `query` has 1 axis, not at least 2\n"
        "  expected  query (*batch, T_dec, d_s)\n"
        "  got       query (5,)\n"
        "  help      one step is T_dec = 1: add that axis, none is squeezed away"
    )


def test_an_axis_too_many_is_refused_where_there_are_no_leading_ones():
    assert _text(ShapeError, "f", {}, state=(torch.zeros(2, 3, 5), "float batch d_s")) == (
        "f(): `state` has 3 axes, not 2\n"
        "  expected  state (batch, d_s)\n"
        "  got       state (2, 3, 5)"
    )


def test_an_integer_mask_is_refused_with_both_ways_to_convert_it():
    assert _text(
        MaskError, "f", {}, mask=(torch.ones(2, 3, dtype=torch.int64), "bool *rows T")
    ) == (
        "f(): `mask` is not a boolean array\n"
        "  expected  a boolean array mask (*rows, T)\n"
        "  got       dtype torch.int64\n"
        "  because   a mask is True where a query may attend\n"
        "  help      `mask != 0` if 1 means may attend, `mask == 0` if 1 means padding"
    )


@pytest.mark.parametrize(
    ("value", "annotation", "words"),
    [
        ([[1.0]], "float T d", "`x` is no array"),
        (
            torch.zeros(2, 3, dtype=torch.int64),
            "float T d",
            "`x` is not a floating-point array",
        ),
        (torch.zeros(2, 3), "int T d", "`x` is not an integer array"),
    ],
)
def test_the_wrong_kind_of_value_is_named(value, annotation, words):
    assert words in _text(BackendError, "f", {}, x=(value, annotation))


def test_number_types_are_not_promoted():
    double = torch.zeros(2, 3, dtype=torch.float64)
    text = _text(BackendError, "f", {}, torch.float32, x=(double, "float T d"))
    assert text == (
        "f(): `x` and the module differ in number type\n"
        "  expected  `x` of dtype torch.float32\n"
        "  got       `x` of dtype torch.float64\n"
        "  because   the module's parameters have dtype torch.float32\n"
        "  help      convert one of them: nothing is promoted silently"
    )
    text = _text(
        BackendError, "f", {}, x=(double, "float T d"), y=(double.float(), "float T d")
    )
    assert "`y`" in text
    assert "`x` has dtype torch.float64" in text


@pytest.mark.parametrize("size", [0, -3, 2.0, True])
def test_sizes_at_construction_are_positive_integers(size):
    with pytest.raises(ShapeError) as caught:
        positive("Module", d_s=5, d_h=size)
    assert str(caught.value) == (
        "Module(): `d_h` is not a size\n"
        "  expected  d_h as an integer of at least 1\n"
        f"  got       {size!r}"
    )
