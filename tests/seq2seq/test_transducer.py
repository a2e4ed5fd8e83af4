import numpy as np
import pytest

from regard.errors import InputError
from regard.seq2seq.checkpoint import Description, save_description, save_weights
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import EOS, Vocab


@pytest.fixture
def transducer():
    source, target = Vocab.of(["abcdefg"], kind="chars"), Vocab.of(["K L M"], kind="spaces")
    sizes = ModelConfig(len(source), len(target), d_in=5, d_hidden=7, d_s=11, d_attn=13)
    return Transducer(new_model(sizes, seed=3).eval(), Description(sizes, source, target, 3, 5))


SOURCES = ["abc", "g", "fedcba", "bad", "cafe"]


def test_answers_come_in_the_order_of_the_sources_whatever_the_batches(transducer):
    alone = [transducer.predict([source])[0] for source in SOURCES]
    for batch_tokens in (1, 7, 4096):
        together = transducer.predict(SOURCES, batch_tokens=batch_tokens)
        assert [p.source for p in together] == SOURCES
        assert [p.target for p in together] == [p.target for p in alone]
        for one, two in zip(together, alone, strict=True):
            assert one.hypothesis.log_prob == pytest.approx(two.hypothesis.log_prob, abs=1e-4)


def test_weights_fit_the_symbols_of_both_sides(transducer):
    for prediction in transducer.predict(SOURCES):
        shape = (len(prediction.target_symbols), len(prediction.source_symbols))
        assert prediction.hypothesis.weights.shape == shape
        assert prediction.target == " ".join(prediction.target_symbols)


def test_answers_without_an_end_stop_where_the_description_says(transducer):
    transducer.model.readout.bias.data[EOS] = -1e9
    lengths = [len(p.target_symbols) for p in transducer.predict(SOURCES)]
    assert lengths == [10, 10, 15, 10, 11]


def test_unknown_symbols_are_reported_and_answered(transducer):
    prediction = transducer.predict(["axbx"])[0]
    assert prediction.unknown == ("x",)
    assert prediction.source_symbols == ("a", "x", "b", "x")
    assert np.isfinite(prediction.hypothesis.log_prob)


def test_an_empty_source_is_refused_by_its_number(transducer):
    with pytest.raises(InputError, match="source 1 is empty"):
        transducer.predict(["a", "", "b"])


def test_no_sources_have_no_answers(transducer):
    assert transducer.predict([]) == []


def test_error_rates_count_sources_and_take_the_nearest_reference(transducer):
    answer = transducer.predict(["abc"])[0].target_symbols or ("K",)
    right = " ".join(answer)
    transducer.predict = lambda sources, **_: [  # type: ignore[method-assign]
        type("P", (), {"target_symbols": answer})() for _ in sources
    ]
    pairs = Pairs((("abc", right + " M"), ("abc", right), ("g", right + " L")))
    rates = transducer.error_rates(pairs)
    assert (rates.examples, rates.wrong, rates.edits) == (2, 1, 1)
    assert rates.symbols == 2 * len(answer) + 1


def test_a_reference_with_a_symbol_never_seen_counts_as_an_error(transducer):
    rates = transducer.error_rates(Pairs((("abc", "Q"),)))
    assert rates.wrong == 1


def test_a_saved_transducer_answers_the_same(transducer, tmp_path):
    save_description(tmp_path, transducer.description)
    save_weights(tmp_path, transducer.description, transducer.model.state_dict())
    again = Transducer.load(tmp_path).predict(SOURCES)
    assert [p.target for p in again] == [p.target for p in transducer.predict(SOURCES)]
