"""The tool that has pictures made. It is loaded where a server for that is configured."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import structlog

from gateway.agent.files.kinds import picture_type
from gateway.agent.files.speech import NO_BUDGET, TOO_SLOW
from gateway.agent.tools.base import ToolContext, ToolHost, schema
from gateway.agent.tools.read_file import chosen, in_workspace
from gateway.agent.tools.send_file import PictureSettings, caption_of
from gateway.domain.chat import PICTURE
from gateway.providers.media import PictureServer
from gateway.runtime.errors import MediaFailed, SpendCapReached, ToolError

log = structlog.get_logger(__name__)

_LONGEST: Final = 32_000  # characters: https://platform.openai.com/docs/api-reference/images/create
NONE_MADE: Final = "No picture was made: {reason}."


class MakeImageTool:
    """Makes one picture and shows it. After a crash it is not run again: the picture may be paid for and shown."""

    name = "make_image"
    description = (
        "Makes a picture of what `prompt` describes, or changes one as it says, and shows it to the person. Not for "
        "diagrams and charts, whose words and figures must be right."
    )
    parameters = schema(
        "prompt",
        prompt={"type": "string", "minLength": 1},
        size={"type": "string", "pattern": r"^(auto|\d{2,5}x\d{2,5})$", "description": "Such as 1024x1024."},
        edit={
            "type": "string",
            "description": "The path, name or id of a picture to change, sent here or made before.",
        },
        caption={"type": "string"},
    )
    read_only = False
    idempotent = False
    brings = ""
    shows = True

    def __init__(self, host: ToolHost) -> None:
        self._settings = settings = host.settings(PictureSettings)
        self._server = PictureServer(
            **settings.server, clock=host.clock, does="makes pictures", section="tools.pictures"
        )
        self._workspaces = host.used_workspaces
        self.timeout = settings.timeout + 60.0  # its own limit comes first, and says more

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        caption, prompt = caption_of(arguments), arguments["prompt"]
        if len(prompt) > _LONGEST:
            raise ToolError(f"`prompt` has {len(prompt):,} characters, and {_LONGEST:,} are taken; shorten it.")
        context.files.must_show(0)
        edited = await self._edited(arguments["edit"], context) if arguments.get("edit") else None
        assert context.buying is not None, "no helper has this tool"
        price, seconds = self._settings.usd_per_picture, self._settings.timeout
        try:
            async with context.buying("picture", self._server, price) as paid:
                async with context.clock.limit(seconds):
                    content = await self._server.make(prompt, arguments.get("size") or "", edited)
                paid(price)
        except TimeoutError:
            raise ToolError(NONE_MADE.format(reason=TOO_SLOW.format(seconds=seconds))) from None
        except SpendCapReached:
            raise ToolError(NONE_MADE.format(reason=NO_BUDGET)) from None
        except MediaFailed as error:
            log.warning("no_picture_made", reason=str(error), detail=error.detail)
            raise ToolError(NONE_MADE.format(reason=error)) from None
        if (mime := picture_type(content)) is None:
            raise ToolError(NONE_MADE.format(reason=f"{self._server.who} sent something else"))
        name = f"picture-{sha256(content).hexdigest()[:8]}.{mime.removeprefix('image/').replace('jpeg', 'jpg')}"
        await context.files.send(name, mime, content, caption, kind=PICTURE)
        return f"The picture {name} is shown to the person. To change it, call this with it as `edit`."

    async def _edited(self, wanted: str, context: ToolContext) -> tuple[str, bytes, str]:
        """Name, content and type of a picture of the workspace or the conversation."""
        content = await in_workspace(self._workspaces, wanted, context)
        if content is None:
            content = await context.files.content(await chosen(context.files, wanted)) or b""
        if (mime := picture_type(content)) is None:
            raise ToolError(f"{wanted[:100]!r} is not a picture that is still kept, so it cannot be changed.")
        return f"picture.{mime.removeprefix('image/')}", content, mime
