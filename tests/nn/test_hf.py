import copy
import subprocess
import sys
import threading

import pytest
import torch

pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")

from transformers import (
    AttentionInterface,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from regard.errors import ConventionError, ShapeError
from regard.nn import hf

BATCH, T, T_TARGET, VOCAB = 2, 7, 5, 29
_SHARED = {"vocab_size": VOCAB, "num_hidden_layers": 2, "intermediate_size": 17}
_BUILD = {
    "bert": lambda: BertModel(
        BertConfig(**_SHARED, hidden_size=12, num_attention_heads=3, max_position_embeddings=31)
    ),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_embd=12,
            n_layer=2,
            n_head=3,
            n_positions=31,
            bos_token_id=1,
            eos_token_id=2,
        )
    ),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(
            **_SHARED,
            hidden_size=24,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=31,
        )
    ),
    "t5": lambda: T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCAB,
            d_model=12,
            d_kv=5,
            d_ff=17,
            num_layers=2,
            num_heads=3,
            decoder_start_token_id=0,
        )
    ),
}
# What to look at, and under which name eager lists the same weights.
_LOOK = {
    "bert": (1, "attentions", 1),
    "gpt2": (1, "attentions", 1),
    "llama": (1, "attentions", 1),
    "t5": ("decoder.block.1.layer.1.EncDecAttention", "cross_attentions", 1),
}
FAMILIES = list(_BUILD)


@pytest.fixture(scope="module")
def name():
    return hf.register()


def _model(family, implementation):
    torch.manual_seed(127)
    model = _BUILD[family]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Transformers starts so small that all weights are about uniform.
            if parameter.ndim == 2:
                parameter.mul_(8)
    model.set_attn_implementation(implementation)
    return model


def _batch(family, padding="left"):
    generator = torch.Generator().manual_seed(131)
    ids = torch.randint(3, VOCAB, (BATCH, T), generator=generator)
    batch = {"input_ids": ids}
    if padding != "none":
        mask = torch.ones(BATCH, T, dtype=torch.long)
        mask[1, slice(0, 3) if padding == "left" else slice(4, None)] = 0
        batch["attention_mask"] = mask
    if family == "t5":
        batch["decoder_input_ids"] = torch.randint(
            3, VOCAB, (BATCH, T_TARGET), generator=generator
        )
    return batch


def _output(model, batch, **options):
    out = model(**batch, **options)
    return out.last_hidden_state if isinstance(model, BertModel) else out.logits


def _real(family, batch):
    """Where an output belongs to a token."""
    if family == "t5" or "attention_mask" not in batch:
        return slice(None)
    return batch["attention_mask"].bool()


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize("other", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_gives_the_outputs_it_gave(name, family, other, padding):
    batch = _batch(family, padding)
    real = _real(family, batch)
    # Llama's eager softmax is float32 and makes NaN of a float64 mask.
    dtype = torch.float32 if family == "llama" else torch.float64
    with torch.no_grad():
        expected = _output(_model(family, other).to(dtype), batch)[real]
        got = _output(_model(family, name).to(dtype), batch)[real]
    close = 1e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(got, expected, rtol=0, atol=close)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_eager(name, family):
    batch, found = _batch(family), []
    real = _real(family, batch)
    for implementation in ("eager", name):
        model = _model(family, implementation)
        _output(model, batch)[real].square().mean().backward()
        found.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for key, expected in found[0].items():
        torch.testing.assert_close(found[1][key], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_looking_changes_no_bit_and_shows_the_weights_of_eager(name, family):
    layer, listed, index = _LOOK[family]
    batch, model = _batch(family, "right"), _model(family, name)
    eager = _model(family, "eager")
    with torch.no_grad():
        alone = _output(model, batch)
        with hf.look(model, layer=layer, head=2) as looked:
            seen = _output(model, batch)
        with hf.look(model, layer=layer) as everything:
            _output(model, batch)
        expected = eager(**batch, output_attentions=True)[listed][index]
    assert torch.equal(alone, seen)
    (weights,) = looked.weights
    real = _real(family, batch)
    assert weights.shape == expected[:, 2].shape
    torch.testing.assert_close(weights[real], expected[:, 2][real], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(everything.weights[0][:, 2], weights, rtol=0, atol=1e-7)
    assert everything.weights[0].shape == expected.shape
    assert not weights.requires_grad
    # Exactly zero, where eager is zero only as far as an exponential underflows.
    assert (weights[1, :, 4:] == 0).all()


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_largest_of_each_row_are_those_of_all_weights(
    name, family, head, padding, monkeypatch
):
    monkeypatch.setattr(hf, "_ROWS", 2)  # the rows of a block; all sizes here are odd
    layer, _, _ = _LOOK[family]
    batch, model = _batch(family, padding), _model(family, name)
    with torch.no_grad(), hf.look(model, layer=layer, head=head) as looked:
        _output(model, batch)
    with torch.no_grad(), hf.look(model, layer=layer, head=head, largest=3) as some:
        _output(model, batch)
    with torch.no_grad(), hf.look(model, layer=layer, head=head, largest=1000) as every:
        _output(model, batch)
    (weights,) = looked.weights
    torch.testing.assert_close(some.weights[0], weights.topk(3).values, rtol=1e-6, atol=1e-7)
    at_places = weights.gather(-1, some.places[0])
    torch.testing.assert_close(some.weights[0], at_places, rtol=1e-6, atol=1e-7)
    assert every.weights[0].shape == weights.shape
    assert looked.places == []


@pytest.mark.parametrize("largest", [0, -3, True])
def test_a_count_of_largest_weights_that_is_none_is_refused(name, largest):
    model = _model("bert", name)
    with (
        pytest.raises(ConventionError, match="`largest` is no count"),
        hf.look(model, layer=1, largest=largest),
    ):
        pass


@pytest.mark.parametrize("family", FAMILIES)
def test_looking_while_training_changes_no_bit_of_outputs_or_gradients(name, family):
    layer, _, _ = _LOOK[family]
    found = []
    for look in (False, True):
        model = _model(family, name).train()
        torch.manual_seed(137)  # of the dropout
        if look:
            with hf.look(model, layer=layer, head=0):
                output = _output(model, _batch(family))
        else:
            output = _output(model, _batch(family))
        output.square().mean().backward()
        found.append([output, *(p.grad for p in model.parameters() if p.grad is not None)])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_causal_masks_hold_with_and_without_padding(name):
    model = _model("llama", name)
    for padding in ("none", "right"):
        with hf.look(model, layer=0) as looked, torch.no_grad():
            model(**_batch("llama", padding))
        weights = looked.weights[0]
        assert weights.shape == (BATCH, 6, T, T)
        assert (weights.triu(1) == 0).all()
        assert (weights[0].tril() > 0).sum() == 6 * T * (T + 1) // 2


def test_grouped_heads_share_their_keys(name):
    """Head 5 of six reads the second of two key heads, not the last by accident."""
    model = _model("llama", name)
    attention = model.model.layers[0].self_attn
    with torch.no_grad():
        attention.k_proj.weight[:4] = 0  # the first key head: uniform attention for its queries
    with hf.look(model, layer=0) as looked, torch.no_grad():
        model(**_batch("llama", "none"))
    last = looked.weights[0][:, :, -1]
    uniform = (last - 1 / T).abs().amax((0, 2)) < 1e-6
    assert uniform.tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_example_of_padding_alone_stays_finite_and_disturbs_no_other(name, family):
    batch = _batch(family)
    batch["attention_mask"][1] = 0
    model = _model(family, name)
    layer, _, _ = _LOOK[family]
    with hf.look(model, layer=layer) as looked:
        output = _output(model, batch)
    assert output.isfinite().all()
    assert (looked.weights[0][1] == 0).all()
    output.square().mean().backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(grad.isfinite().all() for grad in grads)
    alone = {key: value[:1] for key, value in batch.items()}
    with torch.no_grad():
        torch.testing.assert_close(output[:1], _output(model, alone), rtol=1e-5, atol=2e-5)


def test_nan_at_a_padded_key_reaches_no_token(name):
    model, batch = _model("bert", name), _batch("bert", "right")
    embeds = model.embeddings.word_embeddings(batch.pop("input_ids")).detach()
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        expected = model(inputs_embeds=embeds, **batch).last_hidden_state[real]
        embeds[~real] = float("nan")
        got = model(inputs_embeds=embeds, **batch).last_hidden_state[real]
    assert torch.equal(got, expected)


def test_an_attention_registered_without_its_masks_attends_padding_and_ours_does_not(name):
    seen = []

    def spy(module, query, key, value, attention_mask, **options):
        seen.append(attention_mask)
        return hf._attend(module, query, key, value, attention_mask, **options)

    AttentionInterface.register("regard_without_masks", spy)
    batch = _batch("bert", "right")
    real = _real("bert", batch)
    with torch.no_grad():
        expected = _output(_model("bert", "eager"), batch)[real]
        lost = _output(_model("bert", "regard_without_masks"), batch)[real]
        ours = _output(_model("bert", name), batch)[real]
    assert seen == [None, None]
    assert not torch.allclose(lost, expected, atol=1e-2)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_generation_with_a_cache_is_that_of_sdpa_and_every_step_can_be_seen(name, family):
    batch = _batch(family)
    batch.pop("decoder_input_ids", None)
    options = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    expected = _model(family, "sdpa").generate(**batch, **options)
    model = _model(family, name)
    layer, _, _ = _LOOK[family]
    with hf.look(model, layer=layer, head=1) as looked:
        got = model.generate(**batch, **options)
    assert got.tolist() == expected.tolist()
    assert len(looked.weights) == 4
    if family != "t5":
        assert [tuple(w.shape) for w in looked.weights] == [
            (BATCH, T, T),
            *((BATCH, 1, T + n) for n in (1, 2, 3)),
        ]
        assert (looked.weights[-1][1, :, :3] == 0).all()


def test_a_float_mask_of_ones_own_is_added(name):
    batch = _batch("bert", "none")
    bias = torch.randn(BATCH, 1, T, T, generator=torch.Generator().manual_seed(139))
    bias[0, 0, :, 5] = torch.finfo(torch.float32).min
    bias[1, 0, 3] = -1e32  # very little everywhere is a uniform row, and no forbidden one
    batch["attention_mask"] = bias
    with torch.no_grad():
        expected = _output(_model("bert", "eager"), batch)
        model = _model("bert", name)
        with hf.look(model, layer=0) as looked:
            got = _output(model, batch)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=2e-5)
    assert (looked.weights[0][0, :, :, 5] == 0).all()


def test_output_attentions_returns_all_heads_where_the_model_hands_the_wish_on(name):
    batch = _batch("llama")
    with torch.no_grad():
        expected = _model("llama", "eager")(**batch, output_attentions=True).attentions
        got = _model("llama", name)(**batch, output_attentions=True).attentions
    real = _real("llama", batch)
    for pair in zip(got, expected, strict=True):
        ours, theirs = (weights.transpose(1, 2)[real] for weights in pair)
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_looks_nest_end_with_their_block_and_are_not_seen_by_other_threads(name):
    model, batch = _model("bert", name), _batch("bert")
    with hf.look(model, layer=0) as first:
        with hf.look(model, layer=1, head=0) as second:
            model(**batch)
        thread = threading.Thread(target=lambda: model(**batch))
        thread.start()
        thread.join()
        model(**batch)
    model(**batch)
    assert (len(first.weights), len(second.weights)) == (2, 1)
    assert first.layer == "encoder.layer.0.attention.self"


def test_bfloat16_is_looked_at_too(name):
    model, batch = _model("llama", name).bfloat16(), _batch("llama")
    with hf.look(model, layer=1, head=4) as looked, torch.no_grad():
        assert _output(model, batch).isfinite().all()
    sums = looked.weights[0].float().sum(-1)
    torch.testing.assert_close(sums[0], torch.ones(T), rtol=0, atol=0.02)


def _text(error, function, *args, **options):
    with pytest.raises(error) as caught, function(*args, **options):
        pass
    return str(caught.value)


def test_layers_that_cannot_be_told_are_refused_in_these_words(name):
    assert _text(ConventionError, hf.look, _model("bert", name), layer=7) == (
        "look(): the model has no layer 7\n"
        "  expected  one of these layers\n"
        "  got       layer=7\n"
        "  help      layer='encoder.layer.0.attention.self'\n"
        "            layer='encoder.layer.1.attention.self'"
    )
    assert _text(ConventionError, hf.look, _model("t5", name), layer=1) == (
        "look(): the model has several layers 1\n"
        "  expected  the name of one attention module\n"
        "  got       layer=1\n"
        "  help      layer='encoder.block.1.layer.0.SelfAttention'\n"
        "            layer='decoder.block.1.layer.0.SelfAttention'\n"
        "            layer='decoder.block.1.layer.1.EncDecAttention'"
    )
    assert _text(ConventionError, hf.look, _model("bert", "sdpa"), layer=1) == (
        "look(): the model runs another attention\n"
        "  expected  one of regard\n"
        "  got       attn_implementation='sdpa'\n"
        "  help      model.set_attn_implementation(regard.nn.hf.register())"
    )


@pytest.mark.parametrize("head", [3, -1])
def test_a_head_the_layer_lacks_is_refused_when_it_runs(name, head):
    model = _model("bert", name)
    with pytest.raises(ShapeError) as caught, hf.look(model, layer=0, head=head):
        model(**_batch("bert"))
    assert str(caught.value) == (
        f"look(): the layer has no such head\n  expected  0 to 2\n  got       head={head}"
    )


@pytest.mark.parametrize("odd", ["sdpa", "eager", "flash_mine", "owner/kernel", "paged|mine"])
def test_names_that_transformers_would_take_for_others_are_refused(odd):
    with pytest.raises(ConventionError) as caught:
        hf.register(odd)
    assert str(caught.value) == (
        f"register(): {odd!r} cannot be the name\n"
        "  expected  letters, digits and underscores, and no name of Transformers' own\n"
        f"  got       name={odd!r}\n"
        "  because   Transformers would take it for another attention"
    )
    assert hf.register() == hf.register("regard") == "regard"


@pytest.mark.parametrize("option", ["softcap", "s_aux", "head_mask"])
def test_what_a_model_asks_beyond_this_attention_is_refused(name, option):
    model = _model("bert", name)
    with pytest.raises(ConventionError, match=f"does not know `{option}`"):
        model(**_batch("bert"), **{option: torch.ones(1)})


def test_a_copied_model_is_looked_at_by_itself(name):
    model, batch = _model("bert", name), _batch("bert")
    twin = copy.deepcopy(model)
    with hf.look(twin, layer=0) as looked:
        model(**batch)
        assert looked.weights == []
        twin(**batch)
    assert len(looked.weights) == 1


def test_the_module_loads_without_transformers_and_says_which_extra_brings_it():
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "import regard.nn.hf as hf\n"
        "try: hf.register()\n"
        "except Exception as error: print(type(error).__name__); print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == (
        "BackendError\n"
        "regard.nn.hf needs Hugging Face Transformers\n"
        "  expected  transformers 4.53 or later\n"
        "  got       import of transformers halted; None in sys.modules\n"
        "  help      python -m pip install 'regard[hf]'\n"
    ), done.stderr
