"""One workspace: reading and writing its files, with what was there before each change."""

from __future__ import annotations

import mimetypes
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.agent.tools.send_file import safe_name
from gateway.agent.workspace import tree
from gateway.agent.workspace.edits import Edit, applied
from gateway.agent.workspace.folders import Turn, WorkspaceSettings
from gateway.agent.workspace.names import names_in, shown
from gateway.agent.workspace.versions import Brought, Change, Entry, Index, Place, Record, Versions, joined
from gateway.domain.chat import KeptFile
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

LARGEST: Final = 50_000_000  # bytes of a file that the tools read
_VERSION: Final = "workspace:"  # begins the `ref` of a content in a workspace, before its digest
_DAY: Final = 86_400.0
_MB: Final = 1_000_000
_BLOCK: Final = 4_096  # bytes by which the disk may round up the size of a file

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
    settings: WorkspaceSettings

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
    def changing(self, turn: Turn) -> Iterator[Index]:
        """What changes inside this block is the turn's doing, and nobody else changes anything with a tool. Yields what
        was there before."""
        with self.versions.locked():
            there = self.versions.begin(turn, self._kept_from(turn.at))
            try:
                yield there
            finally:
                self.versions.look()

    def begin(self, turn: Turn) -> tuple[int, int]:
        """The turn lets a command run. `look` says that it has ended. Returns the bytes that the disk may have given to
        what is there, and the number of files and folders."""
        with self.versions.locked():
            entries = self.versions.begin(turn, self._kept_from(turn.at)).entries
        return sum(each.size + _BLOCK for each in entries.values()), len(entries)

    def look(self, turn: Turn) -> str:
        """See what a command of the turn has changed. Returns a sentence where there is too much by now; else ""."""
        with self.versions.locked():
            index = self.versions.look(turn)
        return "" if self._has_room(index, count=0) else self._full(index)

    def shed(self, now: float) -> None:
        """Keep no version any more whose time is over."""
        with self.versions.locked():
            self.versions.shed(self._kept_from(now))

    def _kept_from(self, now: float) -> float:
        return now - self.settings.keep_days * _DAY

    def write(self, turn: Turn, names: Sequence[str], content: bytes) -> bool:
        """Write a file; say whether it is new. Raises ToolError."""
        with self.changing(turn) as there:
            return self._put(there, names, content)

    def patch(self, turn: Turn, names: Sequence[str], edits: Sequence[Edit]) -> tuple[str, str]:
        """Replace texts in a file, all of them or none; return the text before and after. Raises ToolError."""
        with self.changing(turn) as there:
            try:
                text = self.read(names).decode()
            except UnicodeDecodeError:
                raise ToolError(
                    f"{shown('/'.join(names))} is not UTF-8 text, so nothing in it can be replaced."
                ) from None
            edited = applied(text, edits)
            self._put(there, names, edited.encode())
            return text, edited

    def remove(self, turn: Turn, names: Sequence[str]) -> None:
        """Remove a file, a link or an empty folder. Raises ToolError."""
        with self.changing(turn):
            tree.remove(self.folder, names)

    def _put(self, there: Index, names: Sequence[str], content: bytes) -> bool:
        """Write a file; say whether it is new. Raises ToolError if there is no room for it."""
        before = there.entries.get(os.fsencode("/".join(names)))
        if not self._has_room(there, len(content) - (before.size if before else 0), before is None):
            raise ToolError(self._full(there))
        tree.put(self.folder, names, content, self.versions.aside)
        return before is None

    def _has_room(self, index: Index, size: int = 0, count: int = 1) -> bool:
        """Whether there is room for so many more bytes and files."""
        most = self.settings
        return index.size + size <= most.most_mb * _MB and len(index.entries) + count <= most.most_files

    def _full(self, index: Index) -> str:
        most, count = self.settings, len(index.entries)
        return FULL.format(size=index.size // _MB, most_size=most.most_mb, count=count, most_count=most.most_files)

    # -- what people sent -------------------------------------------------------------------------

    def missing(self, sent: Sequence[KeptFile]) -> list[KeptFile]:
        """Those files that were never put here, and may have room. Who removes one that was has removed it."""
        known = self.versions.index().brought
        return [each for each in sent if each.ref not in known and each.size <= self.settings.most_mb * _MB]

    def bring(self, file: KeptFile, content: bytes) -> bool:
        """Put a file in its place; False if there is no room. It is not a turn's doing, so no turn takes it back. A
        file that is already there is replaced only if nobody has changed it since it was brought in."""
        with self.versions.locked():
            index = self.versions.look()
            if file.ref in index.brought:
                return True
            if not self._has_room(index, len(content)):
                return False
            name = _free(_named(file), index)
            tree.put(self.folder, (name,), content, self.versions.aside)
            index = self.versions.look(keep=False)
            now = index.entries.get(os.fsencode(name))
            brought = Brought(name, now.content if now else b"")
            self.versions.store(replace(index, brought={**index.brought, file.ref: brought}))
        return True

    # -- forgetting -------------------------------------------------------------------------------

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every content that is or was there, by its ref, with its names."""
        with self.versions.locked():
            names = defaultdict[bytes, set[str]](set)
            for path, entry in self.versions.look().everything():
                names[entry.content].add(os.fsdecode(path))
            for digest in self.versions.digests():
                text = tree.text_of(self.versions.content(digest) or b"")
                yield f"{_VERSION}{digest.hex()}", "\n".join([*sorted(names[digest]), text])

    def forget(self, refs: Collection[str], holds: Callable[[str], bool]) -> None:
        """Forget the contents and the sent files of these refs, wherever they are by now, and names that hold words."""
        with self.versions.locked():
            index = self.versions.look()
            gone = {bytes.fromhex(ref.removeprefix(_VERSION)) for ref in refs if ref.startswith(_VERSION)}
            gone |= {each.content for ref, each in index.brought.items() if ref in refs and each.content}

            def goes(path: Place, *entries: Entry) -> bool:
                return not gone.isdisjoint(each.content for each in entries) or holds(os.fsdecode(path))

            for path, entry in sorted(index.entries.items(), reverse=True):  # what is inside a folder comes first
                if goes(path, entry):
                    with suppress(ToolError):  # a folder that something else is in
                        tree.remove(self.folder, os.fsdecode(path).split("/"))
            records = list[Record]()
            for record in index.records:
                left = {path: each for path, each in record.changes.items() if not goes(path, *each.entries)}
                records.append(replace(record, changes=left))
            brought = {ref: each for ref, each in index.brought.items() if ref not in refs and not holds(each.path)}
            self.versions.store(replace(index, records=records, brought=brought))
            self.versions.look(keep=False)
            for digest in gone:
                self.versions.drop(digest)

    # -- what was there before --------------------------------------------------------------------

    def present(self) -> Index:
        """What is there now."""
        with self.versions.locked():
            return self.versions.look()

    def records(self) -> list[Record]:
        """The turns that have changed something, oldest first, without those that were taken back."""
        return [each for each in self.versions.index().records if each.counts]

    def changes(self, sessions: Collection[str]) -> Mapping[Place, Change]:
        """What changed in these sessions, as one change of each path."""
        changes: dict[Place, Change] = {}
        for record in self.records():
            if record.turn.session in sessions:
                changes = joined(changes, record.changes)
        return changes

    def undo(self, deed: str, others: Collection[str] = ()) -> Undone | None:
        """Undo what the last turn changed that is of none of the sessions `others`; None if no such turn is known.
        The same `deed` takes back one turn, however often it is tried."""
        with self.versions.locked():
            records = self.versions.look().records
            mine = [at for at, each in enumerate(records) if each.turn.session not in others]
            at = next((at for at in reversed(mine) if records[at].counts or records[at].undone == deed), -1)
            if at < 0:
                return None
            if (record := records[at]).undone:
                return Undone(record=record, left=())
            left = self._take_back(record)
            index = self.versions.look(keep=False)
            done = [*records[:at], replace(record, undone=deed), *records[at + 1 :]]
            self.versions.store(replace(index, records=done))
            return Undone(record=record, left=left)

    def _take_back(self, record: Record) -> list[str]:
        """Bring each path back to what it was, and return those that could not be."""
        left: list[str] = []
        for path, change in sorted(record.changes.items(), reverse=True):  # what is inside a folder comes before it
            if change.after and (change.before is None or change.before.kind != change.after.kind):
                with suppress(ToolError):  # it is gone, or a folder that something else is in
                    tree.remove(self.folder, os.fsdecode(path).split("/"))
        for path, change in sorted(record.changes.items()):
            if change.before is not None and not self._restore(path, change.before):
                left.append(shown(os.fsdecode(path)))
        return left

    def _restore(self, path: Place, before: Entry) -> bool:
        *above, name = names = os.fsdecode(path).split("/")
        with suppress(OSError, ToolError):
            if before.kind == "file" and (content := self.versions.content(before.content)) is not None:
                tree.put(self.folder, names, content, self.versions.aside, before.mode & 0o777)
                return True
            if before.kind == "folder":
                with tree.entered(self.folder, names, make=True) as at:
                    os.fchmod(at, before.mode & 0o777 | 0o700)
                return True
            if before.kind == "link":
                with tree.entered(self.folder, above, make=True) as at:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=at)
                    os.symlink(os.fsdecode(before.content), name, dir_fd=at)
                return True
        return False


def opened(folder: Path, kept: Path, settings: WorkspaceSettings) -> Workspace:
    """The workspace of a folder, with its versions in another one."""
    most_bytes = 2 * settings.most_mb * _MB  # what is there, and as much of what was
    return Workspace(
        folder=folder, versions=Versions(workspace=folder, folder=kept, most_bytes=most_bytes), settings=settings
    )


def _named(file: KeptFile) -> str:
    ending = mimetypes.guess_extension(file.mime.partition(";")[0].strip()) or ""
    return safe_name(file.name or f"{file.mime.partition('/')[0] or 'file'}-{file.digest[:8]}{ending}")


def _free(name: str, index: Index) -> str:
    """The name, or the first variant of it that is free or taken only by an unchanged file that was brought in."""
    unchanged = {each.path: each.content for each in index.brought.values() if each.content}
    stem, ending = os.path.splitext(name)
    number = 1
    while (there := index.entries.get(os.fsencode(name))) and there.content != unchanged.get(name):
        number += 1
        name = f"{stem}-{number}{ending}"
    return name
