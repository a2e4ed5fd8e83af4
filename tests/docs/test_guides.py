"""The guides' code runs and prints what stands below it; their commands exist."""

import re
import shlex
from pathlib import Path

import click
import pytest

from regard.cli.main import run
from regard.cli.verbs import cli
from regard.learn.compare import difference
from regard.learn.execute import execute
from regard.learn.fences import fences, pairs

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = [DOCS / "quickstart.md", *sorted((DOCS / "howto").glob("*.md"))]
_COMMAND = re.compile(r"^(?:\$ )?(regard [^|>#\n]*)", re.MULTILINE)


def _commands():
    for path in GUIDES:
        for fence in fences(path.read_text(encoding="utf-8")):
            if fence.language in {"sh", "console"}:
                for command in _COMMAND.findall(fence.body):
                    yield pytest.param(
                        command.strip(), id=f"{path.stem}: {command.strip()[:60]}"
                    )


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_the_code_of_a_guide_prints_what_stands_below_it(path):
    text = path.read_text(encoding="utf-8")
    if pairs(text):
        pytest.importorskip("torch", reason="guides check PyTorch code")
    for ran in execute(text, run=run):
        assert not difference(ran)


@pytest.mark.parametrize("command", list(_commands()))
def test_a_command_of_a_guide_has_a_verb_and_options_that_exist(command):
    words = shlex.split(command)[1:]
    found, group = cli, True
    while group and words and not words[0].startswith("-"):
        nested = found.get_command(click.Context(found), words[0])
        assert nested is not None, f"{words[0]} is no verb"
        found, group = nested, isinstance(nested, click.Group)
        words = words[1:]
    known = {name for parameter in found.params for name in parameter.opts} | {"--help"}
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known, given - known


def test_every_verb_has_a_guide_or_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    for verb in cli.list_commands(click.Context(cli)):
        assert f"regard {verb}" in text, verb
