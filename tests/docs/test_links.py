"""The checker of the site's links finds what is wrong, and nothing else."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _broken(folder):
    spec = importlib.util.spec_from_file_location("links", ROOT / "docs" / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.broken(folder))


def test_links_between_pages_and_to_places_in_them_are_followed(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.html").write_text('<p id="here"><a href="../a.html">a</a>')
    page = tmp_path / "a.html"
    page.write_text('<a href="b/c.html#here">c</a><a href="https://example.org">x</a>')
    assert _broken(tmp_path) == []
    page.write_text('<a href="b/c.html#there">c</a><a href="b/d.html">d</a>')
    assert _broken(tmp_path) == [
        "a.html links to b/c.html#there, which has no such place",
        "a.html links to b/d.html, which is not there",
    ]


def test_what_a_page_loads_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<script src="https://example.org/x.js"></script><link rel="canonical" href="https://e">'
    )
    (tmp_path / "a.css").write_text("@import url(https://example.org/f.css);")
    assert _broken(tmp_path) == [
        "a.html loads https://example.org/x.js",
        "a.css loads https://example.org/f.css",
    ]
