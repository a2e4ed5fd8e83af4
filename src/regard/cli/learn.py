"""``regard learn``: the lessons, in the browser or in the terminal, without a network."""

import functools
import http.server
import os
import webbrowser
from pathlib import Path
from typing import Any

import click

from regard.cli.example import ExampleCommand, write_example
from regard.cli.options import Number, Where
from regard.cli.quiz import quiz
from regard.cli.stop import before_stopping
from regard.cli.streams import say
from regard.errors import InputError, explain

__all__ = ["learn"]

_EXAMPLE = """
regard learn                      # lists the lessons
regard learn open masks           # in the browser
regard learn read masks           # in the terminal
regard learn run masks            # does it print the same on this machine?
regard learn quiz masks           # ten questions
"""
_OWN = "made-by-regard-learn.txt"


class _Group(click.Group):
    """A group whose help begins with a working example."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_example(_EXAMPLE, formatter)
        super().format_help(ctx, formatter)


@click.group(cls=_Group, invoke_without_command=True)
@click.pass_context
def learn(ctx: click.Context) -> int:
    """Lessons on attention, from the bottleneck to the transformer.

    Every block of code in them was run, every number below one is what it printed, and every
    picture was drawn by it. The pages open offline and make no request.
    """
    return 0 if ctx.invoked_subcommand else _list("text")


@learn.command("list", cls=ExampleCommand, example="regard learn list --format json")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def list_lessons(*, form: str) -> int:
    """List the lessons."""
    return _list(form)


learn.add_command(quiz)


@learn.command("open", cls=ExampleCommand, example="regard learn open masks --out lessons")
@click.argument("name", required=False)
@click.option("--out", default="regard-learn", show_default=True, type=Where(), metavar="DIR")
@click.option("--no-browser", is_flag=True, help="Only write the pages.")
def open_lesson(*, name: str | None, out: str, no_browser: bool) -> int:
    """Write the pages to DIR and open lesson NAME, or their list.

    Pages of an earlier call are written over; a directory that holds anything else is left
    alone.
    """
    from regard.learn.catalog import find
    from regard.learn.site import INDEX

    wanted = f"{find(name).stem}.html" if name else INDEX
    folder = Path(out)
    _write_pages(folder)
    path = folder.resolve() / wanted
    say(str(folder / wanted))
    if not no_browser and not webbrowser.open(path.as_uri()):
        click.echo("no browser was found; open the file yourself", err=True)
    return 0


@learn.command("read", cls=ExampleCommand, example="regard learn read masks | less -R")
@click.argument("name")
def read(*, name: str) -> int:
    """Show lesson NAME in the terminal."""
    import io
    import sys

    from rich.console import Console
    from rich.markdown import Markdown

    from regard.learn.catalog import find
    from regard.learn.plain import plain

    text = io.StringIO()
    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = None if terminal else 96
    Console(file=text, force_terminal=terminal, width=width).print(
        Markdown(plain(find(name).text))
    )
    say(text.getvalue().rstrip("\n"))
    return 0


@learn.command("run", cls=ExampleCommand, example="regard learn run additive luong")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def run_lessons(*, names: tuple[str, ...]) -> int:
    """Run the code of lessons, and say whether it prints what stands in them.

    Exit code 1 where something differs.
    """
    from regard.cli.main import run
    from regard.learn.catalog import find
    from regard.learn.compare import difference
    from regard.learn.execute import execute

    found = [find(name) for name in names]
    differing = 0
    for lesson in found:
        blocks = differences = 0
        for ran in execute(lesson.path.read_text(encoding="utf-8"), run=run):
            blocks += 1
            said = difference(ran)
            differences += bool(said)
            if said:
                say(f"{lesson.stem}, {said}")
        same = "all as it is printed" if not differences else f"{differences} differ"
        say(f"{lesson.stem}: {blocks} blocks, {same}")
        differing += differences
    return int(differing > 0)


@learn.command("serve", cls=ExampleCommand, example="regard learn serve --port 8000")
@click.option("--port", type=Number(int, 0, 65535), default=0, help="0 takes a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def serve(*, port: int, no_browser: bool) -> int:
    """Serve the lessons at an address of this machine until Ctrl-C."""
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _Pages)
    except OSError as error:
        raise InputError(
            explain(
                f"learn serve: port {port} is not to be had",
                expected="a free port",
                got=str(error),
                help="leave out --port, or name another",
            )
        ) from None
    with server, before_stopping(server.server_close):
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        say(address)
        if not no_browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


class _Pages(http.server.BaseHTTPRequestHandler):
    """Makes a page when it is asked for."""

    def do_GET(self) -> None:
        from regard.learn.site import INDEX, names

        name = self.path.partition("?")[0].lstrip("/") or INDEX
        if name not in names():
            self.send_error(404)
            return
        data = _rendered(name)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal shows the address."""


@functools.cache
def _rendered(name: str) -> bytes:
    from regard.learn.site import rendered

    return rendered(name).encode("utf-8")


def _write_pages(folder: Path) -> None:
    from regard.files import unwritable, write_atomically
    from regard.learn.site import names
    from regard.version import __version__

    if folder.is_dir():
        strange = sorted(set(os.listdir(folder)) - {*names(), _OWN})
        mine = (folder / _OWN).is_file() or not os.listdir(folder)
        if strange or not mine:
            raise InputError(
                explain(
                    f"learn open: `{folder}` is not a directory of lessons",
                    expected="a new directory, or one that this command made",
                    got=f"it holds {strange[0]}" if strange else "pages without their mark",
                    help="name another with --out",
                )
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(unwritable(folder, error)) from None
    write_atomically(folder / _OWN, f"regard {__version__}: regard learn open\n".encode())
    for name in names():
        write_atomically(folder / name, _rendered(name))


def _list(form: str) -> int:
    from regard.learn.catalog import lessons
    from regard.learn.plain import plain

    if form == "json":
        import json

        rows = [
            {
                "number": each.number,
                "name": each.name,
                "title": each.title,
                "summary": each.summary,
                "minutes": each.minutes,
            }
            for each in lessons()
        ]
        say(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max(len(each.name) for each in lessons())
    for each in lessons():
        say(f"{each.number:>2}  {each.name:<{width}}  {plain(each.title)}")
    click.echo(
        "\nregard learn open [NAME]   in the browser\n"
        "regard learn read NAME     in the terminal\n"
        "regard learn run NAME      runs its code here\n"
        "regard learn quiz [NAME]   asks you",
        err=True,
    )
    return 0
