"""Markdown as elements, of the same reading that every platform has. Pure.

The events of the reader open and close elements on a stack. Nothing of a text becomes markup: texts are escaped by
`markup.el`, addresses are judged there, and pictures from elsewhere are links, because to load one tells its server who
reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, Final

from adapters.web.formulas import formula
from adapters.web.markup import Child, Html, el, is_address, joined, link, linked
from gateway.delivery.markdown.characters import sound
from gateway.delivery.markdown.events import Event
from gateway.delivery.markdown.reading import language, read

LARGEST: Final = 200_000  # characters; a longer text is shown as it was written
_PLAIN: Final = {
    "Paragraph": "p",
    "HtmlBlock": "div",
    "BlockQuote": "blockquote",
    "Item": "li",
    "Emphasis": "em",
    "Strong": "strong",
    "Underline": "u",
    "Strikethrough": "s",
    "Subscript": "sub",
    "Superscript": "sup",
    "Monospaced": "code",
}
# Turned by its first letter; what stands in it turns with it, and so do its marks and columns.
_BLOCKS: Final = frozenset(("Paragraph", "HtmlBlock", "BlockQuote", "Heading", "List", "Table"))
_NOT_LINKED: Final = frozenset(("CodeBlock", "Link", "Image"))  # an address in them is code, or has a link
_COLOURED: Final = 20_000  # characters; longer code is plain
_COLOURS: Final = {  # classes by the kinds that pygments names, the particular ones first
    "Comment": "t-comment",
    "String": "t-text",
    "Number": "t-number",
    "Keyword": "t-word",
    "Function": "t-name",
    "Class": "t-name",
}
# Formulas, of which the last may only have begun.
_FORMULA: Final = re.compile(r"(?<!\\)(?:\$\$.*?(?:(\$\$)|\Z)|\\\[.*?(?:(\\\])|\Z)|\\\(.*?(?:(\\\))|\Z))", re.DOTALL)
_FORMULA_LONG: Final = 2_000  # characters
_UNMARKED: Final = re.compile(r"(<math\b.*?</math>|<[^>]*>|&#?\w+;)", re.DOTALL)  # what is no text of a page
_HEADINGS: Final = {"H1": "h3", "H2": "h4", "H3": "h5"}


def rendered(markdown: str) -> Html:
    """A text as elements; never raises. What cannot be read is shown as it was written."""
    if len(markdown) > LARGEST:
        return verbatim(markdown)
    try:
        _, events = read(sound(markdown))
        return _Tree().filled(events)
    except (LookupError, RecursionError, TypeError, ValueError):
        return verbatim(markdown)


def code_blocks(markdown: str) -> list[str]:
    """The blocks of code of a text, as `rendered` shows them; none of one that cannot be read."""
    found, inside = list[str](), False
    try:
        for event in read(sound(markdown))[1] if len(markdown) <= LARGEST else ():
            if event.name == "CodeBlock":
                inside = event.edge == "start"
                found += [""] * inside
            elif event.name == "Text" and inside:
                found[-1] += event.data
    except (LookupError, RecursionError, TypeError, ValueError):
        return []
    return found


def finished(markdown: str) -> str:
    """What is written of an answer so far, without a formula that has only begun: its signs would stand there until it
    ends, and then jump."""
    begins = max(markdown.rfind("\n\n"), len(markdown) - _FORMULA_LONG, 0)
    found = list(_FORMULA.finditer(markdown, begins)) if markdown.count("```") % 2 == 0 else []
    return markdown if not found or found[-1].lastindex else markdown[: found[-1].start()]


def all_rendered(texts: Sequence[str]) -> list[Html]:
    """The same of several texts."""
    return [rendered(each) for each in texts]


def verbatim(text: str) -> Html:
    """A text as it was written, line ends and spaces included."""
    return el("p", linked(text), class_="plain", dir="auto")


class _Tree:
    """The open elements: for each the event that began it, and what it holds so far."""

    def __init__(self) -> None:
        self._open: list[tuple[Event | None, list[Child]]] = [(None, [])]
        self._alignments: Sequence[str] = ()
        self._column = 0
        self._in_head = False

    def filled(self, events: Sequence[Event]) -> Html:
        """All elements of these events."""
        for event in _whole(events):
            if event.edge == "start":
                self._start(event)
            elif event.edge == "end":
                self._end(event)
            else:
                bare = event.name == "Text" and not any(each and each.name in _NOT_LINKED for each, _ in self._open)
                self._add(linked(event.data) if bare else _CONTENTS[event.name](event.data))
        while len(self._open) > 1:
            self._close()
        return joined(self._open[0][1])

    def _start(self, event: Event) -> None:
        if event.name == "Table":
            self._alignments = event.data
        elif event.name in ("TableHead", "TableRow"):
            self._column, self._in_head = 0, event.name == "TableHead"
        self._open.append((event, []))

    def _end(self, event: Event) -> None:
        if any(begun is not None and begun.name == event.name for begun, _ in self._open):
            while self._close() != event.name:
                pass

    def _close(self) -> str:
        """Close the innermost element; its name."""
        begun, children = self._open.pop()
        assert begun is not None, "the outermost is never closed"
        turned = "auto" if begun.name in _BLOCKS and len(self._open) == 1 else None
        self._add(self._element(begun, children, turned))
        return begun.name

    def _add(self, child: Child) -> None:
        self._open[-1][1].append(child)

    def _element(self, event: Event, children: list[Child], turned: str | None) -> Child:
        name = event.name
        if (
            tag := _PLAIN.get(name) or (_HEADINGS.get(event.data["level"], "h6") if name == "Heading" else None)
        ) is not None:
            return el(tag, children, dir=turned)
        if name == "TableCell":
            aligned = self._alignments[self._column] if self._column < len(self._alignments) else "None"
            self._column += 1
            tag = "th" if self._in_head else "td"
            return el(tag, children, class_={"Right": "right", "Center": "center"}.get(aligned))
        if name == "List":
            return _list(event.data, children, turned)
        if name == "Table":
            return el("div", el("table", children), class_="table", tabindex=0, dir=turned)
        made = _OTHERS.get(name)
        return joined(children) if made is None else made(event.data, children)


def _whole(events: Sequence[Event]) -> Iterator[Event]:
    """The events, with one for a text that comes in several: half an address is none."""
    for is_text, some in groupby(events, lambda event: event.name == "Text"):
        if is_text:
            first, *others = some
            yield first._replace(data="".join(each.data for each in (first, *others)))
        else:
            yield from some


def _list(start: int | None, children: list[Child], turned: str | None) -> Html:
    if start is None:
        return el("ul", children, dir=turned)
    return el("ol", children, start=start if start != 1 else None, dir=turned)


def _code(kind: Any, children: list[Child]) -> Html:
    info = kind["Fenced"] if isinstance(kind, dict) else ""
    known, code = language(info), "".join(map(str, children))
    if known is None or not code.strip():  # a word behind a fence without code may be an answer
        code, known = f"{info}\n{code}", None
    return el("pre", el("code", _coloured(code, known), data_language=known or None), dir="ltr", tabindex=0)


def _coloured(code: str, known: str | None) -> Child:
    """Code in the colours of its language, if anybody knows that."""
    if not known or len(code) > _COLOURED:
        return code
    lexers: Any = import_module("pygments.lexers")  # by name: most conversations have no code
    try:
        tokens = lexers.get_lexer_by_name(known, stripnl=False, ensurenl=False).get_tokens(code)
    except ValueError:
        return code
    kinds = ((next((each for each in _COLOURS if each in tuple(kind)), None), text) for kind, text in tokens)
    return [text if kind is None else el("span", text, class_=_COLOURS[kind]) for kind, text in kinds]


def _link(data: dict[str, Any], children: list[Child], mark: str = "") -> Child:
    target = data["dest_url"]
    text = joined(children) or joined(target)
    if not is_address(target) or target.startswith(("/", "?", "#")):
        return [mark, text, f" ({target})" if target not in ("", text) and not target.startswith("#") else ""]
    return link(target, mark, text)


_OTHERS: Final[dict[str, Callable[[Any, list[Child]], Child]]] = {
    "CodeBlock": _code,
    "Link": _link,
    "Image": lambda data, children: _link(data, children, "🖼 "),
    "Spoiler": lambda _, children: el("span", children, class_="spoiler", tabindex=0),
    "FootnoteDefinition": lambda label, children: el("div", f"[{label}] ", children, class_="footnote", dir="auto"),
    "TableHead": lambda _, children: el("tr", children),
    "TableRow": lambda _, children: el("tr", children),
}
_CONTENTS: Final[dict[str, Callable[[Any], Child]]] = {
    "Text": lambda data: data,
    "Code": lambda data: el("code", data, dir="ltr"),
    "InlineMath": lambda data: formula(data, display=False),
    "DisplayMath": lambda data: formula(data, display=True),
    "SoftBreak": lambda _: el("br"),
    "HardBreak": lambda _: el("br"),
    "Rule": lambda _: el("hr"),
    "TaskListMarker": lambda done: [el("span", "☑" if done else "☐", class_="task"), " "],
    "FootnoteReference": lambda label: f"[{label}]",
}


def words_of(query: str) -> re.Pattern[str] | None:
    """What finds the words of a search in a text, as its one group; None: there are none."""
    asked = "|".join(map(re.escape, sorted(re.findall(r"\w+", query), key=len, reverse=True)))
    return re.compile(rf"\b({asked})" if asked.isascii() else f"({asked})", re.IGNORECASE) if asked else None


def marked(shown: Html, query: str) -> Html:
    """A text with the words of a search marked."""
    found = words_of(query)
    pieces = _UNMARKED.split(shown) if found is not None else [shown]
    return Html(
        "".join(found.sub(r"<mark>\1</mark>", each) if found and each[:1] not in "<&" else each for each in pieces)
    )
