import math

import pytest
import torch
from torch import nn

from regard.errors import MaskError, ShapeError
from regard.kernels.prepared import PreparedKeys
from regard.nn.memory import Memory, clear, key_mask_of

BATCH, T_ENC, D_H, D_ATTN = 2, 5, 7, 3


def _memory(**changes):
    torch.manual_seed(79)
    key, projected = torch.randn(BATCH, T_ENC, D_H), torch.randn(BATCH, T_ENC, D_ATTN)
    parts = {
        "key": key,
        "value": key,
        "key_mask": torch.rand(BATCH, T_ENC) < 0.5,
        "projected": projected,
        "owner": nn.Identity(),
        "prepared": PreparedKeys(projected),
    }
    return Memory(**{**parts, **changes})


def test_selecting_reorders_every_part():
    memory, order = _memory(), torch.tensor([1, 0, 1])
    chosen = memory.select(order)
    assert torch.equal(chosen.key, memory.key[order])
    assert torch.equal(chosen.key_mask, memory.key_mask[order])
    assert torch.equal(chosen.projected, memory.projected[order])
    assert torch.equal(chosen.prepared.key, memory.projected[order])
    assert chosen.owner is memory.owner


def test_selecting_copies_the_keys_once_where_they_are_the_values_too():
    assert _memory().select(torch.tensor([0])).value is not None
    chosen = _memory().select(torch.tensor([1, 1]))
    assert chosen.value is chosen.key
    other = _memory(value=torch.randn(BATCH, T_ENC, 11)).select(torch.tensor([1, 1]))
    assert other.value.shape == (2, T_ENC, 11)


def test_lengths_and_a_mask_hold_together():
    key = torch.zeros(BATCH, T_ENC, D_H)
    key_mask = torch.tensor([[True, False, True, True, True], [True] * 5])
    got = key_mask_of("f", key, torch.tensor([3, 0]), key_mask)
    assert got.tolist() == [[True, False, True, False, False], [False] * 5]
    assert key_mask_of("f", key, None, key_mask) is key_mask
    assert key_mask_of("f", key, None) is None


def test_lengths_that_do_not_fit_are_named():
    key = torch.zeros(BATCH, T_ENC, D_H)
    with pytest.raises(MaskError, match="`key_lengths` holds a length outside the keys"):
        key_mask_of("f", key, torch.tensor([-1, 3]))
    with pytest.raises(ShapeError, match="`key_mask` does not fit `key` on axis T_enc"):
        key_mask_of("f", key, None, torch.ones(BATCH, T_ENC + 1, dtype=torch.bool))


def test_clearing_removes_nan_and_its_gradient():
    states = torch.tensor([[1.0, 2.0], [math.nan, math.inf]], requires_grad=True)
    cleared = clear(states, torch.tensor([True, False]))
    assert cleared.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    (cleared * 3).sum().backward()
    assert states.grad.tolist() == [[3.0, 3.0], [0.0, 0.0]]
