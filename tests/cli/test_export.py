import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from regard.cli.main import run
from regard.seq2seq.runtime.exported import read_exported
from regard.seq2seq.transducer import Transducer

pytest.importorskip("onnxruntime")


def _run(*arguments) -> int:
    return run([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def exports(model, tmp_path_factory):
    """Directories, by what was exported."""
    place = tmp_path_factory.mktemp("exports")
    found = {"numpy": place / "full", "int8": place / "small", "onnx": place / "onnx"}
    assert _run("export", model, "--out", found["numpy"]) == 0
    assert _run("export", model, "--out", found["int8"], "--int8") == 0
    assert _run("export", model, "--out", found["onnx"], "--to", "onnx") == 0
    return found


def _predicted(capsys, *arguments):
    capsys.readouterr()
    assert _run("predict", *arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["numpy", "onnx"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--align",),
        ("--beam", 3, "--nbest", 2, "--scores", "--length-penalty", 0.6),
        ("--allow", "A B"),
        ("--unknown", "copy"),
    ],
)
def test_an_export_answers_as_the_model_does(model, exports, capsys, form, options):
    words = ("abc", "dd", "caQb")
    wanted = _predicted(capsys, model, *words, *options)
    assert _predicted(capsys, exports[form], *words, *options) == wanted


@pytest.mark.parametrize("form", ["numpy", "onnx"])
def test_an_export_is_scored_as_the_model_is(model, exports, data, capsys, form):
    found = []
    for path in (model, exports[form]):
        capsys.readouterr()
        assert _run("eval", path, data, "--beam", 3, "--format", "json", "--bootstrap", 0) == 0
        found.append(json.loads(capsys.readouterr().out))
        assert found[-1].pop("model") == str(path)
    assert found[0] == found[1]
    assert 0 < found[0]["examples"] <= 64


def test_an_export_says_what_it_is_and_how_good(model, data, tmp_path, capsys):
    out = tmp_path / "small.npz"
    given = ("--int8", "--check", data, "--licence", "CC0-1.0", "--out", out)
    assert _run("export", model, *given) == 0
    said = capsys.readouterr().out
    assert f"{out.stat().st_size:,} bytes" in said
    card = (tmp_path / "small.MODEL_CARD.md").read_text(encoding="utf-8")
    trained_on = Transducer.load(model).description.made_by["train"]
    assert trained_on["sha256"] in card
    assert "CC0-1.0" in card
    for line in ("| this export | ", "| the trained model | "):
        assert line in card
    assert "errors     exact match" in said
    assert str(data.parent) not in card
    header = read_exported(out).description.made_by
    assert str(data.parent) not in json.dumps(header)
    assert header["train"]["name"] == data.name


def test_nothing_is_written_over(model, exports, capsys):
    before = (exports["numpy"] / "model.npz").read_bytes()
    assert _run("export", model, "--out", exports["numpy"], "--int8") == 2
    assert "--force" in capsys.readouterr().err
    assert (exports["numpy"] / "model.npz").read_bytes() == before
    assert _run("export", model, "--out", exports["numpy"], "--force") == 0
    assert (exports["numpy"] / "model.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--int8", "--float16"), "contradict"),
        (("--to", "onnx", "--int8"), "--int8"),
        (("--to", "onnx", "--out", "x.onnx"), "three files"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    model, tmp_path, monkeypatch, capsys, options, said
):
    monkeypatch.chdir(tmp_path)
    assert _run("export", model, "--out", "new", *options) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_place_below_a_file_is_refused(model, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert _run("export", model, "--out", tmp_path / "file") == 2
    assert "not a directory" in capsys.readouterr().err


def test_a_form_for_another_runtime_is_refused(model, exports, capsys):
    assert _run("predict", exports["onnx"] / "none", "abc") == 2
    assert "no such file" in capsys.readouterr().err
    for path, runtime, said in (
        (model, "numpy", "regard export"),
        (model, "onnx", "regard export"),
        (exports["onnx"], "numpy", "runtime onnx"),
        (exports["numpy"], "torch", "runtime numpy"),
    ):
        assert _run("predict", path, "abc", "--runtime", runtime) == 2
        assert said in capsys.readouterr().err
    assert _run("predict", exports["numpy"], "abc", "--with", model) == 2
    assert "alone" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "name"), [("numpy", "model.npz"), ("onnx", "greedy.onnx")])
def test_a_damaged_export_is_refused_in_one_line_of_ours(exports, tmp_path, capsys, form, name):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in exports[form].iterdir():
        data = file.read_bytes()
        (copy / file.name).write_bytes(data[: len(data) // 2] if file.name == name else data)
    assert _run("predict", copy, "abc") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert name in said


def test_a_library_that_is_missing_is_named_with_its_extra(exports, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails
    assert _run("predict", exports["onnx"], "abc") == 2
    said = capsys.readouterr().err
    assert "onnxruntime" in said
    assert "regard[onnx]" in said


@pytest.mark.parametrize("form", ["int8", "onnx"])
def test_predicting_needs_no_pytorch(exports, form):
    program = f"""
        import sys

        for name in ("torch", "safetensors", "rapidfuzz", "matplotlib", "onnx"):
            sys.modules[name] = None  # an import of it fails

        from regard.cli.main import run

        path = {str(exports[form])!r}
        raise SystemExit(
            run(["predict", path, "abc", "--beam", "3", "--align", "--format", "json"])
        )
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert np.array(answer["weights"]).shape == (len(answer["target_symbols"]), 3)


def test_pairs_to_check_on_have_features_where_the_model_reads_some(model, tmp_path, capsys):
    pairs = tmp_path / "three.tsv"
    pairs.write_text("abc\tA B C\tN;PL\nbca\tB C A\tN\n", encoding="utf-8")
    out = tmp_path / "out"
    asked = ("export", model, "--out", out, "--check", pairs, "--features-column", 3)
    assert _run(*asked) == 2
    assert "the model reads sources without features" in capsys.readouterr().err
    assert not out.exists()


def test_sources_whose_attention_would_fill_the_memory_are_not_compared(
    model, tmp_path, capsys
):
    pairs = tmp_path / "long.tsv"
    pairs.write_text(f"abc\tA B C\n{'ab' * 1001}\tA\n", encoding="utf-8")
    assert _run("export", model, "--out", tmp_path / "one.npz", "--check", pairs) == 0
    captured = capsys.readouterr()
    assert "1 pairs whose source is longer than 2,000 symbols" in captured.err
    assert "of 1 greedy answers" in captured.out
    card = (tmp_path / "one.MODEL_CARD.md").read_text(encoding="utf-8")
    assert "| one.npz |" in card
    assert "model.npz" not in card


def test_pairs_that_are_all_too_long_are_refused(model, tmp_path, capsys):
    pairs = tmp_path / "long.tsv"
    pairs.write_text(f"{'ab' * 1001}\tA\n", encoding="utf-8")
    assert _run("export", model, "--out", tmp_path / "out", "--check", pairs) == 2
    assert "every source is longer than 2,000 symbols" in capsys.readouterr().err
