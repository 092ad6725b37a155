"""HTML, as the Bot API defines it (https://core.telegram.org/bots/api#html-style), and the choice of a parse mode. The
old `Markdown`, which the documentation keeps for old bots only, is not emulated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.emulators.telegram import markdown
from tests.emulators.telegram.entities import LARGEST_TEXT, read_entities
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import Refusal, bad
from tests.emulators.telegram.units import length

Parsed = tuple[str, list[dict[str, Any]]]

_KINDS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot));?")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_TAG = re.compile(r"<(/?)([^\s>]*)((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_ATTRIBUTE = re.compile(r"\s*([^\s=>]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[A-Za-z0-9.-]+))?")


def formatted(parameters: Parameters, text: str, mode: str = "parse_mode", entities: str = "entities") -> Parsed:
    """The text of a request before it is settled: parsed, or with the entities that came along. A parse mode wins."""
    if len(text.encode()) > LARGEST_TEXT:
        raise bad("Text is too long")
    name = parameters.text(mode).lower()
    if not text or name in ("", "none"):
        return text, read_entities(parameters.structure(entities, "entities"))
    parser = _MODES.get(name)
    if parser is None:
        raise bad("Unsupported parse_mode")
    return parser(text)


def parse_html(source: str) -> Parsed:
    """The text and its entities. Raises Refusal, worded as Telegram's."""
    return _Reader(source).run()


@dataclass(slots=True, kw_only=True)
class _Tag:
    name: str
    offset: int
    first: int
    attributes: dict[str, str] = field(default_factory=dict)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._result: list[str] = []
        self._offset = 0
        self._open: list[_Tag] = []
        self._entities: list[dict[str, Any]] = []

    def run(self) -> Parsed:
        while self._at < len(self._source):
            if self._source[self._at] == "<":
                self._tag()
            else:
                self._character()
        if self._open:
            raise self._broken(f'Can\'t find end tag corresponding to start tag "{self._open[-1].name}"')
        for entity in self._entities:
            if entity["type"] == "code":  # alone, code has no language
                entity.pop("language", None)
        return "".join(self._result), self._entities

    def _character(self) -> None:
        match = _REFERENCE.match(self._source, self._at)
        text = _decoded(match) if match else ""
        if match and text:
            self._at = match.end()
        else:
            text = self._source[self._at]
            self._at += 1
        self._result.append(text)
        self._offset += length(text)

    def _tag(self) -> None:
        begin = self._at
        match = _TAG.match(self._source, begin)
        if match is None:
            kind = "end" if self._source.startswith("</", begin) else "start"
            raise self._broken(f"Unclosed {kind} tag at byte offset {self._bytes(begin)}")
        self._at = match.end()
        if match[1]:
            self._end(match[2].lower(), begin)
        else:
            self._start(match[2].lower(), match[3], begin)

    def _start(self, name: str, rest: str, begin: int) -> None:
        where = f"at byte offset {self._bytes(begin)}"
        if name not in _KINDS:
            raise self._broken(f'Unsupported start tag "{name}" {where}')
        attributes = {}
        for key, value in _ATTRIBUTE.findall(rest):
            attributes[key.lower()] = _REFERENCE.sub(_decoded, value.strip("\"'"))
        if name == "span" and attributes.get("class") != "tg-spoiler":
            raise self._broken(f'Tag "span" must have class "tg-spoiler" {where}')
        self._open.append(_Tag(name=name, offset=self._offset, first=len(self._result), attributes=attributes))

    def _end(self, name: str, begin: int) -> None:
        where = f"at byte offset {self._bytes(begin)}"
        if not self._open:
            raise self._broken(f"Unexpected end tag {where}")
        tag = self._open.pop()
        if name and name != tag.name:
            raise self._broken(f'Unmatched end tag {where}, expected "</{tag.name}>", found "</{name}>"')
        extra = self._extra(tag)
        if extra is not None and self._offset > tag.offset:
            found = {"type": _KINDS[tag.name], "offset": tag.offset, "length": self._offset - tag.offset}
            self._put({**found, **extra})

    def _extra(self, tag: _Tag) -> dict[str, Any] | None:
        if tag.name == "a":
            return markdown.link(tag.attributes.get("href") or "".join(self._result[tag.first :]))
        if tag.name == "tg-emoji":
            if not tag.attributes.get("emoji-id", "").isdigit():
                raise self._broken("Invalid custom emoji identifier specified")
            return {"custom_emoji_id": tag.attributes["emoji-id"]}
        if tag.name == "blockquote" and "expandable" in tag.attributes:
            return {"type": "expandable_blockquote"}
        language = tag.attributes.get("class", "").removeprefix("language-")
        return {"language": language} if tag.name == "code" and language else {}

    def _put(self, entity: dict[str, Any]) -> None:
        """Code that fills a `pre` gives it its language."""
        last = self._entities[-1] if self._entities else {}
        same = (last.get("offset"), last.get("length")) == (entity["offset"], entity["length"])
        if entity["type"] == "pre" and last.get("type") == "code" and same:
            self._entities[-1] = {**last, "type": "pre"}
        else:
            self._entities.append(entity)

    def _bytes(self, position: int) -> int:
        return len(self._source[:position].encode())

    def _broken(self, reason: str) -> Refusal:
        return bad(f"Can't parse entities: {reason}")


def _decoded(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3]]
    number = int(match[1], 16) if match[1] else int(match[2])
    return chr(number) if 0 < number < 0x10FFFF and not 0xD800 <= number <= 0xDFFF else ""


_MODES: dict[str, Callable[[str], Parsed]] = {"markdownv2": markdown.parse, "html": parse_html}
