import click
import pytest

from regard.cli.recipe_task import NAMES, recipe_called, settings_of
from regard.cli.verbs import run_verb
from regard.errors import InputError
from regard.seq2seq.recipes import registry


def test_the_names_are_those_of_the_registry():
    assert NAMES == registry.NAMES


def test_a_file_is_no_recipe():
    assert recipe_called("./g2p", language=None, data_dir=None) is None
    assert recipe_called("pairs.tsv", language=None, data_dir=None) is None


@pytest.mark.parametrize("option", ["language", "data_dir"])
def test_an_option_of_recipes_does_not_go_with_a_file(option):
    given = {"language": None, "data_dir": None, option: "fre"}
    with pytest.raises(InputError, match="belongs to a recipe"):
        recipe_called("pairs.tsv", **given)


def test_a_recipe_takes_its_own_time_unless_another_is_given():
    names = recipe_called("names", language=None, data_dir=None)
    assert settings_of(names, seed=3).train.time_budget == names.seconds
    given = settings_of(names, seed=3, time_budget=7.0, clock="cpu")
    assert (given.train.time_budget, given.train.clock, given.train.seed) == (7.0, "cpu", 3)


def test_steps_are_given_instead_of_a_time_or_besides_it():
    names = recipe_called("names", language=None, data_dir=None)
    alone = settings_of(names, seed=0, steps=11).train
    assert (alone.steps, alone.time_budget, alone.warm_up) == (11, 0.0, 11)
    both = settings_of(names, seed=0, steps=11, time_budget=5.0).train
    assert (both.steps, both.time_budget) == (11, 5.0)


def test_the_kind_of_attention_may_be_another():
    names = recipe_called("names", language=None, data_dir=None)
    settings = settings_of(names, seed=0, attention="none")
    assert settings.model["attention"] == "none"
    assert settings.batch_tokens == settings_of(names, seed=0).batch_tokens


def test_what_the_recipe_sets_is_not_set_otherwise():
    names = recipe_called("names", language=None, data_dir=None)
    with pytest.raises(click.UsageError, match="`names` sets --batch-tokens, --dropout itself"):
        settings_of(names, seed=0, batch_tokens=7, dropout=0.5)


def _files(where, language="fre"):
    for part in ("train", "dev", "test"):
        lines = [f"{part[0]}{'ab' * i}\tx {'y ' * i}z\n" for i in range(1, 6)]
        (where / f"{language}_{part}.tsv").write_text("".join(lines), encoding="utf-8")


def test_a_recipe_is_trained_and_stands_beside_the_published_results(tmp_path, capsys):
    _files(tmp_path)
    arguments = ["g2p", "--language", "fre", "--data-dir", str(tmp_path), "--steps", "3"]
    assert run_verb(["train", *arguments, "--out", str(tmp_path / "model")]) == 0
    said = capsys.readouterr().out
    assert "French letters to sounds" in said
    assert "6.22     1.32  Gorman et al. 2020" in said
    assert "5 sources, one is 20.00 points" in said


def test_a_recipe_without_its_data_says_what_to_get(tmp_path, capsys):
    out = tmp_path / "model"
    assert run_verb(["train", "inflection", "--language", "german", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "german-task1-train" in said
    assert "--data-dir" in said
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [["g2p", "--preset", "quick", "--time-budget", "5s"], ["names", "--preset", "quick"]],
)
def test_a_preset_is_of_english_and_has_its_own_length(tmp_path, capsys, arguments):
    assert run_verb(["train", *arguments, "--out", str(tmp_path / "model")]) == 2
    assert "--preset" in capsys.readouterr().err


def test_all_presets_are_as_they_were():
    assert [name for name in NAMES if find_first(name).has_presets] == ["g2p"]


def find_first(name):
    languages = registry.variants(name)
    return registry.find(name, language=languages[0] if languages else None)
