"""What was in a workspace before each change: an index of its files and of each turn's changes, and the contents of
files by their digest. No command in a sandbox can reach that folder.

The workspace is looked at before the first change of a turn and after each of its calls. Only files whose facts (size,
time of their last change) differ from the index are read again. So it makes no difference whether a tool or a
command changed them. All of it is done under a lock that also other processes respect. Nothing here is needed to read
the workspace: where the index is damaged, a new one is begun.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from gateway.agent.workspace import tree
from gateway.agent.workspace.folders import Turn
from gateway.runtime import posix
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

Kind = Literal["file", "folder", "link", "other"]
Place = bytes  # the path of something in the workspace: a name need not be text

_LARGEST: Final = 50_000_000  # bytes of a file whose versions are kept
_MOST_CHANGES: Final = 100_000  # of all turns together: the index is read for each change
_TICK: Final = 20_000_000  # nanoseconds: within one, a file system may give two changes the same time


class Entry(Struct, frozen=True, array_like=True):
    """Something in the workspace. `changed`: when, in nanoseconds by the file system's clock, which no program can set
    back. `content`: the digest of a file's, or where a link leads; empty: not kept."""

    kind: Kind
    mode: int = 0
    size: int = 0
    changed: int = 0
    content: bytes = b""

    def is_like(self, other: Entry | None) -> bool:
        """Whether a person would call it unchanged."""
        if other is None or (self.kind, self.mode, self.content) != (other.kind, other.mode, other.content):
            return False
        return self.kind != "file" or bool(self.content) or (self.size, self.changed) == (other.size, other.changed)


class Change(Struct, frozen=True, array_like=True):
    """What was at a path before a turn, and what is there after it. None: nothing."""

    before: Entry | None
    after: Entry | None

    @property
    def entries(self) -> list[Entry]:
        """What there was and is."""
        return [each for each in (self.before, self.after) if each is not None]


class Record(Struct, frozen=True, kw_only=True):
    """The changes of a turn. `undone`: the id of the deed that took them back."""

    turn: Turn
    changes: Mapping[Place, Change] = field(default_factory=dict)
    undone: str = ""

    @property
    def counts(self) -> bool:
        """Whether there is something to take back."""
        return bool(self.changes) and not self.undone


class Brought(Struct, frozen=True, array_like=True):
    """Where a file that was sent has been put, and the digest of its content there."""

    path: str
    content: bytes


class Index(Struct, frozen=True, kw_only=True):
    """What was there when it was last looked at. `began`: the file system's clock then. `records`: what turns have
    changed, oldest first. `brought`: the files that were sent, by their refs."""

    entries: Mapping[Place, Entry] = field(default_factory=dict)
    began: int = 0
    records: Sequence[Record] = ()
    brought: Mapping[str, Brought] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.entries.values())

    def everything(self) -> Iterator[tuple[Place, Entry]]:
        """All that is there or was."""
        yield from self.entries.items()
        for record in self.records:
            yield from ((path, each) for path, change in record.changes.items() for each in change.entries)


class Versions(Struct, frozen=True, kw_only=True):
    """The versions of one `workspace`, in `folder`. They have `most_bytes`, and half as much more until the next turn
    begins."""

    workspace: Path
    folder: Path
    most_bytes: int

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make sure that nobody else looks at the workspace, or changes it with a tool. What an earlier process left
        there is cleaned up. Raises ToolError if the disk does not do what it should."""
        try:
            for each in (self.folder, self.aside, self._contents):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock.open("wb") as lock:
                posix.lock(lock)
                for name in os.listdir(self.aside):
                    (self.aside / name).unlink(missing_ok=True)
                yield
        except OSError as error:
            raise ToolError(
                f"The workspace cannot be used, so nothing was changed: {error.strerror}. The operator must look at "
                "the disk of this machine."
            ) from error

    @property
    def aside(self) -> Path:
        """The folder in which files are made before they are renamed into their place."""
        return self.folder / "new"

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @property
    def _contents(self) -> Path:
        return self.folder / "contents"

    # -- the files of it ----------------------------------------------------------------------

    def index(self) -> Index:
        """What was there when it was last looked at."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.msgpack.decode((self.folder / "index").read_bytes(), type=Index)
        return Index()

    def store(self, index: Index) -> Index:
        """Keep an index, in place of the last one."""
        self._write(self.folder / "index", msgspec.msgpack.encode(index))
        return index

    def _write(self, place: Path, content: bytes) -> None:
        file, made = tempfile.mkstemp(dir=self.aside)
        with os.fdopen(file, "wb") as target:
            target.write(content)
        os.rename(made, place)

    def digests(self) -> list[bytes]:
        """The digests of all contents that are kept."""
        return [bytes.fromhex(name) for name in os.listdir(self._contents)]

    def drop(self, digest: bytes) -> None:
        """Keep a content no more."""
        (self._contents / digest.hex()).unlink(missing_ok=True)

    def content(self, digest: bytes) -> bytes | None:
        """The content of this digest; None: it is not kept, or damaged."""
        try:
            content = (self._contents / digest.hex()).read_bytes()
        except OSError:
            return None
        return content if _digest(content) == digest else None

    # -- looking --------------------------------------------------------------------------------

    def begin(self, turn: Turn, before: float) -> Index:
        """A turn is about to change something. What has changed since the last look came from the turn before, or from
        what that one left running. Versions go that only turns `before` a time need."""
        index = self.index()
        if index.records and index.records[-1].turn.id == turn.id:
            return index
        index = self._without_old(self.look(), before)
        return self.store(replace(index, records=[*index.records, Record(turn=turn)]))

    def look(self, turn: Turn | None = None, *, keep: bool = True) -> Index:
        """Look at the workspace, and write what has changed into the newest record, or into one of this `turn`;
        `keep=False`: nowhere, because it is no turn's doing."""
        index = self.index()
        os.utime(self._lock)
        began = self._lock.stat().st_ctime_ns
        room = self.most_bytes * 3 // 2 - sum(_contents_in(index).values())
        entries: dict[Place, Entry] = {}
        for found in tree.walk(self.workspace):
            path, entry = os.fsencode(found.path), _entry(found)
            known = index.entries.get(path)
            if known is not None and _is_same(entry, known, index.began):
                entry = known
            elif entry.kind == "file":
                entry = replace(entry, content=self._keep(found, room))
                room -= entry.size if entry.content else 0
            entries[path] = entry
        records = index.records
        if keep and records and (changes := _between(index.entries, entries)):
            if turn is not None and records[-1].turn.id != turn.id:  # another chat's began while a command ran
                records = [*records, Record(turn=turn)]
            newest = records[-1]
            records = [*records[:-1], replace(newest, changes=joined(newest.changes, changes))]
        return self.store(replace(index, entries=entries, began=began, records=records))

    def _keep(self, found: tree.Found, room: int) -> bytes:
        """Keep the content of a file; returns its digest, empty where it is too large or cannot be read."""
        with suppress(OSError), tree.open_file(found.at, found.name) as (file, facts):
            if facts.st_size <= min(_LARGEST, room):
                content = tree.content(file, _LARGEST)
                place = self._contents / (digest := _digest(content)).hex()
                if not place.exists():
                    self._write(place, content)
                return digest
        return b""

    def shed(self, before: float) -> None:
        """Let go of what turns before this time changed, and of the oldest while too much is kept."""
        self.store(self._without_old(self.index(), before))

    def _without_old(self, index: Index, before: float) -> Index:
        needed = _contents_in(replace(index, records=()))
        size, changes, left = sum(needed.values()), 0, list[Record]()
        for record in reversed(index.records):
            more = {each: of for each, of in _contents_in(Index(records=[record])).items() if each not in needed}
            size, changes = size + sum(more.values()), changes + len(record.changes)
            too_much = left and (size > self.most_bytes or changes > _MOST_CHANGES)
            if record.turn.at < before or too_much:
                break
            needed |= more
            left.insert(0, record)
        for digest in self.digests():
            if digest not in needed:
                self.drop(digest)
        return replace(index, records=left)


def _contents_in(index: Index) -> dict[bytes, int]:
    """The digests of the contents that an index needs, with their sizes."""
    return {each.content: each.size for _, each in index.everything() if each.kind == "file" and each.content}


def _entry(found: tree.Found) -> Entry:
    facts, mode = found.facts, stat.S_IMODE(found.facts.st_mode)
    if found.is_folder:
        return Entry("folder", mode)
    if found.is_file:
        return Entry("file", mode, facts.st_size, facts.st_ctime_ns)
    with suppress(OSError):
        return Entry("link", content=os.fsencode(os.readlink(found.name, dir_fd=found.at)))
    return Entry("other")


def _is_same(now: Entry, known: Entry, began: int) -> bool:
    """Whether a file is the one that was looked at. One that changed as late as the look began may have changed
    again without another time."""
    return now.kind == "file" and now == replace(known, content=b"") and now.changed < began - _TICK


def _between(before: Mapping[Place, Entry], after: Mapping[Place, Entry]) -> dict[Place, Change]:
    changes = {
        path: Change(before.get(path), now)
        for path, now in after.items()
        if (known := before.get(path)) is not now and not now.is_like(known)
    }
    return changes | {path: Change(known, None) for path, known in before.items() if path not in after}


def joined(first: Mapping[Place, Change], second: Mapping[Place, Change]) -> dict[Place, Change]:
    """Two rounds of changes as one; what is back to what it was is left out."""
    joined = dict(first)
    for path, change in second.items():
        joined[path] = Change(joined.get(path, change).before, change.after)
    return {
        path: each
        for path, each in joined.items()
        if each.after is not each.before and not (each.after and each.after.is_like(each.before))
    }


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
