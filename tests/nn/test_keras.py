import importlib.util
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("keras is not installed: pip install 'regard[keras]'", allow_module_level=True)
# Keras reads both when it is imported; it would write its settings into the home directory.
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("KERAS_HOME", tempfile.gettempdir())
keras = pytest.importorskip("keras")
if keras.backend.backend() != "torch":
    pytest.skip("these tests run on Keras' torch backend", allow_module_level=True)

import torch  # noqa: E402 - after the guard above

import regard as rg  # noqa: E402
from regard.nn.keras import AdditiveAttention  # noqa: E402

# Keras 3.15 itself calls NumPy 2 in a way that NumPy deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

BATCH, T_DEC, T_ENC, D_S, D_H, D_V, UNITS = 2, 3, 7, 5, 11, 13, 17


def _layer(**options):
    layer = AdditiveAttention(UNITS, **options)
    layer.build([(None, None, D_S), (None, None, D_V), (None, None, D_H)])
    rng = np.random.default_rng(97)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    return layer


def _given(dtype=np.float32):
    rng = np.random.default_rng(101)
    shapes = (BATCH, T_DEC, D_S), (BATCH, T_ENC, D_V), (BATCH, T_ENC, D_H)
    return [torch.from_numpy(rng.normal(size=shape).astype(dtype)) for shape in shapes]


def _masks():
    query = np.arange(T_DEC) < np.array([[3], [2]])
    value = np.arange(T_ENC) < np.array([[7], [4]])
    return torch.from_numpy(query), torch.from_numpy(value)


def _expected(layer, query, value, key, **options):
    params = {
        name: keras.ops.convert_to_numpy(getattr(layer, name)) for name in ("W_a", "U_a", "v_a")
    }
    query, value, key = (np.asarray(x) for x in (query, value, key))
    return rg.attend(query, key, value, score="additive", **params, **options)


@pytest.mark.parametrize("causal", [False, True], ids=["free", "causal"])
@pytest.mark.parametrize("masked", ["none", "value", "query and value"])
def test_it_computes_the_papers_score_with_projections_of_its_own(masked, causal):
    layer = _layer(dtype="float64")
    given = _given(np.float64)
    query_mask, value_mask = _masks()
    mask, options = None, {}
    if masked != "none":
        asked = query_mask if masked.startswith("query") else None
        mask = [asked, value_mask]
        options["mask"] = rg.masks.from_keras(
            value_mask.numpy(), None if asked is None else asked.numpy(), T_dec=T_DEC
        )
    if causal:
        options["causal"] = "top_left"
    context, weights = layer(
        given, mask=mask, return_attention_scores=True, use_causal_mask=causal
    )
    expected = _expected(layer, *given, **options)
    np.testing.assert_allclose(weights.detach(), expected.weights, rtol=0, atol=1e-14)
    np.testing.assert_allclose(context.detach(), expected.context, rtol=0, atol=1e-13)


def test_without_a_key_the_value_is_compared():
    layer = AdditiveAttention(UNITS)
    query, value, _ = _given()
    context, weights = layer([query, value], return_attention_scores=True)
    assert layer.U_a.shape == (UNITS, D_V)
    expected = _expected(layer, query, value, value)
    np.testing.assert_allclose(weights.detach(), expected.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(context.detach(), expected.context, rtol=0, atol=1e-5)


def test_its_parameters_are_those_of_the_torch_module():
    layer = _layer()
    query, value, key = _given()
    module = rg.nn.AdditiveAttention(D_S, D_H, UNITS)
    state = {n: torch.from_numpy(w) for n, w in zip("WUv", layer.get_weights(), strict=True)}
    module.load_state_dict({f"{n}_a": w for n, w in state.items()})
    context = layer([query, value, key])
    expected = module(query, key, value).context
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-5)


def test_padding_and_lost_queries_are_exactly_zero_where_keras_own_layer_averages_padding():
    query, value, key = _given()
    _, value_mask = _masks()
    value_mask[1] = False
    layer = _layer()
    given = [x.requires_grad_() for x in (query, value, key)]
    context, weights = layer(given, mask=[None, value_mask], return_attention_scores=True)
    assert (weights[1] == 0).all()
    assert (context[1] == 0).all()
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(T_DEC))
    (context.sum() + weights.square().sum()).backward()
    assert all((x.grad[1] == 0).all() and (x.grad[0] != 0).any() for x in given)
    assert all(w.value.grad.isfinite().all() for w in layer.weights)

    same_size = torch.ones(BATCH, T_ENC, D_S)
    _, theirs = keras.layers.AdditiveAttention()(
        [query.detach(), same_size], mask=[None, value_mask], return_attention_scores=True
    )
    assert (theirs[1] > 0).all()


@pytest.mark.parametrize("poison", [math.nan, 1e30])
def test_what_padding_holds_changes_neither_result_nor_gradient(poison):
    layer, masks = _layer(), list(_masks())
    found = []
    for fill in (0.5, poison):
        query, value, key = _given()
        query[1, 2:] = value[1, 4:] = key[1, 4:] = fill
        given = [x.requires_grad_() for x in (query, value, key)]
        for weight in layer.weights:
            weight.value.grad = None
        context, weights = layer(given, mask=masks, return_attention_scores=True)
        (context.sum() + weights.square().sum()).backward()
        grads = [x.grad.clone() for x in given] + [w.value.grad for w in layer.weights]
        found.append([context.detach(), weights.detach(), *grads])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert (found[0][0][1, 2] == 0).all()


def test_asking_for_weights_changes_no_bit_of_the_context():
    layer, given, masks = _layer(), _given(), list(_masks())
    alone = layer(given, mask=masks)
    with_weights, _ = layer(given, mask=masks, return_attention_scores=True)
    assert torch.equal(alone, with_weights)


def test_the_keys_own_mask_holds_together_with_the_values():
    layer, given, (_, value_mask) = _layer(), _given(), _masks()
    key_mask = torch.ones(BATCH, T_ENC, dtype=torch.bool)
    key_mask[0, 0] = False
    joined = layer(given, mask=[None, value_mask & key_mask])
    assert torch.equal(layer(given, mask=[None, value_mask, key_mask]), joined)
    only_key = layer(given, mask=[None, None, value_mask & key_mask])
    assert torch.equal(only_key, joined)


def test_dropout_acts_in_training_only_and_leaves_the_returned_weights_whole():
    layer, given = _layer(dropout=0.5, seed=103), _given()
    trained, weights = layer(given, training=True, return_attention_scores=True)
    plain, expected = layer(given, return_attention_scores=True)
    assert torch.equal(weights, expected)
    assert not torch.allclose(trained, plain)
    assert torch.equal(layer(given), plain)
    again, _ = _layer(dropout=0.5, seed=103)(given, training=True, return_attention_scores=True)
    assert torch.equal(again, trained)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_types_are_finite_and_sum_to_one(dtype):
    layer = _layer(dtype=dtype)
    _, value_mask = _masks()
    value_mask[1] = False
    context, weights = layer(_given(), mask=[None, value_mask], return_attention_scores=True)
    assert str(weights.dtype).removeprefix("torch.") in dtype
    assert context.isfinite().all()
    torch.testing.assert_close(weights[0].float().sum(-1), torch.ones(T_DEC), rtol=0, atol=0.02)
    assert (weights[1] == 0).all()


def test_symbolic_shapes_keep_the_two_lengths_apart():
    inputs = [keras.Input((n, d)) for n, d in ((T_DEC, D_S), (T_ENC, D_V), (T_ENC, D_H))]
    layer = AdditiveAttention(UNITS)
    context, weights = layer(inputs, return_attention_scores=True)
    assert context.shape == (None, T_DEC, D_V)
    assert weights.shape == (None, T_DEC, T_ENC)
    assert layer(inputs).shape == (None, T_DEC, D_V)
    shapes = [(BATCH, T_DEC, D_S), (BATCH, T_ENC, D_V), (BATCH, T_ENC, D_H)]
    assert layer.compute_output_shape(shapes) == (BATCH, T_DEC, D_V)
    model = keras.Model(inputs, [context, weights])
    real = model(_given())
    assert real[0].shape == (BATCH, T_DEC, D_V)
    assert real[1].shape == (BATCH, T_DEC, T_ENC)


def test_masks_of_embeddings_arrive_by_themselves_and_the_querys_travels_on():
    target, source = keras.Input((T_DEC,), dtype="int32"), keras.Input((T_ENC,), dtype="int32")
    embed = keras.layers.Embedding(19, D_S, mask_zero=True)
    layer = AdditiveAttention(UNITS)
    context, weights = layer([embed(target), embed(source)], return_attention_scores=True)
    model = keras.Model([target, source], [context, weights])
    ids = np.array([[3, 5, 0]]), np.array([[2, 7, 11, 0, 0, 0, 0]])
    context, weights = model(list(ids))
    assert (weights[0, :, 3:] == 0).all()
    assert (weights[0, :2, :3] > 0).all()
    assert (context[0, 2] == 0).all()
    asked = torch.tensor([[True, True, False]])
    assert layer.compute_mask([None, None], [asked, None]) is asked
    assert layer.compute_mask([None, None]) is None


def test_a_saved_model_comes_back_with_its_settings_and_its_numbers(tmp_path):
    inputs = [keras.Input((n, d)) for n, d in ((T_DEC, D_S), (T_ENC, D_V), (T_ENC, D_H))]
    layer = AdditiveAttention(
        UNITS, dropout=0.25, seed=107, kernel_initializer="he_normal", name="look"
    )
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert torch.equal(loaded(_given()), model(_given()))
    config = loaded.get_layer("look").get_config()
    assert config == layer.get_config()
    assert (config["units"], config["dropout"], config["seed"]) == (UNITS, 0.25, 107)
    assert config["kernel_initializer"]["class_name"] == "HeNormal"
    assert AdditiveAttention.from_config(config).get_config() == config


def test_it_learns_under_fit():
    rng = np.random.default_rng(109)
    query = rng.normal(size=(64, 1, D_S)).astype("float32")
    value = rng.normal(size=(64, T_ENC, D_S)).astype("float32")
    answer = value[np.arange(64), np.argmax(np.einsum("bd,btd->bt", query[:, 0], value), 1)]
    inputs = [keras.Input((1, D_S)), keras.Input((T_ENC, D_S))]
    model = keras.Model(inputs, AdditiveAttention(UNITS)(inputs))
    model.compile(keras.optimizers.Adam(0.02), "mse")
    data = [query, value], answer[:, None]
    before = model.evaluate(*data, verbose=0)
    model.fit(*data, epochs=40, verbose=0)
    assert model.evaluate(*data, verbose=0) < 0.7 * before


_ELSEWHERE = """
import numpy as np, keras, regard as rg
from regard.nn.keras import AdditiveAttention
assert keras.backend.backend() == BACKEND
rng = np.random.default_rng(113)
query, value = (rng.normal(size=s).astype("float32") for s in ((2, 3, 5), (2, 7, 11)))
real = np.arange(7) < np.array([[4], [0]])
layer = AdditiveAttention(17)
context, weights = layer([query, value], mask=[None, real], return_attention_scores=True)
params = dict(zip(("W_a", "U_a", "v_a"), layer.get_weights()))
mask = rg.masks.from_keras(real, T_dec=3)
expected = rg.attend(query, value, score="additive", mask=mask, **params)
np.testing.assert_allclose(np.asarray(weights), expected.weights, rtol=0, atol=1e-6)
np.testing.assert_allclose(np.asarray(context), expected.context, rtol=0, atol=1e-5)
assert (np.asarray(weights)[1] == 0).all()
"""


@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_it_computes_the_same_on_other_backends(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    environ = {**os.environ, "KERAS_BACKEND": backend, "KERAS_HOME": str(tmp_path)}
    code = _ELSEWHERE.replace("BACKEND", repr(backend))
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_module_loads_without_keras_and_says_which_extra_brings_it():
    code = (
        "import sys; sys.modules['keras'] = None\n"
        "import regard.nn.keras as door\n"
        "try: door.AdditiveAttention\n"
        "except Exception as error: print(type(error).__name__); print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == (
        "BackendError\n"
        "regard.nn.keras needs Keras 3 and one of its backends\n"
        "  expected  keras, and what KERAS_BACKEND names: torch, jax, tensorflow\n"
        "  got       no module named 'keras'\n"
        "  help      python -m pip install 'regard[keras]', and KERAS_BACKEND=torch or jax\n"
    ), done.stderr


def _text(error, inputs, **options):
    with pytest.raises(error) as caught:
        AdditiveAttention(UNITS)(inputs, **options)
    return str(caught.value)


def test_what_does_not_fit_is_refused_in_these_words():
    query, value, key = _given()
    query_mask, value_mask = _masks()
    for error, inputs, options, text in [
        (
            rg.ShapeError,
            [query, value, key[:, 1:]],
            {},
            "AdditiveAttention(): `key` does not fit `value`\n"
            "  expected  the same batch and T_enc, (2, 7)\n"
            "  got       key (2, 6, 11)\n"
            "  because   nothing is broadcast",
        ),
        (
            rg.ShapeError,
            [query, value[:1]],
            {},
            "AdditiveAttention(): `value` does not fit `query`\n"
            "  expected  the same batch, (2,)\n"
            "  got       value (1, 7, 13)\n"
            "  because   nothing is broadcast",
        ),
        (
            rg.ShapeError,
            [query[0], value],
            {},
            "AdditiveAttention(): `query` has 2 axes, not 3\n"
            "  expected  query (batch, T_dec, d_s)\n"
            "  got       query (3, 5)",
        ),
        (
            rg.ShapeError,
            [query, value],
            {"mask": [value_mask, query_mask]},
            "AdditiveAttention(): `query_mask` does not fit\n"
            "  expected  query_mask (batch, T_dec) = (2, 3)\n"
            "  got       query_mask (2, 7)",
        ),
        (
            rg.MaskError,
            [query, value],
            {"mask": [None, value_mask.int()]},
            "AdditiveAttention(): `value_mask` is not boolean\n"
            "  expected  a boolean tensor, True = real token\n"
            "  got       dtype int32\n"
            "  help      `value_mask != 0` if 1 means token, `value_mask == 0` if 1 means "
            "padding",
        ),
        (
            rg.MaskError,
            [query, value],
            {"mask": [value_mask]},
            "AdditiveAttention(): `mask` is no list of two masks\n"
            "  expected  [query_mask, value_mask], each of them None or a tensor\n"
            "  got       1 of them",
        ),
        (
            rg.ConventionError,
            [query],
            {},
            "AdditiveAttention(): `inputs` is no list of two or three tensors\n"
            "  expected  [query, value] or [query, value, key]\n"
            "  got       1 of them",
        ),
    ]:
        # Keras puts the call's arguments around the text of an error.
        assert text in _text(error, inputs, **options)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"units": 0}, rg.ShapeError, "`units` is not a size"),
        ({"units": 2.5}, rg.ShapeError, "`units` is not a size"),
        ({"dropout": -0.1}, rg.ConventionError, "`dropout` is no probability"),
    ],
)
def test_what_cannot_be_built_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        AdditiveAttention(**{"units": UNITS, **options})
