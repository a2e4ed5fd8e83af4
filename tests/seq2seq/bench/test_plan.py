import pytest

from regard.errors import InputError
from regard.seq2seq.bench.plan import SHIPPED, Run, plan
from regard.seq2seq.recipes.recipe import Parts


@pytest.fixture
def french(tmp_path):
    for part in Parts._fields:
        (tmp_path / f"fre_{part}.tsv").write_text("a\tb\n", encoding="utf-8")
    return tmp_path


def test_without_a_directory_everything_that_ships_is_done():
    assert [run.task for run in plan(seeds=1)] == list(SHIPPED)


def test_a_recipe_without_a_language_is_all_that_there_are_data_for():
    assert [run.task for run in plan(["g2p"], seeds=1)] == ["g2p:eng"]


def test_every_task_has_its_first_seed_before_any_has_its_second(french):
    runs = plan(["names", "g2p:fre"], seeds=2, data_dir=french)
    assert [(run.task, run.seed) for run in runs] == [
        ("names", 0),
        ("g2p:fre", 0),
        ("names", 1),
        ("g2p:fre", 1),
    ]


def test_a_task_that_is_named_twice_is_done_once():
    assert len(plan(["names", "copy", "names"], seeds=1)) == 2


def test_members_of_all_runs_have_different_seeds():
    seeds = [run.first_seed + n for run in plan(["names"], seeds=17) for n in range(5)]
    assert len(set(seeds)) == 17 * 5


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (["speech"], "no such recipe"),
        (["names:ara"], "has no --language"),
        (["g2p:fre"], "not shipped"),
        (["inflection:german"], "not shipped"),
        (["inflection"], "not shipped"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(tasks, said):
    with pytest.raises(InputError, match=said):
        plan(tasks)


def test_a_file_that_is_missing_is_said_before_anything_is_done(french):
    (french / "fre_test.tsv").unlink()
    with pytest.raises(InputError, match=r"fre_test\.tsv is not there"):
        plan(["names", "g2p:fre"], data_dir=french)


@pytest.mark.parametrize("seeds", [0, 1001])
def test_the_number_of_seeds_is_bounded(seeds):
    with pytest.raises(InputError, match="`seeds`"):
        plan(seeds=seeds)


def test_a_run_is_called_by_its_task_and_seed():
    assert Run("g2p:fre", 7).name == "g2p-fre-seed7"
