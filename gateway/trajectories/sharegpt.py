"""A finished run as it stands in a file: one JSON object a line, its turns under `conversations`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, Literal

from msgspec import Struct

Speaker = Literal["system", "human", "gpt", "tool", "other"]

TURNS_KEY: Final = "conversations"
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


class Trajectory(Struct, frozen=True, kw_only=True):
    """One line, understood."""

    data: dict[str, Any]
    turns: tuple[Turn, ...]
    end: str  # of the line

    def changed(self, change: Change) -> bytes:
        """The line with the change in it. All else keeps its order and its values."""
        data = {**self.data, TURNS_KEY: changed_turns(self.data[TURNS_KEY], change)}
        try:
            return (json.dumps(data, ensure_ascii=False) + self.end).encode()
        except UnicodeEncodeError:  # half a character, which JSON can only spell out
            return (json.dumps(data) + self.end).encode()


def parse(line: str) -> Trajectory:
    """Read one line. Raises NotATrajectory."""
    try:
        data = json.loads(line.removeprefix("\ufeff"))
    except RecursionError:
        raise NotATrajectory("It is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        raise NotATrajectory(f"It is not JSON (at character {error.pos + 1:,})") from None
    except ValueError:  # a number of thousands of digits
        raise NotATrajectory("It is not JSON that can be read") from None
    if not isinstance(data, dict):
        raise NotATrajectory("The line is not a JSON object")
    if TURNS_KEY not in data:
        raise NotATrajectory(f"It has no {TURNS_KEY!r}")
    if not isinstance(data[TURNS_KEY], list):
        raise NotATrajectory(f"{TURNS_KEY!r} is not a list")
    return Trajectory(data=data, turns=turns_of(data[TURNS_KEY]), end=line[len(line.rstrip()) :])


def turns_of(values: Sequence[Any]) -> tuple[Turn, ...]:
    """The turns of a run. Raises NotATrajectory."""
    return tuple(map(_turn, count(1), values))


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


def _turn(number: int, value: Any) -> Turn:
    if not isinstance(value, Mapping):
        raise NotATrajectory(f"Turn {number} is not an object")
    name, text = value.get("from"), value.get("value")
    if not isinstance(name, str):
        raise NotATrajectory(f"Turn {number} does not say whom it is 'from'")
    if not isinstance(text, str):
        raise NotATrajectory(f"The 'value' of turn {number} is not a text")
    speaker = _SPEAKERS.get(name, "other")
    # Some collections let a human turn carry what a tool answered.
    if speaker == "human" and text.startswith(_RESPONSE):
        speaker = "tool"
    return Turn(name=name, speaker=speaker, text=text)
