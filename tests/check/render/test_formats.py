"""Whole texts of every format, committed beside this file to be read.

`pytest tests/check/render --snapshot-update` writes them anew.
"""

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from regard.check.render import FORMATS, render
from regard.errors import InputError
from regard.version import __version__

ENDINGS = {"json": "json", "sarif": "json", "junit": "xml", "html": "html", "notebook": "html"}


def extension(form: str) -> type[SingleFileSnapshotExtension]:
    """One readable file a snapshot, with the ending of its format."""
    members = {"_write_mode": WriteMode.TEXT, "file_extension": ENDINGS.get(form, "txt")}
    return type("Text", (SingleFileSnapshotExtension,), members)


@pytest.mark.parametrize("name", ["decoder", "mixer", "unloadable", "clean"])
def test_the_full_text_of_one_report(name, request, snapshot):
    text = render("full", [request.getfixturevalue(name)])
    assert text == snapshot(extension_class=extension("full"))


@pytest.mark.parametrize("form", [*FORMATS, "notebook"])
def test_several_reports_in_each_format(form, every, snapshot):
    text = render(form, every, command="regard check decoder.py src good.py")
    text = text.replace(__version__, "VERSION")
    assert text == snapshot(extension_class=extension(form))


@pytest.mark.parametrize("form", [*FORMATS, "notebook"])
def test_a_format_is_the_same_every_time_and_ends_in_one_newline(form, every):
    text = render(form, every)
    assert text == render(form, list(every))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("form", [*FORMATS, "notebook"])
def test_no_format_minds_that_nothing_was_checked(form):
    assert render(form, []) is not None


def test_an_unknown_format_is_refused_with_those_there_are(clean):
    with pytest.raises(InputError) as caught:
        render("xml", [clean])
    assert str(caught.value).splitlines() == [
        "there is no format 'xml'",
        "  expected  full, concise, json, sarif, github, junit, html",
        "  got       'xml'",
        "  help      choose one of them",
    ]
