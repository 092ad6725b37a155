"""An MCP server made with the library's own server side: `real.py` speaks on its standard streams, `real.py PORT` on
a port of this machine, and `real.py PORT ISSUER` lets in only whom that authorization server knows."""

import base64
import sys
from typing import Any

import anyio
import httpx2
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Verifier:
    """Asks the authorization server about each token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """What it says of a token."""
        async with httpx2.AsyncClient() as client:
            said = (await client.get(f"{sys.argv[2]}/introspect", params={"token": token})).json()
        known = said["active"] and said["resource"] == RESOURCE
        return AccessToken(token=token, client_id="somebody", scopes=[]) if known else None


RESOURCE = f"http://127.0.0.1:{sys.argv[1]}/mcp" if len(sys.argv) > 1 else ""
guarded: dict[str, Any] = {}
if len(sys.argv) > 2:
    auth = AuthSettings(issuer_url=AnyHttpUrl(sys.argv[2]), resource_server_url=AnyHttpUrl(RESOURCE))
    guarded = {"auth": auth, "token_verifier": Verifier()}
server = MCPServer("real", **guarded)
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
