"""Brings the files that were sent in a conversation into its workspace, when somebody first looks there.

A file that is there already is written over only where nobody has changed it since it was brought in: else the new one
gets a number. What was brought in once is not brought again, so who removes a file has removed it.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from gateway.agent.tools.base import Files
from gateway.agent.tools.read_file import LOOKED_AT
from gateway.agent.tools.send_file import safe_name
from gateway.agent.workspace import tree
from gateway.agent.workspace.workspace import Workspace
from gateway.domain.file import KeptFile


class Brought(Struct, frozen=True, array_like=True):
    """Where a file was put, and the digest of its content there."""

    path: str
    content: bytes


class _Book(Struct, kw_only=True):
    """All that were brought in, by their refs."""

    brought: dict[str, Brought] = field(default_factory=dict)


async def bring_in(workspace: Workspace, files: Files, platform: str) -> None:
    """Put what people sent and what is not there yet into the workspace, as far as there is room. Raises ToolError,
    StoreUnavailable."""
    sent = [each for each in await files.listed(LOOKED_AT) if each.ref.startswith(f"{platform}:")]
    if not sent:
        return
    known = (await asyncio.to_thread(_book, workspace)).brought
    for file in reversed(sent):
        if file.ref not in known and file.size <= workspace.most_bytes:
            content = await files.content(file)
            if content is not None and not await asyncio.to_thread(_put, workspace, file, content):
                return


def _put(workspace: Workspace, file: KeptFile, content: bytes) -> bool:
    """Put a file in its place; False: there is no room. It is no turn's doing, so no turn takes it back."""
    versions = workspace.versions
    with versions.locked():
        book, index = _book(workspace), versions.look()
        if file.ref in book.brought:
            return True
        if not workspace.has_room(index, len(content)):
            return False
        there = {os.fsdecode(path): entry.content for path, entry in index.entries.items() if b"/" not in path}
        name = _free(_named(file), there, {each.path: each.content for each in book.brought.values()})
        tree.put(workspace.folder, (name,), content, versions.aside)
        now = versions.look(keep=False).entries.get(os.fsencode(name))
        book.brought[file.ref] = Brought(name, now.content if now else b"")
        versions.write("received", book)
    return True


def _book(workspace: Workspace) -> _Book:
    return workspace.versions.read("received", _Book) or _Book()


def brought(workspace: Workspace) -> Mapping[str, Brought]:
    """The files that were brought in, by their refs."""
    return _book(workspace).brought


def drop(workspace: Workspace, goes: Callable[[str, str], bool]) -> None:
    """Forget that files were brought in, those whose ref and path `goes` says yes to."""
    left = {ref: each for ref, each in brought(workspace).items() if not goes(ref, each.path)}
    workspace.versions.write("received", _Book(brought=left))


def _named(file: KeptFile) -> str:
    ending = mimetypes.guess_extension(file.mime.partition(";")[0].strip()) or ""
    return safe_name(file.name or f"{file.mime.partition('/')[0] or 'file'}-{file.digest[:8]}{ending}")


def _free(name: str, there: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """The name, or the first one made of it that nothing has but an unchanged file that was brought in."""
    stem, ending = os.path.splitext(name)
    names = (name if number == 1 else f"{stem}-{number}{ending}" for number in range(1, len(there) + 3))
    return next(each for each in names if each not in there or (there[each] and there[each] == brought.get(each)))
