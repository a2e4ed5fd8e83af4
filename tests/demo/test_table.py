import io

import pytest
from rich.console import Console

from regard.demo.table import accuracy_markdown, accuracy_table
from regard.errors import InputError

COPY = {
    "chance": 0.0625,
    "trained_lengths": [1, 11],
    "lengths": [5, 11, 13],
    "models": {
        "none": {
            "token_accuracy": {"5": [0.55, 0.65], "11": [0.02, 0.0351], "13": [0.011, 0.011]},
            "exact_match": {"5": [0.5]},
        },
        "dot": {"token_accuracy": {"5": [1.0, 0.998], "11": [0.91, 0.93]}},
    },
}


def printed(table, width=80):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue()


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_the_terminal_table_has_means_spreads_gaps_and_marks_extrapolation():
    found = rows(printed(accuracy_table(COPY)))
    assert ["length", "5", "11", "13*"] in found
    assert ["no", "attention", "60.0", "2.8", "1.1"] in found
    # Spreads are rounded outwards: 3.51 is not within 2.0-3.5.
    assert ["55-65", "2.0-3.6", "1.1-1.1"] in found
    assert ["99-100", "91-93"] in found
    assert ["gap", "+39.9", "+89.2", "-"] in found


def test_the_terminal_table_of_the_whole_job_fits_80_columns(results):
    for measure in ("token_accuracy", "exact_match"):
        text = printed(accuracy_table(results()["copy"], measure=measure))
        assert "…" not in text
        assert "160*" in text
        wide = printed(accuracy_table(results()["copy"], measure=measure), width=200)
        assert rows(text)[:3] == rows(wide)[:3]


def test_one_seed_has_no_spread_and_says_so(results):
    text = printed(accuracy_table(results(seeds=(0,), models=("none", "dot"))["copy"]))
    assert "one seed, no spread" in " ".join(text.split())
    assert len(rows(text)[2:5]) == 3
    assert [row[0] for row in rows(text)[2:5]] == ["no", "Luong", "gap"]


def test_a_gap_row_needs_both_sides(results):
    assert "gap" not in printed(accuracy_table(results(models=("dot",))["copy"]))
    assert "gap" not in accuracy_markdown(results(models=("none",))["copy"])


def test_markdown_is_a_table_with_one_cell_a_length():
    text = accuracy_markdown(COPY)
    lines = text.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:5]]
    assert cells[0] == ["tokens right, %", "5", "11", "13*"]
    assert all(set(cell) <= {"-", ":"} for cell in cells[1])
    assert cells[2] == ["no attention", "60.0 (55.0-65.0)", "2.8 (2.0-3.5)", "1.1 (1.1-1.1)"]
    assert cells[3] == ["Luong dot", "99.9 (99.8-100.0)", "92.0 (91.0-93.0)", "-"]
    assert cells[4] == ["gap", "+39.9", "+89.2", "-"]
    assert len({len(line) for line in lines[:5]}) == 1, "columns must line up as plain text"
    assert r"\* extrapolation: not trained on (trained: 1 to 11)" in text
    assert "chance: 6.25 %" in text


def test_markdown_of_whole_sequences_has_no_chance():
    text = accuracy_markdown(COPY, measure="exact_match")
    assert text.startswith("| whole sequences right, % |")
    assert "chance" not in text


def test_a_models_name_cannot_break_the_markdown():
    models = {"a|b": {"token_accuracy": {"5": [0.5]}}}
    assert r"| a\|b" in accuracy_markdown(COPY | {"models": models})


@pytest.mark.parametrize("layout", [accuracy_table, accuracy_markdown])
def test_an_unknown_measure_is_refused(layout):
    with pytest.raises(InputError, match="`measure` is unknown"):
        layout(COPY, measure="bleu")


def test_the_notes_of_the_table_are_as_wide_as_the_console(
    results, capsys, monkeypatch, tmp_path
):
    from regard.cli.demo import _tell

    monkeypatch.setenv("COLUMNS", "200")
    found = results()
    found["g2p"]["per"], found["made_by"]["wall_seconds"] = 0.1, 1.0
    _tell(found, tmp_path, "text")
    lines = capsys.readouterr().out.splitlines()
    assert any("mean of 3 seeds" in line and "points" in line for line in lines)
