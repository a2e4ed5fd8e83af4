import numpy as np
import pytest

import regard as rg
from regard.attention import reference
from regard.attention.masks import causal, from_keras, from_lengths, from_torch_mha, window


def test_lengths_allow_the_first_keys_of_each_example(xp):
    lengths = np.array([[2, 0], [13, 5]])
    got = xp.numpy(from_lengths(xp.array(lengths), T_dec=3, T_enc=13))
    assert got.shape == (2, 2, 3, 13)
    for index in np.ndindex(2, 2):
        expected = reference.from_lengths(int(lengths[index]), T_dec=3, T_enc=13)
        assert got[index].tolist() == expected


@pytest.mark.parametrize("corner", ["top_left", "bottom_right"])
@pytest.mark.parametrize(("T_dec", "T_enc"), [(3, 3), (3, 7), (7, 3)])
def test_causal_masks_agree_with_the_reference(xp, corner, T_dec, T_enc):
    got = xp.numpy(causal(T_dec, T_enc, corner=corner, like=xp.array(np.zeros(1))))
    assert got.tolist() == reference.causal(T_dec, T_enc, corner=corner)


def test_the_causal_reference_is_what_it_says():
    assert reference.causal(2, 3) == [[True, False, False], [True, True, False]]
    bottom = [[True, True, False], [True, True, True]]
    assert reference.causal(2, 3, corner="bottom_right") == bottom


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 2), (50, 0)])
def test_windows_agree_with_the_reference(xp, left, right):
    got = window(3, 7, left=left, right=right, like=xp.array(np.zeros(1)))
    assert xp.numpy(got).tolist() == reference.window(3, 7, left=left, right=right)


def test_causal_of_unequal_lengths_must_name_its_corner():
    with pytest.raises(rg.ConventionError) as caught:
        causal(3, 7)
    assert str(caught.value) == (
        "causal with T_dec=3 queries and T_enc=7 keys can mean two things\n"
        '  expected  causal="top_left" or causal="bottom_right"\n'
        "  got       causal=None\n"
        '  because   "top_left" lets query t see keys 0 .. t, "bottom_right" lets the last '
        "query see every key"
    )


@pytest.mark.parametrize("lengths", [[-1, 3], [3, 14]])
def test_a_length_outside_the_keys_is_refused(xp, lengths):
    with pytest.raises(rg.MaskError, match=r"every length within 0 \.\. T_enc=13"):
        from_lengths(xp.array(np.array(lengths)), T_dec=3, T_enc=13)


def test_float_lengths_are_refused():
    with pytest.raises(rg.BackendError, match="`key_lengths` is not an integer array"):
        from_lengths(np.array([2.0]), T_dec=3, T_enc=13)


def test_a_negative_window_is_refused():
    with pytest.raises(rg.ConventionError, match="`left` is negative"):
        window(3, 7, left=-1, right=0)


def test_other_libraries_masks_enter_with_their_polarity_in_the_name(xp):
    padding = np.array([[False, False, True], [False, True, True]])
    torch_said = xp.numpy(from_torch_mha(xp.array(padding), T_dec=2))
    keras_said = xp.numpy(from_keras(xp.array(~padding), T_dec=2))
    expected = [[[True, True, False]] * 2, [[True, False, False]] * 2]
    assert torch_said.tolist() == keras_said.tolist() == expected
