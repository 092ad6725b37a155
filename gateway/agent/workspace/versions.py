"""What was in a workspace before each change: an index of what is there, the changes of each turn, and the contents of
files by their digest, in a folder that no command in a sandbox can reach.

The workspace is looked at before the first change of a turn and after each of its calls. Only files whose facts (size,
time of their last change, number) differ from the index are read again. So it makes no difference whether a tool or a
command changed them. All of it is done under a lock that also other processes respect. Nothing here is needed to read
the workspace: where the index is damaged, a new one is begun.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from gateway.agent.workspace import tree
from gateway.agent.workspace.folders import Turn
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace

Kind = Literal["file", "folder", "link", "other"]
Place = bytes  # the path of something in the workspace: a name need not be text
T = TypeVar("T", bound=Struct)

_LARGEST: Final = 50_000_000  # bytes of a file whose versions are kept
_TICK: Final = 20_000_000  # nanoseconds: within one, a file system may give two changes the same time


class Entry(Struct, frozen=True, array_like=True):
    """Something in the workspace. `changed`: when, in nanoseconds by the file system's clock, which no program can set
    back. `content`: the digest of a file's, or where a link leads; empty: not kept."""

    kind: Kind
    mode: int
    size: int = 0
    changed: int = 0
    number: int = 0
    content: bytes = b""

    def is_like(self, other: Entry | None) -> bool:
        """Say whether a person would call it unchanged."""
        if other is None or (self.kind, self.mode, self.content) != (other.kind, other.mode, other.content):
            return False
        return self.kind != "file" or bool(self.content) or (self.size, self.changed) == (other.size, other.changed)


class Change(Struct, frozen=True, array_like=True):
    """What was at a path before a turn, and what is there after it. None: nothing."""

    before: Entry | None
    after: Entry | None


class Record(Struct, frozen=True, kw_only=True):
    """The changes of a turn. `undone`: the id of the deed that took them back."""

    turn: Turn
    changes: Mapping[Place, Change] = field(default_factory=dict)
    undone: str = ""


class Index(Struct, frozen=True, kw_only=True):
    """What was there when it was last looked at. `began`: the file system's clock then. `kept`: bytes of all contents
    that are kept. `whole`: everything was seen."""

    entries: Mapping[Place, Entry] = field(default_factory=dict)
    began: int = 0
    kept: int = 0
    whole: bool = True

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.entries.values())


class Versions(Struct, frozen=True, kw_only=True):
    """The versions of one `workspace`, in `folder`. They have `most_bytes`, and half as much more until the next turn
    begins; the workspace may hold `most_files`."""

    workspace: Path
    folder: Path
    most_bytes: int
    most_files: int

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else looks at the workspace or changes it with a tool. Made by an earlier process, what lies about is
        nobody's any more. Raises ToolError where the disk does not do what it should."""
        try:
            for each in (self.folder, self.aside, self._contents, self._turns):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.folder / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
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
    def _contents(self) -> Path:
        return self.folder / "contents"

    @property
    def _turns(self) -> Path:
        return self.folder / "turns"

    # -- the files of it ----------------------------------------------------------------------

    def index(self) -> Index:
        """What was there when it was last looked at."""
        return self.read("index", Index) or Index()

    def numbers(self) -> list[int]:
        """The numbers of all records, oldest first."""
        with suppress(FileNotFoundError):
            return sorted(int(name) for name in os.listdir(self._turns) if name.isdigit())
        return []

    def record(self, number: int) -> Record | None:
        """The record of this number; None: it is gone or damaged."""
        return self.read(f"turns/{number}", Record)

    def newest(self) -> tuple[int, Record] | None:
        """The newest record."""
        for number in reversed(self.numbers()):
            if (record := self.record(number)) is not None:
                return number, record
        return None

    def store(self, number: int, record: Record) -> None:
        """Keep a record under a number."""
        self.write(f"turns/{number}", record)

    def digests(self) -> list[bytes]:
        """The digests of all contents that are kept."""
        return [bytes.fromhex(name) for name in os.listdir(self._contents)]

    def drop(self, digests: Iterable[bytes]) -> None:
        """Keep these contents no more."""
        for digest in digests:
            self._place(digest).unlink(missing_ok=True)

    def content(self, digest: bytes) -> bytes | None:
        """The content of this digest; None: it is not kept, or damaged."""
        try:
            content = self._place(digest).read_bytes()
        except OSError:
            return None
        return content if _digest(content) == digest else None

    def _place(self, digest: bytes) -> Path:
        return self._contents / digest.hex()

    def read(self, name: str, kind: type[T]) -> T | None:
        """A file of the folder; None: it is not there, or damaged."""
        try:
            return msgspec.msgpack.decode((self.folder / name).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def write(self, name: str, value: Struct) -> None:
        """Write a file of the folder in one step."""
        file, made = tempfile.mkstemp(dir=self.aside)
        with os.fdopen(file, "wb") as target:
            target.write(msgspec.msgpack.encode(value))
        os.rename(made, self.folder / name)

    # -- looking --------------------------------------------------------------------------------

    def begin(self, turn: Turn) -> None:
        """A turn is about to change something. What has changed since the last look came from the turn before, or from
        what that one left running."""
        newest = self.newest()
        if newest is not None and newest[1].turn.id == turn.id:
            return
        self.look()
        self.store((newest[0] if newest else 0) + 1, Record(turn=turn))

    def look(self, *, keep: bool = True) -> Index:
        """Look at the workspace, and write what has changed into the newest record; `keep=False`: nowhere, because it
        is no turn's doing."""
        before = self.index()
        after = self._looked(before)
        changes = _between(before.entries, after.entries)
        newest = self.newest() if changes and keep and before.whole and after.whole else None
        if newest is not None:  # before the index: whoever is killed in between sees the same changes again
            number, record = newest
            self.store(number, replace(record, changes=joined(record.changes, changes)))
        self.write("index", after)
        return after

    def _looked(self, before: Index) -> Index:
        entries: dict[Place, Entry] = {}
        kept, whole = before.kept, True
        probe, name = tempfile.mkstemp(dir=self.aside)
        began = os.fstat(probe).st_ctime_ns
        os.close(probe)
        os.unlink(name)
        for found in tree.walk(self.workspace):
            if len(entries) >= 2 * self.most_files:
                whole = False
                break
            path = os.fsencode(found.path)
            entry = _entry(found)
            known = before.entries.get(path)
            if entry.kind == "file" and known is not None and _is_same(entry, known, before.began):
                entry = known
            elif entry.kind == "file":
                digest, new = self._keep(found, self.most_bytes * 3 // 2 - kept)
                kept += new
                entry = Entry(entry.kind, entry.mode, entry.size, entry.changed, entry.number, digest)
            entries[path] = entry
        return Index(entries=entries, began=began, kept=kept, whole=whole)

    def _keep(self, found: tree.Found, room: int) -> tuple[bytes, int]:
        """Keep the content of a file. Returns its digest, empty where it is not kept, and the bytes that are new."""
        try:
            with tree.open_file(found.at, found.name) as (source, facts):
                if facts.st_size > min(_LARGEST, room):
                    return b"", 0
                return self._keep_all(tree.pieces(source, _LARGEST))
        except OSError:
            return b"", 0

    def _keep_all(self, content: Iterable[bytes]) -> tuple[bytes, int]:
        digest, size = blake2b(digest_size=16), 0
        file, made = tempfile.mkstemp(dir=self.aside)
        with os.fdopen(file, "wb") as target:
            for piece in content:
                digest.update(piece)
                size += target.write(piece)
        place = self._place(digest.digest())
        if place.exists():
            os.unlink(made)
            return digest.digest(), 0
        os.rename(made, place)
        return digest.digest(), size

    # -- going ----------------------------------------------------------------------------------

    def shed(self, before: float) -> None:
        """Let go of what turns before this time changed, and of the oldest while too much is kept."""
        numbers = self.numbers()
        old = list(takewhile(lambda each: (record := self.record(each)) is None or record.turn.at < before, numbers))
        if old:
            self._drop(old)
        left = numbers[len(old) : -1]
        while self.index().kept > self.most_bytes and left:
            half = left[: (len(left) + 1) // 2]
            self._drop(half)
            left = left[len(half) :]

    def _drop(self, numbers: Sequence[int]) -> None:
        for each in numbers:
            (self._turns / f"{each}").unlink(missing_ok=True)
        index = self.index()
        needed = {each.content for each in index.entries.values() if each.kind == "file"}
        for record in filter(None, map(self.record, self.numbers())):
            for change in record.changes.values():
                needed.update(each.content for each in (change.before, change.after) if each is not None)
        digests = self.digests()
        self.drop(each for each in digests if each not in needed)
        kept = sum(self._place(each).stat().st_size for each in digests if each in needed)
        self.write("index", replace(index, kept=kept))


def _entry(found: tree.Found) -> Entry:
    facts, mode = found.facts, stat.S_IMODE(found.facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        return Entry("folder", mode)
    if stat.S_ISLNK(facts.st_mode):
        try:
            return Entry("link", 0, 0, 0, 0, os.fsencode(os.readlink(found.name, dir_fd=found.at)))
        except OSError:
            return Entry("other", 0)
    if stat.S_ISREG(facts.st_mode):
        return Entry("file", mode, facts.st_size, facts.st_ctime_ns, facts.st_ino)
    return Entry("other", 0)


def _is_same(now: Entry, known: Entry, began: int) -> bool:
    """Say whether a file is the one that was looked at. One that changed as late as the look began may have changed
    again without another time."""
    same = (now.kind, now.mode, now.size, now.changed, now.number)
    return same == (known.kind, known.mode, known.size, known.changed, known.number) and now.changed < began - _TICK


def _between(before: Mapping[Place, Entry], after: Mapping[Place, Entry]) -> dict[Place, Change]:
    changes = {
        path: Change(before.get(path), now)
        for path, now in after.items()
        if (known := before.get(path)) is not now and not now.is_like(known)
    }
    return changes | {path: Change(known, None) for path, known in before.items() if path not in after}


def joined(first: Mapping[Place, Change], second: Mapping[Place, Change]) -> dict[Place, Change]:
    """Two rounds of changes as one; what is again as it was is none."""
    joined = dict(first)
    for path, change in second.items():
        begun = joined.get(path, change)
        joined[path] = Change(begun.before, change.after)
    return {
        path: each
        for path, each in joined.items()
        if not (each.after is None and each.before is None)
        and (each.after is None or not each.after.is_like(each.before))
    }


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
