import re

from click.testing import CliRunner

from regard import axes
from regard.check.rules import every
from regard.check.skill import FOLDER, NAME, RULES, files, rules_page
from regard.cli.check import check
from regard.cli.main import run
from regard.cli.verbs import _VERBS


def front_matter():
    _, head, body = files()["SKILL.md"].split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines()), body


def test_the_page_of_rules_is_what_the_rules_say():
    assert files()[RULES] == rules_page(), "run `python docs/skill.py`"
    for rule in every():
        assert f"### {rule.code} {rule.name} ({rule.level})" in files()[RULES]


def test_the_head_is_as_skills_are_written():
    head, body = front_matter()
    assert head["name"] == NAME == FOLDER.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert 0 < len(head["description"]) <= 1024
    assert len(body.splitlines()) < 500


def test_every_link_leads_to_a_file_of_the_skill():
    links = re.findall(r"\]\(([^)]+)\)", files()["SKILL.md"])
    assert set(links) == set(files()) - {"SKILL.md"}


def test_every_command_and_option_that_the_skill_names_exists():
    text = files()["SKILL.md"]
    verbs = set(re.findall(r"regard ([a-z]+)\b(?= [A-Z])", text))
    assert verbs == {"check", "explain"}
    assert verbs <= set(_VERBS)
    options = {name for param in check.params for name in param.opts + param.secondary_opts}
    named = set(re.findall(r"(?<!\w)--[a-z][a-z-]+", text))
    assert {"--fix", "--write-test", "--format", "--axes", "--kind", "--paper"} <= named
    assert named <= options
    help_text = CliRunner().invoke(check, ["--help"]).output
    assert all(name in help_text for name in named)


def test_every_axis_has_the_name_and_the_meaning_that_the_package_gives_it():
    table = re.findall(
        r"^``\*?(\w+)``\s{2,}(\S.*?)(?:\s{3,}\S.*)?$", axes.__doc__, re.MULTILINE
    )
    assert len(table) == 9
    shapes = files()["references/shapes.md"]
    for name, meaning in table:
        assert f"| `{name}` | {meaning.split('; ``')[0]}" in shapes.replace(
            "; `d_h`", "; ``d_h``"
        )


def test_the_skill_asks_for_the_four_answers_and_forbids_inventing():
    body = " ".join(front_matter()[1].split())
    for part in ("Which tensor is wrong", "Its right shape", "A one-line fix", "A test"):
        assert f"**{part}" in body
    assert "d_s, d_h, d_attn, T_enc, T_dec, batch" in body
    assert "never invented" in body
    assert "s_{t-1}" in body


def test_the_command_prints_the_procedure(capsys):
    assert run(["skill"]) == 0
    assert capsys.readouterr().out == files()["SKILL.md"]


def test_the_command_copies_the_folder_and_writes_over_nothing_unasked(tmp_path, capsys):
    assert run(["skill", "--output", str(tmp_path)]) == 0
    copied = {
        path.relative_to(tmp_path / NAME).as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / NAME).rglob("*.md")
    }
    assert copied == files()
    assert run(["skill", "--output", str(tmp_path)]) == 0  # nothing would change
    changed = tmp_path / NAME / "SKILL.md"
    changed.write_text("mine")
    capsys.readouterr()
    assert run(["skill", "--output", str(tmp_path)]) == 2
    assert "SKILL.md` exists" in capsys.readouterr().err
    assert changed.read_text() == "mine"
    assert run(["skill", "--output", str(tmp_path), "--force"]) == 0
    assert changed.read_text(encoding="utf-8") == files()["SKILL.md"]


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["skill", "--output", str(tmp_path / "file" / "x")]) == 2
    said = capsys.readouterr().err
    assert "cannot be written" in said
    assert "Traceback" not in said
