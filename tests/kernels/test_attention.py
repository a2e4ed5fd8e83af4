import pytest
import torch

from regard.kernels import attend_op, native
from regard.kernels.attention import additive_attention
from regard.kernels.softmax import both, masked_softmax
from regard.nn import AdditiveAttention


def _given(dtype=torch.float32):
    torch.manual_seed(17)
    shapes = ((3, 5, 7), (3, 11, 7), (7,), (3, 11, 13))
    return [torch.randn(shape).to(dtype) for shape in shapes]


@pytest.fixture
def passes(monkeypatch):
    """How often the native pass ran."""
    found, real = [], attend_op.additive_attention

    def counted(*given, **options):
        found.append(options)
        return real(*given, **options)

    monkeypatch.setattr(attend_op, "additive_attention", counted)
    return found


@pytest.mark.parametrize("path", ["off", "blocks", "native"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_path_gives_the_formulas_numbers(path, dtype, monkeypatch, passes):
    if path == "native" and not native.available():
        pytest.skip(str(native.reason()))
    monkeypatch.setenv("REGARD_KERNELS", path)
    given = _given(dtype)
    key_mask = torch.arange(11) < torch.tensor([[11], [4], [0]])
    mask = torch.rand(3, 5, 11, generator=torch.Generator().manual_seed(3)) < 0.7
    context, weights = additive_attention(*given, key_mask=key_mask, mask=mask)
    assert len(passes) == (path == "native" and dtype == torch.float32)
    query, key, v, value = (each.double() for each in given)
    scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    expected = masked_softmax(scores, both(key_mask, mask))
    atol = 4e-2 if dtype == torch.bfloat16 else 2e-6
    torch.testing.assert_close(weights.double(), expected, rtol=0, atol=atol)
    torch.testing.assert_close(context.double(), expected @ value, rtol=0, atol=2 * atol)


@pytest.mark.skipif(not native.available(), reason=str(native.reason()))
def test_little_work_and_transforms_take_no_native_pass(monkeypatch, passes):
    monkeypatch.delenv("REGARD_KERNELS", raising=False)
    given = _given()
    expected = additive_attention(*given)[0]
    mapped = torch.func.vmap(lambda q, k, x: additive_attention(q, k, given[2], x)[0])
    torch.testing.assert_close(mapped(given[0], given[1], given[3]), expected)
    assert not passes


@pytest.mark.skipif(not native.available(), reason=str(native.reason()))
@pytest.mark.parametrize("masked", [False, True])
def test_the_module_attends_in_one_pass(masked, monkeypatch, passes):
    monkeypatch.setenv("REGARD_KERNELS", "native")
    torch.manual_seed(1)
    module = AdditiveAttention(d_s=7, d_h=11, d_attn=13)
    query, key = torch.randn(3, 5, 7), torch.randn(3, 17, 11)
    mask = torch.rand(3, 5, 17) < 0.5 if masked else None
    context, weights = module(query, key, mask=mask, key_lengths=torch.tensor([17, 6, 0]))
    assert len(passes) == 1
    monkeypatch.setenv("REGARD_KERNELS", "off")
    plain = module(query, key, mask=mask, key_lengths=torch.tensor([17, 6, 0]))
    assert len(passes) == 1
    torch.testing.assert_close(context, plain.context, rtol=0, atol=2e-6)
    torch.testing.assert_close(weights, plain.weights, rtol=0, atol=2e-6)
