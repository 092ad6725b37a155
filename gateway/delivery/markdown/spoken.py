"""Markdown as a voice says it: the words, without markup, and without what nobody wants to hear: code, the rows of a
table after the third, addresses of links. The text stands beside the voice, so nothing is lost."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from gateway.delivery.markdown.reading import read

_FIRST: Final = 200  # characters of the first part: whoever listens waits for no more than that
_PART: Final = 1_000
_ROWS: Final = 3  # of a table
_LONGEST_CODE: Final = 40  # characters of code within a sentence that are said: a name, a short command
_SILENT: Final = ("CodeBlock", "FootnoteDefinition", "HtmlBlock", "MetadataBlock")
_ENDS: Final = ("Paragraph", "Heading", "Item", "TableHead", "TableRow")
_ADDRESS: Final = re.compile(r"https?://(?:www\.)?([^\s/?#:]{1,100})[^\s<>]*", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?…:;])\s+|(?<=[。！？；])|\n+")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]\Z")  # behind it a sentence ends with another sign
_UNSAID: Final = ("So", "Sk", "Cn", "Co", "Cc", "Cs")  # classes of signs: emoji, their colours, what is not seen


def spoken(most: int, markdown: str) -> list[str]:
    """At most so many characters of a text, in parts of whole sentences, the first one short. Empty if there is nothing
    to say."""
    parts, room = [""], _FIRST
    for sentence in _sentences(words_of(markdown[: 20 * most])):
        if len(sentence) + sum(map(len, parts)) > most:
            break
        if parts[-1] and len(parts[-1]) + len(sentence) >= room:
            parts.append("")
            room = _PART
        parts[-1] = f"{parts[-1]} {sentence}".strip()
    return [each for each in parts if any(map(str.isalnum, each))]


def _sentences(words: str) -> Iterator[str]:
    """The sentences; those that are too long for a part in pieces."""
    for sentence in filter(None, map(str.strip, _SENTENCE.split(words))):
        while len(sentence) > _PART:
            at = sentence.rfind(" ", _PART // 2, _PART)
            at = _PART if at < 0 else at
            yield sentence[:at]
            sentence = sentence[at:].strip()
        yield sentence


def words_of(markdown: str) -> str:
    """The words of a text, with each block on a line of its own that ends like a sentence."""
    try:
        events = read(markdown.encode("utf-8", "replace").decode())[1]
    except ValueError:
        return _said(markdown)
    lines, line, silent, rows = list[str](), list[str](), 0, 0
    for edge, name, data, _, _ in events:
        if name in _SILENT or (name == "TableRow" and rows >= _ROWS):
            silent += {"start": 1, "end": -1}.get(edge, 0)
        elif name == "Table":
            rows = 0
        elif name == "TableCell" and edge == "end" and not silent:
            line.append(", ")
        elif name in ("SoftBreak", "HardBreak"):
            line.append(" ")
        elif not silent and (name == "Text" or (name == "Code" and len(data) <= _LONGEST_CODE)):
            line.append(data)
        rows += name == "TableRow" and edge == "end"
        if name in _ENDS and line:
            lines.append(_said("".join(line)))
            line.clear()
    return "\n".join(filter(None, [*lines, _said("".join(line))]))


def _said(line: str) -> str:
    """A line as it is said: an address by its host, no emoji, and at its end a mark at which the voice falls."""
    told = _ADDRESS.sub(r"\1", line)
    told = "".join(" " if unicodedata.category(sign) in _UNSAID else sign for sign in told)
    told = " ".join(told.split()).rstrip(", ")
    if not told or unicodedata.category(told[-1]).startswith("P"):
        return told
    return f"{told}。" if _WIDE.search(told) else f"{told}."
