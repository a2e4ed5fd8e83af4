import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")

import torch
from transformers import BertConfig, BertModel, T5Config, T5ForConditionalGeneration

from regard.alignment.recording import recorded
from regard.errors import ConventionError, InputError, ShapeError
from regard.nn import hf

VOCAB, T, T_TARGET = 29, 7, 5


def bert():
    torch.manual_seed(3)
    shape = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2}
    config = BertConfig(
        **shape, vocab_size=VOCAB, intermediate_size=17, max_position_embeddings=31
    )
    return started(BertModel(config))


def t5():
    torch.manual_seed(5)
    shape = {"d_model": 12, "d_kv": 5, "d_ff": 17, "num_layers": 2, "num_heads": 3}
    config = T5Config(**shape, vocab_size=VOCAB, decoder_start_token_id=0)
    return started(T5ForConditionalGeneration(config))


def started(model):
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)  # Transformers starts so small that weights are uniform
    return model.eval()


def tokens(count):
    return [f"t{place}" for place in range(count)]


def ids(count, batch=1):
    return torch.arange(3, 3 + batch * count).reshape(batch, count)


def test_every_layer_and_head_is_recorded_as_eager_has_it():
    model = bert()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(input_ids=ids(T), output_attentions=True).attentions
    model.set_attn_implementation(hf.register())
    record = recorded(model, {"input_ids": ids(T)}, source=tokens(T), name="s")
    assert record.weights.shape == (2, 3, T, T)
    np.testing.assert_allclose(
        record.weights, torch.cat(expected).numpy(), rtol=1e-4, atol=1e-5
    )
    assert (record.layers, record.heads, record.model) == ((0, 1), (0, 1, 2), "BertModel")
    some = recorded(model, {"input_ids": ids(T)}, source=tokens(T), layers=[1], heads=[2, 0])
    assert (some.layers, some.heads) == ((1,), (2, 0))
    np.testing.assert_allclose(some.weights, record.weights[1:, [2, 0]], atol=1e-6)


def test_cross_attention_has_two_token_lists():
    model = t5()
    model.set_attn_implementation(hf.register())
    inputs = {"input_ids": ids(T), "decoder_input_ids": ids(T_TARGET)}
    layers = [f"decoder.block.{n}.layer.1.EncDecAttention" for n in range(2)]
    record = recorded(model, inputs, source=tokens(T), target=list("abcde"), layers=layers)
    assert record.weights.shape == (2, 3, T_TARGET, T)
    assert record.made_by == {"layers": layers}
    assert record.layers == (0, 1)


def test_what_cannot_be_recorded_is_refused_in_words():
    model = bert()
    model.set_attn_implementation(hf.register())
    inputs = {"input_ids": ids(T)}
    with pytest.raises(ShapeError, match="`target` does not fit"):
        recorded(model, inputs, source=tokens(T - 1))
    with pytest.raises(ShapeError, match="several examples"):
        recorded(model, {"input_ids": ids(T, batch=2)}, source=tokens(T))
    with pytest.raises(ShapeError, match="no such head"):
        recorded(model, inputs, source=tokens(T), heads=[5])
    with pytest.raises(ConventionError, match="no layer 2"):
        recorded(model, inputs, source=tokens(T), layers=[2])
    with pytest.raises(ConventionError, match="no layer was asked for"):
        recorded(model, inputs, source=tokens(T), layers=[])
    with pytest.raises(InputError, match="too many weights"):
        recorded(model, inputs, source=["t"] * 4001)
    model.set_attn_implementation("sdpa")
    with pytest.raises(ConventionError, match="another attention"):
        recorded(model, inputs, source=tokens(T))
