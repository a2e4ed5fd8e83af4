"""The verbs of ``regard``: finds one, and turns every error into one clean message."""

import errno
import importlib
import os
from collections.abc import Sequence

import click

from regard.cli.example import write_example
from regard.cli.streams import flush, silence
from regard.cli.torchrun import is_to_be_said, report
from regard.errors import RegardError, explain
from regard.files import unwritable
from regard.version import __version__

__all__ = ["cli", "run_verb"]

# Verb -> where its command lives, and its line in `regard --help`. A module is imported when
# its verb is asked for and not before: torch takes seconds to load.
_VERBS = {
    "check": ("regard.cli.check:check", "Find the attention bug that does not crash."),
    "demo": ("regard.cli.demo:demo", "Show what attention fixes, and write a report."),
    "data": ("regard.cli.data:data", "Look at pairs before a model is trained on them."),
    "train": ("regard.cli.train:train", "Train a model on pairs of texts."),
    "predict": ("regard.cli.predict:predict", "Rewrite texts with a trained model."),
    "eval": ("regard.cli.eval:evaluate", "Score a trained model on pairs of texts."),
    "export": ("regard.cli.export:export", "Write a model for NumPy or ONNX, without PyTorch."),
    "align": ("regard.cli.align:align", "Make, score, combine and convert word alignments."),
    "show": ("regard.cli.show:show", "Show alignments: an offline page, heat maps, curves."),
    "learn": ("regard.cli.learn:learn", "Lessons: how attention works, offline."),
    "audit": ("regard.cli.audit:audit", "Say what may be claimed from attention weights."),
    "bench": ("regard.cli.bench:bench", "Measure regard by what others have published."),
    "explain": ("regard.cli.explain:explain_rules", "Explain a rule of `regard check`."),
    "rules": ("regard.cli.rules:list_rules", "List the rules of `regard check`."),
    "skill": ("regard.cli.skill:skill", "Teach a coding assistant to use `regard check`."),
    "mcp": ("regard.cli.mcp:mcp", "Serve `regard check` to coding assistants (MCP, stdio)."),
}

_EXAMPLE = """
regard train g2p --preset quick --out g2p-model
regard predict g2p-model ATTENTION
"""

# Module -> the extra that installs it.
_EXTRAS = {
    "torch": "train",
    "safetensors": "train",
    "rapidfuzz": "train",
    "matplotlib": "plot",
    "jax": "jax",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "mcp": "mcp",
    "mcp_types": "mcp",
}
_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
_REFUSAL = 2
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

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_example(_EXAMPLE, formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in _VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="regard")
def cli() -> None:
    """Attention you can compute, train, check, see and question.

    Results go to stdout, talk to stderr. Exit code 0: done; 1: something was found or refused;
    2: it could not be done.
    """


def run_verb(arguments: Sequence[str]) -> int:
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
        flush()
        code = answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        code = error.exit_code
        report(f"error: {error.format_message()}")
        if is_to_be_said():
            error.show()
    except (click.Abort, KeyboardInterrupt):
        code, said = 130, "interrupted"
    except RegardError as error:
        code, said = _REFUSAL, f"error: {error}"
    except BrokenPipeError:
        # The reader has gone, as `| head` does. Python would complain again at exit.
        silence()
        code = 141
    except (ImportError, OSError, MemoryError, RuntimeError) as error:
        known = _of_the_machine(error)
        if known is None:
            raise
        code, said = _REFUSAL, f"error: {known}"
    if said:
        report(said)
    if said and is_to_be_said():
        click.echo(said, err=True)
    return code


def _of_the_machine(error: Exception) -> str | None:
    """Return the text for an error that is not a defect of ours, or None."""
    if isinstance(error, ModuleNotFoundError):
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        return None if extra is None else _install(error.name, extra)
    if isinstance(error, OSError):
        if error.filename is None and error.errno in _REFUSED:  # no file, so a stream
            silence()
            return unwritable("standard output", error)
        return str(error)
    return _too_much(error) if _is_out_of_memory(error) else None


def _install(module: str | None, extra: str) -> str:
    what = f"this verb needs {module}, which is not installed"
    return explain(what, expected=module or "it", got="nothing", help=_PIP.format(extra))


def _is_out_of_memory(error: Exception) -> bool:
    # torch's allocator raises a plain RuntimeError on the CPU.
    text = str(error)
    return isinstance(error, MemoryError) or (
        "DefaultCPUAllocator" in text or "not enough memory" in text or "out of memory" in text
    )


def _too_much(error: Exception) -> str:
    return explain(
        "there is not enough memory",
        expected="room for the model and what it works on",
        got=(str(error).strip().splitlines() or ["an allocation that failed"])[0][-200:],
        help="choose smaller sizes, a smaller batch or shorter texts",
    )
