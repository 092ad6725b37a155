"""Cutting a text into parts that a platform can show. Pure."""

from __future__ import annotations

from gateway.delivery.markdown.characters import Unit, reach


def split_text(text: str, limit: int | None, unit: Unit = "codepoints") -> list[str]:
    """Parts of at most `limit` units whose concatenation is `text`; at least one part.

    Cuts after the last line end, else the last space, of the second half of a part, else anywhere
    between two characters.
    """
    if limit is None:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = start + max(1, reach(text[start : start + limit], limit, unit))
        if end < len(text):
            end = _nice_cut(text, start, end)
        parts.append(text[start:end])
        start = end
    return parts or [text]


def _nice_cut(text: str, start: int, end: int) -> int:
    middle = start + (end - start) // 2
    for mark in ("\n", " "):
        found = text.rfind(mark, middle, end)
        if found >= 0:
            return found + 1
    return end
