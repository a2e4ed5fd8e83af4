import json
from pathlib import Path

import pytest

from regard.alignment.collection_files import read_collection
from regard.alignment.link_files import read_links
from regard.alignment.score import score_alignments
from regard.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "align"
CORPUS = str(EXAMPLE / "corpus.tsv")


@pytest.fixture(scope="module")
def aligner(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "aligner"
    assert run(["align", "train", CORPUS, "--out", str(out), "--epochs", "6"]) == 0
    return str(out)


def test_a_corpus_is_aligned_with_two_commands(aligner, tmp_path):
    out = tmp_path / "links.txt"
    assert run(["align", "links", aligner, CORPUS, "--out", str(out)]) == 0
    gold = read_links(EXAMPLE / "gold.txt", base=0).sentences
    assert score_alignments(gold, read_links(out, base=0).links()).aer < 0.2


def test_two_files_are_as_good_as_one(aligner, tmp_path, capsys):
    lines = [line.split("\t") for line in Path(CORPUS).read_text().splitlines()]
    for name, side in (("en", 0), ("fr", 1)):
        (tmp_path / name).write_text("".join(f"{line[side]}\n" for line in lines))
    capsys.readouterr()
    sides = [str(tmp_path / "en"), str(tmp_path / "fr")]
    assert run(["align", "links", aligner, *sides]) == 0
    two = capsys.readouterr().out
    assert run(["align", "links", aligner, CORPUS]) == 0
    assert two == capsys.readouterr().out
    assert len(two.splitlines()) == len(lines)


def test_a_method_and_a_threshold_change_the_links(aligner, capsys):
    counts = []
    for options in ([], ["--threshold", "0.9"], ["--method", "union", "--threshold", "0.1"]):
        capsys.readouterr()
        assert run(["align", "links", aligner, CORPUS, *options]) == 0
        counts.append(len(capsys.readouterr().out.split()))
    assert counts[1] < counts[0] < counts[2]


def test_matrices_can_be_shown(aligner, tmp_path, capsys):
    path = tmp_path / "few.jsonl"
    assert run(["align", "links", aligner, CORPUS, "--matrices", str(path)]) == 0
    records = read_collection(path)
    assert len(records) == 60
    assert records[0].source[-1] == "∅"
    assert run(["show", str(path), "--out", str(tmp_path / "page.html")]) == 0
    backward = ["--direction", "backward", "--force"]
    assert run(["align", "links", aligner, CORPUS, "--matrices", str(path), *backward]) == 0
    assert read_collection(path)[0].target == records[0].source[:-1]
    assert run(["align", "links", aligner, CORPUS, "--matrices", str(path)]) == 2
    assert "the file exists" in capsys.readouterr().err


def test_a_finished_run_is_kept_and_a_used_directory_refused(aligner, capsys):
    arguments = ["align", "train", CORPUS, "--out", aligner, "--epochs", "6"]
    assert run(arguments) == 2
    assert "--resume goes on with the run in it" in capsys.readouterr().err
    assert run([*arguments, "--resume"]) == 0
    assert "60 sentence pairs, 6 passes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resume", "--force"], "--resume and --force contradict each other"),
        (["--epochs", "4", "--time-budget", "5s"], "--epochs and --time-budget contradict"),
        (["--epochs", "1"], "--epochs: 1 is refused"),
        (["--empty", "0"], "--empty: 0 is refused"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, capsys, options, said):
    assert run(["align", "train", CORPUS, "--out", str(tmp_path / "new"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a b\tc d\t0-0", "line 2: this is no sentence pair"),
        ("a ||| b ||| 0-0", "3 columns"),
        ("only one side", "source<TAB>target, or source ||| target"),
        (f"{'a ' * 2003}\tb", "sentence pair 2: a sentence is too long"),
        (f"b\t{'a ' * 500_000}", "1 and 500000 words"),
    ],
)
def test_a_line_that_is_no_pair_of_sentences_is_refused_by_its_number(
    tmp_path, capsys, line, said
):
    (tmp_path / "c.tsv").write_text(f"a\tb\n{line}\n")
    out = tmp_path / "new"
    assert run(["align", "train", str(tmp_path / "c.tsv"), "--out", str(out)]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown) < 700
    assert not out.exists()


def test_long_pairs_are_refused_by_a_trained_aligner_too(aligner, tmp_path, capsys):
    (tmp_path / "c.tsv").write_text(f"{'a ' * 2003}\tb\n")
    assert run(["align", "links", aligner, str(tmp_path / "c.tsv")]) == 2
    assert "at most 2000 words on each side" in capsys.readouterr().err


def test_a_corpus_that_is_missing_or_empty_is_called_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.tsv").write_text("")
    out = ["--out", str(tmp_path / "new")]
    assert run(["align", "train", "empty.tsv", *out]) == 2
    assert "lines of sentence pairs" in capsys.readouterr().err
    assert run(["align", "train", "none.tsv", *out]) == 2
    assert "a file of sentence pairs" in capsys.readouterr().err
    assert run(["align", "train", "none.en", "none.fr", *out]) == 2
    assert "a file of sentences" in capsys.readouterr().err


def test_a_directory_without_an_aligner_is_named(tmp_path, capsys):
    assert run(["align", "links", str(tmp_path), CORPUS]) == 2
    assert "there is no aligner in it" in capsys.readouterr().err


def test_an_aligner_says_what_made_it(aligner):
    form = json.loads((Path(aligner) / "aligner.json").read_text())
    assert form["corpus"]["pairs"] == 60
    assert form["settings"]["epochs"] == 6
    assert form["made_by"]["command"].startswith("regard align train ")
