"""MarkdownV2, as the Bot API defines it: https://core.telegram.org/bots/api#markdownv2-style.

Inside code only the backquote and the backslash mean something. Elsewhere every one of 18 characters must be escaped
unless it begins or ends an entity, and what begins must end. Offsets in errors count bytes of UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.emulators.telegram.refusals import Refusal, bad
from tests.emulators.telegram.units import length

RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
_ENDS = {
    "bold": "*",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
    "pre": "```",
    "text_link": "]",
    "custom_emoji": "]",
}
_STARTS = (("__", "underline"), ("_", "italic"), ("*", "bold"), ("~", "strikethrough"), ("||", "spoiler"))


@dataclass(slots=True, kw_only=True)
class _Open:
    """An entity whose end has not come yet."""

    kind: str
    offset: int  # units of the result
    position: int  # where it began in the source
    first: int  # where its text begins in the result
    language: str = ""


def parse(source: str) -> tuple[str, list[dict[str, Any]]]:
    """The text and its entities. Raises Refusal, worded as Telegram's."""
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._result: list[str] = []
        self._offset = 0
        self._open: list[_Open] = []
        self._entities: list[dict[str, Any]] = []
        self._line_begins = True  # nothing of this line was written yet: a ">" opens a quotation

    def run(self) -> tuple[str, list[dict[str, Any]]]:
        while self._at < len(self._source):
            self._step()
        if self._quoting:
            self._end_quotation()
        if self._open:
            raise self._unended()
        return "".join(self._result), self._entities

    @property
    def _quoting(self) -> bool:
        return any(entity.kind == "blockquote" for entity in self._open)

    def _step(self) -> None:
        character = self._source[self._at]
        escaped = self._source[self._at + 1 : self._at + 2]
        if character == "\\" and escaped and 0 < ord(escaped) <= 126:
            self._write(escaped)
            self._at += 2
        elif self._open and self._open[-1].kind in ("code", "pre"):
            self._step_in_code()
        elif character == "\n":
            self._line_ends()
        elif character not in RESERVED:
            self._write(character)
            self._at += 1
        elif not self._closes():
            self._begin()

    def _write(self, text: str) -> None:
        self._result.append(text)
        self._offset += length(text)
        self._line_begins = text.endswith("\n")

    def _step_in_code(self) -> None:
        """A single backquote inside a block begins code, which is why it must be escaped there."""
        if self._here(_ENDS[self._open[-1].kind]):
            return self._close()
        if self._here("`"):
            self._push("code", self._at)
        else:
            self._write(self._source[self._at])
        self._at += 1
        return None

    # -- ends ---------------------------------------------------------------------------------

    def _closes(self) -> bool:
        """Close the innermost entity if its end is here. Two underscores always belong to an underline."""
        if not self._open:
            return False
        kind = self._open[-1].kind
        if kind == "italic":
            here = self._here("_") and not self._here("__")
        else:
            here = kind in _ENDS and self._here(_ENDS[kind])
        if here:
            self._close()
        return here

    def _here(self, mark: str) -> bool:
        return self._source.startswith(mark, self._at)

    def _close(self) -> None:
        entity = self._open.pop()
        self._at += len(_ENDS.get(entity.kind, "_"))
        extra: dict[str, Any] | None = {"language": entity.language} if entity.language else {}
        if entity.kind == "text_link":
            extra = link(self._address("URL") or "".join(self._result[entity.first :]))
        elif entity.kind == "custom_emoji":
            extra = _emoji(self._address("custom emoji URL"))
        if extra is not None:
            self._add(entity, extra)

    def _add(self, entity: _Open, extra: dict[str, Any]) -> None:
        if self._offset > entity.offset:
            found = {"type": entity.kind, "offset": entity.offset, "length": self._offset - entity.offset}
            self._entities.append({**found, **extra})

    def _address(self, what: str) -> str:
        """Return the text in the round brackets that follow; nothing if there are none."""
        if not self._here("("):
            return ""
        self._at += 1
        begin, address = self._at, []
        while self._at < len(self._source) and self._source[self._at] != ")":
            if self._source[self._at] == "\\" and self._at + 1 < len(self._source):
                self._at += 1
            address.append(self._source[self._at])
            self._at += 1
        if self._at == len(self._source):
            raise _broken(f"Can't find end of a {what} at byte offset {self._bytes(begin)}")
        self._at += 1
        return "".join(address)

    def _line_ends(self) -> None:
        """A quotation goes on as long as its lines begin with ">"."""
        goes_on = self._source.startswith(">", self._at + 1)
        if self._quoting and not goes_on:
            self._write("\n")
            self._at += 1
            self._end_quotation()
            return
        self._write("\n")
        self._at += 1
        if goes_on and self._quoting:
            self._at += 1
            self._line_begins = False

    def _end_quotation(self) -> None:
        """A spoiler mark just before the end says that the quotation can be opened."""
        expandable = self._open[-1].kind == "spoiler" and not "".join(self._result[self._open[-1].first :]).strip("\n")
        if expandable:
            self._open.pop()
        if self._open[-1].kind != "blockquote":
            raise self._unended()
        entity = self._open.pop()
        entity.kind = "expandable_blockquote" if expandable else "blockquote"
        self._add(entity, {})

    # -- beginnings -----------------------------------------------------------------------------

    def _begin(self) -> None:
        begin = self._at
        if self._here("```"):
            return self._begin_pre()
        for mark, kind in (*_STARTS, ("`", "code"), ("[", "text_link"), ("![", "custom_emoji")):
            if self._here(mark):
                self._at += len(mark)
                return self._push(kind, begin)
        if self._here(">") and self._line_begins and not self._quoting:
            self._at += 1
            return self._push("blockquote", begin)
        character = self._source[self._at]
        raise _broken(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def _push(self, kind: str, begin: int, language: str = "") -> None:
        first = len(self._result)
        self._open.append(_Open(kind=kind, offset=self._offset, position=begin, first=first, language=language))

    def _begin_pre(self) -> None:
        """Three backquotes, a language up to the first white space, and one line end that is not shown."""
        begin = self._at
        self._at += 3
        end = self._at
        while end < len(self._source) and not self._source[end].isspace() and self._source[end] != "`":
            end += 1
        language = ""
        if self._at < end < len(self._source) and self._source[end] != "`":
            language = self._source[self._at : end]
            self._at = end
        for ending in ("\r\n", "\n\r", "\n", "\r"):
            if self._here(ending):
                self._at += len(ending)
                break
        self._push("pre", begin, language)

    # -- errors -----------------------------------------------------------------------------------

    def _bytes(self, position: int) -> int:
        return len(self._source[:position].encode())

    def _unended(self) -> Refusal:
        entity = self._open[-1]
        name = "PreCode" if entity.language else _NAMES[entity.kind]
        return _broken(f"Can't find end of {name} entity at byte offset {self._bytes(entity.position)}")


def _broken(reason: str) -> Refusal:
    return bad(f"Can't parse entities: {reason}")


def link(address: str) -> dict[str, Any] | None:
    """Return the entity for a link: a mention of a person, a link, or nothing if it is no address."""
    if address.startswith("tg://user?id=") and address.removeprefix("tg://user?id=").isdigit():
        user = int(address.removeprefix("tg://user?id="))
        return {"type": "text_mention", "user": {"id": user, "is_bot": False, "first_name": str(user)}}
    if any(character.isspace() for character in address) or ("." not in address and "://" not in address):
        return None
    if "://" not in address and not address.startswith(("mailto:", "tel:")):
        address = f"http://{address}"
    return {"url": address if address.count("/") > 2 or ":/" not in address else f"{address}/"}


def _emoji(address: str) -> dict[str, Any]:
    if not address.startswith("tg://emoji?id="):
        raise _broken("Custom emoji entity must contain a tg://emoji URL")
    return {"custom_emoji_id": address.removeprefix("tg://emoji?id=")}
