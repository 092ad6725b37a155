"""Forgetting in a workspace: the files and the earlier versions that hold some words, and those that were sent with
what is forgotten. Call these in a thread."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

from gateway.agent.workspace import tree
from gateway.agent.workspace.looking import text_of
from gateway.agent.workspace.received import brought, drop
from gateway.agent.workspace.versions import Change
from gateway.agent.workspace.workspace import Workspace
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

VERSION: Final = "workspace:"  # begins the `ref` of a content in a workspace, before its digest


def texts(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Each content that is there or was, by its ref, with the names that it has; "" of what is no text."""
    with workspace.versions.locked():
        index, names = workspace.versions.look(), defaultdict[bytes, set[str]](set)
        for path, entry in index.entries.items():
            names[entry.content].add(os.fsdecode(path))
        for record in workspace.records():
            for path, change in record.changes.items():
                for entry in filter(None, (change.before, change.after)):
                    names[entry.content].add(os.fsdecode(path))
        for digest in workspace.versions.digests():
            content = workspace.versions.content(digest) or b""
            yield f"{VERSION}{digest.hex()}", "\n".join([*sorted(names[digest]), text_of(content) or ""])


def forget(workspace: Workspace, refs: Collection[str], holds: Callable[[str], bool]) -> None:
    """Forget the contents and the files of these refs, wherever they are by now, and names that hold the words."""
    versions = workspace.versions
    with versions.locked():
        gone = {bytes.fromhex(ref.removeprefix(VERSION)) for ref in refs if ref.startswith(VERSION)}
        gone |= {each.content for ref, each in brought(workspace).items() if ref in refs and each.content}

        def goes(path: bytes, *contents: bytes) -> bool:
            return not gone.isdisjoint(contents) or holds(os.fsdecode(path))

        for path, entry in sorted(versions.look().entries.items(), reverse=True):  # what is inside a folder comes first
            if goes(path, entry.content):
                with suppress(ToolError):  # a folder that something else is in
                    tree.remove(workspace.folder, os.fsdecode(path).split("/"))
        for number in versions.numbers():
            if (record := versions.record(number)) is not None:
                left = {path: each for path, each in record.changes.items() if not goes(path, *_contents(each))}
                if len(left) != len(record.changes):
                    versions.store(number, replace(record, changes=left))
        drop(workspace, lambda ref, path: ref in refs or holds(path))
        versions.look(keep=False)
        versions.drop(gone)


def _contents(change: Change) -> list[bytes]:
    return [each.content for each in (change.before, change.after) if each is not None]
