"""`regard learn`: lists, writes, opens, serves, reads and runs lessons."""

import json
import subprocess
import sys
import threading
import urllib.request

import pytest

from regard.cli import learn as module
from regard.cli.main import run
from regard.learn.catalog import lessons


def test_the_list_has_every_lesson(capsys):
    assert run(["learn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(lessons()) == 12
    assert lines[4].split()[:2] == ["5", "masks"]
    assert run(["learn", "list", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[4]["name"] == "masks"


def test_open_writes_pages_once_and_again(tmp_path, capsys):
    out = tmp_path / "lessons"
    for _ in range(2):
        assert run(["learn", "open", "5", "--no-browser", "--out", str(out)]) == 0
        assert capsys.readouterr().out.strip() == str(out / "05-masks.html")
    assert len(list(out.glob("*.html"))) == len(lessons()) + 2
    assert "regard learn open" in (out / "made-by-regard-learn.txt").read_text()


def test_open_shows_the_page_in_the_browser(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        module.webbrowser, "open", lambda address: opened.append(address) or True
    )
    assert run(["learn", "open", "--out", str(tmp_path / "new")]) == 0
    assert opened == [(tmp_path / "new" / "index.html").resolve().as_uri()]


def test_open_leaves_a_directory_of_others_alone(tmp_path, capsys):
    (tmp_path / "index.html").write_text("mine")
    assert run(["learn", "open", "--no-browser", "--out", str(tmp_path)]) == 2
    assert "pages without their mark" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("mine")
    assert run(["learn", "open", "--no-browser", "--out", str(tmp_path)]) == 2
    assert "it holds notes.txt" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "mine"


def test_an_unknown_lesson_is_one_clean_error(capsys):
    assert run(["learn", "read", "nonsense"]) == 2
    told = capsys.readouterr().err
    assert "names no lesson" in told
    assert "Traceback" not in told


def test_read_shows_a_lesson_without_marks(capsys):
    assert run(["learn", "read", "query"]) == 0
    told = capsys.readouterr().out
    assert "Query, key, value" in told
    assert "{interactive}" not in told
    assert "\\top" not in told


def test_run_says_that_everything_is_the_same(capsys):
    assert run(["learn", "run", "query"]) == 0
    assert capsys.readouterr().out == "06-query-key-value: 4 blocks, all as it is printed\n"


def test_run_ends_with_one_where_something_differs(capsys, monkeypatch):
    monkeypatch.setattr("regard.learn.compare.difference", lambda ran: "line 1 prints")
    assert run(["learn", "run", "query"]) == 1
    assert "4 differ" in capsys.readouterr().out


def test_the_server_gives_pages_and_nothing_else():
    server = module.http.server.ThreadingHTTPServer(("127.0.0.1", 0), module._Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with urllib.request.urlopen(f"{address}/") as answer:
            assert b"<h1>" in answer.read()
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        for path in ("/../catalog.py", "/style.css", "/..%2f..%2fetc"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address + path)
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_that_is_taken_is_said(capsys):
    taken = module.http.server.ThreadingHTTPServer(("127.0.0.1", 0), module._Pages)
    try:
        port = str(taken.server_address[1])
        assert run(["learn", "serve", "--no-browser", "--port", port]) == 2
        assert f"port {port} is not to be had" in capsys.readouterr().err
    finally:
        taken.server_close()


def test_the_pages_are_made_without_a_framework():
    script = (
        "import sys; from regard.cli.main import run; from regard.learn.site import pages; "
        "run(['learn']); list(pages()); "
        "sys.exit(bool({'torch', 'jax', 'matplotlib', 'sphinx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
