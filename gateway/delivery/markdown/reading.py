"""Markdown as events: read by pyromark, and corrected where a chat means something else.

telegramify-markdown reads with the same parser and turns most of this into entities, but leaves out
HTML and the dollars of prices, joins a list's text with the code below it and rewrites code that looks
like LaTeX. In a chat nothing may be missing, so its formulas are taken and the rest is done here.

In a chat `$5 and 10$` are prices, `2*3*4` is a product, `__init__.py` is a name, `~` means "about", `a || b` is not
hidden, `<T>` is text; formulas come as `\\(x\\)` as well, and a list of sources is shown even if no text refers to
it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Final

import pyromark
from pyromark import Options

from gateway.delivery.markdown.events import Event, contained, events
from gateway.delivery.markdown.formulas import is_formula
from gateway.delivery.markdown.tags import without_html

OPTIONS: Final = (
    Options.ENABLE_TABLES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_GFM
    | Options.ENABLE_MATH
)
_MEANT_IN_PAIRS: Final = Options.ENABLE_MATH | Options.ENABLE_STRIKETHROUGH
_READINGS: Final = 3  # each one takes literally what the last one showed; then no dollar means anything

# A language, perhaps with attributes for pages, as in `python {linenos=true}` or `js title="a.js"`. No part of it
# gives back what it took: a model may be brought to write a text on which a pattern that tries again never ends.
_INFO: Final = re.compile(
    r"""(?:(?P<language>[\w+#.-]{1,32}+)(?![^\s,{]))?+"""
    r"""(?:[\s,]*+(?:\{[^{}]*+\}|[\w-]++=(?:"[^"]*+"|[^\s"]++)))*+\s*+"""
)
# No formula holds the beginning of another one: else each of a thousand beginnings would be followed to its end.
_IN_FORMULA: Final = r"(?:[^$\\]|\\[^$()\[\]]){1,2000}?"
_SLASHED_FORMULA: Final = re.compile(
    rf"\\\((?P<inline>{_IN_FORMULA})\\\)|\\\[(?P<display>{_IN_FORMULA})\\\]", re.DOTALL
)
_EMPTY_LINE: Final = re.compile(r"\n[ \t>]*\n")
_DEFINITION: Final = re.compile(r"^[ \t>]*\[[^\]]+\]:", re.MULTILINE)
# What stands beside a part of a name, and the names of Python that stand alone.
_NAMED_BEFORE: Final = re.compile(rb"[\w./\\:]")
_NAMED_BEHIND: Final = re.compile(rb"\.\w|[(/\[\\]|::")
_NAMES: Final = re.compile(
    rb"__(?:all|call|class|dict|doc|enter|eq|exit|file|future|getattr|getitem|hash|init|iter|len|main|name|new|next"
    rb"|pycache|repr|setattr|slots|str|version)__"
)
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
_SPOILER: Final = re.compile(r"(?<!\|)\|\|(?!\|)")
# Lines that begin with a letter or a digit, but not like an item of a list, and hold no sign that means anything here:
# laid out, they are what they were.
_WORDS: Final = r"(?!\d+[.)])[^\W_][^\s\x00-\x1f\\`*_~$<>&\[\]|]*+(?: ++[^\s\x00-\x1f\\`*_~$<>&\[\]|]++)*+"
PLAIN: Final = re.compile(rf"{_WORDS}(?:\n{{1,2}}{_WORDS})*+")
_BLOCKS: Final = frozenset(
    ("Paragraph", "Heading", "Item", "TableCell", "HtmlBlock", "CodeBlock", "List", "BlockQuote")
)


def language(info: str) -> str | None:
    """The language after a fence, "" if there is none; None if the text there is no language."""
    match = _INFO.fullmatch(info)
    return match["language"] or "" if match is not None else None


def read(markdown: str) -> tuple[bytes, Sequence[Event]]:
    """The events of `markdown`, and the source that their offsets refer to. Raises ValueError for a text that UTF-8
    cannot hold, or Unreadable."""
    source = _with_dollars(markdown) if r"\(" in markdown or r"\[" in markdown else markdown
    for _ in range(_READINGS):
        data = source.encode()
        found = events(source, OPTIONS)
        literal = _literal(source, data, found)
        if not literal:
            return data, _refined(source, found)
        source = _escaped(data, literal).decode()
    return source.encode(), _refined(source, events(source, OPTIONS & ~_MEANT_IN_PAIRS))


def _refined(source: str, found: Sequence[Event]) -> Sequence[Event]:
    with_spoilers = list(_with_spoilers(found)) if "||" in source else found
    return without_html(with_spoilers) if "<" in source else with_spoilers


# Signs to be taken literally


def _literal(source: str, data: bytes, read_so_far: Sequence[Event]) -> list[int]:
    """Byte offsets of characters that have no special meaning here, and are to be escaped."""
    found: list[int] = []
    if "$" in source or "~" in source:
        for event in read_so_far:
            prices = event.name in ("InlineMath", "DisplayMath") and not _is_mathematics(event, data)
            about = event.edge == "start" and event.name == "Strikethrough" and data[event.start + 1] != ord("~")
            if prices or about:
                found += (event.start, event.end - 1)
    if "*" in source or "__" in source:
        for event in read_so_far:
            if event.edge == "start" and event.name in ("Emphasis", "Strong") and _is_literal(event, data):
                width = 1 if event.name == "Emphasis" else 2
                found += (*range(event.start, event.start + width), *range(event.end - width, event.end))
    if "]:" in source and _DEFINITION.search(source):
        found += _idle_definitions(source, read_so_far)
    return sorted(set(found))


def _is_literal(event: Event, data: bytes) -> bool:
    """Whether `*` or `_` is only a character, with letters or digits on both sides: `2*3*4`, `a*b*c`, `__init__.py`. In
    scripts without spaces, such stars are emphasis."""
    if data[event.start] == ord("_"):
        word = data[event.start : event.end]
        if event.name != "Strong" or not word.replace(b"_", b"").isalnum():
            return False
        before, behind = data[max(0, event.start - 1) : event.start], data[event.end : event.end + 2]
        return bool(_NAMES.fullmatch(word) or _NAMED_BEFORE.match(before) or _NAMED_BEHIND.match(behind))
    around = (data[event.start - 1 : event.start], data[event.end : event.end + 1])
    return all(len(byte) == 1 and byte.isascii() and byte.isalnum() for byte in around)


def _is_mathematics(event: Event, data: bytes) -> bool:
    """Whether `$x$` has mathematics between the dollars, and no letter or digit on either side: `US$5` is a price."""
    if event.name == "DisplayMath":
        return bool(event.data.strip())
    around = data[max(0, event.start - 1) : event.start] + data[event.end : event.end + 1]
    return not any(chr(byte).isalnum() for byte in around if byte < 0x80) and is_formula(event.data)


def _idle_definitions(source: str, read_so_far: Iterable[Event]) -> Iterator[int]:
    """Where there are definitions that no link uses, or that define no link: nobody would see them."""
    used = {
        event.data["id"].lower() for event in read_so_far if event.edge == "start" and event.name in ("Link", "Image")
    }
    with contained():
        definitions = pyromark.reference_definitions(source, options=OPTIONS)
    for label, definition in definitions.items():
        if label.lower() not in used or not _WEB.match(definition["dest"]):
            yield definition["span"]["start"]


def _escaped(data: bytes, offsets: Sequence[int]) -> bytes:
    return b"\\".join(data[start:end] for start, end in pairwise((0, *offsets, len(data))))


# Formulas between `\(` and `\)`


def _with_dollars(markdown: str) -> str:
    """`markdown` with dollars around formulas in slashed brackets, except in code."""
    data = markdown.encode()
    parts: list[str] = []
    position = 0
    for event in events(markdown, OPTIONS):
        if event.edge != "end" and event.name in ("Code", "CodeBlock", "InlineMath", "DisplayMath"):
            parts.append(_SLASHED_FORMULA.sub(_in_dollars, data[position : event.start].decode()))
            parts.append(data[event.start : event.end].decode())
            position = event.end
    parts.append(_SLASHED_FORMULA.sub(_in_dollars, data[position:].decode()))
    return "".join(parts)


def _in_dollars(match: re.Match[str]) -> str:
    latex = match["inline"] or match["display"]
    if not is_formula(latex) or _EMPTY_LINE.search(latex):
        return match.group()
    return f"${latex.strip()}$" if match["inline"] else f"$${latex}$$"


# Spoilers, which are no Markdown


def _with_spoilers(found: Sequence[Event]) -> Iterator[Event]:
    """Events in which `||hidden||` is a tag of its own, if both pairs of strokes are in the same paragraph."""
    hidden = False
    for event, last in zip(found, _last_closing(found), strict=True):
        if event.name != "Text" or "||" not in event.data:
            hidden = hidden and event.name not in _BLOCKS
            yield event
            continue
        written = 0
        for strokes in _SPOILER.finditer(event.data):
            opens = not hidden and _opens(event.data, strokes) and strokes.end() < last
            if not opens and not (hidden and _closes(event.data, strokes)):
                continue
            yield event._replace(data=event.data[written : strokes.start()])
            hidden = not hidden
            yield Event("start" if hidden else "end", "Spoiler", None, event.start, event.end)
            written = strokes.end()
        yield event._replace(data=event.data[written:])


def _around(text: str, strokes: re.Match[str]) -> tuple[str, str]:
    """The characters before and after the strokes; "" at an edge of the text."""
    return text[max(0, strokes.start() - 1) : strokes.start()], text[strokes.end() : strokes.end() + 1]


def _opens(text: str, strokes: re.Match[str]) -> bool:
    before, after = _around(text, strokes)
    return not after.isspace() and not before.isalnum()


def _closes(text: str, strokes: re.Match[str]) -> bool:
    before, after = _around(text, strokes)
    return not before.isspace() and not after.isalnum()


def _last_closing(found: Sequence[Event]) -> list[float]:
    """For each event, the place in its text of the last strokes that close; beyond its text if some follow before its
    block ends, and -1 if there are none."""
    places: list[float] = []
    later = False
    for event in reversed(found):
        strokes = _SPOILER.finditer(event.data) if event.name == "Text" and "||" in event.data else ()
        here = max((each.start() for each in strokes if _closes(event.data, each)), default=-1)
        places.append(inf if later else here)
        later = (later or here >= 0) and event.name not in _BLOCKS
    return places[::-1]
