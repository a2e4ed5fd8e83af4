import pytest
import torch

from regard.attention.weights import softmax
from regard.errors import MaskError, ShapeError
from regard.nn import masked_softmax


def test_it_agrees_with_the_array_librarys_softmax():
    torch.manual_seed(5)
    scores = torch.randn(2, 3, 7, dtype=torch.float64)
    mask = torch.rand(2, 3, 7) < 0.5
    mask[1, 2] = False
    torch.testing.assert_close(masked_softmax(scores, mask), softmax(scores, mask=mask))
    torch.testing.assert_close(masked_softmax(scores), softmax(scores))


def test_a_mask_does_not_broadcast():
    with pytest.raises(ShapeError, match="`mask` does not fit"):
        masked_softmax(torch.zeros(2, 3, 7), torch.ones(2, 1, 7, dtype=torch.bool))


def test_a_float_mask_is_refused():
    with pytest.raises(MaskError, match="`mask` is not a boolean array"):
        masked_softmax(torch.zeros(2, 7), torch.zeros(2, 7))


def test_no_keys_give_no_weights():
    assert masked_softmax(torch.zeros(2, 0), torch.ones(2, 0, dtype=torch.bool)).shape == (2, 0)


def test_under_autocast_it_still_sums_to_one():
    scores = torch.randn(3, 97).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = masked_softmax(scores, torch.ones(3, 97, dtype=torch.bool))
    assert weights.dtype == torch.bfloat16
    torch.testing.assert_close(weights.float().sum(-1), torch.ones(3), rtol=0, atol=0.01)
