import numpy as np
import pytest

import regard as rg
from regard.attention import reference
from regard.attention.masks import (
    causal,
    from_hf_additive,
    from_hf_padding,
    from_keras,
    from_lengths,
    from_padding_ids,
    from_torch_mha,
    to_additive,
    to_torch_mha,
    window,
)


def test_lengths_allow_the_first_keys_of_each_example(xp):
    lengths = np.array([[2, 0], [13, 5]])
    got = xp.numpy(from_lengths(xp.array(lengths), T_dec=3, T_enc=13))
    assert got.shape == (2, 2, 3, 13)
    for index in np.ndindex(2, 2):
        expected = reference.from_lengths(int(lengths[index]), T_dec=3, T_enc=13)
        assert got[index].tolist() == expected


@pytest.mark.parametrize("corner", ["top_left", "bottom_right"])
@pytest.mark.parametrize(("T_dec", "T_enc"), [(3, 3), (3, 7), (7, 3)])
def test_causal_masks_agree_with_the_reference(xp, corner, T_dec, T_enc):
    got = xp.numpy(causal(T_dec, T_enc, corner=corner, like=xp.array(np.zeros(1))))
    assert got.tolist() == reference.causal(T_dec, T_enc, corner=corner)


def test_the_causal_reference_is_what_it_says():
    assert reference.causal(2, 3) == [[True, False, False], [True, True, False]]
    bottom = [[True, True, False], [True, True, True]]
    assert reference.causal(2, 3, corner="bottom_right") == bottom


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 2), (50, 0)])
def test_windows_agree_with_the_reference(xp, left, right):
    got = window(3, 7, left=left, right=right, like=xp.array(np.zeros(1)))
    assert xp.numpy(got).tolist() == reference.window(3, 7, left=left, right=right)


def test_causal_of_unequal_lengths_must_name_its_corner():
    with pytest.raises(rg.ConventionError) as caught:
        causal(3, 7)
    assert str(caught.value) == (
        "causal with T_dec=3 queries and T_enc=7 keys can mean two things\n"
        '  expected  causal="top_left" or causal="bottom_right"\n'
        "  got       causal=None\n"
        '  because   "top_left" lets query t see keys 0 .. t, "bottom_right" lets the last '
        "query see every key"
    )


@pytest.mark.parametrize("lengths", [[-1, 3], [3, 14]])
def test_a_length_outside_the_keys_is_refused(xp, lengths):
    with pytest.raises(rg.MaskError, match=r"every length within 0 \.\. T_enc=13"):
        from_lengths(xp.array(np.array(lengths)), T_dec=3, T_enc=13)


def test_float_lengths_are_refused():
    with pytest.raises(rg.BackendError, match="`key_lengths` is not an integer array"):
        from_lengths(np.array([2.0]), T_dec=3, T_enc=13)


def test_a_negative_window_is_refused():
    with pytest.raises(rg.ConventionError, match="`left` is negative"):
        window(3, 7, left=-1, right=0)


def test_other_libraries_masks_enter_with_their_polarity_in_the_name(xp):
    padding = np.array([[False, False, True], [False, True, True]])
    torch_said = xp.numpy(from_torch_mha(xp.array(padding), T_dec=2))
    keras_said = xp.numpy(from_keras(xp.array(~padding), T_dec=2))
    expected = [[[True, True, False]] * 2, [[True, False, False]] * 2]
    assert torch_said.tolist() == keras_said.tolist() == expected


N, HEADS, T_DEC, T_ENC = 2, 3, 5, 7


def _by_example(rng):
    mask = rng.random((N, T_DEC, T_ENC)) < 0.6
    mask[0, 0] = False
    return mask


def _by_head(rng):
    mask = rng.random((N, HEADS, T_DEC, T_ENC)) < 0.6
    mask[1, 2, 3] = False
    return mask


def _additive(mask, lowest=-np.inf, dtype=np.float64):
    return np.where(mask, 0.0, lowest).astype(dtype)


@pytest.mark.parametrize("form", ["bool", "float"])
def test_pytorchs_two_masks_hold_together_in_every_shape_they_come_in(xp, rng, form):
    ignored = (lambda may: ~may) if form == "bool" else _additive
    real = np.arange(T_ENC) < np.array([[7], [4]])
    one, each = _by_example(rng)[0], _by_head(rng)

    def door(real, free, **options):
        masks = [None if m is None else xp.array(ignored(m)) for m in (real, free)]
        return xp.numpy(from_torch_mha(*masks, T_dec=T_DEC, **options))

    flat = each.reshape(N * HEADS, T_DEC, T_ENC)
    for got, expected in [
        (door(real, None), np.repeat(real[:, None], T_DEC, 1)),
        (door(real[1], None), np.repeat(real[1][None], T_DEC, 0)),
        (door(None, one), one),
        (door(real, one), real[:, None] & one),
        (door(None, flat, heads=HEADS), each),
        (door(real, flat, heads=HEADS), real[:, None, None] & each),
        (door(real[1], flat[:HEADS], heads=HEADS), real[1] & each[0]),
    ]:
        assert got.dtype == bool
        assert got.shape == expected.shape
        assert (got == expected).all()


def test_a_mask_by_head_is_read_as_pytorchs_module_reads_it(rng):
    torch = pytest.importorskip("torch")
    each = _by_head(rng)
    each[..., 0] = True
    module = torch.nn.MultiheadAttention(HEADS * 2, HEADS, batch_first=True)
    x, y = torch.ones(N, T_DEC, HEADS * 2), torch.ones(N, T_ENC, HEADS * 2)
    attn_mask = to_torch_mha(torch.from_numpy(each))
    weights = module(x, y, y, attn_mask=attn_mask, average_attn_weights=False)[1]
    assert ((weights > 0).numpy() == each).all()
    assert (from_torch_mha(attn_mask=attn_mask, T_dec=T_DEC, heads=HEADS).numpy() == each).all()


def test_masks_come_back_from_pytorch_as_they_went(xp, rng):
    one, some, each = _by_example(rng)[0], _by_example(rng), _by_head(rng)

    def there_and_back(mask, **heads):
        out = to_torch_mha(xp.array(mask), **heads)
        return xp.numpy(from_torch_mha(attn_mask=out, T_dec=T_DEC, heads=HEADS))

    assert (there_and_back(one) == one).all()
    assert (there_and_back(each) == each).all()
    assert (there_and_back(each, heads=HEADS) == each).all()
    got = there_and_back(some, heads=HEADS)
    assert (got == np.repeat(some[:, None], HEADS, 1)).all()


def test_keras_masks_hold_together(xp, rng):
    value = np.arange(T_ENC) < np.array([[7], [4]])
    query = np.arange(T_DEC) < np.array([[2], [5]])
    free = _by_example(rng)

    def door(*masks, **options):
        given = [None if mask is None else xp.array(mask) for mask in masks]
        return xp.numpy(from_keras(*given, **options))

    assert (door(value, T_dec=T_DEC) == np.repeat(value[:, None], T_DEC, 1)).all()
    assert (door(value, query) == value[:, None] & query[..., None]).all()
    assert (door(value, None, free) == value[:, None] & free).all()
    assert (door(None, query, free) == query[..., None] & free).all()
    assert (door(value, query, free) == value[:, None] & query[..., None] & free).all()
    assert (door(None, None, free, T_dec=T_DEC) == free).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fill", ["-inf", "lowest"])
def test_masks_come_back_from_hugging_face_as_they_went(xp, rng, fill, dtype):
    each = _by_head(rng)
    kind = {np.float32: "float32", np.float64: "float64"}[dtype]
    out = to_additive(xp.array(each), getattr(xp.module, kind), fill=fill)
    lowest = -np.inf if fill == "-inf" else np.finfo(dtype).min
    assert xp.numpy(out).dtype == dtype
    assert (xp.numpy(out) == _additive(each, lowest, dtype)).all()
    assert (xp.numpy(from_hf_additive(out, heads=HEADS)) == each).all()


def test_hugging_faces_axes_of_one_count_for_all(xp, rng):
    some, real = _by_example(rng), np.arange(T_ENC) < np.array([[7], [4]])
    lowest = np.finfo(np.float32).min
    shared = xp.array(_additive(some, lowest, np.float32)[:, None])
    padding = xp.array(_additive(real, lowest, np.float32)[:, None, None])
    assert (xp.numpy(from_hf_additive(shared)) == some).all()
    by_head = xp.numpy(from_hf_additive(shared, heads=HEADS))
    assert (by_head == np.repeat(some[:, None], HEADS, 1)).all()
    got = xp.numpy(from_hf_additive(padding, T_dec=T_DEC))
    assert (got == np.repeat(real[:, None], T_DEC, 1)).all()
    assert xp.numpy(from_hf_additive(padding)).shape == (N, 1, T_ENC)


def test_a_tokenizers_mask_and_its_ids_say_the_same(xp):
    ids = np.array([[11, 13, 0, 0], [0, 17, 19, 23]])
    expected = np.repeat((ids != 0)[:, None], 3, 1)
    from_ones = from_hf_padding(xp.array((ids != 0).astype(np.int64)), T_dec=3)
    from_ids = from_padding_ids(xp.array(ids), 0, T_dec=3)
    assert (xp.numpy(from_ones) == expected).all()
    assert (xp.numpy(from_ids) == expected).all()
    assert xp.numpy(from_padding_ids(xp.array(ids), 0)).shape == (2, 4, 4)
    assert xp.numpy(from_hf_padding(xp.array(np.ones((2, 4), dtype=int)))).shape == (2, 4, 4)


def test_the_doors_open_under_jax_jit(rng):
    jax = pytest.importorskip("jax")
    each = _by_head(rng)

    @jax.jit
    def there_and_back(mask):
        lowest = to_additive(mask, jax.numpy.float32, fill="lowest")
        return from_hf_additive(lowest, heads=HEADS)

    assert (np.asarray(there_and_back(jax.numpy.asarray(each))) == each).all()


def _text(error, function, *args, **options):
    with pytest.raises(error) as caught:
        function(*args, **options)
    return str(caught.value)


_TWO = np.zeros((N, T_ENC), dtype=bool)
_THREE = np.zeros((N * HEADS, T_DEC, T_ENC), dtype=bool)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {},
            rg.MaskError,
            "from_torch_mha(): no mask\n"
            "  expected  one mask or both\n"
            "  got       two times None",
        ),
        (
            {"attn_mask": np.zeros((T_DEC, T_ENC), dtype=np.uint8)},
            rg.MaskError,
            "from_torch_mha(): `attn_mask` is neither boolean nor floating-point\n"
            "  expected  booleans, True = ignore, or floats, -inf = ignore\n"
            "  got       dtype uint8\n"
            "  help      `attn_mask != 0` if 1 means ignore, `attn_mask == 0` if 1 means may "
            "attend;\n"
            "            regard.masks.from_hf_padding(...) if it came from a tokenizer",
        ),
        (
            {"attn_mask": np.full((T_DEC, T_ENC), -0.5)},
            rg.MaskError,
            "from_torch_mha(): `attn_mask` holds numbers that are neither 'may' nor 'may not'\n"
            "  expected  0 or -inf everywhere\n"
            "  got       -0.5 among others\n"
            "  because   a finite number shifts a score and forbids nothing\n"
            "  help      pass it as `bias`",
        ),
        (
            {"attn_mask": _THREE},
            rg.ConventionError,
            "from_torch_mha(): `heads` is missing\n"
            "  expected  heads=..., the module's num_heads\n"
            "  got       heads=None\n"
            "  because   `attn_mask` (6, 5, 7) has a first axis of batch * heads",
        ),
        (
            {"attn_mask": _THREE, "heads": 5},
            rg.ShapeError,
            "from_torch_mha(): `attn_mask` does not fit\n"
            "  expected  attn_mask (T_dec=5, T_enc=7) or "
            "(batch * heads, a multiple of heads=5, T_dec=5, T_enc=7)\n"
            "  got       attn_mask (6, 5, 7)",
        ),
        (
            {"key_padding_mask": _TWO, "attn_mask": _THREE[:N], "heads": HEADS},
            rg.ShapeError,
            "from_torch_mha(): `attn_mask` does not fit\n"
            "  expected  attn_mask (T_dec=5, T_enc=7) or "
            "(batch * heads = 6, T_dec=5, T_enc=7)\n"
            "  got       attn_mask (2, 5, 7)",
        ),
        (
            {"key_padding_mask": np.array(False)},
            rg.ShapeError,
            "from_torch_mha(): `key_padding_mask` has 0 axes, not at least 1\n"
            "  expected  key_padding_mask (*batch, T_enc)\n"
            "  got       key_padding_mask ()",
        ),
        (
            {"attn_mask": [[True]]},
            rg.BackendError,
            "from_torch_mha(): `attn_mask` is no array\n"
            "  expected  a boolean or floating-point array\n"
            "  got       list",
        ),
    ],
    ids=lambda value: None if isinstance(value, dict | type) else "",
)
def test_what_cannot_be_pytorchs_mask_is_refused_in_these_words(options, error, text):
    assert _text(error, from_torch_mha, T_dec=T_DEC, **options) == text


def test_masks_of_two_libraries_are_refused():
    torch = pytest.importorskip("torch")
    masks = _TWO, torch.zeros(T_DEC, T_ENC, dtype=torch.bool)
    assert _text(rg.BackendError, from_torch_mha, *masks, T_dec=T_DEC) == (
        "from_torch_mha(): `attn_mask` and `key_padding_mask` are of different libraries\n"
        "  expected  `attn_mask` from NumPy\n"
        "  got       `attn_mask` from PyTorch"
    )


def test_numbers_where_a_boolean_mask_is_due_are_sent_to_their_door(xp):
    ones = xp.array(np.ones((N, T_ENC), dtype=np.int64))
    assert _text(rg.MaskError, from_keras, ones, T_dec=T_DEC) == (
        "from_keras(): `value_mask` is not boolean\n"
        "  expected  a boolean array, True = may attend\n"
        f"  got       dtype {ones.dtype}\n"
        "  help      regard.masks.from_hf_padding(value_mask) if 1 means token, for one row of "
        "keys an example;\n"
        "            `value_mask != 0` if 1 means may attend, "
        "`value_mask == 0` if 1 means ignore"
    )
    floats = xp.array(np.zeros((N, T_DEC, T_ENC)))
    expected = (
        "  expected  a boolean array, True = may attend\n"
        f"  got       dtype {floats.dtype}\n"
        "  help      regard.masks.from_hf_additive(mask) if 0 means may attend and the lowest "
        "number does not;\n"
        "            a float that is added to scores goes to `bias`"
    )
    for function, options in ((to_torch_mha, {"heads": 3}), (to_additive, {"dtype": None})):
        text = _text(rg.MaskError, function, floats, **options)
        assert text == f"{function.__name__}(): `mask` is not boolean\n{expected}"


@pytest.mark.parametrize(
    ("masks", "options", "error", "text"),
    [
        (
            (None, _TWO),
            {},
            rg.MaskError,
            "from_keras(): no mask has an axis of keys\n"
            "  expected  `value_mask`, `attention_mask` or both\n"
            "  got       neither",
        ),
        (
            (_TWO,),
            {},
            rg.ConventionError,
            "from_keras(): the number of queries is unknown\n"
            "  expected  T_dec=..., or `query_mask`, or `attention_mask`\n"
            "  got       `value_mask` alone",
        ),
        (
            (_TWO, _TWO[:, :T_DEC]),
            {"T_dec": 11},
            rg.ShapeError,
            "from_keras(): `query_mask` does not fit on axis T_dec\n"
            "  expected  T_dec = 11, as the argument says\n"
            "  got       T_dec = 5",
        ),
        (
            (_TWO, None, _THREE[:N, :, :3]),
            {},
            rg.ShapeError,
            "from_keras(): `attention_mask` does not fit `value_mask` on axis T_enc\n"
            "  expected  attention_mask (2, T_dec=5, T_enc=7)\n"
            "  got       attention_mask (2, 5, 3)\n"
            "  because   T_enc = 7 comes from `value_mask`",
        ),
    ],
    ids=["no keys", "no queries", "T_dec", "T_enc"],
)
def test_keras_masks_that_do_not_fit_are_refused_in_these_words(masks, options, error, text):
    assert _text(error, from_keras, *masks, **options) == text


@pytest.mark.parametrize("number", [-10000.0, 1.0, np.nan, np.inf])
def test_a_bias_is_no_hugging_face_mask(xp, number):
    mask = np.zeros((N, 1, T_DEC, T_ENC), dtype=np.float32)
    mask[1, 0, 2, 3] = number
    assert _text(rg.MaskError, from_hf_additive, xp.array(mask)) == (
        "from_hf_additive(): `attention_mask` holds numbers that are neither 'may' nor "
        "'may not'\n"
        "  expected  0, -3.4028235e+38 or -inf everywhere\n"
        f"  got       {number:.8g} among others\n"
        "  because   a finite number shifts a score and forbids nothing\n"
        "  help      pass it as `bias`"
    )


def test_hugging_face_masks_that_do_not_fit_are_refused_in_these_words():
    mask = np.zeros((N, HEADS, T_DEC, T_ENC))
    assert _text(rg.ConventionError, from_hf_additive, mask) == (
        "from_hf_additive(): `attention_mask` has a mask for each head\n"
        "  expected  heads=3, for a result of (batch, heads, T_dec, T_enc)\n"
        "  got       heads=None, for a result of (batch, T_dec, T_enc)"
    )
    assert _text(rg.ShapeError, from_hf_additive, mask, heads=HEADS, T_dec=11) == (
        "from_hf_additive(): `attention_mask` does not fit on axis T_dec\n"
        "  expected  T_dec = 11, or 1 for all\n"
        "  got       attention_mask (2, 3, 5, 7)\n"
        "  because   T_dec=11 was given"
    )
    assert _text(rg.MaskError, from_hf_padding, np.array([[7, 5, 0]])) == (
        "from_hf_padding(): `attention_mask` holds a number other than 0 and 1\n"
        "  expected  1 at tokens and 0 at padding\n"
        "  got       0 .. 7\n"
        "  help      regard.masks.from_padding_ids(ids, pad_id) takes token ids"
    )


def test_what_cannot_go_out_is_refused_in_these_words():
    some = np.ones((N, T_DEC, T_ENC), dtype=bool)
    each = np.ones((N, HEADS, T_DEC, T_ENC), dtype=bool)
    assert _text(rg.ConventionError, to_torch_mha, some) == (
        "to_torch_mha(): `heads` is missing\n"
        "  expected  heads=..., the module's num_heads\n"
        "  got       heads=None\n"
        "  because   PyTorch repeats a mask by example for each head"
    )
    assert _text(rg.ShapeError, to_torch_mha, each, heads=5) == (
        "to_torch_mha(): `mask` does not fit\n"
        "  expected  mask (batch, heads=5, T_dec, T_enc)\n"
        "  got       mask (2, 3, 5, 7)"
    )
    assert _text(rg.BackendError, to_additive, some, np.int64) == (
        "to_additive(): `dtype` is no floating-point type\n"
        "  expected  a floating-point type of the mask's library\n"
        "  got       <class 'numpy.int64'>"
    )
    assert _text(rg.ConventionError, to_additive, some, np.float64, fill="0") == (
        "to_additive(): `fill` has no such value\n"
        '  expected  fill="-inf" or "lowest"\n'
        "  got       fill='0'"
    )
