"""A Hugging Face classifier as a case: masks kept, one head replaced, averages stopped."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")

from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
)

from regard.audit.capture import check_capture
from regard.audit.from_hf import from_transformers
from regard.audit.inputs import Input
from regard.audit.rollout import rollout
from regard.errors import ConventionError

_WORDS = [f"w{i}" for i in range(23)]


class _Tokenizer:
    """What the case uses of a tokenizer."""

    mask_token = "w22"

    def convert_tokens_to_ids(self, tokens):
        return [5 + _WORDS.index(token) for token in tokens]

    def convert_ids_to_tokens(self, ids):
        return [_WORDS[i - 5] for i in ids]

    def __call__(self, text):
        return {"input_ids": self.convert_tokens_to_ids(["w0", *text.split(), "w1"])}

    def get_special_tokens_mask(self, ids, already_has_special_tokens):
        assert already_has_special_tokens
        return [1, *[0] * (len(ids) - 2), 1]


def _bert():
    torch.manual_seed(7)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=29,
            hidden_size=12,
            num_attention_heads=3,
            num_hidden_layers=2,
            intermediate_size=17,
            max_position_embeddings=31,
            num_labels=3,
            initializer_range=0.5,
        )
    )
    return model.eval()


def _llama():
    torch.manual_seed(7)
    model = LlamaForSequenceClassification(
        LlamaConfig(
            vocab_size=29,
            hidden_size=24,
            num_attention_heads=6,
            num_key_value_heads=2,
            num_hidden_layers=2,
            intermediate_size=17,
            max_position_embeddings=31,
            num_labels=3,
            pad_token_id=0,
            initializer_range=0.5,
        )
    )
    return model.eval()


def _inputs(count=11):
    random = np.random.default_rng(0)
    return [
        Input(tuple(random.choice(_WORDS, size=random.integers(3, 12)))) for _ in range(count)
    ]


def _eager_answers(build, inputs):
    model = build()
    model.set_attn_implementation("eager")
    found = []
    with torch.no_grad():
        for one in inputs:  # alone: nothing is padded
            ids = torch.tensor([_Tokenizer().convert_tokens_to_ids(one.tokens)])
            found.append(model(input_ids=ids).logits.double().softmax(-1)[0].numpy())
    return np.stack(found)


@pytest.mark.parametrize(("build", "row"), [(_bert, 0), (_llama, -1)])
def test_answers_of_a_padded_batch_are_the_models_own(build, row):
    inputs = _inputs()
    case = from_transformers(build(), _Tokenizer(), layer=0, head=1, row=row)
    np.testing.assert_allclose(case.predict(inputs), _eager_answers(build, inputs), atol=1e-5)


@pytest.mark.parametrize(("build", "row"), [(_bert, 0), (_llama, -1)])
def test_one_head_passes_every_check_of_capture(build, row):
    case = from_transformers(build(), _Tokenizer(), layer=-1, head=2, row=row)
    assert {gate.outcome for gate in check_capture(case, _inputs())} == {"passed"}


def test_a_mean_of_heads_is_stopped_where_the_answer_hardly_hears_the_weights():
    model = _bert()
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.weight[0, 0] = 1e-6
    gates = check_capture(
        from_transformers(model, _Tokenizer(), layer=-1, reduce="mean"), _inputs()
    )
    assert (gates[-1].name, gates[-1].outcome) == ("G0.heads", "failed")


def test_words_and_marked_words_become_pieces_and_their_marks():
    from transformers import BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "gr", "##eat", "film"]
    tokenizer = BertTokenizerFast({word: place for place, word in enumerate(words)})
    case = from_transformers(_bert(), tokenizer, layer=0, head=1)
    tokens = ("[CLS]", "a", "gr", "##eat", "film", "[SEP]")
    (marked,) = case.inputs([["a", "great", "film"]], gold=[[1]])
    assert marked == Input(tokens, fixed=frozenset({0, 5}), gold=frozenset({2, 3}))
    (text,) = case.inputs(["a great film"], ["good"])
    assert text == Input(tokens, fixed=frozenset({0, 5}), label="good")
    (own,) = case.inputs([list(tokens)], gold=[[3]])
    assert own == Input(tokens, fixed=frozenset({0, 5}), gold=frozenset({3}))


@pytest.mark.parametrize("options", [{"head": 3}, {"head": -4}])
def test_a_head_that_is_not_there_is_refused(options):
    with pytest.raises(ConventionError, match="there is no such head"):
        from_transformers(_bert(), _Tokenizer(), layer=0, **options)


def test_a_row_beyond_an_input_is_refused():
    case = from_transformers(_bert(), _Tokenizer(), layer=0, head=1, row=7)
    with pytest.raises(ConventionError, match="there is no such row"):
        case.weights([Input(("w1", "w2", "w3"))])


def test_the_mean_of_heads_is_stopped_at_capture():
    case = from_transformers(_bert(), _Tokenizer(), layer=-1, reduce="mean")
    failed = check_capture(case, _inputs())[-1]
    assert (failed.name, failed.outcome) == ("G0.heads", "failed")
    assert failed.name == "G0.heads"
    assert "averaged over 3 heads" in failed.said


def test_rollout_is_shown_and_taken_on_trust():
    case = from_transformers(_bert(), _Tokenizer(), reduce="rollout")
    inputs = _inputs(2)
    expected = rollout(case.layers(inputs)[1])[0]
    np.testing.assert_allclose(case.weights(inputs)[1], expected)
    assert check_capture(case, _inputs())[-1].outcome == "not tested"


def test_special_tokens_are_never_erased():
    case = from_transformers(_bert(), _Tokenizer(), layer=0, head=0)
    (one,) = case.inputs(["w5 w7 w11"])
    assert one.tokens == ("w0", "w5", "w7", "w11", "w1")
    assert one.free == (1, 2, 3)


def test_a_gradient_is_there_for_each_token():
    case = from_transformers(_bert(), _Tokenizer(), layer=0, head=0)
    inputs = _inputs(3)
    rows = case.token_gradient(inputs)
    assert [len(row) for row in rows] == [len(one.tokens) for one in inputs]
    assert all((row > 0).all() for row in rows)


def test_contradicting_options_are_refused():
    with pytest.raises(ConventionError, match="which weights"):
        from_transformers(_bert(), _Tokenizer(), reduce="mean", head=1)
    with pytest.raises(ConventionError, match="no such layer"):
        from_transformers(_bert(), _Tokenizer(), layer=2, head=1)
