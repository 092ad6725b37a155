"""`legato trajectories compress`: files of runs in, files of runs out, line for line.

Line n of a file becomes line n of its output; a line that is no run is passed on as it is. Every file is
written beside its final name and gets that when it is complete; `journal` says how far all is, and
goes when all is done. A file that cannot be read or written fails alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from gateway.runtime.errors import UserError
from gateway.runtime.owners import private
from gateway.trajectories.compressor import Line, TrajectoryCompressor
from gateway.trajectories.journal import FileState, Journal
from gateway.trajectories.metrics import Totals

VERSION: Final = 1  # of the progress and the metrics file


class Order(Struct, frozen=True, kw_only=True):
    """The task of a run. `source`: a file, or a folder whose *.jsonl files are taken in the order of their names;
    `output` is of the same kind. `metrics` None: beside `output`. `limit`: trajectories in all."""

    source: Path
    output: Path
    metrics: Path | None = None
    limit: int | None = None
    concurrency: int = 8


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of a run: bytes of the source that are done, of how many, and the results so far."""

    read: int
    size: int
    totals: Totals


class Report(Struct, frozen=True, kw_only=True):
    """The end of a run. `failed`: the files that failed, each with its reason. `resumed`: an earlier run was
    finished."""

    totals: Totals
    failed: dict[str, str]
    output: Path
    metrics: Path
    resumed: bool


Tell = Callable[[Progress], None]


class RawLine(Struct, frozen=True, kw_only=True):
    """One line, and its end in the file."""

    number: int
    end: int
    data: bytes


class _Changed(Exception):
    """A file cannot be gone on with; the text completes "it failed because"."""


async def compress_files(
    order: Order, compressor: TrajectoryCompressor, *, summariser: str = "", tell: Tell = lambda _: None
) -> Report:
    """Do the whole task, or the part that an earlier call left undone. `summariser` is named in the metrics; `tell` is
    called after every line. Raises UserError if it cannot be begun or noted, ConfigError if no model
    can be asked at all."""
    try:
        pairs = _pairs(order)
        beside = order.output.resolve() if order.output.is_dir() else order.output  # "." has no name
        metrics = order.metrics or beside.with_name(beside.name + ".metrics.json")
        progress = beside.with_name(beside.name + ".progress")
        _check_places(order, pairs, metrics)
        if not progress.exists():
            _check_absent(pairs)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be used ({error.strerror}): choose another place") from error
    sizes = {name: _written_bytes(target) for name, (_, target) in pairs.items()}
    settings = {"version": VERSION, **asdict(compressor.settings), "limit": order.limit}
    journal = Journal(progress, settings, lambda name: sizes.get(name, 0))
    over = False
    try:
        run = _Run(order, compressor, journal, tell, sum(_size(source) for source, _ in pairs.values()))
        failed = await run.all(pairs)
        about = {"source": str(order.source), "output": str(order.output), "summariser": summariser}
        _write_metrics(metrics, {**settings, **about, "failed_files": failed}, journal)
        over = not failed
    finally:
        journal.close(remove=over)
    return Report(totals=journal.totals, failed=failed, output=order.output, metrics=metrics, resumed=journal.resumed)


class _Run:
    """One call of `compress_files`, once its places are known."""

    def __init__(self, order: Order, compressor: TrajectoryCompressor, journal: Journal, tell: Tell, size: int) -> None:
        self._order = order
        self._compressor = compressor
        self._journal = journal
        self._tell = tell
        self._size = size
        self._left = None if order.limit is None else order.limit - journal.totals.trajectories

    async def all(self, pairs: dict[str, tuple[Path, Path]]) -> dict[str, str]:
        """Do every file; why those failed that did."""
        failed: dict[str, str] = {}
        read = 0
        for name, (source, target) in pairs.items():
            if self._left is not None and self._left <= 0 and name not in self._journal.files:
                break
            try:
                await self._file(name, source, target, read)
            except OSError as error:
                failed[name] = error.strerror or str(error)
            except _Changed as error:
                failed[name] = str(error)
            read += _size(source)
        return failed

    async def _file(self, name: str, source: Path, target: Path, before: int) -> None:
        """One file, from where it stands. `before`: bytes of the files before it."""
        state = self._journal.files.get(name)
        if state is None or not state.done:
            with source.open("rb") as read:
                state = self._begun(name, state, os.fstat(read.fileno()).st_size, target)
                with _opened_part(target, like=source, written=state.written) as part:
                    await self._lines(name, state, read, part, before)
                    part.flush()
                    os.fsync(part.fileno())
            self._journal.end(name)
        if (part_file := _part_of(target)).exists():
            part_file.replace(target)

    def _begun(self, name: str, state: FileState | None, size: int, target: Path) -> FileState:
        if state is None:
            if target.exists():
                raise _Changed(f"{target} exists already")
            return self._journal.begin(name, size=size)
        if state.size != size:
            raise _Changed(
                f"it was changed since its compression began: put it back, or delete {_part_of(target)} and the "
                ".progress file"
            )
        return state

    async def _lines(self, name: str, state: FileState, source: BinaryIO, part: BinaryIO, before: int) -> None:
        async def work(line: RawLine) -> Line | None:
            return await self._compressor.compress_line(line.data) if line.data.strip() else None

        def done(line: RawLine, result: Line | None) -> None:
            part.write(result.data if result else line.data)
            part.flush()
            if result is not None:
                self._journal.note(name, result.row(), line=line.number, read=line.end, written=part.tell())
            self._tell(Progress(read=before + line.end, size=self._size, totals=self._journal.totals))

        await in_order(
            self._limited(_lines_of(source, begin=state.read, number=state.lines)),
            work,
            done,
            concurrency=self._order.concurrency,
            size=lambda line: len(line.data),
        )

    def _limited(self, lines: Iterator[RawLine]) -> Iterator[RawLine]:
        for line in lines:
            if self._left is not None and line.data.strip():
                if self._left <= 0:
                    return
                self._left -= 1
            yield line


def _lines_of(source: BinaryIO, *, begin: int, number: int) -> Iterator[RawLine]:
    """The lines from byte `begin` on, the first of which has number `number` + 1."""
    source.seek(begin)
    for place, data in enumerate(source, number + 1):
        begin += len(data)
        yield RawLine(number=place, end=begin, data=data)


def _opened_part(target: Path, *, like: Path, written: int) -> BinaryIO:
    """A file while it is being written, behind its first bytes. The readers of its source may read it."""
    path = _part_of(target)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
    shutil.copymode(like, path)
    file.truncate(written)
    file.seek(written)
    return file


def _part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _written_bytes(target: Path) -> int:
    """The bytes of a file that are there, complete or not. 0 if nothing can be seen."""
    return _size(_part_of(target)) or _size(target)


# -- places ---------------------------------------------------------------------------------------


def _pairs(order: Order) -> dict[str, tuple[Path, Path]]:
    """Source and target of every file, by the file's name. Raises UserError, OSError."""
    source, output = order.source, order.output
    if not source.exists():
        raise UserError(f"{source} does not exist: name a .jsonl file, or a folder with such files")
    if not source.is_dir():
        if output.is_dir():
            raise UserError(f"{output} is a folder: name the file to write, as {output / source.name}")
        return {source.name: (source, output)}
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file, and {source} a folder: name a folder to write to")
    found = sorted(path for path in source.glob("*.jsonl") if not path.is_dir())
    if not found:
        raise UserError(f"there is no file *.jsonl in {source}: name the folder that holds the trajectories")
    return {path.name: (path, output / path.name) for path in found}


def _check_places(order: Order, pairs: dict[str, tuple[Path, Path]], metrics: Path) -> None:
    """Refuse a run whose files would overwrite one another; make the folders. Raises UserError, OSError."""
    for source, target in pairs.values():
        if source.resolve() == target.resolve():
            raise UserError(f"{target} is what is to be compressed: name another place to write to")
        if metrics.resolve() in (source.resolve(), target.resolve(), _part_of(target).resolve()):
            raise UserError(f"{metrics} cannot hold the metrics as well: choose another place with --metrics")
    if metrics.is_dir():
        raise UserError(f"{metrics} is a folder: name a file with --metrics")
    folder = order.output if order.source.is_dir() else order.output.parent
    for path in (folder, metrics.parent):
        path.mkdir(parents=True, exist_ok=True)


def _check_absent(pairs: dict[str, tuple[Path, Path]]) -> None:
    for _, target in pairs.values():
        if target.exists():
            raise UserError(f"{target} exists already: delete it, or name another place to write to")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_metrics(path: Path, about: dict[str, Any], journal: Journal) -> None:
    """One JSON object; each trajectory's row stands on a line of its own. Raises UserError."""
    making = path.with_name(path.name + ".part")
    head = json.dumps({**about, "totals": journal.totals.row()}, indent=1)
    try:
        with open(making, "w", encoding="utf-8", opener=private) as file:
            file.write(head[: head.rindex("}")].rstrip() + ',\n "trajectories": [')
            for number, row in enumerate(journal.rows()):
                file.write((",\n  " if number else "\n  ") + json.dumps(row))
            file.write("\n ]\n}\n")
        making.replace(path)
    except OSError as error:
        raise UserError(f"the metrics {path} cannot be written ({error.strerror}): run the command again") from error


# -- many at once --------------------------------------------------------------------------------------


Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD: Final = 8  # items read for each one that is worked on, so that a slow one does not stop the others
HELD_BYTES: Final = 64 * 1024 * 1024  # of items that wait for their turn; one item may be larger


async def in_order(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[Result]],
    done: Callable[[Item, Result], None],
    *,
    concurrency: int,
    size: Callable[[Item], int],
) -> None:
    """Call `done(item, await work(item))` for every item in the order of `items`, `concurrency` of them
    being worked on at a time. Items are taken as they are needed; `size` is an item's, in bytes. The
    first error of anything ends it, and is raised."""
    working = asyncio.Semaphore(concurrency)
    waiting: deque[tuple[Item, asyncio.Task[Result]]] = deque()
    held = 0

    async def bounded(item: Item) -> Result:
        async with working:
            return await work(item)

    async def finish_first() -> int:
        item, task = waiting[0]
        result = await task
        waiting.popleft()
        done(item, result)
        return size(item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in items:
                while waiting and (len(waiting) >= concurrency * AHEAD or held + size(item) > HELD_BYTES):
                    held -= await finish_first()
                waiting.append((item, group.create_task(bounded(item))))
                held += size(item)
            while waiting:
                await finish_first()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
