"""The formats by name, and the reading of a file in one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.runtime.errors import UserError
from gateway.store.imports import chatgpt, claude, hermes, jsonl
from gateway.store.imports.files import opened
from gateway.store.imports.past import Past, Tally

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
