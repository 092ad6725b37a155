"""The tools of a conversation's workspace. What they do is loaded when one of them first runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from gateway.agent.tools.base import ToolContext, ToolHost, schema
from gateway.agent.workspace.folders import Workspaces
from gateway.runtime.sandbox import Limits

_WORK: Final = "gateway.agent.workspace.calls"
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_EDIT: Final = {"type": "object", "properties": {"old": _TEXT, "new": _TEXT}}


class WorkspaceTool(Struct, frozen=True, kw_only=True):
    """One of them. To write a file twice has the effect of once. A patch is not repeated after a crash: what it looked
    for may be replaced already."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    workspaces: Workspaces
    read_only: bool
    idempotent: bool = True
    brings: str
    recalls: bool = True  # a file's words are found in the file
    timeout: float = 60.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        said: str = await import_module(_WORK).call(self.name, self.workspaces, arguments, context)
        return said


def _tool(host: ToolHost, **facts: Any) -> WorkspaceTool | None:
    return None if host.used_workspaces is None else WorkspaceTool(workspaces=host.used_workspaces, **facts)


list_files = partial(
    _tool,
    name="list_files",
    description="Lists the workspace, with the files sent here.",
    parameters=schema(path=_TEXT, offset=_NUMBER),
    read_only=True,
    brings="files of the workspace",
)
search_files = partial(
    _tool,
    name="search_files",
    description="Finds files of the workspace, and lines in them, by `words` or a regular expression.",
    parameters=schema(words=_TEXT, pattern=_TEXT, path=_TEXT, offset=_NUMBER),
    read_only=True,
    brings="files of the workspace",
)
write_file = partial(
    _tool,
    name="write_file",
    description="Writes or removes a file of the workspace.",
    parameters=schema("path", path=_TEXT, content=_TEXT, remove={"type": "boolean"}),
    read_only=False,
    brings="",
)
patch = partial(
    _tool,
    name="patch",
    description="Replaces texts in a file of the workspace, all or none; each `old` must be there exactly once.",
    parameters=schema("path", "edits", path=_TEXT, edits={"type": "array", "items": _EDIT}),
    read_only=False,
    idempotent=False,
    brings="the file {path}",
)


async def before_command(workspaces: Workspaces, context: ToolContext) -> Limits:
    """Bring in what was sent, and look at the workspace that a command is about to change. Returns what it may hold:
    one that holds too much already may shrink, and not grow."""
    workspace = await import_module(_WORK).opened(workspaces, context.session.key, context.files)
    taken, files = await asyncio.to_thread(workspace.begin, context.changes)
    most = workspaces.settings
    return Limits(folder=max(most.most_mb * 1_000_000, taken), files=max(most.most_files, files))


async def after_command(workspaces: Workspaces, context: ToolContext) -> str:
    """See what a command has changed. Returns a sentence where the workspace is too full by now; else ""."""
    return await asyncio.to_thread(workspaces.of(context.session.key).look, context.changes)


TOOLS = (list_files, search_files, write_file, patch)
