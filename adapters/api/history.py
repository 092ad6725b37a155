"""Which conversation a request belongs to, and where in it. Pure.

A client sends the whole history each time. Its visible turns are cut into exchanges, each of which begins with what the
client's side said: a person's message, or the results of its tools. An exchange has a name, a hash of everything up to
there, so the same history always has the same names, and another wording anywhere gives others from there on. The name
of the last exchange becomes the event of the message; those before it say behind which one the message goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct, field

from adapters.api.shapes import Turn
from gateway.domain.approval import command_meant
from gateway.domain.command import parse_command
from gateway.domain.message import Message, answer_mark, assistant, tool_result, user

_SIZE: Final = 24  # characters of a name
_SHORT: Final = 16  # characters: a yes or no has fewer
_NO_WORDS: Final = "(a file)"
_MOVES: Final = ("new", "reset", "undo", "retry", "resume", "branch", "forget")  # they lead a conversation elsewhere


class Exchange(Struct, kw_only=True):
    """Part of a history: what the client's side `asked`, and what it was `told`. `name`: of all up to the question."""

    name: str = ""
    asked: list[Turn] = field(default_factory=list)
    told: list[Turn] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words of the question."""
        return self.asked[0].text if len(self.asked) == 1 else "\n\n".join(turn.text for turn in self.asked)

    @property
    def moves(self) -> bool:
        """Whether it is a command that leads the conversation elsewhere."""
        call = parse_command(self.text)
        return call is not None and call.name in _MOVES

    @property
    def is_command(self) -> bool:
        """Whether it is a command."""
        return parse_command(self.text) is not None

    @property
    def may_be_aside(self) -> bool:
        """Whether no transcript may have it: a command, or the answer to a question about a tool."""
        return self.is_command or (len(self.text) < _SHORT and command_meant(self.text) is not None)

    @property
    def after(self) -> str:
        """The place after it, in the form of `Inbound.after`."""
        return f"{self.name}/{answer_mark(self.told[-1].text)}" if self.told else self.name

    def messages(self) -> Iterator[Message]:
        """It as a transcript has it."""
        for turn in self.asked:
            if turn.role == "user":
                yield user(turn.text or _NO_WORDS, event=self.name)
            else:
                yield tool_result(turn.call_id, turn.text, event=self.name)
        for turn in self.told:
            yield assistant(turn.text or None, turn.calls)


class History(Struct, frozen=True):
    """Turns in exchanges, the newest first. `root`: whose they are; `written`: each turn as it is hashed. Of a long
    history nearly always only the newest exchange is asked for. The others are made where somebody goes on to them."""

    root: str
    turns: Sequence[Turn]
    written: Sequence[str]

    @property
    def first(self) -> str:
        """The name of the oldest exchange."""
        turns = self.turns
        return self._named(next((at for at in range(1, len(turns)) if turns[at].role != "tool"), len(turns)))

    def split(self) -> tuple[Exchange, History]:
        """The newest exchange, and what was before it."""
        turns, end = self.turns, len(self.turns)
        start = end - 1
        while start and not (
            turns[start].role == "user" or (turns[start].role == "tool" and turns[start - 1].role == "assistant")
        ):
            start -= 1
        told = next((at for at in range(start, end) if turns[at].role == "assistant"), end)
        newest = Exchange(name=self._named(told), asked=[*turns[start:told]], told=[*turns[told:]])
        return newest, History(self.root, turns[:start], self.written[:start])

    def __bool__(self) -> bool:
        return bool(self.turns)

    def __iter__(self) -> Iterator[Exchange]:
        if self.turns:
            yield self.split()[0]
            yield from self._all()[-2::-1]

    def _named(self, end: int) -> str:
        return sha256((self.root + "".join(self.written[:end])).encode(errors="replace")).hexdigest()[:_SIZE]

    def _all(self) -> list[Exchange]:
        found: list[Exchange] = []
        chain = sha256(self.root.encode())
        for turn, written in zip(self.turns, self.written, strict=True):
            chain.update(written.encode(errors="replace"))
            if turn.role == "assistant":
                found[-1].told.append(turn)
                continue
            if turn.role == "user" or not found or found[-1].told:
                found.append(Exchange())
            found[-1].asked.append(turn)
            found[-1].name = chain.hexdigest()[:_SIZE]
        return found


def history(turns: Sequence[Turn], root: str) -> History:
    """The history of these turns. What was said before the first question belongs to no exchange."""
    first = next((at for at, turn in enumerate(turns) if turn.role != "assistant"), len(turns))
    written = [  # clients take white space away at the ends; nearly every turn is only words
        f"{turn.role}\x1f{turn.text.strip()}\x1f{turn.call_id}\x1e{_more(turn) if turn.pieces or turn.calls else ''}"
        for turn in turns[first:]
    ]
    return History(root, turns[first:], written)


def _more(turn: Turn) -> str:
    """Files and calls of a turn, as they are hashed."""
    parts = [piece.url for piece in turn.pieces]
    parts += [f"{call['id']} {call['function']['name']} {call['function']['arguments']}" for call in turn.calls]
    return "\x1f".join(parts)


def hashed(*parts: str) -> str:
    """A name made from these texts."""
    return sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:_SIZE]
