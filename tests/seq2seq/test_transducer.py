import numpy as np
import pytest

from regard.errors import InputError
from regard.seq2seq.answers import answer_of
from regard.seq2seq.checkpoint import Description, save_description, save_weights
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.search import Hypothesis, Ranking, SearchSettings, wanted
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


def test_the_n_best_answers_come_best_first_whatever_the_batches(transducer):
    settings = SearchSettings(beam=4, nbest=3, ranking=Ranking(length="average"))
    found = transducer.predict(SOURCES, search=settings)
    for batch_tokens in (1, 23):
        other = transducer.predict(SOURCES, search=settings, batch_tokens=batch_tokens)
        assert [[a.target for a in p.answers] for p in found] == [
            [a.target for a in p.answers] for p in other
        ]
    for prediction in found:
        scores = [answer.hypothesis.score for answer in prediction.answers]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert prediction.target == prediction.answers[0].target


def test_lengths_are_those_that_the_settings_ask_for(transducer):
    found = transducer.predict(SOURCES, search=SearchSettings(min_length=2, max_length=3))
    assert all(2 <= len(p.target_symbols) <= 3 for p in found)


def test_a_listed_target_is_not_cut_however_long(transducer):
    target = transducer.description.target
    constraint = wanted(target, lexicon=["K " * 41, "L " * 43]).constraint
    for prediction in transducer.predict(SOURCES, constraint=constraint):
        assert set(prediction.target_symbols) in ({"K"}, {"L"})
        assert len(prediction.target_symbols) in (41, 43)
        assert prediction.hypothesis.finished


def test_dropped_symbols_are_not_seen_by_the_model(transducer):
    dropped, plain = (
        transducer.predict([source], unknown="drop")[0] for source in ("axbx", "ab")
    )
    assert dropped.hypothesis.log_prob == plain.hypothesis.log_prob
    assert dropped.source_symbols == ("a", "b")
    assert dropped.unknown == ("x",)
    with pytest.raises(InputError, match="source 0 is empty"):
        transducer.predict(["xx"], unknown="drop")


def test_unknown_symbols_fail_where_they_shall(transducer):
    with pytest.raises(InputError, match="source 1 has symbols that the model never saw"):
        transducer.predict(["ab", "axb"], unknown="fail")
    with pytest.raises(InputError, match="`unknown`"):
        transducer.predict(["ab"], unknown="guess")


def test_a_run_that_looks_at_an_unknown_symbol_becomes_one_copy():
    target = Vocab.of(["K L M"], kind="spaces")
    looks = np.eye(3, dtype=np.float32)[[0, 1, 1, 2, 1]]
    hypothesis = Hypothesis(
        (4, 5, 6, 4, 5), (-1.0, -2.0, -3.0, -4.0, -5.0, -6.0), True, looks, -21
    )
    answer = answer_of(hypothesis, target, [None, "x", None])
    assert answer.target == "K x K x"
    assert answer.hypothesis.log_probs == (-1.0, -5.0, -4.0, -5.0, -6.0)
    assert answer.hypothesis.log_prob == hypothesis.log_prob
    assert answer.hypothesis.weights.argmax(-1).tolist() == [0, 1, 2, 1]
    assert answer_of(hypothesis, target).target == "K L M K L"


def test_copying_asks_for_attention(transducer):
    found = transducer.predict(["axb"], unknown="copy", need_weights=False)[0]
    looked = found.hypothesis.weights.argmax(-1).tolist()
    assert [s == "x" for s in found.target_symbols] == [look == 1 for look in looked]
    sizes = ModelConfig(11, 7, attention="none", d_in=5, d_hidden=7, d_s=11, d_attn=13)
    description = transducer.description
    plain = Transducer(
        new_model(sizes, seed=3).eval(),
        Description(sizes, description.source, description.target, 3, 5),
    )
    with pytest.raises(InputError, match="copying asks for weights"):
        plain.predict(["axb"], unknown="copy")


def test_what_is_drawn_does_not_depend_on_the_batches(transducer):
    settings = SearchSettings(temperature=1.5, nbest=3, seed=7)
    found, other = (
        transducer.predict(SOURCES, search=settings, batch_tokens=n) for n in (4096, 5)
    )
    assert [[a.target for a in p.answers] for p in found] == [
        [a.target for a in p.answers] for p in other
    ]
    assert len({a.target for p in found for a in p.answers}) > 5
