"""The reading of an export: its files, by themselves, in a folder or in an archive, and the formats by name."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from gateway.app.imports import chatgpt, claude, hermes, jsonl, openwebui
from gateway.app.imports.arrays import elements
from gateway.app.imports.past import Past, Tally, whole
from gateway.runtime.errors import UserError

_ARCHIVE: Final = b"PK\x03\x04"
_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SECRET: Final = 0x1  # of an entry's flags
_EXPORT: Final = "conversations.json"


class Format(NamedTuple):
    """What an export looks like. `files`: the names of its files, in a folder or an archive; `named`: one of these.
    `conversation`: makes one of an element of a JSON array; None: the file is no such array."""

    whose: str
    files: re.Pattern[str]
    named: str
    is_one: Callable[[Mapping[str, Any]], bool]
    conversation: Callable[[Mapping[str, Any], Tally], Past] | None = None


_NUMBERED: Final = re.compile(r"(?:.*/)?conversations(?:[-_ ]?\d+)?\.json")
_FORMATS: Final = {
    "hermes": Format("hermes-agent's store", re.compile(r"state\.db"), "state.db", lambda _: False),
    "chatgpt": Format("an export of ChatGPT", _NUMBERED, _EXPORT, chatgpt.is_one, chatgpt.conversation),
    "claude": Format("an export of Claude", _NUMBERED, _EXPORT, claude.is_one, claude.conversation),
    "openwebui": Format(
        "an export of Open WebUI", re.compile(r".*\.json"), "file *.json", openwebui.is_one, openwebui.conversation
    ),
    "jsonl": Format("a file of JSON lines with messages", re.compile(r".*\.jsonl"), "file *.jsonl", jsonl.is_one),
}
FORMATS: Final = tuple(_FORMATS)


class Opened(NamedTuple):
    """A file with conversations: its name, and the bytes to be read."""

    file: BinaryIO
    name: str
    size: int


def read(form: str, path: Path, tally: Tally) -> Iterator[Past]:
    """The conversations of a file, each with a valid transcript, one in memory at a time. Raises UserError for a file
    of another kind, or one that is cut off: then behind those that came before."""
    if form == "hermes":
        state = path / "state.db" if path.is_dir() else path
        if not state.is_file():
            raise UserError(f"There is no file {state}.")
        yield from hermes.conversations(state, tally)
        return
    _check_kind(form, path)
    one = _FORMATS[form]
    with opened(form, path) as files:
        for file, name, _ in files:
            if one.conversation is None:
                yield from jsonl.conversations(file, tally, name)
            else:
                yield from filter(None, map(partial(_past, one, tally), elements(file, tally)))
    if not tally.recognised:
        raise UserError(f"{path} contains no conversation, so it is not {one.whose}.")


def _past(form: Format, tally: Tally, entry: Any) -> Past | None:
    if not isinstance(entry, Mapping) or not form.is_one(entry):
        tally.leave_out("entries that are not conversations")
        return None
    assert form.conversation is not None
    tally.recognised += 1
    return whole(form.conversation(entry, tally), tally)


def _check_kind(form: str, path: Path) -> None:
    """Raise UserError if the first conversation is of another format, and say which."""
    with opened(form, path) as files:
        first: Any = None
        if files and files[0].file.peek(16).startswith(b"SQLite format 3\0"):  # type: ignore[attr-defined]
            raise UserError(f"{path} is a SQLite file, not {_FORMATS[form].whose}.")
        try:
            first = next(elements(files[0].file, Tally()), None) if files else None
        except UserError:
            return  # told when all is read
    if isinstance(first, Mapping) and not _FORMATS[form].is_one(first):
        for name, other in _FORMATS.items():
            if other.is_one(first):
                raise UserError(f"{path} looks like {other.whose}, so try: legato import {name} {path}")


def size_of(form: str, path: Path) -> int | None:
    """The bytes to be read, for a bar of progress; None: nobody knows."""
    if form == "hermes" or not path.exists():
        return None
    with opened(form, path) as files:
        return sum(each.size for each in files)


@contextmanager
def opened(form: str, path: Path) -> Iterator[list[Opened]]:
    """The files with conversations of a format, as the path is one, or a folder or an archive that holds some. Raises
    UserError."""
    one = _FORMATS[form]
    with ExitStack() as stack:
        try:
            if path.is_dir():
                inside = [each for pattern in ("*", "*/*") for each in sorted(path.glob(pattern)) if each.is_file()]
                paths = [each for each in inside if one.files.fullmatch(each.name)]
                if not paths:
                    raise UserError(f"{path} contains no {one.named}, so it is not {one.whose}.")
                yield [Opened(stack.enter_context(each.open("rb")), each.name, each.stat().st_size) for each in paths]
                return
            if not path.is_file():
                raise UserError(f"There is no file {path}.")
            file = stack.enter_context(path.open("rb"))
            if file.peek(len(_ARCHIVE))[: len(_ARCHIVE)] != _ARCHIVE:
                yield [Opened(file, path.name, path.stat().st_size)]
                return
            archive = stack.enter_context(zipfile.ZipFile(file))
            found = [each for each in archive.infolist() if one.files.fullmatch(each.filename)]
            if not found:
                raise UserError(f"{path} contains no {one.named}, so it is not {one.whose}.")
            if any(each.flag_bits & _SECRET or each.compress_type not in _PACKED for each in found):
                raise UserError(
                    f"{path} is encrypted, or compressed in a way that Legato cannot read. Unpack it first."
                )
            yield [Opened(stack.enter_context(archive.open(each)), each.filename, each.file_size) for each in found]  # type: ignore[arg-type]
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UserError(f"The archive {path} is damaged ({error}). Download it again.") from error
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror or error}).") from error
