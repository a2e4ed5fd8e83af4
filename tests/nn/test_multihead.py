import itertools
import math

import pytest
import torch
from torch import nn

from regard.attention.heads import multi_head
from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.nn import AdditiveAttention, LuongAttention, MultiHeadAttention

BATCH, T_DEC, T_ENC, HEADS, D_HEAD, D_ATTN = 2, 3, 5, 3, 7, 11
D_MODEL, KDIM, VDIM = HEADS * D_HEAD, 13, 17
SCORES = ["scaled_dot", "dot", "general", "additive", "concat"]


def _module(score="scaled_dot", heads=HEADS, dtype=torch.float64, **options):
    torch.manual_seed(37)
    if score in ("additive", "concat"):
        options["d_attn"] = D_ATTN
    return MultiHeadAttention(heads * D_HEAD, heads, score=score, **options).to(dtype)


def _given(dtype=torch.float64, kdim=D_MODEL, vdim=D_MODEL, d_model=D_MODEL):
    torch.manual_seed(41)
    return (
        torch.randn(BATCH, T_DEC, d_model, dtype=dtype),
        torch.randn(BATCH, T_ENC, kdim, dtype=dtype),
        torch.randn(BATCH, T_ENC, vdim, dtype=dtype),
    )


def _some_mask(*, by_head=False, dead=True):
    shape = (BATCH, HEADS, T_DEC, T_ENC) if by_head else (BATCH, T_DEC, T_ENC)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(43)) < 0.5
    mask[..., 0, :2] = True
    mask[..., 2, 1:3] = True
    mask[0, ..., 1, 3] = True
    mask[1, ..., 1, :] = not dead
    return mask


def _theirs(mask, heads):
    """PyTorch's polarity and its layout of a mask by head."""
    by_head = mask if mask.ndim == 4 else mask.unsqueeze(1).expand(-1, heads, -1, -1)
    return ~by_head.reshape(-1, *mask.shape[-2:])


@pytest.mark.parametrize(
    ("dtype", "sizes", "bias", "masked"),
    list(
        itertools.product(
            [torch.float32, torch.float64],
            [{}, {"kdim": KDIM}, {"kdim": KDIM, "vdim": VDIM}],
            [True, False],
            ["free", "mask", "mask by head", "lengths", "causal"],
        )
    ),
    ids=str,
)
def test_outputs_agree_with_pytorchs_module_after_loading_its_state(dtype, sizes, bias, masked):
    torch.manual_seed(47)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=bias, batch_first=True, **sizes).to(
        dtype
    )
    for parameter in theirs.parameters():
        nn.init.normal_(
            parameter, std=0.5
        )  # PyTorch starts biases at zero, which proves little
    ours = MultiHeadAttention(D_MODEL, HEADS, bias=bias, **sizes).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    query, key, value = _given(dtype, sizes.get("kdim", D_MODEL), sizes.get("vdim", D_MODEL))
    options, their_options = {}, {}
    if masked.startswith("mask"):
        mask = _some_mask(by_head="head" in masked, dead=False)
        options, their_options = {"mask": mask}, {"attn_mask": _theirs(mask, HEADS)}
    elif masked == "lengths":
        lengths = torch.tensor([5, 2])
        options = {"key_lengths": lengths}
        their_options = {"key_padding_mask": torch.arange(T_ENC) >= lengths[:, None]}
    elif masked == "causal":
        options = {"causal": "bottom_right"}
        past = torch.ones(T_DEC, T_ENC, dtype=torch.bool).tril(T_ENC - T_DEC)
        their_options = {"attn_mask": ~past}
    context, weights = ours(query, key, value, **options)
    expected = theirs(query, key, value, average_attn_weights=False, **their_options)
    tolerance = 2e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(context, expected[0], rtol=0, atol=tolerance)
    torch.testing.assert_close(weights, expected[1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("sizes", [{}, {"kdim": KDIM, "vdim": VDIM}], ids=str)
def test_a_state_moves_to_pytorchs_module_as_well(sizes):
    ours = _module(dtype=torch.float32, **sizes)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **sizes)
    theirs.load_state_dict(ours.state_dict())
    given = _given(torch.float32, sizes.get("kdim", D_MODEL), sizes.get("vdim", D_MODEL))
    torch.testing.assert_close(ours(*given).context, theirs(*given)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("masked", ["free", "mask", "mask by head"])
@pytest.mark.parametrize("score", SCORES)
def test_every_score_agrees_with_the_generic_multi_head(score, masked):
    module = _module(score)
    query, key, value = _given()
    mask = None if masked == "free" else _some_mask(by_head="head" in masked)
    with torch.no_grad():
        for parameter in (module.in_proj_bias, module.out_proj.bias):
            parameter.zero_()  # the generic function has no biases
        got = module(query, key, value, mask=mask)
        W_q, W_k, W_v = module.in_proj_weight.chunk(3)
        own = ("W", "W_a", "U_a", "v_a", "W_c", "v_c")
        params = {n: p for n, p in module.named_parameters(recurse=False) if n in own}
        expected = multi_head(
            query,
            key,
            value,
            heads=HEADS,
            score=score,
            W_q=W_q,
            W_k=W_k,
            W_v=W_v,
            W_o=module.out_proj.weight,
            mask=mask,
            **params,
        )
    torch.testing.assert_close(got.weights, expected.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(got.context, expected.context, rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", ["dot", "general", "additive", "concat"])
def test_one_head_is_the_single_head_module_bit_for_bit(score):
    module = _module(score, heads=1, dtype=torch.float32)
    query, key, value = _given(torch.float32, D_HEAD, D_HEAD, D_HEAD)
    if score == "additive":
        single = AdditiveAttention(D_HEAD, D_HEAD, D_ATTN)
    else:
        single = LuongAttention(D_HEAD, D_HEAD, score, D_ATTN if score == "concat" else None)
    state = module.state_dict()
    single.load_state_dict({name: state[name][0] for name in single.state_dict()})
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(D_HEAD).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(D_HEAD))
    mask = _some_mask()
    got = module(query, key, value, mask=mask)
    expected = single(query, key, value, mask=mask)
    assert torch.equal(got.weights[:, 0], expected.weights)
    assert torch.equal(got.context, expected.context)


@pytest.mark.parametrize("score", SCORES)
def test_every_gradient_agrees_with_finite_differences(score):
    torch.manual_seed(53)
    d_attn = 3 if score in ("additive", "concat") else None
    module = MultiHeadAttention(4, 2, kdim=3, vdim=2, score=score, d_attn=d_attn).double()
    names = [name for name, _ in module.named_parameters()]
    shapes = (1, 2, 4), (1, 3, 3), (1, 3, 2)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.tensor([[[True, False, True], [False, False, False]]])

    def run(query, key, value, *params):
        params = dict(zip(names, params, strict=True))
        call = (query, key, value), {"mask": mask}
        return tuple(torch.func.functional_call(module, params, *call))

    assert torch.autograd.gradcheck(run, (*given, *module.parameters()))


@pytest.mark.parametrize("score", SCORES)
def test_a_query_that_may_attend_nowhere_receives_the_output_bias_alone(score):
    module = _module(score)
    nn.init.normal_(module.out_proj.bias)
    given = [each.requires_grad_() for each in _given()]
    context, weights = module(*given, mask=_some_mask())
    assert (weights[1, :, 1] == 0).all()
    assert torch.equal(context[1, 1], module.out_proj.bias)
    (context.sum() + weights.square().sum()).backward()
    assert all(each.grad.isfinite().all() for each in (*given, *module.parameters()))
    assert (given[0].grad[1, 1] == 0).all()


@pytest.mark.parametrize("poison", [math.nan, 1e30])
@pytest.mark.parametrize("score", SCORES)
def test_what_padding_holds_changes_neither_result_nor_gradient(score, poison):
    module = _module(score)
    found = []
    for fill in (0.5, poison):
        query, key, value = _given()
        key[1, 2:] = value[1, 2:] = fill
        given = [each.requires_grad_() for each in (query, key, value)]
        module.zero_grad()
        context, weights = module(*given, key_lengths=torch.tensor([5, 2]))
        (context.sum() + weights.square().sum()).backward()
        grads = [each.grad.clone() for each in (*given, *module.parameters())]
        found.append([context.detach(), weights.detach(), *grads])
    assert all(each.isfinite().all() for each in found[0])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_without_keys_it_is_self_attention():
    module = _module()
    x, _, _ = _given()
    assert torch.equal(module(x).context, module(x, x, x).context)
    assert torch.equal(module(x, x).context, module(x, x, x).context)


def test_causal_lets_no_query_see_what_comes_after_it():
    module = _module()
    x, _, _ = _given()
    weights = module(x, causal=True).weights
    assert (weights.triu(1) == 0).all()
    assert (weights.tril() > 0).sum() == BATCH * HEADS * T_DEC * (T_DEC + 1) // 2
    query, key, value = _given()
    with pytest.raises(ConventionError, match="top_left"):
        module(query, key, value, causal=True)


@pytest.mark.parametrize("score", SCORES)
def test_asking_for_weights_changes_no_bit_of_the_context(score):
    module = _module(score, dtype=torch.float32)
    given = _given(torch.float32)
    with_weights = module(*given, mask=_some_mask())
    without = module(*given, mask=_some_mask(), need_weights=False)
    assert without.weights is None
    assert torch.equal(with_weights.context, without.context)


def test_dropout_acts_in_training_only_and_leaves_the_returned_weights_whole():
    module = _module(dropout=0.5)
    given = _given()
    torch.manual_seed(59)
    trained = module(*given)
    module.eval()
    plain = module(*given)
    assert torch.equal(trained.weights, plain.weights)
    assert not torch.allclose(trained.context, plain.context)
    assert torch.equal(module(*given).context, plain.context)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("score", SCORES)
def test_half_types_are_finite_forward_and_backward(score, dtype):
    module = _module(score, dtype=dtype)
    given = [each.requires_grad_() for each in _given(dtype)]
    context, weights = module(*given, mask=_some_mask())
    (context.sum() + weights.sum()).backward()
    assert all(x.isfinite().all() for x in (context, weights, *(each.grad for each in given)))


@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_it_compiles_in_one_piece(score):
    module = _module(score, dtype=torch.float32)
    given = _given(torch.float32)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    lengths = torch.tensor([5, 2])
    got = compiled(*given, key_lengths=lengths)
    expected = module(*given, key_lengths=lengths)
    torch.testing.assert_close(got.context, expected.context, rtol=0, atol=1e-5)


def test_appended_keys_cannot_be_loaded_and_the_error_says_so():
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, add_bias_kv=True)
    with pytest.raises(ConventionError) as caught:
        _module(dtype=torch.float32).load_state_dict(theirs.state_dict())
    assert str(caught.value) == (
        "MultiHeadAttention.load_state_dict(): bias_k and bias_v cannot be loaded\n"
        "  expected  the state of a torch.nn.MultiheadAttention with add_bias_kv=False\n"
        "  got       bias_k, bias_v\n"
        "  because   they append a key and a value that belong to no position"
    )


def test_a_state_with_the_other_layout_is_refused_even_inside_a_larger_model():
    theirs = nn.ModuleDict({"attn": nn.MultiheadAttention(D_MODEL, HEADS, kdim=KDIM)})
    ours = nn.ModuleDict({"attn": _module(dtype=torch.float32)})
    with pytest.raises(ConventionError) as caught:
        ours.load_state_dict(theirs.state_dict())
    assert str(caught.value) == (
        "MultiHeadAttention.load_state_dict(): the projections are laid out otherwise\n"
        "  expected  one in_proj_weight\n"
        "  got       separate q_proj_weight, k_proj_weight, v_proj_weight\n"
        "  because   this module was built with d_model=21, kdim=21, vdim=21\n"
        "  help      build it with the kdim and vdim of the module that was saved"
    )


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"heads": 4}, ShapeError, "d_model=21, heads=4"),
        ({"heads": 0}, ShapeError, "`heads` is not a size"),
        ({"score": "luong"}, ConventionError, "score='luong'"),
        ({"score": "additive"}, ConventionError, "d_attn=None"),
        ({"d_attn": 5}, ConventionError, "no d_attn"),
        ({"dropout": 1.5}, ConventionError, "1.5"),
        ({"kdim": -3}, ShapeError, "`kdim` is not a size"),
    ],
)
def test_what_cannot_be_built_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        MultiHeadAttention(**{"d_model": D_MODEL, "heads": HEADS, **options})


def test_arguments_that_do_not_fit_are_named_before_any_arithmetic():
    module = _module()
    query, key, value = _given()
    with pytest.raises(ShapeError, match="`key` does not fit the module on axis kdim"):
        module(query, key[..., :-1], value)
    with pytest.raises(ShapeError, match="`value` does not fit `key` on axis T_enc"):
        module(query, key, value[:, :-1])
    with pytest.raises(ShapeError, match="`mask` does not fit the module on axis heads"):
        module(query, key, value, mask=_some_mask(by_head=True)[:, :1])
    with pytest.raises(ShapeError, match="`query` has 2 axes, not 3"):
        module(query[0])
    with pytest.raises(MaskError, match="`mask` is not a boolean array"):
        module(query, key, value, mask=_some_mask().double())
    with pytest.raises(BackendError, match="differ in number type"):
        module(query.float(), key, value)
