"""What Telegram makes of single characters: how it counts them, which it takes out, which show nothing.

Telegram counts in UTF-16 units. It takes some characters out of a text before it looks at it, and
refuses a text of which nothing is to be seen (`clean_input_string` and `strip_empty_characters` in
TDLib's td/telegram/misc.cpp). A text that went through `cleaned` is shown as it is, so that offsets
in it are the offsets that Telegram sees.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from wcwidth import grapheme_boundary_before

LONGEST: Final = 4_096  # UTF-16 units of one message (https://core.telegram.org/bots/api#sendmessage)
LONGEST_CAPTION: Final = 1_024  # of the text with a file (https://core.telegram.org/bots/api#sendphoto)

# Every control character becomes a space; line and paragraph separators are line ends here, because
# Telegram would join what they part. What follows them are the characters it takes out: marks of
# writing direction and three combining lines and rings.
_STRANGE: Final = re.compile("[\x00-\x09\x0b-\x1f\u2028-\u202e\u030a\u0333\u033f]")
_REPLACED: Final = (
    {code: " " for code in range(0x20) if code != 0x0A}
    | {0x0D: None, 0x2028: "\n", 0x2029: "\n"}
    | dict.fromkeys((*range(0x202A, 0x202F), 0x030A, 0x0333, 0x033F))
)
_HALVES: Final = re.compile("[\ud800-\udfff]")
_RINGED: Final = re.compile("[A-Za-z]\u030a")

# Characters of other categories than spaces and controls that nevertheless show nothing.
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0100-\U000e01ef]"
)


def units(text: str) -> int:
    """The length of `text` in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sound(text: str) -> str:
    """`text` with one kind of line end and no halves of characters, which could not even be sent."""
    whole = text if text.isascii() else _HALVES.sub("\ufffd", text)
    return whole.replace("\r\n", "\n").replace("\r", "\n") if "\r" in whole else whole


def cleaned(text: str) -> str:
    """`text` as Telegram would clean it, so that it has nothing left to do."""
    if not _STRANGE.search(text):
        return text
    whole = _RINGED.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)
    return whole.translate(_REPLACED)


def is_visible(text: str) -> bool:
    """Whether there is anything to be seen in `text`: Telegram refuses a message without."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in _BLANK.sub("", text))


def reach(text: str, limit: int) -> int:
    """How many characters of `text` fit into `limit` UTF-16 units."""
    end = min(len(text), limit)
    while (excess := units(text[:end]) - limit) > 0:
        end -= (excess + 1) // 2
    return end


def last_boundary(text: str, end: int) -> int:
    """The last place at or before `end` where `text` may be cut without tearing what is seen as one character, or an
    escaped one from its backslash; `end` if that would leave little."""
    at = grapheme_boundary_before(text, end + 1)
    while at and text[at - 1] == "\\" and text[at : at + 1].isascii():
        at = grapheme_boundary_before(text, at)
    return at if at > end // 2 else end
