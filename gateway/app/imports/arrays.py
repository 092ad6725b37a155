"""A JSON array that is larger than memory, one element at a time. A file with one object is an array of one."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from gateway.app.imports.past import Tally
from gateway.runtime.errors import UserError

MOST: Final = 200_000_000  # characters of an element
_CHUNK: Final = 1 << 18
_BETWEEN: Final = " \t\r\n,"
NO_CONVERSATION: Final = "entries that are no conversations"


def elements(file: BinaryIO, tally: Tally, most: int = MOST) -> Iterator[Any]:
    """The elements of an array, or the one object. Raises UserError if the file is neither, is damaged, or ends too
    early; what was read before is given first."""
    decode, parse = getincrementaldecoder("utf-8-sig")("replace").decode, json.JSONDecoder().raw_decode
    held = ""  # what was read of the present element, and behind it

    def read_on(size: int = _CHUNK) -> bool:
        """Read on; False at the end."""
        nonlocal held
        data = file.read(size)
        tally.read += len(data)
        held += decode(data, not data)
        return bool(data)

    def first() -> str:
        """The first character of what follows; "" at the end. Only that and what is behind it are held then."""
        nonlocal held
        while not (held := held.lstrip(_BETWEEN)) and read_on():
            pass
        return held[:1]

    opening = first()
    if opening not in ("[", "{"):
        raise UserError("The file is no JSON array of conversations.")
    held = held.removeprefix("[")
    while first() != "]":
        while True:
            try:
                element, end = parse(held)
                break
            except RecursionError:
                raise UserError(_DAMAGED.format(count=tally.recognised)) from None
            except ValueError:
                # A longer element is read in longer strides, so that it is not parsed too often.
                if len(held) > most or not read_on(max(_CHUNK, len(held))):
                    raise UserError(_DAMAGED.format(count=tally.recognised)) from None
        held = held[end:]
        yield element
        if opening == "{":
            return


_DAMAGED: Final = (
    "The file was cut off in the middle of a conversation, or is damaged behind {count:,} conversations: get it again."
)
