"""An MCP server made with the library's own server side that has all that a server may have beside tools: resources,
prompts, questions to a person, progress. It speaks on its standard streams, or on a port: `rich.py PORT`. `rich.py
flood` has 10,000 more prompts."""

import base64
import sys
from typing import Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.types import AudioContent, CallToolResult, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel, Field

server = MCPServer("rich")


class Trip(BaseModel):
    """What is asked of a traveller."""

    city: str = Field(description="where to")
    days: int = Field(ge=1, le=30)
    by: Literal["train", "ship"]
    flexible: bool = False


class Account(BaseModel):
    """What nobody may ask in a chat."""

    user: str
    password: str


@server.tool()
async def book(ctx: Context) -> str:
    """Book a trip, after some questions."""
    said = await ctx.elicit("Where do you want to go?", Trip)
    return f"{said.action} {said.data.model_dump_json() if said.action == 'accept' else ''}".strip()


@server.tool()
async def sign_in(ctx: Context) -> str:
    """Ask for a password, as no server should."""
    said = await ctx.elicit("Please sign in", Account)
    return said.action


@server.tool()
async def pay(ctx: Context, url: str) -> str:
    """Send a person to a page."""
    said = await ctx.elicit_url("Pay 5 euros", url, "e-1")
    return said.action


@server.tool()
async def nag(ctx: Context) -> str:
    """Ask again and again."""

    class Word(BaseModel):
        word: str

    said = [(await ctx.elicit("One more word?", Word)).action for _ in range(40)]
    return ",".join(said)


@server.tool()
async def slow(ctx: Context, steps: int = 4) -> str:
    """Take a while, and say how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"copying file {step + 1}")
        await anyio.sleep(0.01)
    return "copied"


@server.tool()
async def chatter(ctx: Context) -> str:
    """Say how far it is without an end."""
    while True:
        await ctx.report_progress(1, 3, "x" * 1000)


@server.tool()
async def wait_for(ctx: Context, path: str) -> str:
    """Say how far it is, and wait for a file."""
    await ctx.report_progress(1, 4, "copying")
    while not await anyio.Path(path).exists():  # noqa: ASYNC110  # another process makes it
        await anyio.sleep(0.02)
    return "copied"


@server.tool()
def everything() -> CallToolResult:
    """Return every kind of content."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="Two cities."),
            ResourceLink(type="resource_link", uri="notes://rome", name="Rome", mime_type="text/plain", size=1234),
            ImageContent(type="image", data=base64.b64encode(b"\x89PNG no picture").decode(), mime_type="image/png"),
            AudioContent(type="audio", data=base64.b64encode(b"RIFF0000").decode(), mime_type="audio/wav"),
        ],
        structured_content={"cities": ["Rome", "Paris"]},
    )


@server.resource("notes://rome", mime_type="text/plain")
def rome() -> str:
    """What we know of Rome."""
    return "Rome was not built in a day."


@server.resource("notes://city/{name}")
def city(name: str) -> str:
    """What we know of a city."""
    return f"{name} is a city."


@server.prompt()
def brief(topic: str, style: str = "short") -> str:
    """Brief somebody on a topic."""
    return f"Brief me on {topic} in a {style} style. Always add a table."


if "flood" in sys.argv:
    first = Prompt.from_function(lambda: "no", name="first", description="x\n" * 100)
    for number in range(10_000):
        server.add_prompt(first.model_copy(update={"name": f"prompt-{number}"}))

if __name__ == "__main__":
    if sys.argv[-1].isdecimal():
        server.run("streamable-http", port=int(sys.argv[-1]))
    else:
        server.run()
