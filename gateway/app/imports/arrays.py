"""A JSON array that is larger than memory, one element at a time.

The bytes are searched for the ends of elements, and each is parsed alone; so an element that is damaged, or too large,
costs itself and none of its neighbours. A file with one object is an array of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, Final

from gateway.app.imports.past import Tally
from gateway.runtime.errors import UserError

MOST: Final = 32_000_000  # bytes of an element
_CHUNK: Final = 1 << 18
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[ \t\r\n,]*+")
# A whole text (its end is the group, which is empty where the bytes end before), or what opens or closes something.
_MARK: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[][{}]', re.DOTALL)
_AFTER: Final = re.compile(rb'[][{}",\s]')  # the first byte behind a number or a word
NO_CONVERSATION: Final = "entries that are not conversations"
_OVERSIZE: Final = "conversations larger than {most} MB"
_CUT: Final = "The file was cut off in the middle of a conversation: get a complete export."
_DAMAGED: Final = "conversations that are damaged"


def elements(file: BinaryIO, tally: Tally, most: int = MOST) -> Iterator[Any]:
    """The elements of an array, or the one object. Raises UserError if the file is neither, or ends too early; what was
    read before is given first."""
    # Nothing here holds an element, or its bytes, while the caller works on it: some are large.
    yield from filter(_is_there, map(partial(_parsed, tally), filter(None, _Scan(file, tally, most).pieces())))


def _parsed(tally: Tally, piece: bytes) -> Any:
    try:
        return json.loads(piece)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, a number of thousands of digits, too many brackets
        tally.leave_out(_DAMAGED)
        return None


def _is_there(element: Any) -> bool:
    return element is not None


class _Scan:
    """Walks over the bytes. `_held` are those from the present element on; the search for its end goes on at `_at`."""

    def __init__(self, file: BinaryIO, tally: Tally, most: int) -> None:
        self._file = file
        self._tally = tally
        self._most = most
        self._held = bytearray()
        self._at = 0
        self._size = _CHUNK

    def pieces(self) -> Iterator[bytes | None]:
        """The bytes of each element; None for one that is larger than is allowed."""
        while len(self._held) < len(_BOM) and self._more():
            pass
        if self._held.startswith(_BOM):
            del self._held[: len(_BOM)]
        first = self._next()
        if first == b"{":  # one conversation
            yield self._element()
            return
        if first != b"[":
            raise UserError("The file is not a JSON array of conversations.")
        del self._held[:1]
        firsts = set[bytes]()
        while (first := self._next()) != b"]":
            firsts.add(first)
            if first in (b"{", b"[", b'"'):
                yield self._element()
            else:
                self._skip()
        if firsts and not firsts & {b"{", b"["}:
            raise UserError("The file is a JSON array, but not an array of conversations.")

    def _more(self) -> bool:
        """Read on; False at the end. A longer text is read in longer strides, so that it is not searched too often."""
        data = self._file.read(self._size)
        self._tally.read += len(data)
        self._held += data
        return bool(data)

    def _next(self) -> bytes:
        """The first byte of what follows, or b"" at the end. Only that and what is behind it are held then."""
        while True:
            space = _SPACE.match(self._held)
            del self._held[: space.end() if space else 0]
            if self._held or not self._more():
                return bytes(self._held[:1])

    def _skip(self) -> None:
        """Leave out what is no object, array or text. Raises UserError if the file ends within it."""
        while (found := _AFTER.search(self._held, 1)) is None:
            del self._held[1:]
            if not self._more():
                raise UserError(_CUT)
        del self._held[: found.start()]
        self._tally.leave_out(NO_CONVERSATION)

    def _element(self) -> bytes | None:
        """The bytes of the element that begins here; None, and counted, if it is too large. Raises UserError if the
        file ends within it."""
        depth, at, oversize = 0, 0, False
        while True:
            found = _MARK.search(self._held, at)
            if found is None or found[1] == b"":  # no mark, or a text whose end is not read yet
                at = len(self._held) if found is None else found.start()
                if len(self._held) > self._most:
                    # Nobody wants it any more. Of a text that is still open its beginning is enough to search on.
                    oversize = True
                    tail = b"" if found is None else b'"' + _odd_end(self._held)
                    self._held[:], at = tail, 0
                self._size = max(_CHUNK, min(len(self._held), self._most))
                if not self._more():
                    raise UserError(_CUT)
                continue
            at = found.end()
            if found[1] is None:
                depth += 1 if self._held[found.start()] in b"[{" else -1
            if depth == 0:
                break
        self._size = _CHUNK
        piece = None if oversize or at > self._most else bytes(self._held[:at])
        del self._held[:at]
        if piece is None:
            self._tally.leave_out(_OVERSIZE.format(most=self._most // 1_000_000))
        return piece


def _odd_end(held: bytearray) -> bytes:
    """A backslash, if the bytes end in one that escapes what follows."""
    return b"\\" if (len(held) - len(held.rstrip(b"\\"))) % 2 else b""
