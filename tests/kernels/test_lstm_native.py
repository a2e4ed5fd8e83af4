"""The decoder loop with an LSTM on native steps beside the same loop in float64."""

import math

import pytest
import torch

from regard.kernels import lstm_native, native
from regard.kernels.lstm_loop import LstmInputs, bahdanau_lstm_loop
from regard.kernels.lstm_recorded import recorded_loop

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN = 3, 5, 7, 11, 13, 37


@pytest.fixture(autouse=True)
def native_loops(monkeypatch):
    """Native for any amount of work; and how often the loop ran."""
    monkeypatch.setenv("REGARD_KERNELS", "native")
    found = []

    def counted(*given):
        found.append(given)
        return real(*given)

    real = lstm_native.native_loop
    monkeypatch.setattr(lstm_native, "native_loop", counted)
    return found


def _inputs(dtype=torch.float32, T_dec=T_DEC, batch=BATCH, T_enc=T_ENC, scale=1.0):
    torch.manual_seed(13)
    shapes = LstmInputs(
        key=(batch, T_enc, D_ATTN),
        value=(batch, T_enc, D_H),
        gates=(batch, T_dec, 4 * D_S),
        state=(batch, 2 * D_S),
        W_a=(D_ATTN, D_S),
        v_a=(D_ATTN,),
        W_hh=(4 * D_S, D_S),
        W_c=(4 * D_S, D_H),
    )
    drawn = LstmInputs(*(0.5 * torch.randn(shape) for shape in shapes))
    drawn = drawn._replace(key=scale * drawn.key, W_a=scale * drawn.W_a)
    return LstmInputs(*(each.to(dtype).requires_grad_() for each in drawn))


def _mask(kind):
    if kind == "free":
        return None
    mask = torch.arange(T_ENC) < torch.tensor([[7], [3], [1]])
    mask[0, 2] = False
    if kind == "a dead row":
        mask[1] = False
    return mask


def _gradients(outputs, inputs, used=LstmInputs._fields[:0], create_graph=False):
    torch.manual_seed(17)
    upstream = [torch.randn(each.shape).to(each.dtype) for each in outputs]
    total = sum(
        (out * up).sum()
        for name, out, up in zip(outputs._fields, outputs, upstream, strict=True)
        if not used or name in used
    )
    return torch.autograd.grad(
        total, inputs, create_graph=create_graph, materialize_grads=True, allow_unused=True
    )


def _compare(mine, exact, tolerance):
    for name, a, b in zip(LstmInputs._fields, mine, exact, strict=True):
        error = float((a.double() - b).abs().max())
        assert error <= tolerance * max(float(b.abs().max()), 1e-30), (name, error)


@pytest.mark.parametrize("kind", ["free", "padded", "a dead row"])
@pytest.mark.parametrize("scale", [1e-4, 0.03, 1.0, 20.0])
@pytest.mark.parametrize("T_dec", [1, T_DEC])
def test_outputs_and_gradients_are_those_of_float64(native_loops, kind, scale, T_dec):
    # Small, factored, and too far apart for that; one step, and several that build on another.
    single, double = (
        _inputs(T_dec=T_dec, scale=scale),
        _inputs(torch.float64, T_dec, scale=scale),
    )
    got = bahdanau_lstm_loop(single, _mask(kind))
    expected = bahdanau_lstm_loop(double, _mask(kind))
    assert len(native_loops) == 1  # float64's was another
    for mine, exact in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=0, atol=3e-6)
    # A wide step's result hangs on its state's last bits, the next steps' gradients with it;
    # plain operations in float32 are as far away.
    tolerance = 1e-6 if scale <= 1 else 4e-6 if T_dec == 1 else 6e-5
    _compare(_gradients(got, single), _gradients(expected, double), tolerance)


@pytest.mark.parametrize("used", ["states", "contexts", "weights"])
def test_each_output_alone_carries_its_gradient(native_loops, used):
    single, double = _inputs(), _inputs(torch.float64)
    got = bahdanau_lstm_loop(single, _mask("padded"))
    expected = recorded_loop(double, _mask("padded"), None)
    _compare(_gradients(got, single, [used]), _gradients(expected, double, [used]), 3e-6)


def test_without_gradients_it_gives_the_same_bits(native_loops):
    given = _inputs()
    recorded = bahdanau_lstm_loop(given, _mask("padded"))
    with torch.inference_mode():
        free = bahdanau_lstm_loop(given, _mask("padded"))
    assert len(native_loops) == 2
    assert all(torch.equal(a, b) for a, b in zip(recorded, free, strict=True))


def test_a_second_derivative_is_the_recorded_loops():
    found = []
    for dtype in (torch.float32, torch.float64):
        given = _inputs(dtype)
        first = _gradients(bahdanau_lstm_loop(given, _mask("padded")), given, create_graph=True)
        found.append(torch.autograd.grad(sum(x.square().sum() for x in first), given))
    _compare(*found, 1e-4)


def test_a_graph_that_is_kept_can_be_walked_again():
    given = _inputs()
    out = bahdanau_lstm_loop(given, None).states.square().sum()
    once = torch.autograd.grad(out, given, retain_graph=True)
    again = torch.autograd.grad(out, given)
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


def test_autocast_around_the_backward_pass_changes_nothing():
    given = _inputs()
    out = bahdanau_lstm_loop(given, None).states.square().sum()
    outside = torch.autograd.grad(out, given, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(out, given)
    assert all(torch.equal(a, b) for a, b in zip(outside, inside, strict=True))


def test_inputs_and_upstream_gradients_are_not_written_to():
    given = _inputs()
    before = [each.detach().clone() for each in given]
    outputs = bahdanau_lstm_loop(given, _mask("padded"))
    upstream = [torch.randn_like(each) for each in outputs]
    copies = [each.clone() for each in upstream]
    torch.autograd.backward(outputs, upstream)
    assert all(map(torch.equal, before, given))
    assert all(map(torch.equal, copies, upstream))


def test_strides_of_inputs_and_gradients_do_not_matter():
    plain = _inputs()
    turned = LstmInputs(
        *(
            each.detach().transpose(0, -1).contiguous().transpose(0, -1).requires_grad_()
            if each.ndim > 1
            else each.detach().repeat_interleave(2)[::2].requires_grad_()
            for each in plain
        )
    )
    mask = _mask("padded")
    a = bahdanau_lstm_loop(plain, mask)
    b = bahdanau_lstm_loop(turned, mask.T.contiguous().T)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    one = torch.ones(())
    for out in ("states", "contexts", "weights"):  # an expanded gradient has strides of 0
        mine = torch.autograd.grad(
            getattr(b, out),
            turned,
            one.expand_as(getattr(b, out)),
            True,
            materialize_grads=True,
        )
        theirs = torch.autograd.grad(
            getattr(a, out),
            plain,
            torch.ones_like(getattr(a, out)),
            True,
            materialize_grads=True,
        )
        for x, y in zip(mine, theirs, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "sizes", [{"T_dec": 0}, {"batch": 0}, {"T_enc": 0}], ids=lambda each: next(iter(each))
)
def test_an_empty_axis_is_no_trouble(sizes):
    given = _inputs(**sizes)
    outputs = bahdanau_lstm_loop(given, None)
    exact = recorded_loop(LstmInputs(*(x.detach().double() for x in given)), None, None)
    for mine, theirs in zip(outputs, exact, strict=True):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=1e-6)
    sum(each.sum() for each in outputs).backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in given)


def test_what_is_masked_may_hold_nothing_that_matters():
    given, mask = _inputs(), _mask("a dead row")
    outputs = bahdanau_lstm_loop(given, mask)
    with torch.no_grad():
        loud = given._replace(
            key=given.key.masked_fill(~mask.unsqueeze(-1), math.nan).requires_grad_(),
            value=given.value.masked_fill(~mask.unsqueeze(-1), 1e30).requires_grad_(),
        )
    again = bahdanau_lstm_loop(loud, mask)
    for mine, theirs in zip(again, outputs, strict=True):
        assert torch.equal(mine, theirs)
    for a, b in zip(_gradients(again, loud), _gradients(outputs, given), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("path", ["blocks", "off"])
def test_the_variable_chooses_the_loop_in_pytorch(native_loops, monkeypatch, path):
    given = _inputs()
    mine = bahdanau_lstm_loop(given, _mask("padded"))
    monkeypatch.setenv("REGARD_KERNELS", path)
    theirs = bahdanau_lstm_loop(given, _mask("padded"))
    assert len(native_loops) == 1
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=3e-6)
