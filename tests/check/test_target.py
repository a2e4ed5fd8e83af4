from pathlib import Path

import pytest

from regard.check.target import (
    find_targets,
    import_folders,
    package_of,
    read_source,
    reread,
)
from regard.errors import InputError

DECODER = """
import torch
from .layers import Score
from torch import nn

def attend(query, key):
    return query

if torch.cuda.is_available():
    def fast(query):
        return query
else:
    slow = attend

class Decoder(nn.Module):
    def forward(self, x):
        return x

    class Inner:
        def step(self):
            pass

class Plain:
    def run(self):
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decoder.py").write_text(DECODER, encoding="utf-8")
    return tmp_path


def _discover(source):
    return ["attend"] if "def attend(" in source else []


def _found(*texts):
    targets, notes = find_targets(texts, discover=_discover)
    return [target.name for target in targets], notes


def _refused(*texts):
    with pytest.raises(InputError) as caught:
        find_targets(texts, discover=_discover)
    return str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [
        *("attend", "fast", "slow", "Decoder", "Decoder.forward", "Decoder.Inner.step"),
        "Plain.run",
        "Decoder.inherited",  # the base class is elsewhere
        "slow.method",  # what it is shows at run time only
    ],
)
def test_a_name_of_a_file_is_found_without_running_it(entry):
    (target,), notes = find_targets([f"decoder.py:{entry}"])
    assert (target.path, target.entry, notes) == ("decoder.py", entry, [])
    assert target.source == DECODER
    assert target.broken is None


def test_a_wrong_name_is_refused_with_the_nearest():
    text = _refused("decoder.py:atend")
    assert text == (
        "check: `decoder.py` defines no `atend`\n"
        "  expected  one of attend, fast, Decoder, Decoder.forward, Decoder.Inner, Plain, "
        "Plain.run\n"
        "  got       atend\n"
        "  help      did you mean `attend`?"
    )
    assert "did you mean `run`" in _refused("decoder.py:Plain.runn")
    assert "help" not in _refused("decoder.py:zzz")


def test_an_imported_name_is_refused_with_its_home():
    assert "help      it comes from `.layers`: name it there" in _refused("decoder.py:Score")


def test_a_file_that_is_not_there_is_refused_with_its_neighbour():
    assert "help      did you mean `decoder.py`?" in _refused("decodr.py:attend")
    assert "there is no folder `nowhere`" in _refused("nowhere/decoder.py:attend")
    assert "no such file" in _refused("nowhere/decoder.py")


@pytest.mark.parametrize("text", ["decoder.py:", ":attend", ":", ""])
def test_half_a_target_is_refused(text):
    assert "expected" in _refused(text)


def test_a_folder_has_no_names(folder):
    (folder / "models").mkdir()
    assert "`models` alone checks every file in it" in _refused("models:attend")


def test_a_broken_file_is_a_target_that_says_where():
    Path("broken.py").write_text("def attend(:\n    pass\n")
    (target,), _ = find_targets(["broken.py:attend"])
    assert target.broken.line == 1
    assert target.broken.column == 12
    assert "invalid syntax" in target.broken.why
    assert target.name == "broken.py:attend"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe\x00", "invalid or missing encoding"),
        (b"# coding: no-such-code\n", "no-such-code"),
        (b"#" * (2**22 + 1), "a larger file"),
    ],
)
def test_a_file_that_is_no_text_is_refused(data, said):
    Path("data.py").write_bytes(data)
    assert said in _refused("data.py:attend")


def test_null_bytes_and_deep_nesting_are_broken_files_and_no_traceback():
    Path("nulls.py").write_bytes(b"def attend():\n    pass\x00\n")
    Path("deep.py").write_text("(" * 50_000)
    targets, _ = find_targets(["nulls.py:attend", "deep.py:attend"])
    assert all(target.broken is not None for target in targets)


def test_a_notebook_is_refused_with_what_to_do():
    Path("lesson.ipynb").write_text("{}")
    assert "nbconvert" in _refused("lesson.ipynb")
    Path("notes.txt").write_text("x")
    assert "a file whose name ends in .py" in _refused("notes.txt:x")


def test_the_declared_encoding_is_read_and_line_ends_are_one():
    Path("old.py").write_bytes("# coding: latin-1\r\nNAME = 'é'\r\n".encode("latin-1"))
    assert read_source("old.py") == "# coding: latin-1\nNAME = 'é'\n"
    Path("marked.py").write_bytes(b"\xef\xbb\xbfX = 1\rY = 2\n")
    assert read_source("marked.py") == "X = 1\nY = 2\n"


def test_a_file_alone_is_searched():
    assert _found("decoder.py") == (["decoder.py:attend"], [])


def test_several_targets_keep_their_order_and_come_once():
    names, _ = _found("decoder.py:Plain", "decoder.py", "decoder.py:attend", "decoder.py:Plain")
    assert names == ["decoder.py:Plain", "decoder.py:attend"]


def test_a_file_without_attention_among_others_is_a_note_and_alone_an_error():
    Path("data.py").write_text("def load():\n    pass\n")
    names, notes = _found("data.py", "decoder.py")
    assert names == ["decoder.py:attend"]
    assert notes == ["data.py: nothing in it looks like attention; name it as data.py:NAME"]
    text = _refused("data.py")
    assert "got       load" in text
    assert "name it, as file.py:NAME" in text


def test_a_folder_is_searched_but_not_its_environments(folder):
    for place in ("src/model", "src/.hidden", "src/__pycache__", "src/env/lib"):
        (folder / place).mkdir(parents=True)
        (folder / place / "layer.py").write_text("def attend(q):\n    return q\n")
    (folder / "src/env/pyvenv.cfg").write_text("")
    (folder / "src/broken.py").write_text("def softmax(:\n")
    (folder / "src/python2.py").write_text("print 'hello'\n")
    assert _found("src") == (["src/broken.py", "src/model/layer.py:attend"], [])
    targets, _ = find_targets(["src"], discover=_discover)
    assert [target.broken is None for target in targets] == [False, True]


def test_a_folder_without_python_is_refused(folder):
    (folder / "empty").mkdir()
    assert "there is no Python file in `empty`" in _refused("empty")


def test_a_module_is_found_and_not_imported(folder):
    package = folder / "models" / "attention"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "core.py").write_text("def attend(q):\n    return q\n")
    assert _found("models.attention.core:attend")[0] == ["models/attention/core.py:attend"]
    assert _found("models.attention.core")[0] == ["models/attention/core.py:attend"]
    assert "no module `models.attention.cor`" in _refused("models.attention.cor:attend")
    assert "has no Python source" in _refused("math:sqrt")


def test_a_module_of_the_environment_is_named_by_its_path():
    (target,), _ = find_targets(["json.decoder:JSONDecoder"])
    assert Path(target.path).is_absolute()
    assert target.path.endswith("decoder.py")


def test_packages_are_imported_from_above_them(folder):
    package = folder / "models" / "attention"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").write_text("")
    assert package_of("models/attention/core.py") == "models.attention"
    assert import_folders("models/attention/core.py") == (str(folder), str(package))
    assert package_of("decoder.py") == ""
    assert import_folders("decoder.py") == (str(folder),)


def test_a_file_alone_is_searched_for_attention(tmp_path):
    path = tmp_path / "decoder.py"
    path.write_text(
        "def add(a, b):\n    return a + b\n\n\n"
        "def attend(query, keys):\n"
        "    return (query @ keys.T).softmax(-1) @ keys\n"
    )
    targets, _ = find_targets([str(path)])
    assert [target.entry for target in targets] == ["attend"]
    assert [target.entry for target in find_targets([str(tmp_path)])[0]] == ["attend"]


def test_of_several_the_one_that_is_not_there_is_broken_and_the_others_are_found():
    texts = ["decodr.py:attend", "decoder.py:attend", "decoder.py:atend", "no.module:f"]
    found, _ = find_targets(texts, each=True)
    assert [target.name for target in found] == texts
    assert [target.broken is None for target in found] == [False, True, False, False]
    said = [target.broken.why for target in found if target.broken]
    assert "`decodr.py` cannot be read: no such file" in said[0]
    assert "did you mean `decoder.py`?" in said[0]
    assert "`decoder.py` defines no `atend`; did you mean `attend`?" in said[1]
    assert "no module `no`" in said[2]
    assert reread(found[0]) == found[0]


def test_where_none_is_there_the_first_is_refused_even_of_several():
    with pytest.raises(InputError, match=r"`nope\.py` cannot be read"):
        find_targets(["nope.py:f", "neither.py:f"], each=True)


def test_a_broken_link_in_a_folder_cannot_be_read_and_is_not_called_bad_python():
    Path("dangling.py").symlink_to("nowhere")
    found, _ = find_targets(["."], discover=lambda _: ["attend"])
    (broken,) = [target.broken for target in found if target.path == "dangling.py"]
    assert not broken.is_read
    assert broken.why == "`dangling.py` cannot be read: no such file or directory"
