"""The reading of an export: its files, by themselves or in an archive, and the formats by name."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gateway.runtime.errors import UserError
from gateway.store.imports import chatgpt, claude, hermes, jsonl
from gateway.store.imports.past import Past, Tally

_WANTED: Final = re.compile(r"(?:.*/)?conversations(?:[-_ ]?\d+)?\.json")
_ARCHIVE: Final = b"PK\x03\x04"
_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SECRET: Final = 0x1  # of an entry's flags
_IN_ARRAYS: Final = {"chatgpt": chatgpt.conversations, "claude": claude.conversations}
FORMATS: Final = ("hermes", *_IN_ARRAYS, "jsonl")


def read(form: str, path: Path, tally: Tally) -> Iterator[Past]:
    """The conversations of a file, each with a valid transcript, one in memory at a time. Raises UserError for a file
    of another kind, or one that is cut off: then behind those that came before."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    if form == "hermes":
        yield from hermes.conversations(path, tally)
        return
    with opened(path) as files:
        for file, _ in files:
            if form == "jsonl":
                yield from jsonl.conversations(file, tally, path.name)
            else:
                yield from _IN_ARRAYS[form](file, tally)


def size_of(form: str, path: Path) -> int | None:
    """The bytes to be read, for a bar of progress; None: nobody knows."""
    if form == "hermes" or not path.is_file():
        return None
    with opened(path) as files:
        return sum(size for _, size in files)


@contextmanager
def opened(path: Path) -> Iterator[list[tuple[BinaryIO, int]]]:
    """The files with conversations, and the bytes of each; an archive has them as `conversations.json`, or several of
    that name with numbers. Raises UserError."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            begins = file.read(len(_ARCHIVE))
            file.seek(0)
            if begins != _ARCHIVE:
                yield [(file, path.stat().st_size)]
                return
            archive = stack.enter_context(zipfile.ZipFile(file))
            found = [each for each in archive.infolist() if _WANTED.fullmatch(each.filename)]
            if not found:
                raise UserError(f"{path} holds no conversations.json: it is not an export of conversations.")
            if any(each.flag_bits & _SECRET or each.compress_type not in _PACKED for each in found):
                raise UserError(f"{path} is packed with a password, or in a rare way: unpack it first.")
            yield [(stack.enter_context(archive.open(each)), each.file_size) for each in found]  # type: ignore[misc]
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UserError(f"{path} is a damaged archive ({error}): get it again.") from error
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror or error}).") from error
