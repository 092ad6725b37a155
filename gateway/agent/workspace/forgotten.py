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
from gateway.agent.workspace.workspace import Workspace
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

VERSION: Final = "workspace:"  # begins the `ref` of a content in a workspace, before its digest


def texts(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Each content that is there or was, by its ref, with the names that it has; "" of what is no text."""
    with workspace.versions.locked():
        names = defaultdict[bytes, set[str]](set)
        for path, entry in workspace.versions.look().everything():
            names[entry.content].add(os.fsdecode(path))
        for digest in workspace.versions.digests():
            content = workspace.versions.content(digest) or b""
            yield f"{VERSION}{digest.hex()}", "\n".join([*sorted(names[digest]), text_of(content)])


def forget(workspace: Workspace, refs: Collection[str], holds: Callable[[str], bool]) -> None:
    """Forget the contents and the files of these refs, wherever they are by now, and names that hold the words."""
    versions = workspace.versions
    with versions.locked():
        index = versions.look()
        gone = {bytes.fromhex(ref.removeprefix(VERSION)) for ref in refs if ref.startswith(VERSION)}
        gone |= {each.content for ref, each in index.brought.items() if ref in refs and each.content}

        def goes(path: bytes, *contents: bytes) -> bool:
            return not gone.isdisjoint(contents) or holds(os.fsdecode(path))

        for path, entry in sorted(index.entries.items(), reverse=True):  # what is inside a folder comes first
            if goes(path, entry.content):
                with suppress(ToolError):  # a folder that something else is in
                    tree.remove(workspace.folder, os.fsdecode(path).split("/"))
        records = [
            replace(
                record,
                changes={
                    path: change
                    for path, change in record.changes.items()
                    if not goes(path, *(each.content for each in change.entries))
                },
            )
            for record in index.records
        ]
        brought = {ref: each for ref, each in index.brought.items() if ref not in refs and not holds(each.path)}
        versions.store(replace(index, records=records, brought=brought))
        versions.look(keep=False)
        for digest in gone:
            versions.drop(digest)
