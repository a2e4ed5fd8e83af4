import copy
import pickle

import pytest
import torch

from regard.errors import MaskError, ShapeError
from regard.kernels import native, pairs
from regard.kernels.additive import additive_scores
from regard.kernels.prepared import PreparedKeys, prepare

BATCH, T_ENC, D_ATTN = 3, 5, 7

needs_library = pytest.mark.skipif(not native.available(), reason=str(native.reason()))


@pytest.fixture
def key():
    torch.manual_seed(31)
    return torch.randn(BATCH, T_ENC, D_ATTN, requires_grad=True)


@pytest.fixture
def calls(monkeypatch):
    """What was computed of the keys, in order."""
    found = []
    made, called = pairs.prepare_keys, native.call

    def prepare_keys(key):
        found.append("factored")
        return made(key)

    def call(name, *given):
        found.append(name)
        return called(name, *given)

    monkeypatch.setattr(pairs, "prepare_keys", prepare_keys)
    monkeypatch.setattr(native, "call", call)
    return found


def test_nothing_is_computed_before_it_is_asked_for_and_then_once(key, calls):
    keys = prepare(key)
    assert calls == []
    assert keys.factored is keys.factored
    assert calls == ["factored"]


@needs_library
def test_the_native_keys_are_made_once_and_without_the_factored_ones(key, calls):
    keys = prepare(key)
    assert keys.native is keys.native
    assert calls == ["regard_prepare"]


@pytest.mark.parametrize(
    ("path", "expected"), [("off", []), ("blocks", ["factored"]), ("native", [])]
)
def test_scores_prepare_only_what_their_path_reads(monkeypatch, key, calls, path, expected):
    if path == "native" and not native.available():
        pytest.skip(str(native.reason()))
    monkeypatch.setenv("REGARD_KERNELS", path)
    query = torch.randn(BATCH, 2, D_ATTN)
    additive_scores(query, key, torch.ones(D_ATTN), keys=prepare(key))
    assert [each for each in calls if each != "regard_forward"] == expected


def test_prepared_keys_are_part_of_no_graph(key):
    assert not prepare(key).key.requires_grad


def test_selecting_before_and_after_anything_was_computed_is_the_same(key):
    order = torch.tensor([2, 0, 2, 1])
    mask = torch.arange(T_ENC) < torch.tensor([[5], [2], [3]])
    lazy = PreparedKeys(key, mask).select(order)
    used = PreparedKeys(key, mask)
    assert used.factored is not None
    after = used.select(order)
    for mine in (lazy, after):
        assert torch.equal(mine.key, key.detach()[order])
        assert torch.equal(mine.key_mask, mask[order])
    assert torch.equal(after.factored.factor, used.factored.factor[order])


def test_a_mask_that_does_not_fit_is_named(key):
    with pytest.raises(ShapeError, match="key_mask"):
        prepare(key, torch.ones(BATCH, T_ENC + 1, dtype=torch.bool))
    with pytest.raises(MaskError, match="key_mask"):
        prepare(key, torch.ones(BATCH, T_ENC))


@needs_library
@pytest.mark.parametrize("remade", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_holds_its_own_keys_and_makes_its_own_of_them(key, calls, remade):
    keys = PreparedKeys(key, torch.ones(BATCH, T_ENC, dtype=torch.bool))
    assert keys.native is not None
    other = remade(keys)
    assert torch.equal(other.key, keys.key)
    assert torch.equal(other.key_mask, keys.key_mask)
    assert other.key.data_ptr() != keys.key.data_ptr()
    assert other.native is not keys.native
    assert calls == ["regard_prepare"] * 2
