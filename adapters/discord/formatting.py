"""Markdown made into Discord's, no longer than one message may be. Pure.

Discord reads most of Markdown itself. A text that is none is kept from being read so.
"""

from __future__ import annotations

import re
from typing import Final

from adapters.discord.codec import LONGEST
from gateway.delivery.markdown.characters import is_visible, length, sound
from gateway.delivery.markdown.splitting import Splitter

_EMPTY: Final = "(empty message)"
_SIGNS: Final = re.compile(r"([\\*_`~|])|^(#{1,3} |-# |>|[-+] |\d+\. )", re.MULTILINE)
_ADDRESS: Final = re.compile(r"(https?://\S+)")


def shown(markdown: str) -> str:
    """What Discord is to show of one part of Markdown; never empty."""
    text = sound(markdown).strip("\n")
    return text if is_visible(text) else _EMPTY


def plain(text: str) -> str:
    """A text that is no Markdown, so that Discord shows it as it is; never empty."""
    text = sound(text).strip()
    if not is_visible(text):
        return _EMPTY
    pieces = _ADDRESS.split(text)
    kept = "".join(piece if number % 2 else _SIGNS.sub(_literal, piece) for number, piece in enumerate(pieces))
    return kept if length(kept, "utf16") <= LONGEST else text


def _literal(found: re.Match[str]) -> str:
    return f"\\{found[0]}" if not found[0][0].isdigit() else found[0].replace(".", "\\.")


def fits_caption(text: str) -> bool:
    """Whether a text can be shown with a file."""
    return length(shown(text), "utf16") <= LONGEST


def load(part: str) -> float:
    """How full a message a part makes: 1 is all it holds."""
    return max(length(part, "utf16"), length(shown(part), "utf16")) / LONGEST


split: Final = Splitter(limit=LONGEST, unit="utf16", load=load).split
