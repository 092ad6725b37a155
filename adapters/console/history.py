"""What the person typed before, kept in a file that only they can read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory

LONGEST: Final = 16 * 1024  # characters: a pasted file is not worth remembering


class QuietHistory(FileHistory):
    """A history whose file may be missing, unwritable or on a full disk: typing matters more."""

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
        super().__init__(str(path))

    def load_history_strings(self) -> list[str]:
        """What was typed, newest first; nothing if it cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Remember `string` if it is short enough and the file can take it."""
        if len(string) <= LONGEST:
            with contextlib.suppress(OSError):
                super().store_string(string)
