"""A JSON array that is larger than memory, one element at a time. A file with one object is an array of one."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from gateway.app.imports.past import Tally
from gateway.runtime.errors import UserError

_LONGEST: Final = 128_000_000  # characters of an element
_CHUNK: Final = 1 << 18
_BETWEEN: Final = re.compile(r"[ \t\r\n,]*+")
_BROKEN: Final = (
    "The import ended at a conversation that was cut off, is damaged or larger than 128 MB. Get a complete export."
)
_DECODER: Final = json.JSONDecoder()


def elements(file: BinaryIO, tally: Tally) -> Iterator[Any]:
    """The elements of an array, or the one object. Raises UserError if the file is neither, ends too early, is
    damaged or holds an element that is too long; what was read before is given first."""
    held = _Held(file, tally)
    first = held.first()
    if first == "{":  # one conversation
        yield held.element()
        return
    if first != "[":
        raise UserError("The file is not a JSON array of conversations.")
    held.at += 1
    while held.first() != "]":
        yield held.element()


class _Held:
    """What was read of a file. Its elements were given as far as `at`."""

    def __init__(self, file: BinaryIO, tally: Tally) -> None:
        self.at = 0
        self._file = file
        self._tally = tally
        self._text = ""
        self._decode = getincrementaldecoder("utf-8-sig")(errors="replace").decode

    def first(self) -> str:
        """Go on to what follows, and return its first character; "" at the end."""
        while True:
            between = _BETWEEN.match(self._text, self.at)
            self.at = between.end() if between else self.at
            if self.at < len(self._text) or not self._more():
                return self._text[self.at : self.at + 1]

    def element(self) -> Any:
        """The element that begins here. Raises UserError if the file ends within it, or it is no JSON."""
        while True:
            try:
                found, self.at = _DECODER.raw_decode(self._text, self.at)
                return found
            except json.JSONDecodeError:  # its end may not be read yet
                if len(self._text) - self.at > _LONGEST or not self._more():
                    raise UserError(_BROKEN) from None
            except (ValueError, RecursionError):  # a number of thousands of digits, too many brackets
                raise UserError(_BROKEN) from None

    def _more(self) -> bool:
        """Read on, as much again as is held, so that a long element is not tried often. False at the end."""
        self._text = self._text[self.at :]
        self.at = 0
        data = self._file.read(max(_CHUNK, len(self._text)))
        self._tally.read += len(data)
        self._text += self._decode(data)
        return bool(data)
