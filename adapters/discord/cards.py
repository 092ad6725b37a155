"""The sources of an answer as a card below it. Pure.

A card shows no words that the answer has not: the links at its end, in the line that a search leaves there
(`Sources: [1. …](…) · [2. …](…)`) or in the model's own list under a heading that says what it is. All else is text,
which everybody sees, also who switched cards off.
https://discord.com/developers/docs/resources/message#embed-object
"""

from __future__ import annotations

import re
from typing import Any, Final

_NAMES: Final = "Sources|References|Quellen|Fuentes|Références|Источники|来源|参考|出典"
_LINE: Final = re.compile(r"\n\n(Sources): (\[[^\n]+\]\(https?://[^\s()]+\))\s*\Z")
_LIST: Final = re.compile(
    rf"\n\s*(?:#{{1,3}} +)?(?:\*\*)?({_NAMES})\s*[:：]?(?:\*\*)?[:：]?[ \t]*\n"
    r"((?:\s*(?:[-*]|\d{1,2}\.) .*https?://.*\n?)+)\s*\Z",
    re.IGNORECASE,
)
_LONGEST: Final = 4_000  # characters: Discord takes 4,096


def split_off(markdown: str) -> tuple[str, dict[str, Any] | None]:
    """The answer without its sources, and their card; None if there are none. While a card is shown, Discord also adds
    previews of the links in the text; if that has any, everything stays text."""
    found = (_LINE.search(markdown) or _LIST.search(markdown)) if "://" in markdown else None
    if found is None or len(found[2]) > _LONGEST:
        return markdown, None
    text = markdown[: found.start()].strip()
    if not text or "://" in text or text.count("```") % 2:
        return markdown, None
    return text, {"title": found[1].strip(), "description": found[2].strip().replace(") · [", ")\n[")}
