import pytest
import torch

from regard.errors import BackendError, ShapeError
from regard.kernels import native, steps
from regard.kernels.prepared import prepare
from regard.kernels.steps import attend

BATCH, T_ENC, D_ATTN, D_V = 3, 5, 7, 11

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))


def _given(dtype=torch.float32, T_dec=1, batch=(BATCH,)):
    torch.manual_seed(23)
    shapes = ((*batch, T_dec, D_ATTN), (*batch, T_ENC, D_ATTN), (D_ATTN,), (*batch, T_ENC, D_V))
    return [torch.randn(shape).to(dtype) for shape in shapes]


def _mask(batch=(BATCH,)):
    mask = torch.arange(T_ENC) < torch.tensor([5, 2, 0]).view(BATCH, 1)
    return mask.expand(*batch, T_ENC)


def _formula(query, key, v, value, mask=None):
    scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    if mask is not None:
        scores = scores.masked_fill(~mask.unsqueeze(-2), -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)  # a row without keys
    return weights @ value, weights


@pytest.fixture
def native_steps(monkeypatch):
    """Native for any amount of work; and how often a step ran."""
    monkeypatch.setenv("REGARD_KERNELS", "native")
    found = []

    def counted(*given, **addresses):
        found.append(given)
        return real(*given, **addresses)

    real = steps.step_forward
    monkeypatch.setattr(steps, "step_forward", counted)
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch", [(BATCH,), (2, BATCH)], ids=str)
def test_one_query_without_gradients_is_one_native_step(native_steps, masked, batch):
    query, key, v, value = _given(batch=batch)
    mask = _mask(batch) if masked else None
    context, weights = attend(query, prepare(key, mask), v, value)
    assert len(native_steps) == 1
    double = [each.double() for each in (query, key, v, value)]
    for mine, exact in zip((context, weights), _formula(*double, mask), strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_number_types_take_the_scores_path_in_their_own_type(native_steps, dtype):
    given = _given(dtype)
    got = attend(given[0], prepare(given[1], _mask()), *given[2:])
    assert native_steps == []
    expected = _formula(*(each.double() for each in given), _mask())
    tolerance = {torch.float64: 1e-12, torch.float16: 0.01, torch.bfloat16: 0.06}[dtype]
    for mine, exact in zip(got, expected, strict=True):
        assert mine.dtype == dtype
        torch.testing.assert_close(mine.double(), exact, rtol=0, atol=tolerance)


def test_several_queries_take_the_scores_path(native_steps):
    given = _given(T_dec=2)
    got = attend(given[0], prepare(given[1]), *given[2:])
    assert native_steps == []
    for mine, exact in zip(got, _formula(*given), strict=True):
        torch.testing.assert_close(mine, exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize("which", ["query", "v", "value"])
def test_whoever_wants_a_gradient_gets_it(native_steps, which):
    found = []
    for dtype in (torch.float32, torch.float64):
        given = dict(zip(["query", "key", "v", "value"], _given(dtype), strict=True))
        given[which].requires_grad_()
        keys = prepare(given.pop("key"), _mask())
        attend(given["query"], keys, given["v"], given["value"]).context.sum().backward()
        found.append(given[which].grad.double())
    assert native_steps == []
    assert (found[1] != 0).any()
    torch.testing.assert_close(*found, rtol=0, atol=1e-5)
    with torch.no_grad():
        attend(given["query"].float(), prepare(_given()[1]), *_given()[2:])
    assert len(native_steps) == 1


def test_autocast_and_transforms_take_the_scores_path(native_steps):
    query, key, v, value = _given()
    keys = prepare(key)
    expected = _formula(query, key, v, value)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = attend(query, keys, v, value)
    torch.testing.assert_close(got.context.float(), expected, rtol=0, atol=0.06)
    mapped = torch.func.vmap(lambda q: attend(q, keys, v, value).context)(query.unsqueeze(0))
    torch.testing.assert_close(mapped[0], expected, rtol=0, atol=2e-6)
    assert native_steps == []


def test_strides_do_not_matter(native_steps):
    query, key, v, value = _given()
    mask = _mask()
    plain = attend(query, prepare(key, mask), v, value)

    def turned(x):
        return x.transpose(0, -1).contiguous().transpose(0, -1)

    assert not turned(key).is_contiguous()
    assert not turned(mask).is_contiguous()
    other = attend(
        turned(query),
        prepare(turned(key), turned(mask)),
        v.repeat_interleave(2)[::2],
        turned(value),
    )
    assert len(native_steps) == 2
    assert all(torch.equal(a, b) for a, b in zip(plain, other, strict=True))


def test_selected_keys_are_those_examples_in_that_order(native_steps):
    query, key, v, value = _given()
    order = torch.tensor([1, 0, 1, 2])
    keys = prepare(key, _mask())
    before = attend(query, keys, v, value)
    after = attend(query[order], keys.select(order), v, value[order])
    lazily = attend(query[order], prepare(key, _mask()).select(order), v, value[order])
    for a, b, c in zip(before, after, lazily, strict=True):
        assert torch.equal(a[order], b)
        assert torch.equal(b, c)


@pytest.mark.parametrize("path", ["off", "blocks"])
def test_the_variable_is_obeyed(native_steps, monkeypatch, path):
    monkeypatch.setenv("REGARD_KERNELS", path)
    given = _given()
    got = attend(given[0], prepare(given[1]), *given[2:])
    assert native_steps == []
    torch.testing.assert_close(got.context, _formula(*given)[0], rtol=0, atol=2e-6)


def test_what_does_not_fit_is_refused_by_name():
    query, key, v, value = _given()
    keys = prepare(key)
    with pytest.raises(BackendError, match=r"attend\(\): `keys` are not prepared"):
        attend(query, key, v, value)
    with pytest.raises(ShapeError, match=r"attend\(\): `keys` do not fit"):
        attend(query[1:], keys, v, value[1:])
    with pytest.raises(ShapeError, match="d_attn"):
        attend(query, keys, v[1:], value)
    with pytest.raises(BackendError, match="differ in number type"):
        attend(*_given(torch.float64)[:1], keys, *_given(torch.float64)[2:])
