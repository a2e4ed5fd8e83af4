"""The command ``regard``: finds the verb, and turns every error into one clean message."""

import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from regard.errors import RegardError, explain
from regard.version import __version__

__all__ = ["cli", "main", "run"]

# Verb -> where its command lives, and its line in `regard --help`. A module is imported when
# its verb is asked for and not before: torch takes seconds to load.
_VERBS = {
    "demo": ("regard.cli.demo:demo", "Show what attention fixes, and write a report."),
    "train": ("regard.cli.train:train", "Train a model on pairs of texts."),
    "predict": ("regard.cli.predict:predict", "Rewrite texts with a trained model."),
    "eval": ("regard.cli.eval:evaluate", "Score a trained model on pairs of texts."),
}

# Module -> the extra that installs it.
_EXTRAS = {
    "torch": "train",
    "safetensors": "train",
    "rapidfuzz": "train",
    "matplotlib": "plot",
    "jax": "jax",
}
_PIP = "pip install 'regard[{}]'"


class _Verbs(click.Group):
    """A group that imports a command only when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module, _, name = _VERBS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # a wrong table is a defect of ours
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in _VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="regard")
def cli() -> None:
    r"""Attention you can compute, train, check, see and question.

    \b
      regard train g2p --preset quick --out g2p-model
      regard predict g2p-model ATTENTION

    Results go to stdout, talk to stderr. Exit code 0: done; 1: something was found or refused;
    2: it could not be done.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name.
    """
    said = ""
    try:
        if "_REGARD_COMPLETE" in os.environ:  # a shell asks for completions
            cli.main(list(arguments), prog_name="regard")
        # Not cli.main: it has opinions of its own on broken pipes.
        with cli.make_context("regard", list(arguments)) as context:
            answer = cli.invoke(context)
        sys.stdout.flush()
        code = answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code, said = 130, "interrupted"
    except RegardError as error:
        code, said = 2, f"error: {error}"
    except BrokenPipeError:
        # The reader has gone, as `| head` does. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        code, said = 2, _install(error.name, extra)
    except OSError as error:
        code, said = 2, f"error: {error}"
    if said:
        click.echo(said, err=True)
    return code


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        # UTF-8 whatever the locale; an argument that was no text shows as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def _install(module: str | None, extra: str) -> str:
    what = f"error: this verb needs {module}, which is not installed"
    return explain(what, expected=module or "it", got="nothing", help=_PIP.format(extra))
