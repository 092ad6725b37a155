"""`legato trajectories compress`: files of runs in, files of runs out, line for line.

Line n of a file becomes line n of its output; a line that is no run is passed on as it is. First each line is worked
on, several side by side, and its result noted (`journal`). Then every output is written, beside its final name, and
gets that when it is complete. A file that cannot be read or written fails alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from gateway.runtime.errors import UserError
from gateway.runtime.owners import private
from gateway.trajectories.compressor import TrajectoryCompressor
from gateway.trajectories.journal import Journal
from gateway.trajectories.metrics import Totals

VERSION: Final = 1  # of the progress and the metrics file


class Order(Struct, frozen=True, kw_only=True):
    """The task of a run. `source`: a file, or a folder whose *.jsonl files are taken in the order of their names;
    `output` is of the same kind."""

    source: Path
    output: Path
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


Pairs = dict[str, tuple[Path, Path]]
"""Source and target of every file, by the file's name."""


async def compress_files(
    order: Order, compressor: TrajectoryCompressor, *, summariser: str = "", tell: Tell = lambda _: None
) -> Report:
    """Do the whole task, or the part that an earlier call left undone. `summariser` is named in the metrics; `tell` is
    called after every line. Raises UserError if it cannot be begun or noted, ConfigError if no model
    can be asked at all."""
    try:
        pairs = _pairs(order)
        beside = order.output.resolve() if order.output.is_dir() else order.output  # "." has no name
        metrics = beside.with_name(beside.name + ".metrics.json")
        progress = beside.with_name(beside.name + ".progress")
        _check_places(order, pairs)
        if not progress.exists():
            _check_absent(pairs)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be used ({error.strerror}): choose another place") from error
    settings = {"version": VERSION, **asdict(compressor.settings)}
    about = {"source": str(order.source), "output": str(order.output), "summariser": summariser}
    journal = Journal(progress, settings)
    over = False
    try:
        run = _Run(order=order, pairs=pairs, journal=journal)
        await run.work(compressor, tell)
        totals = run.write(metrics, settings | about)
        over = not run.failed
    finally:
        journal.close(remove=over)
    return Report(totals=totals, failed=run.failed, output=order.output, metrics=metrics, resumed=journal.resumed)


class _Run(Struct, kw_only=True):
    """One call of `compress_files`, once its places are known. `failed`: why files failed that did."""

    order: Order
    pairs: Pairs
    journal: Journal
    failed: dict[str, str] = field(default_factory=dict)

    async def work(self, compressor: TrajectoryCompressor, tell: Tell) -> None:
        lines, totals = self._lines(), Totals()
        size = sum(_size(source) for source, _ in self.pairs.values())
        reached = 0

        async def worker() -> None:
            nonlocal reached
            for read, line in lines:
                if line not in self.journal:
                    self.journal.note(line, await compressor.compress_line(line))
                totals.add(self.journal.result(line)[1])
                reached = max(reached, read)
                tell(Progress(read=reached, size=size, totals=totals))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.order.concurrency):
                    group.create_task(worker())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def write(self, metrics: Path, about: dict[str, Any]) -> Totals:
        """Write every output, and then the metrics."""
        totals, rows = Totals(), list[str]()
        for name, source, target in self._files():
            try:
                found = list(self._written(source, target))
            except OSError as error:
                self.failed[name] = error.strerror or str(error)
            except KeyError:
                self.failed[name] = "it was changed meanwhile"
            else:
                for number, row in found:
                    totals.add(row)
                    rows.append(json.dumps({"file": name, "line": number, **row}))
        head = json.dumps({**about, "failed_files": self.failed, "totals": totals.row()}, indent=1).removesuffix("\n}")
        _write_metrics(metrics, f'{head},\n "trajectories": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n")
        return totals

    def _files(self) -> Iterator[tuple[str, Path, Path]]:
        for name, (source, target) in self.pairs.items():
            if name not in self.failed:
                yield name, source, target

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are no blank ones, each with the bytes that are read by then."""
        read = 0
        for name, source, _ in self._files():
            try:
                with source.open("rb") as file:
                    for line in file:
                        read += len(line)
                        if line.strip():
                            yield read, line
            except OSError as error:
                self.failed[name] = error.strerror or str(error)

    def _written(self, source: Path, target: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """Write an output. Yields the figures of its lines by their numbers; the output is complete after the last."""
        part = _part_of(target)
        with source.open("rb") as lines, open(part, "wb", opener=private) as out:
            shutil.copymode(source, part)  # the readers of its source may read it
            for number, line in enumerate(lines, start=1):
                data = line
                if line.strip():
                    data, row = self.journal.result(line)
                    yield number, row
                out.write(data)
            out.flush()
            os.fsync(out.fileno())
        part.replace(target)


# -- places ---------------------------------------------------------------------------------------


def _pairs(order: Order) -> Pairs:
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


def _check_places(order: Order, pairs: Pairs) -> None:
    """Refuse a run whose files would overwrite one another; make the folder. Raises UserError, OSError."""
    for source, target in pairs.values():
        if source.resolve() == target.resolve():
            raise UserError(f"{target} is what is to be compressed: name another place to write to")
    folder = order.output if order.source.is_dir() else order.output.parent
    folder.mkdir(parents=True, exist_ok=True)


def _check_absent(pairs: Pairs) -> None:
    for _, target in pairs.values():
        if target.exists():
            raise UserError(f"{target} exists already: delete it, or name another place to write to")


def _part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_metrics(path: Path, text: str) -> None:
    """One JSON object; each trajectory's row stands on a line of its own. Raises UserError."""
    making = _part_of(path)
    try:
        with open(making, "w", encoding="utf-8", opener=private) as file:
            file.write(text)
        making.replace(path)
    except OSError as error:
        raise UserError(f"the metrics {path} cannot be written ({error.strerror}): run the command again") from error
