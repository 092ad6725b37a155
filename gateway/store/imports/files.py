"""The files of an export: one by itself, or those in an archive."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gateway.runtime.errors import UserError

_WANTED: Final = re.compile(r"(?:.*/)?conversations(?:[-_ ]?\d+)?\.json")
_ARCHIVE: Final = b"PK\x03\x04"
_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SECRET: Final = 0x1  # of an entry's flags


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
