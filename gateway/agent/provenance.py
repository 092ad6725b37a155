"""Whose words a turn has read, and so whose words it may keep for good.

Pure. A page, a file, a forwarded message or the answer of a tool may hold an order: "note that NAME must be paid". A
note, a reminder or anything else that a tool keeps beyond its conversation (`Keeps`) outlives the turn, and would be
obeyed later as if a person had said it. So words that did not come from the person carry their origin, and the person
is asked first. A turn that has read only what its people said asks nobody and keeps no origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct

from gateway.domain.chat import one_line
from gateway.domain.message import Message, is_request, is_summary, note_of, own_words, text_of
from gateway.domain.rule import states_rule
from gateway.words.text import telling, terms

_LOOKED_AT: Final = 20_000  # characters of what people said
_QUOTED: Final = "a message that was forwarded or quoted"
_NAMED: Final = 2  # origins that are named
_STRAY: Final = 4  # of so many words of a text one may be the model's own
_OWN_REPLY: Final = re.compile(r'(?:\[[^\]\n]*\] )?\[in reply to you: "[^"\n]*"\]')  # the bot's words, in our frame
# A text of someone else that has one of these may be a demand. Where nobody can be asked, that is enough.
_DEMANDS: Final = re.compile(
    r"\b(?:must|should|shall|always|never|(?:has|have|needs?|is|are) to|do not|don['’]t|ensure|make sure|remember to"
    r"|muss|müssen|soll(?:en|te)?|immer|niemals|nie|doit|doivent|devez|faut|toujours|jamais|debe[ns]?|siempre|nunca"
    r"|tiene[ns]? que|deve|devono|sempre|должн\w*|нужно|всегда|никогда)\b|必须|必須|应该|應該|务必|務必|总是|總是"
    r"|不要|请|請",
    re.IGNORECASE,
)


class Kept(NamedTuple):
    """What a call of a tool keeps: what it is for a person who is asked ("note"), and its text. `personal`: a fact
    about the person."""

    what: str
    text: str
    personal: bool = False


class Provenance(Struct, frozen=True, kw_only=True):
    """The words that a turn's people said themselves, and the origins of all other words that it has read."""

    own: str = ""
    foreign: tuple[str, ...] = ()

    def origin(self, text: str) -> str:
        """Whose words a text is, in a few words; "" if the person said them, or nothing foreign was read."""
        if not self.foreign or _says(self.own, text):
            return ""
        others = " and others" if len(self.foreign) > _NAMED else ""
        return f"{' and '.join(self.foreign[:_NAMED])}{others}"

    def to_ask(self, kept: Kept) -> str:
        """Whose words a call would keep that needs a person's yes; "" if it needs none. Facts about a person from what
        they forwarded or quoted are refused anyway (decision 57), so nobody is asked."""
        return "" if kept.personal and self.foreign == (_QUOTED,) else self.origin(kept.text)


def provenance(turn: Iterable[Message]) -> Provenance:
    """Look through the messages of a turn, oldest first."""
    own: list[str] = []
    foreign: dict[str, None] = {}
    for message in turn:
        if is_request(message):
            own.append("" if note_of(message).get("merged") else own_words(message))
            foreign.update(dict.fromkeys(_sent(message)))
        elif origin := note_of(message).get("origin"):
            foreign[origin] = None
    return Provenance(own="\n".join(own), foreign=tuple(foreign))


def turn_in(newest_first: Iterable[Message]) -> list[Message]:
    """The messages of the newest turn, oldest first: those after the last answer, or after the notes of a
    compaction."""
    return [*takewhile(lambda message: not _ends(message), newest_first)][::-1]


def turns_in(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """A transcript's turns, oldest first, each with its answer."""
    turn: list[Message] = []
    for message in messages:
        turn.append(message)
        if _ends(message):
            yield turn
            turn = []
    yield turn


def _ends(message: Message) -> bool:
    is_answer = message["role"] == "assistant" and not message.get("tool_calls")
    return is_answer or (is_summary(message) and not note_of(message).get("merged"))


def may_demand(text: str) -> bool:
    """Whether a text may tell somebody what to do."""
    return states_rule(text) or _DEMANDS.search(text) is not None


def _sent(message: Message) -> Iterable[str]:
    """The origins of foreign words in what a person sent."""
    note = note_of(message)
    if origin := note.get("origin"):
        yield origin
        return
    own, said = note.get("own"), note.get("said", text_of(message))
    if isinstance(own, str) and not _OWN_REPLY.fullmatch(said.replace(own, "", 1).strip()):
        yield _QUOTED
    for file in note.get("files") or ():
        if not file.get("words"):  # else the person spoke
            yield f"the file {one_line(file['name'])}" if file.get("name") else "a picture"


def _says(said: str, text: str) -> bool:
    """Whether people said a text themselves: all of its words but one in four, and every number."""
    wanted, held = telling(text), frozenset(terms(said[:_LOOKED_AT]))
    strays = [word for word in wanted if held.isdisjoint(word)]
    return len(strays) * _STRAY <= len(wanted) and not any(sign.isdigit() for word in strays for sign in word[0])
