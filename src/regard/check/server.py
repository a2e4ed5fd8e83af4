"""``regard mcp``: the tools over the Model Context Protocol, on standard input and output."""

import functools
import threading
from typing import TYPE_CHECKING, Any

from regard.check.skill import files
from regard.check.tool import TOOLS
from regard.check.tools import Tools
from regard.errors import RegardError
from regard.version import __version__

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server

__all__ = ["make_server", "serve"]


def serve(tools: Tools) -> None:
    """Answer on stdin and stdout until stdin ends."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415, I001 - of the extra `mcp`
    import anyio  # noqa: PLC0415 - comes with it

    async def run() -> None:
        server = make_server(tools)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


def make_server(tools: Tools) -> "Server[Any]":
    """Return a server whose tools are those, one call at a time."""
    import mcp_types as types  # noqa: PLC0415, I001 - of the extra `mcp`
    from mcp.server import Server  # noqa: PLC0415
    import anyio  # noqa: PLC0415 - comes with it

    one_at_a_time = threading.Lock()

    def answer(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        with one_at_a_time:
            try:
                answered = tools.call(name, arguments)
            except RegardError as error:
                said = types.TextContent(type="text", text=str(error))
                return types.CallToolResult(content=[said], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answered.text)],
            structured_content=answered.data,
        )

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_listed())

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = functools.partial(answer, params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(call)

    return Server(
        "regard",
        version=__version__,
        instructions=files()["SKILL.md"].split("---\n", 2)[2].strip(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _listed() -> "list[types.Tool]":
    import mcp_types as types  # noqa: PLC0415 - of the extra `mcp`

    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=not tool.writes,
                destructive_hint=tool.name == "apply_fix",
                idempotent_hint=tool.name != "apply_fix",
                open_world_hint=False,
            ),
        )
        for tool in TOOLS.values()
    ]
