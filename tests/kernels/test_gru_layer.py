import pytest
import torch
from torch import nn

from regard.kernels import gru_layer, native
from regard.kernels.gru_layer import run_gru

SHAPES = {
    "one direction": {},
    "both": {"bidirectional": True},
    "three layers": {"num_layers": 3, "bidirectional": True},
}


@pytest.fixture(autouse=True)
def applied(monkeypatch):
    """Which directions ran here rather than in PyTorch."""
    if not native.available():
        pytest.skip("there is no native library")
    monkeypatch.setenv("REGARD_KERNELS", "native")
    found = []
    apply = gru_layer._apply

    def counted(backwards, *given):
        found.append(backwards)
        return apply(backwards, *given)

    monkeypatch.setattr(gru_layer, "_apply", counted)
    return found


def made(shape: str) -> tuple[nn.GRU, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        rnn = nn.GRU(5, 19, batch_first=True, **SHAPES[shape])
        return rnn, torch.randn(7, 11, 5, requires_grad=True)


def gradients(rnn, inputs, run, **how):
    states, last = run(inputs)
    weights = torch.linspace(-1, 1, states.numel()).view_as(states)
    total = (states * weights).sum() + (last**3).sum()
    return states, last, *torch.autograd.grad(total, [inputs, *rnn.parameters()], **how)


@pytest.mark.parametrize("shape", SHAPES)
def test_states_and_gradients_are_those_of_pytorch(shape, applied):
    rnn, inputs = made(shape)
    found = gradients(rnn, inputs, lambda x: run_gru(rnn, x))
    assert applied == [False, True][: 1 + rnn.bidirectional] * rnn.num_layers
    for mine, theirs in zip(found, gradients(rnn, inputs, rnn), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", ["one direction", "both"])
def test_the_second_derivative_is_that_of_pytorch(shape, applied):
    rnn, inputs = made(shape)
    seconds = []
    for run in (lambda x: run_gru(rnn, x), rnn):
        _, _, d_inputs, _, d_state, *_ = gradients(rnn, inputs, run, create_graph=True)
        loss = (d_inputs**2).sum() + d_state.sum()
        seconds.append(torch.autograd.grad(loss, [inputs, rnn.weight_hh_l0]))
    assert applied
    for mine, theirs in zip(*seconds, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_gradients_that_are_not_contiguous_are_read_as_they_lie(applied):
    rnn, inputs = made("both")
    found = []
    for run in (lambda x: run_gru(rnn, x), rnn):
        states, _ = run(inputs)
        turned = states.transpose(0, 1)[::2, :, 3:]
        found.append(torch.autograd.grad(turned.cumsum(0).sum(), rnn.weight_hh_l0)[0])
    assert applied
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_dropout_between_layers_drops_what_pytorch_drops(applied):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        rnn = nn.GRU(5, 19, num_layers=2, batch_first=True, dropout=0.5)
        inputs = torch.randn(7, 11, 5)
        found = []
        for run in (rnn, lambda x: run_gru(rnn, x)):
            torch.manual_seed(11)
            found.append(run(inputs)[0])
    assert applied
    torch.testing.assert_close(*found)


def test_pytorchs_own_runs_where_it_should(applied, monkeypatch):
    rnn, inputs = made("both")
    with torch.no_grad():
        run_gru(rnn, inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run_gru(rnn, inputs)
    run_gru(rnn.double(), inputs.double())
    rnn = rnn.float()
    for wish in ("off", "blocks", ""):  # small work is nobody's, unless it is asked for
        monkeypatch.setenv("REGARD_KERNELS", wish)
        run_gru(rnn, inputs)
    assert not applied


def test_one_step_and_one_example_are_enough(applied):
    rnn, _ = made("both")
    inputs = torch.randn(1, 1, 5, requires_grad=True)
    found = gradients(rnn, inputs, lambda x: run_gru(rnn, x))
    for mine, theirs in zip(found, gradients(rnn, inputs, rnn), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    assert applied == [False, True]
