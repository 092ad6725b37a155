"""What is in a workspace and what changed there, for people. Call these in a thread."""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import islice
from typing import Final, Literal

from gateway.agent.workspace.edits import changed_lines, diff
from gateway.agent.workspace.names import shown
from gateway.agent.workspace.tree import visible
from gateway.agent.workspace.versions import Change, Entry
from gateway.agent.workspace.workspace import Workspace
from gateway.domain.views import FileChange, FileLine, WorkspaceView

_LARGEST: Final = 1_000_000  # bytes of a text whose lines are compared
_MOST: Final = 200  # changes that are looked into


def report(workspace: Workspace, sessions: Collection[str], most: int) -> WorkspaceView:
    """What is there, and what changed in these sessions."""
    index = workspace.present()
    changes = sorted(workspace.changes(sessions).items())
    files = (each for each, is_out in visible(workspace.folder, ()) if each.is_file and not is_out)
    return WorkspaceView(
        files=[FileLine(path=shown(each.path), size=each.facts.st_size) for each in islice(files, most)],
        changes=[
            _changed(workspace, shown(os.fsdecode(path)), change)
            for path, change in changes[:_MOST]
            if any(each.kind == "file" for each in change.entries)
        ],
        size=index.size,
        count=sum(each.kind == "file" for each in index.entries.values()),
    )


def _changed(workspace: Workspace, path: str, change: Change) -> FileChange:
    how: Literal["new", "changed", "removed"] = "changed"
    if change.before is None or change.after is None:
        how = "new" if change.before is None else "removed"
    old, new = _text(workspace, change.before), _text(workspace, change.after)
    if old is None or new is None:
        return FileChange(path=path, how=how)
    lines = changed_lines(old, new)
    came, went = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return FileChange(path=path, how=how, came=came, went=went, diff=diff(old, new, path))


def _text(workspace: Workspace, entry: Entry | None) -> str | None:
    """The text of a version; None if it is none, was not kept, or is too long to compare."""
    if entry is None:
        return ""
    if entry.kind != "file" or entry.size > _LARGEST:
        return None
    content = workspace.versions.content(entry.content)
    try:
        return None if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
