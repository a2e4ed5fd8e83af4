import inspect
import itertools
import math

import pytest
import torch
from torch import nn

from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.nn.compat import MultiheadAttention

BATCH, T_DEC, T_ENC, HEADS, D_HEAD = 2, 5, 7, 3, 4
EMBED, KDIM, VDIM = HEADS * D_HEAD, 11, 13
DEAD = 3


def _pair(dtype=torch.float64, **options):
    """PyTorch's module and ours with the same parameters, none of them zero."""
    torch.manual_seed(61)
    theirs = nn.MultiheadAttention(EMBED, HEADS, dtype=dtype, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = MultiheadAttention(EMBED, HEADS, dtype=dtype, **options)
    assert ours.load_state_dict(theirs.state_dict()) == theirs.load_state_dict(
        ours.state_dict()
    )
    return theirs, ours


def _given(dtype=torch.float64, layout="batch last", kdim=EMBED, vdim=EMBED):
    torch.manual_seed(67)
    shapes = (T_DEC, EMBED), (T_ENC, kdim), (T_ENC, vdim)
    made = [torch.randn(BATCH, *shape, dtype=dtype) for shape in shapes]
    if layout == "no batch":
        return [x[0] for x in made]
    return made if layout == "batch first" else [x.transpose(0, 1).contiguous() for x in made]


def _masks(kind, dtype=torch.float64, layout="batch first"):
    """Keyword arguments for both modules; no row is forbidden altogether."""
    generator = torch.Generator().manual_seed(71)
    padding = torch.arange(T_ENC) >= torch.tensor([[T_ENC], [4]])
    one = torch.rand(T_DEC, T_ENC, generator=generator) < 0.4
    each = torch.rand(BATCH * HEADS, T_DEC, T_ENC, generator=generator) < 0.4
    one[:, 1] = each[..., 2] = False
    if layout == "no batch":
        padding, each = padding[1], each[:HEADS]
    shift = torch.randn(T_DEC, T_ENC, generator=generator, dtype=dtype)

    def floats(mask):
        return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)

    return {
        "free": {},
        "padding": {"key_padding_mask": padding},
        "float padding": {"key_padding_mask": floats(padding)},
        "mask": {"attn_mask": one},
        "float mask": {"attn_mask": floats(one) + shift},
        "mask by head": {"attn_mask": each},
        "float mask by head": {"attn_mask": floats(each)},
        "both": {"attn_mask": each, "key_padding_mask": padding},
        "both float": {"attn_mask": shift, "key_padding_mask": floats(padding) + shift[0]},
    }[kind]


KINDS = [
    *("free", "padding", "float padding", "mask", "float mask"),
    *("mask by head", "float mask by head", "both", "both float"),
]


@pytest.mark.parametrize("method", ["__init__", "forward"])
def test_the_signature_is_pytorchs(method):
    def read(module):
        found = inspect.signature(getattr(module, method)).parameters.values()
        return [(each.name, each.default, each.kind) for each in found]

    assert read(MultiheadAttention) == read(nn.MultiheadAttention)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["batch last", "batch first", "no batch"])
@pytest.mark.parametrize(
    ("bias", "add_bias_kv", "add_zero_attn", "sizes"),
    [
        (True, False, False, {}),
        (False, False, False, {}),
        (True, True, False, {}),
        (True, False, True, {}),
        (False, True, True, {}),
        (True, False, False, {"kdim": KDIM}),
        (True, True, True, {"kdim": KDIM, "vdim": VDIM}),
        (False, False, False, {"vdim": VDIM}),
    ],
    ids=str,
)
def test_every_flag_does_what_pytorchs_module_does(
    layout, kind, bias, add_bias_kv, add_zero_attn, sizes
):
    theirs, ours = _pair(
        bias=bias,
        add_bias_kv=add_bias_kv,
        add_zero_attn=add_zero_attn,
        batch_first=layout == "batch first",
        **sizes,
    )
    given = _given(layout=layout, **sizes)
    masks = _masks(kind, layout=layout)
    for need, average in itertools.product([True, False], repeat=2):
        flags = {"need_weights": need, "average_attn_weights": average}
        output, weights = ours(*given, **masks, **flags)
        expected, expected_weights = theirs(*given, **masks, **flags)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
        assert (weights is None) == (expected_weights is None) == (not need)
        if need:
            torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_pytorchs(kind):
    theirs, ours = _pair(add_bias_kv=True)
    found = []
    for module in (theirs, ours):
        given = [x.requires_grad_() for x in _given()]
        output, weights = module(*given, **_masks(kind), average_attn_weights=False)
        (output.square().sum() + weights.square().sum()).backward()
        found.append([x.grad for x in (*given, *module.parameters())])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-11)


def test_single_precision_is_as_close_as_rounding_allows():
    theirs, ours = _pair(torch.float32, batch_first=True)
    given = _given(torch.float32, "batch first")
    masks = _masks("both", torch.float32)
    for got, expected in zip(ours(*given, **masks), theirs(*given, **masks), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=3e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_agree_with_pytorchs_module_to_their_rounding(dtype):
    theirs, ours = _pair(dtype, batch_first=True)
    given = _given(dtype, "batch first")
    masks = _masks("float mask", dtype)
    for got, expected in zip(ours(*given, **masks), theirs(*given, **masks), strict=True):
        assert got.dtype == dtype
        coarse = 32 * torch.finfo(dtype).eps
        torch.testing.assert_close(got, expected, rtol=coarse, atol=coarse)


def test_a_correct_causal_hint_changes_nothing():
    theirs, ours = _pair(batch_first=True)
    x = _given(layout="batch first")[0]
    past = nn.Transformer.generate_square_subsequent_mask(T_DEC, dtype=torch.float64)
    hinted = ours(x, x, x, attn_mask=past, is_causal=True)
    plain = ours(x, x, x, attn_mask=past)
    for a, b in zip(hinted, plain, strict=True):
        assert torch.equal(a, b)
    for need in (True, False):
        flags = {"attn_mask": past, "is_causal": True, "need_weights": need}
        expected = theirs(x, x, x, **flags)[0]
        torch.testing.assert_close(ours(x, x, x, **flags)[0], expected, rtol=0, atol=1e-12)


def _dead_masks(form):
    """The same rows without a permitted key, said in each way there is."""
    dead = torch.zeros(BATCH, HEADS, T_DEC, T_ENC, dtype=torch.bool)
    if form == "padding":
        dead[1] = True
        return dead, {"key_padding_mask": dead[:, 0, 0]}
    if form == "one head":
        dead[1, 2, DEAD] = True
    else:
        dead[:, :, DEAD] = True
    mask = dead[0, 0] if form.endswith("mask") else dead.flatten(0, 1)
    if form == "float mask":
        mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(mask, -math.inf)
    return dead, {"attn_mask": mask}


@pytest.mark.parametrize("form", ["padding", "mask", "float mask", "by head", "one head"])
def test_a_query_that_may_attend_nowhere_is_harmless_where_pytorch_makes_nan(form):
    theirs, ours = _pair(batch_first=True)
    dead, masks = _dead_masks(form)
    given = [x.requires_grad_() for x in _given(layout="batch first")]
    output, weights = theirs(*given, **masks, average_attn_weights=False)
    assert output.isnan().any()
    # A loss that reads nothing but living rows, and still gradients are NaN.
    output[~dead.any(1).all(-1)].sum().backward()
    assert theirs.in_proj_weight.grad.isnan().any()

    given = [x.detach().requires_grad_() for x in given]
    output, weights = ours(*given, **masks, average_attn_weights=False)
    assert output.isfinite().all()
    assert (weights[dead] == 0).all()
    sums = torch.where(dead.all(-1), 0.0, 1.0).double()
    torch.testing.assert_close(weights.sum(-1), sums, rtol=0, atol=1e-12)
    lost = dead.all(-1).all(1)
    assert (output[lost] == ours.out_proj.bias).all()
    (output.square().sum() + weights.square().sum()).backward()
    assert (given[0].grad[lost] == 0).all()
    assert all(x.grad.isfinite().all() for x in (*given, *ours.parameters()))


def test_gradients_of_other_rows_are_what_they_were_without_the_dead_one():
    _, ours = _pair(batch_first=True)
    query, key, value = _given(layout="batch first")
    _, masks = _dead_masks("mask")
    alive = [row for row in range(T_DEC) if row != DEAD]

    def gradients(query, **masks):
        given = [x.clone().requires_grad_() for x in (query, key, value)]
        ours.zero_grad()
        output, _ = ours(*given, **masks)
        (output - ours.out_proj.bias.detach()).square().sum().backward()
        parameters = [p.grad.clone() for n, p in ours.named_parameters() if "out_proj" not in n]
        return [given[0].grad, given[1].grad, given[2].grad, *parameters]

    with_dead = gradients(query, **masks)
    without = gradients(query[:, alive])
    with_dead[0] = with_dead[0][:, alive]
    for got, expected in zip(with_dead, without, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_asking_for_weights_changes_no_bit_of_output_or_gradient(kind, dtype):
    _, ours = _pair(dtype, dropout=0.3, batch_first=True)
    found = []
    for flags in ({"need_weights": False}, {}, {"average_attn_weights": False}):
        given = [x.requires_grad_() for x in _given(dtype, "batch first")]
        torch.manual_seed(73)  # of the dropout
        ours.zero_grad()
        output = ours(*given, **_masks(kind, dtype), **flags)[0]
        output.sum().backward()
        found.append([output, *(x.grad for x in given), ours.in_proj_weight.grad.clone()])
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[1], strict=True))
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[2], strict=True))


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e30])
def test_what_padding_holds_changes_neither_result_nor_gradient(poison):
    _, ours = _pair(batch_first=True)
    found = []
    for fill in (0.5, poison):
        query, key, value = _given(layout="batch first")
        query[:, DEAD] = key[1, 4:] = value[1, 4:] = fill
        given = [x.requires_grad_() for x in (query, key, value)]
        ours.zero_grad()
        output, weights = ours(*given, **_masks("padding"), **_dead_masks("mask")[1])
        (output.sum() + weights.square().sum()).backward()
        grads = [x.grad.clone() for x in (*given, *ours.parameters())]
        found.append([output.detach(), weights.detach(), *grads])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}], ids=str)
def test_every_gradient_agrees_with_finite_differences(options):
    torch.manual_seed(79)
    module = MultiheadAttention(4, 2, kdim=3, vdim=5, dtype=torch.float64, **options)
    names = [name for name, _ in module.named_parameters()]
    shapes = (2, 1, 4), (3, 1, 3), (3, 1, 5)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    shift = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    dead = torch.tensor([[False, True, False], [True, True, True]])

    def run(query, key, value, shift, *params):
        masks = {"attn_mask": shift.masked_fill(dead, -math.inf)}
        params = dict(zip(names, params, strict=True))
        return torch.func.functional_call(module, params, (query, key, value), masks)

    assert torch.autograd.gradcheck(run, (*given, shift, *module.parameters()))


def test_the_math_kernel_has_second_derivatives_as_the_notes_say():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    _, ours = _pair()
    given = [x.requires_grad_() for x in _given()]
    with sdpa_kernel(SDPBackend.MATH):
        output = ours(*given)[0]
        (first,) = torch.autograd.grad(output.square().sum(), given[0], create_graph=True)
        first.square().sum().backward()
    assert given[1].grad.isfinite().all()
    assert (given[1].grad != 0).any()


def test_dropout_acts_in_training_only_and_leaves_the_returned_weights_whole():
    _, ours = _pair(dropout=0.5)
    given = _given()
    torch.manual_seed(83)
    trained, weights = ours(*given)
    ours.eval()
    plain, expected = ours(*given)
    assert torch.equal(weights, expected)
    assert not torch.allclose(trained, plain)


class _Counted(MultiheadAttention):
    calls = 0

    def forward(self, *args, **options):
        self.calls += 1
        return super().forward(*args, **options)


def test_an_encoder_layer_runs_through_it_unless_pytorch_takes_its_fast_path():
    torch.manual_seed(89)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0).eval()
    ours = _Counted(8, 2, batch_first=True)
    ours.load_state_dict(layer.self_attn.state_dict())
    x = torch.randn(BATCH, T_DEC, 8)
    padding = torch.zeros(BATCH, T_DEC, dtype=torch.bool)
    padding[0, 3:] = True
    expected = layer(x, src_key_padding_mask=padding)
    layer.self_attn = ours
    got = layer(x, src_key_padding_mask=padding)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)
    assert ours.calls == 1
    padding[1] = True
    with torch.no_grad():
        layer(x, src_key_padding_mask=padding)
        assert ours.calls == 1
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            assert layer(x, src_key_padding_mask=padding).isfinite().all()
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    assert ours.calls == 2


def test_it_compiles_in_one_piece():
    _, ours = _pair(torch.float32)
    given, masks = _given(torch.float32), _masks("both", torch.float32)
    compiled = torch.compile(ours, fullgraph=True, backend="eager")
    for got, expected in zip(compiled(*given, **masks), ours(*given, **masks), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


def test_autocast_is_followed():
    _, ours = _pair(torch.float32, add_bias_kv=True)
    given, masks = _given(torch.float32), _masks("float mask", torch.float32)
    expected = ours(*given, **masks)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = ours(*given, **masks)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected[0], rtol=0.1, atol=0.2)
    torch.testing.assert_close(weights.float(), expected[1], rtol=0.1, atol=0.05)


def _text(error, *args, **options):
    _, ours = _pair()
    with pytest.raises(error) as caught:
        ours(*args, **options)
    return str(caught.value)


def test_pytorchs_mask_by_head_built_with_too_few_rows_is_refused_in_these_words():
    mask = torch.zeros(BATCH, T_DEC, T_ENC, dtype=torch.bool)
    assert _text(ShapeError, *_given(), attn_mask=mask) == (
        "MultiheadAttention(): `attn_mask` does not fit\n"
        "  expected  attn_mask (T_dec=5, T_enc=7) or (batch * num_heads=6, T_dec=5, T_enc=7)\n"
        "  got       attn_mask (2, 5, 7)\n"
        "  because   the sizes come from `query`, `key` and the module"
    )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"key_padding_mask": torch.zeros(T_ENC, BATCH, dtype=torch.bool)},
            ShapeError,
            "MultiheadAttention(): `key_padding_mask` does not fit\n"
            "  expected  key_padding_mask (batch=2, T_enc=7)\n"
            "  got       key_padding_mask (7, 2)\n"
            "  because   the sizes come from `query`, `key` and the module",
        ),
        (
            {"key_padding_mask": torch.zeros(BATCH, T_ENC, dtype=torch.long)},
            MaskError,
            "MultiheadAttention(): `key_padding_mask` is neither boolean nor floating-point\n"
            "  expected  booleans, True = ignore, or floats that are added, -inf = ignore\n"
            "  got       dtype torch.int64\n"
            "  help      `key_padding_mask != 0` if 1 means ignore, `key_padding_mask == 0` if "
            "1 means may attend",
        ),
        (
            {"attn_mask": [[True]]},
            BackendError,
            "MultiheadAttention(): `attn_mask` is no tensor\n"
            "  expected  booleans, True = ignore, or floats that are added, -inf = ignore\n"
            "  got       list",
        ),
        (
            {"is_causal": True},
            ConventionError,
            "MultiheadAttention(): `is_causal` without `attn_mask`\n"
            "  expected  the causal mask as `attn_mask`\n"
            "  got       attn_mask=None, is_causal=True\n"
            "  because   PyTorch's flag says what a mask is like and makes none\n"
            "  help      nn.Transformer.generate_square_subsequent_mask(T) makes it",
        ),
    ],
    ids=["turned", "integers", "lists", "hint"],
)
def test_masks_that_do_not_fit_are_refused_in_these_words(options, error, text):
    assert _text(error, *_given(), **options) == text


def test_inputs_that_do_not_fit_are_named_before_any_arithmetic():
    query, key, value = _given()
    assert _text(ShapeError, query, key[..., :-1], value) == (
        "MultiheadAttention(): `key` does not fit the module on axis kdim\n"
        "  expected  key (T_enc=7, batch=2, kdim=12)\n"
        "  got       key (7, 2, 11)\n"
        "  because   the module was built with kdim = 12"
    )
    assert "`value` does not fit `key` on axis T_enc" in _text(
        ShapeError, query, key, value[1:]
    )
    assert "`key` does not fit `query` on axis batch" in _text(
        ShapeError, query, key[:, :1], value
    )
    assert "`key` has 3 axes, not 2" in _text(ShapeError, query[0], key, value)
    assert "differ in number type" in _text(BackendError, query.float(), key, value)
    nested = torch.nested.nested_tensor([query[0], query[1]], layout=torch.jagged)
    assert "nested" in _text(BackendError, nested, nested, nested)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_heads": 5}, ShapeError, "embed_dim=12, num_heads=5"),
        ({"num_heads": 0}, ShapeError, "`num_heads` is not a size"),
        ({"kdim": -3}, ShapeError, "`kdim` is not a size"),
        ({"dropout": 1.5}, ConventionError, "`dropout` is no probability"),
    ],
)
def test_what_cannot_be_built_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        MultiheadAttention(**{"embed_dim": EMBED, "num_heads": HEADS, **options})
