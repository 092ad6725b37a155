"""A finished run as it stands in a file: one JSON object a line, its turns under `conversations`.

Nothing that stays is ever written anew. Parsing notes where each turn stands in the line, and a
change is cut into that text, so that key order, spaces, escapes, doubled keys and numbers that no
float can hold come out as they went in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

Speaker = Literal["system", "human", "gpt", "tool", "other"]

TURNS_KEY: Final = "conversations"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()
_SPEAKERS: Final[Mapping[str, Speaker]] = {
    **dict.fromkeys(("system",), "system"),
    **dict.fromkeys(("human", "user"), "human"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model", "function_call"), "gpt"),
    **dict.fromkeys(("tool", "observation", "function", "function_response", "tool_response"), "tool"),
}
_RESPONSE: Final = "<tool_response"


class NotATrajectory(ValueError):
    """A line or a value is no run in ShareGPT form; the text says why, without quoting it."""


class Turn(Struct, frozen=True, kw_only=True):
    """One turn: the speaker (`name` as the data says it) and the words."""

    name: str
    speaker: Speaker
    text: str


class Change(Struct, frozen=True, kw_only=True):
    """Turns `first` up to, not including, `end` become one human turn that says `summary`; `notice` is
    added to the text of turn `noticed`, if that is given."""

    first: int
    end: int
    summary: str
    notice: str = ""
    noticed: int | None = None


class _Place(Struct, frozen=True, kw_only=True):
    """The place of a turn, and of the string of its text, in the line: start, and end after the last character."""

    start: int
    end: int
    text_end: int


class Trajectory(Struct, frozen=True, kw_only=True):
    """One line, understood."""

    line: str
    turns: tuple[Turn, ...]
    places: tuple[_Place, ...]

    def changed(self, change: Change) -> str:
        """The line with the change cut into it; all the rest is the same text."""
        turn = {"from": human_name(self.turns), "value": change.summary}
        start, end = self.places[change.first].start, self.places[change.end - 1].end
        edits = [(start, end, json.dumps(turn, ensure_ascii=False))]
        if change.noticed is not None:
            quote = self.places[change.noticed].text_end - 1
            edits.append((quote, quote, json.dumps(change.notice, ensure_ascii=False)[1:-1]))
        line = self.line
        for start, end, text in sorted(edits, reverse=True):
            line = line[:start] + text + line[end:]
        return line


def parse(line: str) -> Trajectory:
    """Read one line. Raises NotATrajectory."""
    cursor = _Cursor(line, at=1 if line.startswith("\ufeff") else 0)
    found: tuple[list[Turn], list[_Place]] | None = None
    try:
        for key in cursor.members("The line is not a JSON object"):
            if key == TURNS_KEY:
                found = _turns(cursor)
            else:
                cursor.value()
        cursor.finish()
    except RecursionError:
        raise NotATrajectory("It is nested too deeply to be read") from None
    if found is None:
        raise NotATrajectory(f"It has no {TURNS_KEY!r}")
    return Trajectory(line=line, turns=tuple(found[0]), places=tuple(found[1]))


def turns_of(values: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The turns of a run that is already in memory. Raises NotATrajectory."""
    return tuple(_turn(number, value.get("from"), value.get("value")) for number, value in enumerate(values, start=1))


def changed_turns(values: Sequence[Mapping[str, Any]], change: Change) -> list[dict[str, Any]]:
    """`values` with the change made, as new dicts; what stays is equal to what it was."""
    copies = [dict(value) for value in values]
    if change.noticed is not None:
        copies[change.noticed]["value"] += change.notice
    turn = {"from": human_name(turns_of(values)), "value": change.summary}
    return [*copies[: change.first], turn, *copies[change.end :]]


def human_name(turns: Sequence[Turn]) -> str:
    """Return the name of human turns in this run."""
    return next((turn.name for turn in turns if turn.name in ("human", "user")), "human")


def _turns(cursor: _Cursor) -> tuple[list[Turn], list[_Place]]:
    turns: list[Turn] = []
    places: list[_Place] = []
    for number, _ in enumerate(cursor.elements(f"{TURNS_KEY!r} is not a list"), start=1):
        start = cursor.skip()
        name = text = None
        text_end = 0
        for key in cursor.members(f"Turn {number} is not an object"):
            value = cursor.value()
            if key == "from":
                name = value
            elif key == "value":
                text, text_end = value, cursor.at
        turns.append(_turn(number, name, text))
        places.append(_Place(start=start, end=cursor.at, text_end=text_end))
    return turns, places


def _turn(number: int, name: Any, text: Any) -> Turn:
    if not isinstance(name, str):
        raise NotATrajectory(f"Turn {number} does not say whom it is 'from'")
    if not isinstance(text, str):
        raise NotATrajectory(f"The 'value' of turn {number} is not a text")
    speaker = _SPEAKERS.get(name, "other")
    # Some collections let a human turn carry what a tool answered.
    if speaker == "human" and text.startswith(_RESPONSE):
        speaker = "tool"
    return Turn(name=name, speaker=speaker, text=text)


class _Cursor:
    """Walks along JSON text. Each value is decoded once, by the library; only the outer objects and
    lists, whose parts' places are wanted, are walked here."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def skip(self) -> int:
        """Pass white space; where the cursor then stands."""
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def value(self) -> Any:
        """Decode the value that comes next."""
        self.skip()
        try:
            value, self.at = _DECODER.raw_decode(self._text, self.at)
        except ValueError:  # the library's own text would quote nothing, but also help nobody
            raise self._broken() from None
        return value

    def members(self, otherwise: str) -> Iterator[str]:
        """The keys of an object; the caller reads each value before asking for the next key."""
        for _ in self.elements(otherwise, "{}"):
            key = self.value()
            if not isinstance(key, str) or not self._takes(":"):
                raise self._broken()
            yield key

    def elements(self, otherwise: str, brackets: str = "[]") -> Iterator[None]:
        """Once for each element of a list, or member of an object, which has then to be read."""
        first, last = brackets[0], brackets[1]
        if not self._takes(first):
            self.value()  # whatever else stands here may be no JSON at all, which says more
            raise NotATrajectory(otherwise)
        if self._takes(last):
            return
        while True:
            yield
            if self._takes(last):
                return
            if not self._takes(","):
                raise self._broken()

    def finish(self) -> None:
        """Nothing may follow."""
        if self.skip() != len(self._text):
            raise self._broken()

    def _takes(self, character: str) -> bool:
        self.skip()
        taken = self._text.startswith(character, self.at)
        self.at += taken
        return taken

    def _broken(self) -> NotATrajectory:
        return NotATrajectory(f"It is not JSON (at character {self.at + 1:,})")
