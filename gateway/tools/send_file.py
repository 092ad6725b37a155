"""Sends the person a file that the model has written."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import ToolError
from gateway.tools.base import ToolContext

_MOST: Final = 2_000_000  # characters; far more than a model writes in one answer
_LONGEST_NAME: Final = 80
_UNSAFE: Final = re.compile(
    r'[\x00-\x1f\x7f<>:"/\\|?*\u2028\u2029\u202a-\u202e\u2066-\u2069]+'
)  # of some file system, or misleading


class SendFileTool:
    """One text file into the chat. After a crash it is not run again: the file may be on its way."""

    name = "send_file"
    description = (
        "Sends the person a text file. Use it for what they want as a file, or what is too long for a message."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "With an ending that says what it is, such as notes.md."},
            "content": {"type": "string"},
        },
        "required": ["name", "content"],
        "additionalProperties": False,
    }
    read_only = False
    idempotent = False
    timeout = 60.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """What was sent, under which name."""
        name, content = arguments.get("name"), arguments.get("content")
        if not isinstance(name, str) or not isinstance(content, str):
            raise ToolError("`name` and `content` must be texts.")
        if not content:
            raise ToolError("`content` is empty, and an empty file cannot be sent.")
        if len(content) > _MOST:
            raise ToolError(f"`content` has {len(content):,} characters, and {_MOST:,} can be sent; send it in parts.")
        name = safe_name(name)
        mime = mimetypes.guess_type(name)[0] or "text/plain"
        data = content.encode("utf-8", "replace")
        await context.files.send(name, mime, data)
        return f"The file {name} ({len(data):,} bytes) is on its way to the person; do not repeat its content."


def safe_name(name: str) -> str:
    """A name that is one on every system and cannot leave its folder."""
    base = re.split(r"[/\\]", name.strip())[-1]
    plain = " ".join(_UNSAFE.sub("_", base).split()).strip(". ")
    stem, dot, ending = plain.rpartition(".")
    if len(plain) > _LONGEST_NAME:
        plain = f"{stem[: _LONGEST_NAME - 12]}.{ending[:11]}" if dot else plain[:_LONGEST_NAME]
    return plain or "file.txt"
