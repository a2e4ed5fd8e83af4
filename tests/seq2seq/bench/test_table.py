import pytest

from regard.seq2seq.bench.summary import rows
from regard.seq2seq.bench.table import markdown, text


def _result(task: str, seed: int, value: float, one: float, *, measure="WER", examples=450):
    return {
        "task": task,
        "seed": seed,
        "budget": {"seconds": 300.0, "clock": "wall", "cores": 2, "members": 2},
        "beam": 5,
        "test": {
            "all": {measure: value, "examples": examples},
            "one": {measure: one, "examples": examples},
        },
    }


FRENCH = [
    _result("g2p:fre", 2, 6.0, 8.0),
    _result("g2p:fre", 0, 7.0, 7.5),
    _result("g2p:fre", 1, 5.0, 8.5),
]
HUNGARIAN = [_result("g2p:hun", seed, 5.0 + seed, 6.0) for seed in range(3)]


def test_a_row_has_mean_and_ends_of_its_seeds():
    (row,) = rows(FRENCH)
    assert row.ours == (6.0, 5.0, 7.0, 3)
    assert row.one == (8.0, 7.5, 8.5, 3)
    assert row.grid == pytest.approx(100 / 450)


def test_the_mean_over_languages_is_taken_seed_by_seed():
    *_, mean = rows(FRENCH + HUNGARIAN)
    # Seeds 0, 1, 2: (7 + 5) / 2, (5 + 6) / 2, (6 + 7) / 2.
    assert mean.ours == (pytest.approx(6.0), 5.5, 6.5, 3)
    assert mean.grid == pytest.approx(100 / 900)
    assert mean.published[0].values["WER"] == 16.84


def test_a_mean_of_some_languages_is_not_compared_silently():
    assert "NOT ALL LANGUAGES" in text(FRENCH + HUNGARIAN)
    assert "NOT ALL LANGUAGES" in markdown(FRENCH + HUNGARIAN)


def test_a_mean_of_all_languages_is_complete():
    from regard.seq2seq.recipes.sigmorphon_g2p import LANGUAGES

    *_, mean = rows([_result(f"g2p:{language}", 0, 9.0, 9.5) for language in LANGUAGES])
    assert mean.complete
    assert mean.title.startswith("mean of 15 languages")


def test_languages_with_fewer_seeds_limit_the_mean():
    *_, mean = rows(FRENCH + HUNGARIAN[:1])
    assert mean.ours.seeds == 1


def test_runs_with_other_budgets_are_rows_of_their_own():
    longer = [
        result | {"budget": result["budget"] | {"seconds": 3600.0, "members": 4}}
        for result in (_result("g2p:fre", 0, 4.0, 4.5), _result("g2p:hun", 0, 3.0, 3.5))
    ]
    found = rows(longer + FRENCH + HUNGARIAN)
    assert [(row.task, row.seconds, row.members, row.ours.seeds) for row in found] == [
        ("g2p:fre", 300.0, 2, 3),
        ("g2p:fre", 3600.0, 4, 1),
        ("g2p:hun", 300.0, 2, 3),
        ("g2p:hun", 3600.0, 4, 1),
        ("g2p", 300.0, 2, 3),
        ("g2p", 3600.0, 4, 1),
    ]
    # No mean is over runs of different length.
    assert [row.ours.mean for row in found if row.task == "g2p"] == [pytest.approx(6.0), 3.5]


def test_published_results_stand_below_ours_with_their_source():
    lines = text(FRENCH).splitlines()
    assert lines[1].split()[:5] == ["regard", "6.00", "(5.00", "to", "7.00)"]
    assert "3 seeds, 5 min on 2 cores, 2 models, beam 5" in lines[1]
    lstm = next(line for line in lines if "LSTM" in line)
    assert "6.22" in lstm
    assert "Gorman et al. 2020" in lstm


def test_a_budget_of_cpu_time_is_said_to_be_one():
    result = _result("names", 0, 21.0, 22.0, measure="CER", examples=1500)
    result["budget"]["clock"] = "cpu"
    assert "5 min of CPU time a core" in text([result])
    assert "5 min of CPU time a core" in markdown([result])
    assert "no published result" in text([result])


def test_every_row_of_the_page_has_as_many_cells_as_its_head():
    head, line, *body = markdown(FRENCH + HUNGARIAN).splitlines()
    assert {row.count("|") for row in (head, line, *body)} == {9}
    assert len(body) == 3
