"""What the model reads of an answer of a server's tool."""

from __future__ import annotations

from base64 import b64encode
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.mcp.tools import McpTool
from gateway.runtime.errors import ToolError

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 9


def tool(reads: bool = False, failed: bool = False, pictures: int = 1) -> tuple[Any, Any, Any]:
    """A tool's own part, its server, and what a turn lends it."""
    shown = {"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/png"}
    content = [{"type": "text", "text": "Here."}, *[shown] * pictures]
    server = Mock(ask=AsyncMock(return_value={"content": content, "isError": failed}))
    numbers = iter(range(99))
    add = AsyncMock(side_effect=lambda *_: SimpleNamespace(digest=f"d{next(numbers)}"))
    own = Mock(server=server, own="draw", reads=reads)
    own.name = "demo_draw"
    return own, server, SimpleNamespace(files=Mock(add=add), told=Mock(), ask=None)


async def test_words_and_files_are_told_and_pictures_are_kept_and_shown() -> None:
    own, server, context = tool()
    result: Any = await McpTool.run(own, {"size": 5}, context)
    told, kept = result.text.split("\n\n")
    assert told == "Here."
    assert "picture" in kept
    assert f"{len(PNG)}" in kept
    assert result.pictures == ("d0",)
    assert context.files.add.await_args.args[1:] == ("image/png", PNG)
    method, asked, beside = server.ask.await_args.args
    assert (method, asked) == ("tools/call", {"name": "draw", "arguments": {"size": 5}})
    beside.told("half")
    context.told.assert_called_once_with("using demo draw: half")


async def test_only_the_first_pictures_are_shown() -> None:
    own, _, context = tool(pictures=30)
    result: Any = await McpTool.run(own, {}, context)
    assert context.files.add.await_count == 10
    assert 1 < len(result.pictures) < 10


async def test_what_failed_is_an_error_with_its_words() -> None:
    own, _, context = tool(failed=True)
    with pytest.raises(ToolError, match="Here"):
        await McpTool.run(own, {}, context)
