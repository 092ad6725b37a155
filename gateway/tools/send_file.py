"""Sends the person a file that the model has written."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import ToolError
from gateway.tools.base import ToolContext

_MOST: Final = 2_000_000  # characters; far more than a model writes in one answer
_LONGEST_NAME: Final = 60  # characters, of four bytes at most: file systems take names of 255
_UNSAFE: Final = re.compile(
    r'[\x00-\x1f\x7f<>:"/\\|?*\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+'
)  # of some file system, misleading, or half a character
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file ("Naming Conventions")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


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
        mime = _mime(name)
        data = content.encode("utf-8", "replace")
        await context.files.send(name, mime, data)
        return f"The file {name} ({len(data):,} bytes) is on its way to the person; do not repeat its content."


def _mime(name: str) -> str:
    """What a text of this name is: nothing that a platform would try to show as a picture or to play."""
    mime = mimetypes.guess_type(name)[0] or "text/plain"
    return "text/plain" if mime != "image/svg+xml" and mime.startswith(("image/", "audio/", "video/")) else mime


def safe_name(name: str) -> str:
    """A name that is one on every system and cannot leave its folder."""
    base = re.split(r"[/\\]", name.strip())[-1]
    plain = " ".join(_UNSAFE.sub("_", base).split()).strip(". ")
    stem, dot, ending = plain.rpartition(".")
    if len(plain) > _LONGEST_NAME:
        plain = f"{stem[: _LONGEST_NAME - 12]}.{ending[:11]}" if dot else plain[:_LONGEST_NAME]
    return f"_{plain}" if _DEVICE.fullmatch(plain) else plain or "file.txt"
