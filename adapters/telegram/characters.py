"""Single characters in Telegram: their count, and the ones that Telegram takes out.

Telegram counts in UTF-16 units. It takes some characters out of a text before it looks at it
(`clean_input_string` in TDLib's td/telegram/misc.cpp). A text that went through `cleaned` is shown as
it is, so that offsets in it are the offsets that Telegram sees.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from gateway.delivery.markdown.characters import length

LONGEST: Final = 4_096  # UTF-16 units of one message (https://core.telegram.org/bots/api#sendmessage)
LONGEST_CAPTION: Final = 1_024  # of the text with a file (https://core.telegram.org/bots/api#sendphoto)

# Every control character becomes a space; line and paragraph separators are line ends here, because
# Telegram would join the lines. Behind them stand the characters that Telegram takes out: marks of
# writing direction and three combining lines and rings.
_STRANGE: Final = re.compile("[\x00-\x09\x0b-\x1f\u2028-\u202e\u030a\u0333\u033f]")
_REPLACED: Final = (
    {code: " " for code in range(0x20) if code != 0x0A}
    | {0x0D: None, 0x2028: "\n", 0x2029: "\n"}
    | dict.fromkeys((*range(0x202A, 0x202F), 0x030A, 0x0333, 0x033F))
)
_RINGED: Final = re.compile("[A-Za-z]\u030a")


def units(text: str) -> int:
    """The length of `text` in UTF-16 units."""
    return length(text, "utf16")


def cleaned(text: str) -> str:
    """Return `text` as Telegram would clean it."""
    if not _STRANGE.search(text):
        return text
    whole = _RINGED.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)
    return whole.translate(_REPLACED)
