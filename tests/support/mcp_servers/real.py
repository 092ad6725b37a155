"""An MCP server made with the library's own server side: `real.py` speaks on its standard streams, `real.py PORT` on
a port of this machine."""

import base64
import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("real")
cancelled: list[int] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=PICTURE, format="png")


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("there is no such thing")


@server.tool()
def much(mb: int) -> str:
    """Return many characters."""
    return "x" * mb * 1024 * 1024


@server.tool()
async def wait() -> str:
    """Wait until somebody cancels it."""
    try:
        await anyio.sleep(1_000)
    except anyio.get_cancelled_exc_class():
        cancelled.append(1)
        raise
    return "waited"


@server.tool()
def given_up() -> int:
    """Count the calls that were cancelled."""
    return len(cancelled)


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool, and say so."""

    def late() -> str:
        """Come late."""
        return "here"

    server.add_tool(late)
    await ctx.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
