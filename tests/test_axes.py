import numpy as np
import pytest
from jaxtyping import Float

import regard as rg
from regard._blame import ON_LISTS
from regard.axes import Array, checked, library, nested_shape

QUERY, KEY = np.zeros((2, 3, 5)), np.zeros((2, 13, 7))
PARAMS = {"W_a": np.zeros((11, 5)), "U_a": np.zeros((11, 7)), "v_a": np.zeros(11)}


def _error(kind, **changed):
    arguments = {"query": QUERY, "key": KEY, **PARAMS, **changed}
    with pytest.raises(kind) as caught:
        rg.scores.additive(**arguments)
    return str(caught.value)


def test_the_odd_one_out_is_blamed_even_when_it_comes_first():
    assert _error(rg.ShapeError, W_a=np.zeros((17, 5))) == (
        "additive(): `W_a` does not fit `U_a` on axis d_attn\n"
        "  expected  W_a (d_attn=11, d_s=5)\n"
        "  got       W_a (17, 5)\n"
        "  because   d_attn = 11 comes from `U_a`"
    )


def test_an_axis_of_size_one_is_not_broadcast():
    assert _error(rg.ShapeError, key=KEY[:1]) == (
        "additive(): `key` does not fit `query` on axis batch\n"
        "  expected  key (2, T_enc=13, d_h=7)\n"
        "  got       key (1, 13, 7)\n"
        "  because   batch = (2,) comes from `query`"
    )


def test_a_missing_step_axis_is_named_with_its_remedy():
    assert _error(rg.ShapeError, query=QUERY[0, 0], key=KEY[0]) == (
        "additive(): `query` has 1 axis, not at least 2\n"
        "  expected  query (*batch, T_dec, d_s)\n"
        "  got       query (5,)\n"
        "  help      one step is T_dec = 1: add that axis, none is squeezed away"
    )


def test_too_many_axes_are_named():
    assert _error(rg.ShapeError, v_a=np.zeros((11, 1))) == (
        "additive(): `v_a` has 2 axes, not 1\n"
        "  expected  v_a (d_attn,)\n"
        "  got       v_a (11, 1)"
    )


def test_mixed_number_types_are_refused_not_promoted():
    assert _error(rg.BackendError, key=KEY.astype(np.float32)) == (
        "additive(): `key` and `query` differ in number type\n"
        "  expected  `key` of dtype float64\n"
        "  got       `key` of dtype float32\n"
        "  because   `query` has dtype float64\n"
        "  help      convert one of them: nothing is promoted silently"
    )


def test_mixed_libraries_are_refused():
    torch = pytest.importorskip("torch")
    assert _error(rg.BackendError, key=torch.zeros(2, 13, 7)) == (
        "additive(): `key` and `query` are of different libraries\n"
        "  expected  `key` from NumPy\n"
        "  got       `key` from PyTorch\n"
        "  because   `query` is from NumPy"
    )


def test_what_is_no_array_is_refused_by_name():
    assert _error(rg.BackendError, U_a=3) == (
        "additive(): `U_a` is no array\n"
        "  expected  a floating-point array U_a (d_attn, d_h)\n"
        "  got       int"
    )
    assert "numpy.asarray" in _error(rg.BackendError, U_a=[[1.0]])


def test_integers_are_refused_where_floats_are_due():
    text = _error(rg.BackendError, query=QUERY.astype(int))
    assert "`query` is not a floating-point array" in text
    assert "dtype int64" in text


def test_none_is_refused_by_name_where_an_argument_is_required():
    assert _error(rg.BackendError, W_a=None) == (
        "additive(): `W_a` is no array\n"
        "  expected  a floating-point array W_a (d_attn, d_s)\n"
        "  got       None"
    )
    with pytest.raises(rg.BackendError, match="`decoder_state` is no array"):
        rg.dot_attention(None, KEY)
    with pytest.raises(rg.BackendError, match="`encoder_states` is no array"):
        rg.dot_attention(QUERY[:, 0], None)


def test_nested_lists_are_pointed_to_the_function_that_takes_them():
    with pytest.raises(rg.BackendError) as caught:
        rg.attend([[1.0, 2.0]], [[3.0, 4.0]])
    assert str(caught.value) == (
        "attend(): `query` is no array\n"
        "  expected  a floating-point array query (*batch, T_dec, d_s)\n"
        "  got       list\n"
        "  help      regard.reference.attend(...) computes nested lists, one example at a "
        "time;\n"
        "            numpy.asarray(...) turns nested lists into an array"
    )


def test_every_namesake_in_the_reference_is_known_to_the_errors():
    takers = {name: getattr(rg, name, None) for name in rg.reference.__all__}
    takers |= {name: getattr(rg.scores, name) for name in rg.scores.SCORES if name in takers}
    lists = "reference softmax additive_attention dot_attention general_attention "
    lists += "concat_attention"
    taken = {name for name, function in takers.items() if function} - set(lists.split())
    assert taken == set(ON_LISTS)


def test_a_missing_axis_is_told_from_a_wrong_size():
    assert _error(rg.ShapeError, query=QUERY[:, 0]) == (
        "additive(): `query` has 2 axes, not 3\n"
        "  expected  query (2, T_dec, d_s=5)\n"
        "  got       query (2, 5)\n"
        "  because   `key` (2, 13, 7) has 1 axis before its T_enc and d_h\n"
        "  help      one step is T_dec = 1: add that axis, none is squeezed away"
    )
    text = _error(rg.ShapeError, key=KEY[0])
    assert text.startswith("additive(): `key` has 2 axes, not 3\n")
    assert "help" not in text  # it is the batch that is missing, which is not 1


def test_an_axis_of_size_one_too_many_is_blamed_on_the_argument_that_has_it():
    with pytest.raises(rg.ShapeError, match="`decoder_state` has 3 axes, not 2"):
        rg.dot_attention(KEY[:, :1], KEY)


def test_arrays_on_two_devices_are_refused_by_name_even_after_a_call_that_fitted():
    torch = pytest.importorskip("torch")
    query, key = torch.zeros(2, 3, 5), torch.zeros(2, 13, 5)
    may = torch.ones(2, 3, 13, dtype=torch.bool)
    rg.attend(query, key, mask=may)
    with pytest.raises(rg.BackendError) as caught:
        rg.attend(query, key, mask=may.to("meta"))
    assert str(caught.value) == (
        "attend(): `mask` and `query` are on different devices\n"
        "  expected  `mask` on cpu\n"
        "  got       `mask` on meta\n"
        "  because   `query` is on cpu\n"
        "  help      move one of them: nothing is moved silently"
    )
    with pytest.raises(rg.BackendError, match="`key` and `query` are on different devices"):
        rg.attend(query.to("meta"), key)
    lengths = torch.ones(2, dtype=torch.int64, device="meta")
    found = rg.attend(query.to("meta"), key.to("meta"), key_lengths=lengths)
    assert found.context.shape == (2, 3, 5)


def test_sums_of_axes_are_checked():
    with pytest.raises(rg.ShapeError) as caught:
        rg.scores.concat(QUERY, KEY, W_c=np.zeros((11, 13)), v_c=np.zeros(11))
    assert str(caught.value) == (
        "concat(): `W_c` does not fit `query` on axis d_s+d_h\n"
        "  expected  W_c (d_attn=11, d_s+d_h=12)\n"
        "  got       W_c (11, 13)\n"
        "  because   d_s (5) + d_h (7) = 12"
    )


def test_a_subclass_of_an_array_counts_as_its_library():
    torch = pytest.importorskip("torch")

    class Mine(np.ndarray):
        pass

    assert library(Mine) == "NumPy"
    assert library(torch.nn.Parameter) == "PyTorch"
    assert library(list) == library(np.ndarray.__class__) == ""


def test_optional_arguments_may_be_left_out_or_none():
    @checked
    def f(a: Float[Array, " n"], b: Float[Array, " n"] | None = None) -> bool:
        return b is None

    assert f(np.zeros(3))
    assert f(np.zeros(3), None)
    assert not f(np.zeros(3), np.zeros(3))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        f()


def test_nested_lists_have_a_shape_or_are_ragged():
    assert nested_shape([[1, 2, 3], [4, 5, 6]]) == (2, 3)
    assert nested_shape([]) == (0,)
    with pytest.raises(rg.ShapeError, match="row 1 of shape"):
        nested_shape([[1, 2], [1]])
