import os
import stat
import subprocess
from pathlib import Path

import pytest

from regard.check.apply import apply_edits, plan_fixes, save_patch, write_changes
from regard.check.finding import Edit, Evidence, Finding, Fix, Location, Report
from regard.check.target import read_source
from regard.errors import InputError

TEXT = "def attend(q, k):\n    w = softmax(q @ k, dim=1)\n    return w @ k\n"
AXIS = Edit(2, 24, 2, 29, "dim=-1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(path, data):
    path.write_bytes(data)


def _finding(*edits, status="proven", **changes):
    return Finding(
        **{
            "code": "RG301",
            "name": "softmax-axis",
            "level": "error",
            "target": "d.py:attend",
            "message": "`w` sums to 1 over T_dec",
            "location": Location("d.py", 2),
            "evidence": Evidence("weights-sum-to-one", "sum = 1"),
            "fixes": (Fix(status, edits),),
            **changes,
        }
    )


def _report(*findings, path="d.py"):
    return Report("d.py:attend", findings, ("a",), source=read_source(path), path=path)


def _fix(*findings, data=None, path="d.py"):
    if data is not None:
        Path(path).write_bytes(data)
    changes = plan_fixes([_report(*findings, path=path)])
    write_changes(changes, _write)
    return changes


def test_a_proven_fix_changes_the_file_and_nothing_else_in_it():
    (change,) = _fix(_finding(AXIS), data=TEXT.encode())
    assert Path("d.py").read_text() == TEXT.replace("dim=1", "dim=-1")
    assert change.diff() == (
        "--- a/d.py\n+++ b/d.py\n@@ -1,3 +1,3 @@\n def attend(q, k):\n"
        "-    w = softmax(q @ k, dim=1)\n+    w = softmax(q @ k, dim=-1)\n     return w @ k\n"
    )


@pytest.mark.parametrize("status", ["proven-if", "sketch"])
def test_only_proven_fixes_are_applied(status):
    assert _fix(_finding(AXIS, status=status), data=TEXT.encode()) == []
    assert Path("d.py").read_text() == TEXT


def test_the_second_choice_is_not_applied():
    choices = (Fix("proven-if", (AXIS,)), Fix("proven", (AXIS,)))
    assert _fix(_finding(fixes=choices), data=TEXT.encode()) == []


def test_a_suppressed_finding_is_left_alone():
    assert _fix(_finding(AXIS, suppressed="known"), data=TEXT.encode()) == []


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", TEXT.replace("\n", "\r\n")),
        ("utf-8", TEXT.replace("\n", "\r")),
        ("utf-8", TEXT.rstrip("\n")),
        ("utf-8-sig", TEXT),
        ("latin-1", TEXT.replace("return w", "return w  # coding: latin-1 é\n    return w")),
        ("utf-8", "# é ∑ 😀\n" + TEXT),
    ],
)
def test_encoding_and_line_ends_stay(encoding, text):
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if encoding == "latin-1":
        text = "# coding: latin-1\n" + text
        lines.insert(0, "")
    row = next(i for i, line in enumerate(lines, 1) if "dim=1" in line)
    _fix(_finding(Edit(row, 24, row, 29, "dim=-1")), data=text.encode(encoding))
    assert Path("d.py").read_bytes() == text.replace("dim=1", "dim=-1").encode(encoding)


def test_columns_count_characters():
    text = "w = ('😀é', softmax(s, dim=1))\n"
    column = text.index("dim=1") + 1
    _fix(_finding(Edit(1, column, 1, column + 5, "dim=-1")), data=text.encode())
    assert Path("d.py").read_text() == text.replace("dim=1", "dim=-1")


def test_new_lines_end_as_the_files_lines_do():
    edit = Edit(3, 5, 3, 17, "c = w @ k\n    return c")
    _fix(_finding(edit), data=TEXT.replace("\n", "\r\n").encode())
    assert Path("d.py").read_bytes().endswith(b"    c = w @ k\r\n    return c\r\n")


def test_rights_and_links_stay(folder):
    (folder / "real").mkdir()
    real = folder / "real" / "d.py"
    real.write_text(TEXT)
    real.chmod(0o751)
    (folder / "d.py").symlink_to(real)
    from regard.files import write_atomically

    changes = plan_fixes([_report(_finding(AXIS))])
    write_changes(changes, write_atomically)
    assert (folder / "d.py").is_symlink()
    assert "dim=-1" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o751
    assert sorted(os.listdir(folder / "real")) == ["d.py"]


def test_a_file_that_changed_since_it_was_checked_is_refused():
    Path("d.py").write_text(TEXT)
    report = _report(_finding(AXIS))
    Path("d.py").write_text("# new\n" + TEXT)
    with pytest.raises(InputError, match="changed while it was checked"):
        plan_fixes([report])
    Path("d.py").unlink()
    with pytest.raises(InputError, match="cannot be read any more"):
        plan_fixes([report])


def test_a_file_that_changes_at_the_last_moment_is_refused():
    Path("d.py").write_text(TEXT)
    changes = plan_fixes([_report(_finding(AXIS))])
    Path("d.py").write_text(TEXT + "# new\n")
    with pytest.raises(InputError, match="run the command again"):
        write_changes(changes, _write)
    assert Path("d.py").read_text() == TEXT + "# new\n"


def test_a_read_only_file_is_refused(monkeypatch):
    Path("d.py").write_text(TEXT)
    changes = plan_fixes([_report(_finding(AXIS))])
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anything
    with pytest.raises(InputError, match="may not be written"):
        write_changes(changes, _write)


def test_text_that_the_encoding_cannot_hold_is_refused():
    data = ("# coding: latin-1\n" + TEXT).encode("latin-1")
    with pytest.raises(InputError, match="does not fit the encoding"):
        _fix(_finding(Edit(3, 24, 3, 29, "dim='∑'")), data=data)
    assert Path("d.py").read_bytes() == data


def test_of_overlapping_fixes_the_first_is_applied_and_the_other_is_named():
    first = _finding(AXIS)
    second = _finding(Edit(2, 9, 2, 30, "sparsemax(q @ k)"), code="RG302")
    third = _finding(Edit(3, 12, 3, 17, "k @ w"), code="RG304")
    (change,) = _fix(first, second, third, data=TEXT.encode())
    assert change.applied == (first, third)
    assert change.left == (second,)
    assert change.after == TEXT.replace("dim=1", "dim=-1").replace("w @ k", "k @ w")


def test_one_cause_found_through_two_targets_is_mended_once():
    Path("d.py").write_text(TEXT)
    reports = [_report(_finding(AXIS)), _report(_finding(AXIS), path="./d.py")]
    (change,) = plan_fixes(reports)
    assert len(change.applied) == 2
    assert change.after == TEXT.replace("dim=1", "dim=-1")


@pytest.mark.parametrize(
    "edit",
    [
        Edit(9, 1, 9, 1, ""),
        Edit(0, 1, 1, 1, ""),
        Edit(1, 0, 1, 1, ""),
        Edit(1, 1, 1, 99, ""),
        Edit(2, 1, 1, 1, ""),
    ],
)
def test_a_span_that_is_not_there_is_refused(edit):
    with pytest.raises(ValueError, match=r"line|column|overlap"):
        apply_edits(TEXT, [edit])


@pytest.mark.parametrize("name", ["d.py", "two words.py", "é.py"])
def test_the_patch_is_saved_and_undoes_the_fix_and_applies_it_again(name):
    from regard.files import write_atomically

    path = Path("src") / name
    path.parent.mkdir()
    path.write_text(TEXT.rstrip("\n"))
    subprocess.run(["git", "init", "-q", "."], check=True)
    changes = _fix(_finding(AXIS), path=str(path))
    patch, base = save_patch(changes, write_atomically)
    assert (patch.parent, base) == (Path(".regard"), ".")
    assert save_patch(changes, write_atomically) == (patch, base)
    fixed = path.read_text()
    assert "dim=-1" in fixed
    subprocess.run(["git", "apply", "-R", str(patch)], check=True)
    assert path.read_text() == TEXT.rstrip("\n")
    subprocess.run(["git", "apply", str(patch)], check=True)
    assert path.read_text() == fixed
    status = subprocess.run(
        ["git", "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert ".regard" not in status.stdout


@pytest.mark.parametrize("name", ["d.py", "é ü.py"])
def test_the_patch_of_a_latin_1_file_holds_its_own_bytes(name):
    data = b"# coding: latin-1\n# gr\xf6\xdfe\n" + TEXT.encode()
    subprocess.run(["git", "init", "-q", "."], check=True)
    edit = Edit(4, 24, 4, 29, "dim=-1")
    changes = _fix(_finding(edit), data=data, path=name)
    patch, _ = save_patch(changes, _write)
    assert b" # gr\xf6\xdfe\n" in patch.read_bytes()
    subprocess.run(["git", "apply", "-R", patch], check=True)
    assert Path(name).read_bytes() == data
