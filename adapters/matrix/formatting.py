"""Markdown made into the HTML that Matrix knows (https://spec.matrix.org/v1.15/client-server-api/#mroommessage-msgtypes),
no larger than one event may be. The Markdown itself goes along for programs that show no HTML. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from gateway.delivery.markdown.characters import is_visible, sound
from gateway.delivery.markdown.events import Event
from gateway.delivery.markdown.fitting import MAY_FAIL, as_written
from gateway.delivery.markdown.formulas import readable
from gateway.delivery.markdown.reading import PLAIN, language, read
from gateway.delivery.markdown.splitting import Splitter

LONGEST: Final = 12_000  # characters of one message
_MOST_BYTES: Final = 40_000  # of its text in both forms: an event has 65,536, and encrypted it grows by a third
_TAG: Final = re.compile("<[^>]*+>")
_LINKED: Final = ("http://", "https://", "ftp://", "mailto:", "magnet:")
_TAGS: Final = {
    "Paragraph": "p",
    "BlockQuote": "blockquote",
    "Item": "li",
    "Table": "table",
    "TableHead": "tr",
    "TableRow": "tr",
    "TableCell": "td",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "del",
    "Underline": "u",
    "Subscript": "sub",
    "Superscript": "sup",
    "Monospaced": "code",
}


def content(markdown: str) -> dict[str, Any]:
    """The texts of a message: one part of Markdown as people are to see it. Never raises, never empty."""
    text = sound(markdown).strip("\n")
    made = None if PLAIN.fullmatch(text) else html(text)
    if made is None or not is_visible(_TAG.sub("", made)):
        return plain(text)
    return {"body": text, "format": "org.matrix.custom.html", "formatted_body": made}


def plain(text: str) -> dict[str, Any]:
    """The same of a text that is no Markdown."""
    return {"body": as_written(text)}


def html(markdown: str) -> str | None:
    """The HTML of a text; None for one that cannot be laid out."""
    try:
        return "".join(_written(*read(markdown)))
    except MAY_FAIL:
        return None


def _written(source: bytes, events: Sequence[Event]) -> Iterator[str]:
    code: list[str] | None = None  # what the open block of code holds
    info, note, told = "", "", 0  # behind its fence; a footnote's number, before its first word; the end of a cell
    opened: list[tuple[str, str]] = []  # what is open, and what ends it
    for event in events:
        match event.edge, event.name:
            case "start", "CodeBlock":
                code, info = [], event.data["Fenced"] if event.data != "Indented" else ""
            case "end", "CodeBlock":
                yield _code("".join(code or ()), info)
                code = None
            case "", "Text" if code is not None:
                code.append(event.data)
            case "", "Text":
                yield note + _text(event.data)
                note = ""
            case "start", "FootnoteDefinition":
                note = _text(f"[{event.data}] ")
            case "start", name:
                told = event.start if name == "TableRow" else told
                begin, end = _around(event)
                opened.append((name, end))
                yield begin
            case "end", name if any(each == name for each, _ in opened):  # HTML in a text may end out of its order
                # Of a row with more cells than there are headers the parser leaves the last ones out.
                surplus = source[told : event.end].strip(b"| \t\n").decode() if name == "TableRow" else ""
                yield f"<td>{_text(surplus)}</td>" if surplus else ""
                told = event.end if name == "TableCell" else told
                while opened:
                    inner, end = opened.pop()
                    yield end
                    if inner == name:
                        break
            case "", _:
                yield _single(event)
    yield from (end for _, end in reversed(opened))


def _around(event: Event) -> tuple[str, str]:
    """What comes before and after something that contains others."""
    match event.name:
        case "Heading":
            tag = event.data["level"].lower()
            return f"<{tag}>", f"</{tag}>"
        case "List":
            return ("<ul>", "</ul>") if event.data is None else (f'<ol start="{event.data}">', "</ol>")
        case "Spoiler":
            return "<span data-mx-spoiler>", "</span>"
        case "Link" | "Image":
            target, sign = event.data["dest_url"], "🖼 " if event.name == "Image" else ""
            if target.lower().startswith(_LINKED):
                return f'<a href="{escape(target)}">{sign}', "</a>"
            # Matrix takes no link to a path, say.
            return sign, f" ({_text(target)})" if target and not target.startswith("#") else ""
    tag = _TAGS.get(event.name, "")
    return (f"<{tag}>", f"</{tag}>") if tag else ("", "")


def _single(event: Event) -> str:
    """What represents something that contains nothing else."""
    match event.name:
        case "Code":
            return f"<code>{_text(event.data)}</code>"
        case "InlineMath" | "DisplayMath":
            tag = "span" if event.name == "InlineMath" else "div"
            return f'<{tag} data-mx-maths="{escape(event.data)}"><code>{_text(readable(event.data))}</code></{tag}>'
        case "SoftBreak" | "HardBreak":
            return "<br>"
        case "Rule":
            return "<hr>"
        case "TaskListMarker":
            return "☑ " if event.data else "☐ "
        case "FootnoteReference":
            return _text(f"[{event.data}]")
    raise LookupError(event.name)


def _text(words: str) -> str:
    return escape(words, quote=False).replace("\n", "<br>")


def _code(code: str, info: str) -> str:
    known = language(info)
    if known is None or not code.strip():  # a word behind a fence without code may be an answer
        code, known = f"{info}\n{code}", None
    named = f' class="language-{escape(known)}"' if known else ""
    return f"<pre><code{named}>{escape(code, quote=False)}</code></pre>"


def load(part: str) -> float:
    """How full a message a part makes: 1 is a whole message."""
    texts: Iterable[str] = (part, html(part) or "")
    return max(len(part) / LONGEST, sum(len(each.encode(errors="replace")) for each in texts) / _MOST_BYTES)


split: Final = Splitter(limit=LONGEST, unit="codepoints", load=load).split


def fits_caption(text: str) -> bool:
    """Whether a text can be shown with a file."""
    return load(text) <= 1
