"""Cutting a text into parts that a platform can show. Pure."""

from __future__ import annotations


def split_text(text: str, limit: int | None, *, utf16: bool = False) -> list[str]:
    """Parts of at most `limit` units whose concatenation is `text`; at least one part.

    Cuts after the last line end, else the last space, of the second half of a part, else anywhere
    between two characters. A unit is a code point, or a UTF-16 unit if `utf16`.
    """
    if limit is None:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = _reach(text, start, limit, utf16)
        if end < len(text):
            end = _nice_cut(text, start, end)
        parts.append(text[start:end])
        start = end
    return parts or [text]


def _reach(text: str, start: int, limit: int, utf16: bool) -> int:
    if not utf16:
        return min(len(text), start + limit)
    units, end = 0, start
    while end < len(text):
        units += 2 if text[end] > "\uffff" else 1
        if units > limit:
            break
        end += 1
    return max(end, start + 1)


def _nice_cut(text: str, start: int, end: int) -> int:
    middle = start + (end - start) // 2
    for mark in ("\n", " "):
        found = text.rfind(mark, middle, end)
        if found >= 0:
            return found + 1
    return end
