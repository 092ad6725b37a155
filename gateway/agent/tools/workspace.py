"""The tools of a conversation's workspace. What they do is loaded when one of them first runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

from gateway.agent.tools.base import Tool, ToolContext, ToolHost, schema
from gateway.agent.workspace.folders import Workspaces

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


class ListFilesTool:
    """Shows what is in the workspace, or in a folder of it."""

    name = "list_files"
    description = "Lists the workspace, with the files sent here."
    parameters = schema(path=_TEXT, offset=_NUMBER)
    read_only = True
    idempotent = True
    brings = "files of the workspace"
    timeout = 30.0

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """A page of files and folders, each with its size."""
        return await _done(self.name, self._workspaces, arguments, context)


class SearchFilesTool:
    """Finds files by their names, and lines in them."""

    name = "search_files"
    description = "Finds files of the workspace, and lines in them, by `words` or a regular expression."
    parameters = schema(words=_TEXT, pattern=_TEXT, path=_TEXT, offset=_NUMBER)
    read_only = True
    idempotent = True
    brings = "files of the workspace"
    recalls = True  # a file's words are found in the file
    timeout = 30.0

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """A page of the files whose names match, and of the lines."""
        return await _done(self.name, self._workspaces, arguments, context)


class WriteFileTool:
    """Writes one file, or removes it. Done twice, it has the same effect."""

    name = "write_file"
    description = "Writes or removes a file of the workspace."
    parameters = schema("path", path=_TEXT, content=_TEXT, remove={"type": "boolean"})
    read_only = False
    idempotent = True
    brings = ""
    timeout = 60.0

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """What was done."""
        return await _done(self.name, self._workspaces, arguments, context)


class PatchTool:
    """Replaces texts in one file. After a crash it is not run again: what it looked for may be replaced already."""

    name = "patch"
    description = "Replaces texts in a file of the workspace, all or none; each `old` must be there exactly once."
    parameters = schema(
        "path",
        "edits",
        path=_TEXT,
        edits={"type": "array", "items": {"type": "object", "properties": {"old": _TEXT, "new": _TEXT}}},
    )
    read_only = False
    idempotent = False
    brings = "the file {path}"
    timeout = 60.0

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """A unified diff."""
        return await _done(self.name, self._workspaces, arguments, context)


async def before_command(workspaces: Workspaces, context: ToolContext) -> None:
    """Bring in what was sent, and look at the workspace that a command is about to change."""
    await import_module("gateway.agent.workspace.calls").begin_command(workspaces, context)


async def after_command(workspaces: Workspaces, context: ToolContext) -> str:
    """See what a command has changed. Returns a sentence where the workspace is too full by now; else ""."""
    return await asyncio.to_thread(workspaces.of(context.session.key).look)


async def _done(name: str, workspaces: Workspaces, arguments: Mapping[str, Any], context: ToolContext) -> str:
    said: str = await getattr(import_module("gateway.agent.workspace.calls"), name)(workspaces, arguments, context)
    return said


def _made(kind: Callable[[Workspaces], Tool], host: ToolHost) -> Tool | None:
    return None if host.used_workspaces is None else kind(host.used_workspaces)


TOOLS = tuple(partial(_made, kind) for kind in (ListFilesTool, SearchFilesTool, WriteFileTool, PatchTool))
