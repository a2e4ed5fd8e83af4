"""A regard model as a case: each output step, its own weights, other weights, gradients."""

import numpy as np
import pytest
import torch

from regard.audit.capture import check_capture
from regard.audit.from_regard import MASK_TOKEN, from_regard
from regard.audit.input_files import read_inputs
from regard.audit.inputs import Input, steps_of
from regard.errors import InputError
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import Vocab

_SOURCE, _TARGET = Vocab(tuple("abcdefg")), Vocab(tuple("uvwxyz"))


def _model(attention):
    config = ModelConfig(
        source_symbols=len(_SOURCE),
        target_symbols=len(_TARGET),
        attention=attention,
        d_in=5,
        d_hidden=7,
        d_s=14,
        d_attn=11,
        dropout=0.3,
    )
    return new_model(config, seed=3)


def _case(attention="bahdanau"):
    return from_regard(_model(attention), source=_SOURCE, target=_TARGET)


def _inputs():
    pairs = [("abcde", "uvw"), ("gfa", "zyxwv"), ("cab", "u"), ("ddefgab", "wxyz")]
    return [one for source, target in pairs for one in steps_of(list(source), list(target))]


@pytest.mark.parametrize("attention", ["bahdanau", "dot", "general", "concat"])
def test_weights_of_every_kind_of_attention_pass_every_check_of_capture(attention):
    gates = check_capture(_case(attention), _inputs())
    assert [gate.outcome for gate in gates] == ["passed"] * 6


def test_a_step_is_answered_with_the_row_that_the_model_returns():
    case = _case()
    one = Input(tuple("abcde"), before=tuple("uv"))
    ids = torch.tensor([[4, 5, 6, 7, 8]])
    with torch.no_grad():
        scored = case.model(ids, torch.tensor([[1, 4, 5]]))
    np.testing.assert_allclose(case.weights([one])[0], scored.weights[0, 2], atol=1e-6)
    expected = scored.symbol_scores[0, 2].double().softmax(-1)
    np.testing.assert_allclose(case.predict([one])[0], expected, atol=1e-6)


def test_other_weights_are_put_in_at_the_asked_step_alone():
    case = _case()
    one = Input(tuple("abcde"), before=tuple("uv"))
    given = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    model, decoder = case.model, case.model.decoder
    with torch.no_grad():
        memory, state = model.start(torch.tensor([[4, 5, 6, 7, 8]]))
        for previous in (1, 4):
            _, state, _ = model.step(torch.tensor([previous]), memory, state)
        # The third step by the decoder's equations, with the context of the given weights.
        embedded = model.embedding(torch.tensor([5]))
        context = torch.tensor(given).float() @ memory.value[0]
        hidden = decoder.cell(torch.cat([embedded, context[None]], -1), state.hidden)
        output = torch.cat([hidden, context[None]], -1)
        expected = model._read(output, embedded).double().softmax(-1)
    np.testing.assert_allclose(case.predict_with([one], [given])[0], expected[0], atol=1e-6)


def test_the_gradient_of_a_token_is_that_of_its_embedding_with_all_weights_held():
    case = _case()
    one = Input(tuple("abcde"), before=tuple("u"))
    found = case.token_gradient([one])[0]
    assert found.shape == (5,)
    assert (found > 0).all()
    # Against finite differences: scale one token's embedding, weights of both steps held.
    rows = [case.weights([Input(one.tokens, before=tuple("u"[:k]))])[0] for k in (0, 1)]
    place, c = 2, int(case.predict([one])[0].argmax())
    values = []
    for scale in (1.01, 0.99):
        table = case.model.encoder.embedding.weight
        kept = table[6].clone()
        with torch.no_grad():
            table[6] *= scale
            memory, state = case.model.start(torch.tensor([[4, 5, 6, 7, 8]]))
            for previous, row in zip((1, 4), rows, strict=True):
                hook = case._attention.register_forward_hook(
                    lambda module, args, output, row=row: type(output)(
                        torch.tensor(row).float()[None, None] @ args[1].value, output[1]
                    )
                )
                scores, state, _ = case.model.step(torch.tensor([previous]), memory, state)
                hook.remove()
            table[6] = kept
        values.append(float(scores.double().softmax(-1)[0, c]))
    assert found[place] == pytest.approx(abs(values[0] - values[1]) / 0.02, rel=0.05)


def test_the_mask_token_is_in_no_vocabulary_and_reads_as_unknown():
    case = _case()
    one = Input(("a", MASK_TOKEN, "c"), before=())
    assert case.predict([one]).shape == (1, len(_TARGET))
    assert case._ids(one.tokens, case._source)[1] == 3


def test_a_model_without_attention_has_nothing_to_audit():
    with pytest.raises(InputError, match="no weights to audit"):
        _case("none")


def test_a_pair_is_one_input_a_step_with_the_sources_linked_to_it():
    steps = steps_of(["a", "b", "c"], ["x", "y"], [(0, 0), (2, 0)])
    assert [one.before for one in steps] == [(), ("x",)]
    assert [one.gold for one in steps] == [frozenset({0, 2}), None]
    assert [one.label for one in steps] == ["x", "y"]


def test_texts_of_pairs_are_cut_as_the_model_cuts_them(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "ab c", "target": ["x", "yz"]}\n', encoding="utf-8")
    steps = read_inputs(path, lambda side, text: [side[0], *text])
    assert [one.tokens for one in steps] == [("s", "a", "b", " ", "c")] * 2
    assert [one.before for one in steps] == [(), ("x",)]


def test_a_case_splits_as_its_vocabularies_do():
    case = from_regard(_model("bahdanau"), source=_SOURCE, target=Vocab(("ab", "c"), "spaces"))
    assert case.split("source", "abc") == ["a", "b", "c"]
    assert case.split("target", "ab c") == ["ab", "c"]
