"""Texts of strangers, models and tools, made safe for a terminal."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import late

REPLACEMENT: Final = "\ufffd"
_COLOUR_CODES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # ECMA-48 control sequences
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PICTURES: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},  # Unicode's control pictures
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), REPLACEMENT),
}
_HALVES: Final = re.compile("[\ud800-\udfff]")
# Signs that turn the direction of what follows, which may make a line read as another (UAX #9).
_DIRECTIONS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_HIDDEN: Final = late("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` as a terminal may show it: the only control characters left are newline and tab.

    Colour codes and changes of direction vanish; any other control character becomes its visible picture, so that a
    text cannot move the cursor, rename the window or write to the clipboard.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = _DIRECTIONS.sub("", text)
    if not _CONTROLS.search(text):
        return text
    return _HALVES.sub(REPLACEMENT, _COLOUR_CODES.sub("", text).translate(_PICTURES))


def printable_json(document: str) -> str:
    """A JSON document as a terminal may show it: JSON's own escapes stand for what is not shown."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", document)
