"""``regard mcp``: the tools of ``regard check`` for coding assistants."""

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import Number

__all__ = ["mcp"]

_EXAMPLE = """
claude mcp add regard -- regard mcp
regard mcp
"""


@click.command("mcp", cls=ExampleCommand, example=_EXAMPLE)
@click.option(
    "--time",
    "seconds",
    type=Number(float, 0.1, 86_400),
    default=30.0,
    show_default=True,
    help="Seconds that a target may take.",
)
@click.option(
    "--memory",
    type=Number(int, 64, 2**20),
    default=4096,
    show_default=True,
    help="MiB that a target may take.",
)
def mcp(*, seconds: float, memory: int) -> int:
    """Serve `regard check` to a coding assistant, over MCP on stdin and stdout.

    Four tools: check and explain only read; apply_fix and write_test check the file again and
    write below the folder that the server was started in.
    """
    from regard.check.server import serve
    from regard.check.settings import Limits
    from regard.check.tools import Tools
    from regard.files import write_atomically

    serve(Tools(write_atomically, limits=Limits(seconds, memory)))
    return 0
