import json
import re

import numpy as np
import pytest

from regard.alignment.collection_files import write_collection
from regard.alignment.record import Record
from regard.cli.main import run


def record(name="one", model="", layers=2, heads=3):
    weights = np.exp(np.random.default_rng(len(model)).normal(0, 2, (layers, heads, 5, 7)))
    weights /= weights.sum(axis=-1, keepdims=True)
    return Record(weights, list("abcde"), list("tuvwxyz"), name=name, model=model)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_collection("looked.npz", [record(), record("two")])
    write_collection("other.json", [record()])
    return tmp_path


def data(path):
    page = path.read_text("utf-8")
    return json.loads(re.search(r'id="alignments">(.*?)</script>', page, re.S)[1])["records"]


def test_the_page_is_the_default_and_is_named_after_the_file(folder, capsys):
    assert run(["show", "looked.npz"]) == 0
    assert capsys.readouterr().out == "looked.html  2 sentences, 1 model, 2 layers, 3 heads\n"
    assert [one["name"] for one in data(folder / "looked.html")] == ["one", "two"]
    assert "Made by <code>regard show looked.npz</code>" in (folder / "looked.html").read_text()


def test_files_shown_together_become_models_to_compare(folder):
    assert run(["show", "looked.npz", "other.json", "--out", "both.html"]) == 0
    found = [(one["name"], one["model"]) for one in data(folder / "both.html")]
    assert found == [("one", "looked"), ("two", "looked"), ("one", "other")]


def test_a_page_of_one_sentence_layer_and_head(folder):
    options = ["--sentence", "two", "--layer", "1", "--head", "2"]
    assert run(["show", "looked.npz", *options]) == 0
    (one,) = data(folder / "looked.html")
    assert (one["name"], one["layers"], one["heads"]) == ("two", [1], [2])


def test_nothing_is_written_over_unless_asked(folder, capsys):
    (folder / "looked.html").write_text("mine")
    assert run(["show", "looked.npz"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (folder / "looked.html").read_text() == "mine"
    assert run(["show", "looked.npz", "--force"]) == 0
    assert data(folder / "looked.html")


def test_a_map_as_svg_needs_no_matplotlib(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert run(["show", "other.json", "--head", "1", "--out", "map.svg"]) == 0
    weight = record().weights[0, 1, 2, 3]
    assert f"c ← w: {weight:.3f}" in (folder / "map.svg").read_text("utf-8")


@pytest.mark.parametrize("kind", ["map", "heads", "curves"])
def test_pictures_are_written_as_the_name_says(folder, kind):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert run(["show", "other.json", "--picture", kind, "--out", "p.png"]) == 0
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz"], "no such file"),
        (["looked.npz", "--out", "a.gif"], "a.gif is refused"),
        (["looked.npz", "--out", "a.svg"], "--sentence with one of 'one', 'two'"),
        (["looked.npz", "--sentence", "six"], "one of 'one', 'two'"),
        (["looked.npz", "--model", "six"], "--model: there is none"),
        (["looked.npz", "--layer", "5"], "record 0 ('one'): there is no layer 5"),
        (["looked.npz", "--layer", "-1"], "--layer: -1 is refused"),
        (["looked.npz", "--head", "best"], "--head: best is refused"),
        (["looked.npz", "--head", "mean"], "--head mean is for pictures"),
        (["looked.npz", "--picture", "map"], "--picture is for pictures"),
        (
            ["other.json", "--picture", "heads", "--head", "1", "--out", "a.svg"],
            "--head does not go with",
        ),
        (["looked.npz", "looked.npz"], "one name and one model"),
        (["looked.npz", "-"], "standard input is not accepted"),
    ],
)
def test_what_cannot_be_shown_is_one_clear_error(folder, capsys, arguments, words):
    before = sorted(folder.iterdir())
    assert run(["show", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert words in error
    assert sorted(folder.iterdir()) == before


def test_what_predict_prints_is_shown(model, folder, capsys):
    assert run(["predict", str(model), "abc", "cab", "--format", "json", "--align"]) == 0
    (folder / "out.jsonl").write_text(capsys.readouterr().out, "utf-8")
    assert run(["show", "out.jsonl"]) == 0
    records = data(folder / "out.html")
    assert [one["source"][:3] for one in records] == [list("abc"), list("cab")]


def test_a_model_and_a_text_are_shown_with_what_else_it_would_have_written(model, folder):
    (folder / "pairs.tsv").write_text("abc\tA B C\n\nca\tC A\n")
    assert run(["show", str(model), "pairs.tsv", "--counterfactuals"]) == 0
    one, two = data(folder / "pairs.html")
    assert (one["name"], two["name"]) == ("1", "3")
    assert list(one["counterfactuals"]) == ["permute", "uniform", "ablate"]
    assert "shuffled" in one["counterfactuals"]["permute"]["how"]
    assert set(one["counterfactuals"]["ablate"]["positions"]) == {"at", "words"}
    assert run(["show", str(model), "pairs.tsv", "--force"]) == 0
    assert data(folder / "pairs.html")[0]["counterfactuals"] == {}
    assert "regard show" in (folder / "pairs.html").read_text()


def test_models_are_compared_by_their_own_answers(model, folder, capsys):
    (folder / "words.txt").write_text("abc\ncab\n")
    again = folder / "again"
    __import__("shutil").copytree(model, again)
    assert run(["show", str(model), "again", "words.txt", "--own"]) == 0
    assert "2 sentences, 2 models" in capsys.readouterr().out
    assert {one["model"] for one in data(folder / "words.html")} == {"model", "again"}


def test_options_of_models_are_refused_with_files(model, folder, capsys):
    assert run(["show", "looked.npz", "--own"]) == 2
    assert "--own asks a model" in capsys.readouterr().err
    assert run(["show", str(model)]) == 2
    assert "pairs.tsv" in capsys.readouterr().err
    (folder / "empty.tsv").write_text("\tx\n")
    assert run(["show", str(model), "empty.tsv"]) == 2
    assert "no sentence pair" in capsys.readouterr().err
