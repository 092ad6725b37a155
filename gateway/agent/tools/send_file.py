"""Sends the person a file: one that the model writes, or one of the conversation."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from pydantic import Field

from gateway.agent.files.kinds import picture_type, video_type
from gateway.agent.tools.base import Tool, ToolContext, ToolHost, schema
from gateway.agent.tools.read_file import chosen, in_workspace
from gateway.agent.workspace.folders import Workspaces
from gateway.domain.chat import encoded
from gateway.domain.settings import Dollars, ServerSettings
from gateway.runtime.errors import ToolError
from gateway.runtime.plugins import imported

_OTHER: Final = "application/octet-stream"
_MOST: Final = 2_000_000  # characters; far more than a model writes in one answer
_LONGEST_CAPTION: Final = 4_000  # characters: a longer text belongs into the answer
_MOST_MORE: Final = 9  # files beside the first
_LONGEST_NAME: Final = 60  # characters, of four bytes at most: file systems take names of 255
_UNSAFE: Final = re.compile(
    r'[\x00-\x1f\x7f<>:"/\\|?*\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+'
)  # of some file system, misleading, or half a character
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file ("Naming Conventions")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


class PictureSettings(ServerSettings):
    """The tool make_image gets pictures from any server that has OpenAI's endpoints
    /images/generations and /images/edits.

        pictures:
          {base_url: "https://api.openai.com/v1", model: gpt-image-1, api_key: "${OPENAI_API_KEY}"}
        pictures: {base_url: "http://127.0.0.1:8080/v1", model: flux.1-schnell}    # a server of your own
    """

    usd_per_picture: Dollars | None = Field(None, description="the price; null: unknown")


class SendFileTool(Struct, frozen=True):
    """Sends files. After a crash it is not run again, because the file may be on its way."""

    name = "send_file"
    description = (
        "Sends the person a text file that you write, wanted so or too long for a message; or `file`: the path, name "
        "or id of one that is here, and `more` such."
    )
    parameters = schema(
        name={"type": "string"},
        content={"type": "string"},
        file={"type": "string"},
        more={"type": "array", "items": {"type": "string"}},
        caption={"type": "string"},
    )
    read_only = False
    idempotent = False
    brings = ""
    shows = True
    timeout = 60.0

    workspaces: Workspaces | None = None

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        caption = caption_of(arguments)
        if arguments.get("file") and not arguments.get("content"):  # some models fill in everything, with nothing
            if len(others := arguments.get("more") or ()) > _MOST_MORE:
                raise ToolError(f"`more` takes {_MOST_MORE} files; send the rest with another call.")
            first = await self._kept(arguments["file"], context, arguments.get("name"))
            files = [first, *[await self._kept(each, context) for each in others]]
        else:
            files = [_written(arguments)]
        await context.files.send_together(files, caption)
        named = " and ".join(f"{name} ({len(data):,} bytes)" for name, _, data in files)
        if len(files) > 1:
            return f"The files {named} are on their way to the person; do not repeat their content."
        return f"The file {named} is on its way to the person; do not repeat its content."

    async def _kept(self, wanted: str, context: ToolContext, called: str | None = None) -> tuple[str, str, bytes]:
        """Name, type and bytes of a file of the workspace or the conversation. Its bytes tell its type."""
        name, content = wanted, await in_workspace(self.workspaces, wanted, context)
        if content is None:
            file = await chosen(context.files, wanted)
            name, content = file.name or "file", await context.files.content(file)
        if not content:
            raise ToolError(f"{wanted[:100]!r} is empty or not kept any more, so it cannot be sent.")
        return safe_name(called or name), picture_type(content) or video_type(content) or _OTHER, content


def _written(arguments: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Name, type and bytes of a file that the model writes."""
    name, content = arguments.get("name"), arguments.get("content")
    if name is None or content is None:
        raise ToolError("Give `name` and `content`; or `file` alone, of one that was sent here.")
    if not content:
        raise ToolError("`content` is empty, and an empty file cannot be sent.")
    if len(content) > _MOST:
        raise ToolError(f"`content` has {len(content):,} characters, and {_MOST:,} can be sent; send it in parts.")
    name = safe_name(name)
    return name, _mime(name), encoded(name, content)


def caption_of(arguments: Mapping[str, Any]) -> str:
    """The caption among a call's arguments. Raises ToolError for one that is too long."""
    caption: str = arguments.get("caption", "")
    if len(caption) > _LONGEST_CAPTION:
        raise ToolError(
            f"`caption` has {len(caption):,} characters, and {_LONGEST_CAPTION:,} can be shown; say the rest in your "
            "answer."
        )
    return caption.strip()


def _mime(name: str) -> str:
    """The type of a text of this name: none that a platform would try to show as a picture or to play."""
    mime = mimetypes.guess_type(name)[0] or "text/plain"
    return "text/plain" if mime != "image/svg+xml" and mime.startswith(("image/", "audio/", "video/")) else mime


def safe_name(name: str) -> str:
    """A name that is valid on every system and cannot leave its folder."""
    base = re.split(r"[/\\]", name.strip())[-1]
    plain = " ".join(_UNSAFE.sub("_", base).split()).strip(". ")
    stem, dot, ending = plain.rpartition(".")
    if len(plain) > _LONGEST_NAME:
        plain = f"{stem[: _LONGEST_NAME - 12]}.{ending[:11]}" if dot else plain[:_LONGEST_NAME]
    return f"_{plain}" if _DEVICE.fullmatch(plain) else plain or "file.txt"


def _make_image(host: ToolHost) -> Tool | None:
    if host.settings(PictureSettings).base_url is None:
        return None
    tool: Tool = imported("gateway.agent.pictures:MakeImageTool")(host)
    return tool


TOOLS = (lambda host: SendFileTool(host.used_workspaces), _make_image)
