import numpy as np
import pytest

import regard.seq2seq.search.settings as module
from regard.errors import InputError
from regard.seq2seq.search import Ranking, SearchSettings, beam_search, greedy, sample, search


def _search(model, batch, settings, **changes):
    given = {
        "max_length": [7, 3, 5],
        "numbers": [0, 1, 2],
        "constraint": None,
        "need_weights": True,
    }
    return search(model, batch.source, batch.source_lengths, settings, **(given | changes))


def test_settings_choose_the_search(model, batch):
    given = {"max_length": [7, 3, 5]}
    ranking = Ranking(length=0.6)
    found = _search(model, batch, SearchSettings(ranking=ranking))
    wanted = greedy(model, batch.source, batch.source_lengths, ranking=ranking, **given)
    assert [(h.ids, h.score) for (h,) in found] == [(h.ids, h.score) for h in wanted]
    found = _search(model, batch, SearchSettings(beam=3, nbest=2, ranking=ranking))
    best = beam_search(
        model, batch.source, batch.source_lengths, beam=3, nbest=2, ranking=ranking, **given
    )
    assert [[h.ids for h in each] for each in found] == [[h.ids for h in each] for each in best]
    found = _search(model, batch, SearchSettings(temperature=0.7, nbest=2, seed=5))
    drawn = sample(
        model,
        batch.source,
        batch.source_lengths,
        temperature=0.7,
        seed=5,
        numbers=[1, 3, 5],
        **given,
    )
    for each, second in zip(found, drawn, strict=True):
        assert second.ids in [hypothesis.ids for hypothesis in each]


def test_drawn_answers_are_listed_with_the_best_first_and_cut_ones_last(model, batch):
    settings = SearchSettings(temperature=3.0, nbest=13, ranking=Ranking(length="average"))
    orders = []
    for each in _search(model, batch, settings):
        order = [(not h.finished, -h.score) for h in each]
        assert order == sorted(order)
        orders.append(order)
    assert all(len({score for _, score in order}) > 1 for order in orders)
    assert any(True in dict(order) and False in dict(order) for order in orders)


def test_weights_that_are_looked_up_again_are_those_of_the_search(model, batch, monkeypatch):
    settings = SearchSettings(beam=4, nbest=3)
    kept = _search(model, batch, settings)
    monkeypatch.setattr(module, "_KEPT_WEIGHTS", 0)
    again = _search(model, batch, settings)
    for one, other in zip(kept, again, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        for mine, theirs in zip(one, other, strict=True):
            if model.attends:
                np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)
            else:
                assert theirs.weights is None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": 2, "temperature": 1.0}, "beam"),
        ({"nbest": 0}, "nbest"),
        ({"nbest": 2}, "nbest"),
        ({"temperature": 0.0}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"min_length": -1}, "min_length"),
        ({"min_length": 3, "max_length": 2}, "max_length"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(given, name):
    with pytest.raises(InputError, match=f"`{name}`"):
        SearchSettings(**given)
