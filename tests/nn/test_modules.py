import math

import pytest
import torch

from regard.attention import reference
from regard.attention.attend import attend
from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.nn import AdditiveAttention, LuongAttention, Memory

BATCH, T_DEC, T_ENC, D_S, D_H, D_V, D_ATTN = 2, 3, 5, 7, 11, 13, 17
KINDS = ["additive", "dot", "general", "concat"]


def _module(kind, dtype=torch.float64):
    torch.manual_seed(19)
    if kind == "additive":
        module = AdditiveAttention(D_S, D_H, D_ATTN)
    elif kind == "dot":
        module = LuongAttention(D_S, D_S, "dot")
    else:
        module = LuongAttention(D_S, D_H, kind, D_ATTN if kind == "concat" else None)
    return module.to(dtype)


def _given(module, dtype=torch.float64, batch=(BATCH,)):
    torch.manual_seed(23)
    return (
        torch.randn(*batch, T_DEC, module.d_s, dtype=dtype),
        torch.randn(*batch, T_ENC, module.d_h, dtype=dtype),
        torch.randn(*batch, T_ENC, D_V, dtype=dtype),
    )


def _params(module):
    return {name: p.detach() for name, p in module.named_parameters()}


def _some_mask():
    mask = torch.rand(BATCH, T_DEC, T_ENC, generator=torch.Generator().manual_seed(29)) < 0.6
    mask[0, 1] = False  # a query that may attend nowhere
    mask[1, :, 4] = False  # a key that no query may attend
    mask[0, 0] = mask[1, 0, 0] = True
    return mask


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_module_agrees_with_the_plain_list_reference(kind, masked):
    module = _module(kind)
    query, key, value = _given(module)
    mask = _some_mask() if masked else None
    context, weights = module(query, key, value, mask=mask)
    assert weights.shape == (BATCH, T_DEC, T_ENC)
    params = {name: p.tolist() for name, p in _params(module).items()}
    for b in range(BATCH):
        expected = reference.attend(
            query[b].tolist(),
            key[b].tolist(),
            value[b].tolist(),
            score=kind,
            mask=None if mask is None else mask[b].tolist(),
            **params,
        )
        wanted = [torch.tensor(each, dtype=torch.float64) for each in expected]
        torch.testing.assert_close(context[b].detach(), wanted[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(weights[b].detach(), wanted[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_leading_axes_agrees_with_attend(kind, batch):
    module = _module(kind)
    query, key, _ = _given(module, batch=batch)
    lengths = torch.randint(0, T_ENC + 1, batch)
    got = module(query, key, key_lengths=lengths)
    expected = attend(query, key, score=kind, key_lengths=lengths, **_params(module))
    torch.testing.assert_close(got.context, expected.context, rtol=0, atol=1e-12)
    torch.testing.assert_close(got.weights, expected.weights, rtol=0, atol=1e-12)


def _small(kind):
    torch.manual_seed(19)
    if kind == "additive":
        return AdditiveAttention(2, 3, 5).double()
    d_h = 2 if kind == "dot" else 3
    return LuongAttention(2, d_h, kind, 5 if kind == "concat" else None).double()


@pytest.mark.parametrize("kind", KINDS)
def test_every_gradient_agrees_with_finite_differences(kind):
    module = _small(kind)
    names = [name for name, _ in module.named_parameters()]
    shapes = (1, 3, 2), (1, 5, module.d_h), (1, 5, 2)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.ones(1, 3, 5, dtype=torch.bool)
    mask[0, 1] = mask[0, :, 4] = mask[0, 2, 0] = False

    def run(query, key, value, *params):
        params = dict(zip(names, params, strict=True))
        call = (query, key, value), {"mask": mask}
        return tuple(torch.func.functional_call(module, params, *call))

    assert torch.autograd.gradcheck(run, (*given, *module.parameters()))


def _outcome(module, query, key, value, **options):
    """Result and every gradient, as one list."""
    given = [each.clone().requires_grad_() for each in (query, key, value)]
    module.zero_grad()
    context, weights = module(*given, **options)
    (context.sum() + weights.square().sum()).backward()
    grads = [each.grad for each in (*given, *module.parameters())]
    return [context.detach(), weights.detach(), *grads]


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_what_padding_holds_changes_neither_result_nor_gradient(kind, poison):
    module = _module(kind)
    query, key, value = _given(module)
    mask, lengths = _some_mask(), torch.tensor([4, 5])
    clean = _outcome(module, query, key, value, mask=mask, key_lengths=lengths)
    key, value, query = key.clone(), value.clone(), query.clone()
    for states in (key, value):
        states[0, 4] = poison  # past the length
        states[1, 4] = poison  # where no query may attend
    query[0, 1] = poison  # a query that may attend nowhere
    assert all(each.isfinite().all() for each in clean)
    for mine, theirs in zip(
        _outcome(module, query, key, value, mask=mask, key_lengths=lengths), clean, strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_that_comes_after_the_memory_still_shuts_out_what_it_forbids(kind):
    module = _module(kind)
    found = []
    for fill in (0.5, math.nan):
        query, key, value = _given(module)
        key[1, 4] = value[1, 4] = fill  # where the mask lets no query attend
        query.requires_grad_()
        context, weights = module(query, module.prepare(key, value), mask=_some_mask())
        (context.sum() + weights.square().sum()).backward()
        found.append([context.detach(), weights.detach(), query.grad])
    for mine, theirs in zip(*found, strict=True):
        assert theirs.isfinite().all()
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_may_attend_nowhere_has_zero_weights_context_and_gradient(kind):
    module = _module(kind)
    query, key, value = (each.requires_grad_() for each in _given(module))
    context, weights = module(query, key, value, mask=_some_mask())
    context[0, 1].square().sum().backward(retain_graph=True)
    assert (context[0, 1] == 0).all()
    assert (weights[0, 1] == 0).all()
    assert all((each.grad == 0).all() for each in (query, key, value))
    context.sum().backward()
    assert (query.grad[0, 1] == 0).all()
    assert (query.grad[0, 0] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_asking_for_weights_changes_no_bit_of_the_context(kind, dtype):
    module = _module(kind, dtype)
    given = _given(module, dtype)
    with_weights = module(*given, mask=_some_mask())
    without = module(*given, mask=_some_mask(), need_weights=False)
    assert without.weights is None
    assert torch.equal(with_weights.context, without.context)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_gives_the_same_bits_as_its_keys(kind):
    module = _module(kind, torch.float32)
    query, key, value = _given(module, torch.float32)
    lengths = torch.tensor([4, 2])
    direct = module(query, key, value, key_lengths=lengths)
    memory = module.prepare(key, value, lengths)
    assert isinstance(memory, Memory)
    through = module(query, memory)
    assert torch.equal(direct.context, through.context)
    assert torch.equal(direct.weights, through.weights)
    # ... step by step, and with a mask that comes later
    mask = _some_mask()
    whole = module(query, key, value, key_lengths=lengths, mask=mask)
    for t in range(T_DEC):
        step = module(query[:, t : t + 1], memory, mask=mask[:, t : t + 1])
        torch.testing.assert_close(step.context, whole.context[:, t : t + 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_selects_examples_for_beam_search(kind):
    module = _module(kind, torch.float32)
    query, key, value = _given(module, torch.float32)
    memory = module.prepare(key, value, torch.tensor([4, 2]))
    order = torch.tensor([1, 0, 1])
    chosen = module(query[order], memory.select(order))
    torch.testing.assert_close(chosen.context, module(query, memory).context[order])


def test_a_key_mask_at_preparation_means_what_a_mask_at_the_call_means():
    module = _module("additive")
    query, key, value = _given(module)
    key_mask = torch.tensor([[True, False, True, True, False], [False] * 5])
    memory = module.prepare(key, value, key_mask=key_mask)
    expected = module(query, key, value, mask=key_mask.unsqueeze(1).expand(-1, T_DEC, -1))
    assert torch.equal(module(query, memory).context, expected.context)


def test_nothing_is_kept_on_a_module_between_calls():
    module = _module("additive")
    before = set(vars(module)), set(module.state_dict())
    module(*_given(module))
    assert (set(vars(module)), set(module.state_dict())) == before
    assert not list(module.buffers())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_half_types_stay_finite_and_close(kind, dtype):
    exact = _module(kind, torch.float32)
    query, key, value = _given(exact, torch.float32)
    wanted = exact(query, key, value, mask=_some_mask())
    module = _module(kind, dtype)
    outcome = _outcome(
        module, *(each.to(dtype) for each in (query, key, value)), mask=_some_mask()
    )
    assert all(each.isfinite().all() for each in outcome)
    torch.testing.assert_close(outcome[1].float(), wanted.weights, rtol=0, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_it_trains_under_autocast(kind):
    module = _module(kind, torch.float32)
    query, key, value = (x.requires_grad_() for x in _given(module, torch.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        context, weights = module(query.bfloat16(), key, value, mask=_some_mask())
    assert context.dtype == torch.bfloat16
    (context.float().sum() + weights.float().sum()).backward()
    assert all(p.grad.isfinite().all() for p in module.parameters())
    expected = module(query, key, value, mask=_some_mask())
    torch.testing.assert_close(context.float(), expected.context, rtol=0, atol=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_it_compiles_in_one_piece(kind):
    module = _module(kind, torch.float32)
    query, key, value = _given(module, torch.float32)
    lengths = torch.tensor([4, 2])
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    got = compiled(query, key, value, mask=_some_mask(), key_lengths=lengths)
    expected = module(query, key, value, mask=_some_mask(), key_lengths=lengths)
    torch.testing.assert_close(got.context, expected.context, rtol=0, atol=1e-6)


def test_an_independent_additive_formula_with_given_parameters():
    module = AdditiveAttention(1, 1, 1)
    with torch.no_grad():
        module.W_a.fill_(2.0)
        module.U_a.fill_(3.0)
        module.v_a.fill_(0.5)
    _, weights = module(torch.tensor([[0.1]]), torch.tensor([[0.2], [-0.4]]))
    high, low = (math.exp(0.5 * math.tanh(x)) for x in (0.2 + 0.6, 0.2 - 1.2))
    assert weights[0, 0].item() == pytest.approx(high / (high + low), abs=1e-6)


def test_v_a_starts_as_large_as_its_scale_says():
    torch.manual_seed(31)
    module = AdditiveAttention(3, 5, 10007, v_scale=4.0)
    largest = module.v_a.abs().max().item() * math.sqrt(10007)
    assert 3.9 < largest <= 4.0
    assert module.W_a.abs().max().item() <= 3**-0.5
    assert module.U_a.abs().max().item() <= 5**-0.5


def test_parameters_have_the_papers_names_and_shapes():
    assert {n: tuple(p.shape) for n, p in AdditiveAttention(7, 11, 17).named_parameters()} == {
        "W_a": (17, 7),
        "U_a": (17, 11),
        "v_a": (17,),
    }
    general = LuongAttention(7, 11, "general")
    assert {n: tuple(p.shape) for n, p in general.named_parameters()} == {"W": (7, 11)}
    concat = LuongAttention(7, 11, "concat", 17)
    assert {n: tuple(p.shape) for n, p in concat.named_parameters()} == {
        "W_c": (17, 18),
        "v_c": (17,),
    }
    assert not list(LuongAttention(7, 7).parameters())
    assert repr(concat) == "LuongAttention(d_s=7, d_h=11, score='concat', d_attn=17)"


def test_a_dot_product_of_two_sizes_is_refused_at_construction():
    with pytest.raises(ShapeError) as caught:
        LuongAttention(7, 11)
    assert str(caught.value) == (
        "LuongAttention(): a dot product needs queries and keys of one size\n"
        "  expected  d_s = d_h, so d_s=11 or d_h=7\n"
        "  got       d_s=7, d_h=11\n"
        "  because   dot multiplies feature with feature and has no parameters\n"
        '  help      score="general" compares the two sizes with a matrix W (7, 11)'
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score": "additive"}, "Bahdanau's additive score is AdditiveAttention's"),
        ({"score": "cosine"}, "score='cosine'"),
        ({"score": "concat"}, "d_attn=a size"),
        ({"score": "general", "d_attn": 5}, "no d_attn"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, words):
    with pytest.raises(ConventionError, match=words):
        LuongAttention(7, 11, **options)


def test_arguments_that_do_not_fit_are_named_before_any_arithmetic():
    module = _module("additive")
    query, key, value = _given(module)
    with pytest.raises(ShapeError, match=r"`query` does not fit the module on axis d_s"):
        module(key, key)
    with pytest.raises(ShapeError, match=r"`value` does not fit `key` on axis T_enc"):
        module(query, key, value[:, :-1])
    with pytest.raises(ShapeError, match=r"the transpose of `mask` would fit"):
        module(query, key, mask=_some_mask().transpose(1, 2))
    with pytest.raises(MaskError, match="`mask` is not a boolean array"):
        module(query, key, mask=_some_mask().double())
    with pytest.raises(MaskError, match="length outside the keys"):
        module(query, key, key_lengths=torch.tensor([5, 6]))
    with pytest.raises(BackendError, match="`key` and the module differ in number type"):
        module(query, key.float())
    with pytest.raises(BackendError, match="`query` is no array"):
        module(query.tolist(), key)
    with pytest.raises(BackendError, match="`key_lengths` is not an integer array"):
        module(query, key, key_lengths=torch.tensor([5.0, 3.0]))


def test_a_dot_module_has_no_parameters_and_still_refuses_two_number_types():
    module = LuongAttention(7, 7)
    with pytest.raises(BackendError, match="`query` and `key` differ in number type"):
        module(torch.zeros(1, 3, 7), torch.zeros(1, 5, 7).double())


def test_another_modules_memory_is_refused():
    one, other = _module("additive"), _module("additive")
    query, key, _ = _given(one)
    with pytest.raises(ConventionError) as caught:
        one(query, other.prepare(key))
    assert str(caught.value) == (
        "AdditiveAttention(): `memory` was prepared by another module\n"
        "  expected  what this module's own prepare(...) returned\n"
        "  got       the memory of another AdditiveAttention\n"
        "  because   the module that prepares keys projects them with its own parameters"
    )


@pytest.mark.parametrize("name", ["value", "key_lengths"])
def test_a_memory_and_what_it_already_holds_are_refused_together(name):
    module = _module("additive")
    query, key, value = _given(module)
    extra = {"value": value, "key_lengths": torch.tensor([5, 3])}[name]
    with pytest.raises(ConventionError, match=f"`{name}` beside a memory"):
        module(query, module.prepare(key), **{name: extra})
