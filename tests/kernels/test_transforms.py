"""Under torch.func and forward differentiation: the same numbers as by plain autograd."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jvp, vmap

from regard.kernels.transforms import by_hand
from regard.nn import AdditiveAttention, BahdanauDecoder, LuongAttention, MultiHeadAttention

# PyTorch's own rules for forward derivatives are written with what it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN, D_IN = 2, 3, 13, 5, 7, 11, 17
LENGTHS = torch.tensor([13, 4])


class Decoding(torch.nn.Module):
    """A Bahdanau decoder as a function of its state, as the attentions are of their query."""

    def __init__(self):
        super().__init__()
        self.decoder = BahdanauDecoder(D_IN, D_S, D_H, D_ATTN)

    def forward(self, query, key, key_lengths=None):
        inputs = torch.linspace(-1, 1, T_DEC * D_IN, dtype=query.dtype).view(1, T_DEC, D_IN)
        memory = self.decoder.prepare(key, key_lengths)
        decoded = self.decoder(inputs.expand(len(query), -1, -1), memory, query[:, 0])
        return decoded.outputs, decoded.weights


class Heads(torch.nn.Module):
    """Additive multi-head attention with keys of another size."""

    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(
            D_S, 1, score="additive", d_attn=D_ATTN, kdim=D_H, vdim=D_H
        )

    def forward(self, query, key, key_lengths=None):
        return self.attention(query, key, key_lengths=key_lengths)


MAKERS = {
    "additive": lambda: AdditiveAttention(D_S, D_H, D_ATTN),
    "concat": lambda: LuongAttention(D_S, D_H, "concat", D_ATTN),
    "heads": Heads,
    "decoder": Decoding,
}


@pytest.fixture(params=list(MAKERS))
def case(request):
    torch.manual_seed(83)
    module = MAKERS[request.param]().double()
    query = torch.randn(BATCH, T_DEC, D_S, dtype=torch.float64)
    key = torch.randn(BATCH, T_ENC, D_H, dtype=torch.float64)
    return module, query, key


def test_vmap_gives_what_a_batch_gives(case):
    module, query, key = case

    def one(q, k, length):
        return module(q[None], k[None], key_lengths=length[None])[0][0]

    expected = module(query, key, key_lengths=LENGTHS)[0]
    torch.testing.assert_close(vmap(one)(query, key, LENGTHS), expected)


def test_grad_of_a_functional_call_gives_autograds_gradient(case):
    module, query, key = case
    params = dict(module.named_parameters())

    def loss(given):
        out = functional_call(module, given, (query, key), {"key_lengths": LENGTHS})
        return out[0].square().sum()

    found = grad(loss)(params)
    expected = torch.autograd.grad(loss(params), list(params.values()))
    for gradient, right in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(gradient, right, rtol=1e-10, atol=1e-12)


def test_gradients_of_each_example_add_up_to_the_batchs(case):
    module, query, key = case
    params = {name: each.detach() for name, each in module.named_parameters()}

    def loss(given, q, k):
        return functional_call(module, given, (q, k))[0].square().sum()

    each = vmap(grad(lambda p, q, k: loss(p, q[None], k[None])), (None, 0, 0))
    together = grad(loss)(params, query, key)
    for name, gradient in each(params, query, key).items():
        torch.testing.assert_close(gradient.sum(0), together[name], rtol=1e-10, atol=1e-12)


def test_forward_derivatives_are_those_of_the_backward_pass(case):
    module, query, key = case
    direction = torch.randn_like(query)

    def outputs(q):
        return module(q, key, key_lengths=LENGTHS)[0]

    _, expected = torch.autograd.functional.jvp(outputs, query, direction)
    torch.testing.assert_close(jvp(outputs, (query,), (direction,))[1], expected)
    with forward_ad.dual_level():
        dual = outputs(forward_ad.make_dual(query, direction))
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, expected)


def test_a_hessian_is_symmetric(case):
    module, query, key = case
    found = hessian(lambda q: module(q, key)[0].square().sum())(query)
    flat = found.reshape(query.numel(), query.numel())
    assert flat.abs().max() > 1e-3
    torch.testing.assert_close(flat, flat.T)


def test_kernels_run_by_hand_again_when_the_transform_is_over():
    inside = []

    def look(x):
        inside.append(by_hand(x.dtype))
        return x

    vmap(look)(torch.zeros(3, 5))
    assert inside == [False]
    assert by_hand(torch.float32)
    assert by_hand(torch.float64)
    assert not by_hand(torch.float16)
