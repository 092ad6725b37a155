"""One workspace: reading and writing its files, with what was there before each change."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.agent.workspace import tree
from gateway.agent.workspace.edits import Edit, applied
from gateway.agent.workspace.folders import Turn, WorkspaceSettings
from gateway.agent.workspace.names import names_in, shown
from gateway.agent.workspace.versions import Change, Entry, Index, Place, Record, Versions, joined
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

LARGEST: Final = 50_000_000  # bytes of a file that the tools read
_DAY: Final = 86_400.0
_MB: Final = 1_000_000

FULL = (
    "The workspace is full: it has {size:,} of {most_size:,} MB in {count:,} of {most_count:,} files and folders. "
    "Remove what is not needed any more; the operator can raise tools.workspace."
)


class Undone(Struct, frozen=True, kw_only=True):
    """A turn whose changes were taken back, and the paths of what is not kept, and so stays as it is."""

    record: Record
    left: Sequence[str]


class Workspace(Struct, frozen=True, kw_only=True):
    """The files of a conversation in `folder`. All of its methods wait for the disk: call them in a thread."""

    folder: Path
    versions: Versions
    most_bytes: int
    most_files: int
    keep_days: float

    def read(self, names: Sequence[str], most: int = LARGEST) -> bytes:
        """The content of a file. Raises ToolError."""
        return tree.read(self.folder, names, most)

    def content(self, path: str, than: float) -> bytes | None:
        """The content of the file of this path, unless none is there or it is older `than` this time. Raises ToolError
        for one that cannot be read."""
        try:
            names = names_in(path)
            with tree.entered(self.folder, names[:-1]) as at:
                facts = tree.facts_of(at, tree.actual(at, names[-1])) if names else None
        except (ToolError, OSError):
            return None  # it may be the name of a file that was sent
        return None if facts is None or facts.st_mtime < than else self.read(names)

    @contextmanager
    def changing(self, turn: Turn) -> Iterator[None]:
        """What changes in here is the turn's doing, and nobody else changes anything with a tool."""
        with self.versions.locked():
            self._begin(turn)
            try:
                yield
            finally:
                self.versions.look()

    def begin(self, turn: Turn) -> None:
        """The turn lets a command run. `look` says that it has ended."""
        with self.versions.locked():
            self._begin(turn)

    def look(self) -> str:
        """See what has changed. Returns a sentence where there is too much by now; else ""."""
        with self.versions.locked():
            index = self.versions.look()
        return "" if self.has_room(index, count=0) else self._full(index)

    def _begin(self, turn: Turn) -> None:
        self.versions.begin(turn)
        self.versions.shed(turn.at - self.keep_days * _DAY)

    def shed(self, now: float) -> None:
        """Keep no version any more whose time is over."""
        with self.versions.locked():
            self.versions.shed(now - self.keep_days * _DAY)

    def write(self, turn: Turn, names: Sequence[str], content: bytes) -> bool:
        """Write a file; say whether it is new. Raises ToolError."""
        with self.changing(turn):
            new = self._check_room(names, len(content))
            tree.put(self.folder, names, content, self.versions.aside)
            return new

    def patch(self, turn: Turn, names: Sequence[str], edits: Sequence[Edit]) -> tuple[str, str]:
        """Replace texts in a file, all of them or none; return the text before and after. Raises ToolError."""
        with self.changing(turn):
            content = self.read(names)
            try:
                text = content.decode()
            except UnicodeDecodeError:
                raise ToolError(
                    f"{shown('/'.join(names))} is no UTF-8 text, so nothing in it can be replaced."
                ) from None
            edited = applied(text, edits)
            self._check_room(names, len(edited.encode()))
            tree.put(self.folder, names, edited.encode(), self.versions.aside)
            return text, edited

    def remove(self, turn: Turn, names: Sequence[str]) -> None:
        """Remove a file, a link or an empty folder. Raises ToolError."""
        with self.changing(turn):
            tree.remove(self.folder, names)

    def _check_room(self, names: Sequence[str], size: int) -> bool:
        """Say whether a file would be new. Raises ToolError if there is no room for it."""
        index = self.versions.index()
        there = index.entries.get(os.fsencode("/".join(names)))
        if not self.has_room(index, size - (there.size if there else 0), there is None):
            raise ToolError(self._full(index))
        return there is None

    def has_room(self, index: Index, size: int = 0, count: int = 1) -> bool:
        """Say whether so many bytes and files more may be there."""
        return index.size + size <= self.most_bytes and len(index.entries) + count <= self.most_files

    def _full(self, index: Index) -> str:
        return FULL.format(
            size=index.size // _MB,
            most_size=self.most_bytes // _MB,
            count=len(index.entries),
            most_count=self.most_files,
        )

    # -- what was there before --------------------------------------------------------------------

    def present(self) -> Index:
        """What is there now."""
        with self.versions.locked():
            return self.versions.look()

    def records(self) -> list[Record]:
        """The turns that have changed something, oldest first, without those that were taken back."""
        found = (self.versions.record(each) for each in self.versions.numbers())
        return [each for each in found if each is not None and each.changes and not each.undone]

    def changes(self, sessions: Collection[str]) -> dict[Place, Change]:
        """What changed in these sessions, as one change of each path."""
        changes: dict[Place, Change] = {}
        for record in self.records():
            if record.turn.session in sessions:
                changes = joined(changes, record.changes)
        return changes

    def undo(self, deed: str) -> Undone | None:
        """Take back what the last turn changed. None: no turn is known that changed something. The same `deed` takes
        back one turn, however often it is tried."""
        with self.versions.locked():
            self.versions.look()
            for number in reversed(self.versions.numbers()):
                record = self.versions.record(number)
                if record is not None and record.undone == deed:
                    return Undone(record=record, left=())
                if record is not None and record.changes and not record.undone:
                    left = self._take_back(record)
                    self.versions.look(keep=False)
                    self.versions.store(number, replace(record, undone=deed))
                    return Undone(record=record, left=left)
        return None

    def _take_back(self, record: Record) -> list[str]:
        """Bring each path back to what it was, and return those that could not be."""
        left: list[str] = []
        for path, change in sorted(record.changes.items(), reverse=True):  # what is inside a folder comes before it
            if _goes(change):
                with suppress(ToolError):  # it is gone, or a folder that something else is in
                    tree.remove(self.folder, os.fsdecode(path).split("/"))
        for path, change in sorted(record.changes.items()):
            if change.before is not None and not self._restore(path, change.before):
                left.append(shown(os.fsdecode(path)))
        return left

    def _restore(self, path: Place, before: Entry) -> bool:
        *above, name = names = os.fsdecode(path).split("/")
        try:
            if before.kind == "file":
                content = self.versions.content(before.content)
                if content is None:
                    return False
                tree.put(self.folder, names, content, self.versions.aside, before.mode & 0o777)
            elif before.kind == "folder":
                with tree.entered(self.folder, names, make=True) as at:
                    os.fchmod(at, before.mode & 0o777 | 0o700)
            elif before.kind == "link":
                with tree.entered(self.folder, above, make=True) as at:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=at)
                    os.symlink(os.fsdecode(before.content), name, dir_fd=at)
            else:
                return False
        except (OSError, ToolError):
            return False
        return True


def opened(folder: Path, kept: Path, settings: WorkspaceSettings) -> Workspace:
    """The workspace of a folder, with its versions in another one."""
    versions = Versions(
        workspace=folder,
        folder=kept,
        most_bytes=2 * settings.most_mb * _MB,  # what is there, and as much of what was
        most_files=settings.most_files,
    )
    return Workspace(
        folder=folder,
        versions=versions,
        most_bytes=settings.most_mb * _MB,
        most_files=settings.most_files,
        keep_days=settings.keep_days,
    )


def _goes(change: Change) -> bool:
    """Say whether what is there now must make room: it is new, or was something else."""
    return change.after is not None and (change.before is None or change.before.kind != change.after.kind)
