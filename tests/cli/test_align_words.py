"""Links and matrices of a text by trained models, and of weights from files."""

import json

import numpy as np
import pytest

from regard.alignment.collection_files import read_collection
from regard.alignment.link_files import read_links
from regard.cli.main import run

TEXT = "abc\tA B C\n\nabz\tA Q\nx\t\nca ||| C A\n"


@pytest.fixture(scope="session")
def backward(tmp_path_factory, data):
    """A model of the other direction."""
    folder = tmp_path_factory.mktemp("backward")
    turned = folder / "turned.tsv"
    lines = [line.split("\t") for line in data.read_text().splitlines()[:64]]
    turned.write_text("".join(f"{target}\t{source}\n" for source, target in lines))
    sizes = ["--hidden", "7", "--state", "11", "--steps", "7", "--batch-tokens", "211"]
    out = str(folder / "model")
    assert run(["train", str(turned), "--out", out, "--source-symbols", "spaces", *sizes]) == 0
    return out


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(TEXT.replace(" ||| ", "\t"))
    return str(path)


def test_a_line_of_links_for_every_line_and_what_was_left_out_is_told(
    model, pairs, tmp_path, capsys
):
    out, matrices = tmp_path / "links.txt", tmp_path / "looked.npz"
    options = ["--out", str(out), "--matrices", str(matrices)]
    assert run(["align", "words", str(model), pairs, *options]) == 0
    said = capsys.readouterr().err
    assert "lines 2, 4: a side is empty" in said
    assert "source symbols that the model never saw, read as something unknown: 'z'" in said
    assert "target symbols that the model never saw, read as something unknown: 'Q'" in said
    lines = out.read_text().splitlines()
    assert [len(line.split()) for line in lines] == [3, 0, 2, 0, 2]
    found = read_collection(matrices)
    assert [record.name for record in found] == ["1", "3", "5"]
    assert [record.made_by["sentence"] for record in found] == [1, 3, 5]
    for record, line in zip(found, (lines[0], lines[2], lines[4]), strict=True):
        links = record.alignment(layer=0, head=0).links()
        assert {f"{s}-{t}" for s, t in links} == set(line.split())
    assert "log_prob" in found[0].made_by
    assert "log_prob" not in found[1].made_by  # of an unknown symbol


def test_extracted_again_the_links_keep_their_lines(model, pairs, tmp_path, capsys):
    matrices = str(tmp_path / "looked.json")
    assert run(["align", "words", str(model), pairs, "--matrices", matrices]) == 0
    assert run(["align", "words", str(model), pairs]) == 0
    printed = capsys.readouterr().out
    assert run(["align", "extract", matrices]) == 0
    # The last line of a text may be one without links.
    assert capsys.readouterr().out == printed
    assert printed.count("\n") == 5


def test_the_end_is_a_row_of_the_matrices_and_never_a_link(model, pairs, tmp_path, capsys):
    matrices = str(tmp_path / "looked.jsonl")
    options = ["--matrices", matrices, "--end", "--out", str(tmp_path / "l")]
    assert run(["align", "words", str(model), pairs, *options]) == 0
    assert [record.target[-1] for record in read_collection(matrices)] == ["</s>"] * 3
    assert len((tmp_path / "l").read_text().splitlines()[0].split()) == 3


def test_counterfactuals_go_into_the_matrices(model, pairs, tmp_path, capsys):
    matrices = str(tmp_path / "looked.npz")
    options = ["--matrices", matrices, "--counterfactuals"]
    assert run(["align", "words", str(model), pairs, *options]) == 0
    for record in read_collection(matrices):
        found = record.counterfactuals
        assert set(found) == {"permute", "uniform", "ablate"}
        shape = (len(record.target), len(record.source))
        assert found["ablate"].positions.difference.shape == shape
    exported = str(tmp_path / "model.npz")
    assert run(["export", str(model), "--to", "numpy", "--out", exported]) == 0
    assert run(["align", "words", exported, pairs, *options, "--force"]) == 2
    assert "counterfactuals need the model itself" in capsys.readouterr().err


def test_both_directions_give_mutual_links(model, backward, pairs, tmp_path, capsys):
    options = ["--backward", backward, "--rule", "mutual"]
    assert run(["align", "words", str(model), pairs, *options]) == 0
    mutual = capsys.readouterr().out.splitlines()
    assert run(["align", "words", str(model), pairs]) == 0
    one = capsys.readouterr().out.splitlines()
    assert len(mutual) == 5
    assert all(set(a.split()) <= set(b.split()) for a, b in zip(mutual, one, strict=True))


def test_an_ensemble_and_an_export_align_too(model, pairs, tmp_path, capsys):
    assert run(["align", "words", str(model), pairs, "--with", str(model)]) == 0
    twice = capsys.readouterr().out
    exported = str(tmp_path / "model.npz")
    assert run(["export", str(model), "--to", "numpy", "--out", exported]) == 0
    capsys.readouterr()
    assert run(["align", "words", exported, pairs]) == 0
    assert capsys.readouterr().out == twice


def test_naacl_counts_from_one(model, pairs, tmp_path):
    out = str(tmp_path / "links.naacl")
    assert run(["align", "words", str(model), pairs, "--out", out, "--format", "naacl"]) == 0
    assert len(read_links(out, format="naacl").sentences) == 5
    assert (tmp_path / "links.naacl").read_text().startswith("1 ")


def test_a_side_that_is_too_long_is_left_out_with_exit_code_1(model, pairs, capsys):
    assert run(["align", "words", str(model), pairs, "--longest", "2"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == ""
    assert "lines 1, 3: a side has more than 2 symbols" in printed.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rule", "mutual"], "--backward MODEL is the other one"),
        (["--least", "0.5"], "--least does not go with --rule argmax"),
        (["--unknown", "fail"], "never saw"),
        (["--matrices", "a.gif"], "the format is not known"),
        (["--counterfactuals"], "--counterfactuals goes into --matrices"),
        (["--end"], "--end goes into --matrices"),
        (["--rule", "mutual", "--backward", "SELF"], "cut the pair into different words"),
    ],
)
def test_what_does_not_go_together_is_one_clear_error(model, pairs, capsys, options, said):
    options = [str(model) if option == "SELF" else option for option in options]
    assert run(["align", "words", str(model), pairs, *options]) == 2
    assert said in capsys.readouterr().err


def test_weights_of_any_program_become_links(tmp_path, capsys):
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    np.save(tmp_path / "w.npy", weights)
    assert run(["align", "extract", str(tmp_path / "w.npy")]) == 0
    assert capsys.readouterr().out == "0-0 1-1\n"
    np.savez(tmp_path / "b.npz", weights=np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]))
    files = [str(tmp_path / "w.npy"), str(tmp_path / "b.npz")]
    assert run(["align", "extract", *files, "--method", "union"]) == 0
    assert capsys.readouterr().out == "0-0 1-1 2-1\n"


def test_layers_heads_shift_and_pieces_are_chosen(tmp_path, capsys):
    heads = np.zeros((2, 2, 3, 3))
    heads[:, :, [0, 1, 2], [1, 2, 0]] = 1.0
    heads[1, 1] = np.eye(3)
    form = {"weights": heads.tolist(), "target": ["un", "##fit", "x"], "source": list("abc")}
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps(form))
    assert run(["align", "extract", str(path)]) == 2
    assert "--layer with one of 0, 1" in capsys.readouterr().err
    chosen = ["align", "extract", str(path), "--layer", "1", "--head", "1"]
    assert run(chosen) == 0
    assert capsys.readouterr().out == "0-0 1-1 2-2\n"
    assert run([*chosen, "--shift", "1"]) == 0
    assert capsys.readouterr().out == "1-0 2-1\n"
    merged = [*chosen, "--target-pieces", "wordpiece", "--rule", "threshold"]
    assert run(merged) == 0
    assert capsys.readouterr().out == "0-0 1-0 2-1\n"
    assert run([*chosen[:-1], "7"]) == 2
    assert "record 1: there is no head 7" in capsys.readouterr().err
