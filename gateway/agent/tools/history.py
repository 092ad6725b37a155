"""Earlier messages, compacted or not: none is ever out of reach. One tool searches, the other reads on where a search
has found something, or opens a chapter of the notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from gateway.agent.tools.base import LooksBack, schema
from gateway.domain.message import handle, message_named, note_of, text_of
from gateway.domain.wording import counted
from gateway.runtime.errors import ToolError
from gateway.store.records import Found, Passage
from gateway.words.text import Holds
from gateway.words.text import passage as part_around

_MOST_RESULTS = 20
RESULTS = 8  # unless the model asks for another number
_EXCERPT = 500  # characters of a find
_BESIDE = 120  # characters of a message beside it
_MOST_BESIDE = 10  # messages on each side that are read on
_BESIDE_IT = {"type": "integer", "minimum": 0, "maximum": _MOST_BESIDE}
_READ = 4_000  # characters of the message that is read
_READ_BESIDE = 1_000  # characters of a message beside that
_CHAPTER = 12_000  # characters of a chapter
_MOST_OF_IT = 1_000  # of its messages that are looked at
_OF_IT = 200  # characters of a message in it that holds none of the words
_RANGE = re.compile(r"(#?\w+)\s*[-–]\s*(#?\w+)")


class HistoryTool(Struct, frozen=True):
    """Finds original messages of this person's own conversations. `redact` is applied to results of tools."""

    name = "search_history"
    description = (
        "Searches the original wording of earlier messages of this conversation and its predecessors, including "
        "everything that was summarised since, and then of what tools returned. Ask a question or give key words; "
        "messages with words that you put in quotation marks come first. Use it before saying that you do "
        "not remember something. history_read reads on around a message, by the number that stands before it."
    )
    parameters = schema(
        "words",
        words={
            "type": "string",
            "minLength": 1,
            "description": "A question or key words, in the words of the conversation.",
        },
        limit={"type": "integer", "minimum": 1, "maximum": _MOST_RESULTS},
    )
    read_only = True
    idempotent = True
    brings = ""
    recalls = True
    timeout = 20.0

    redact: Callable[[str], str]

    async def run(self, arguments: Mapping[str, Any], context: LooksBack) -> str:
        """Up to `limit` passages, best first: what was said, then results of tools."""
        words, left = arguments["words"], await context.unindexed()
        found = await context.recall(words, arguments.get("limit", RESULTS))
        passages = [render(each, words, self.redact) for each in found]
        return "\n\n".join([*(passages or [f"Nothing was found for {words[:200]!r}."]), *not_yet_found(left)])


class HistoryReadTool(Struct, frozen=True):
    """Reads the messages around one message. `redact` is applied to results of tools."""

    name = "history_read"
    description = (
        "Reads the original wording of the messages before and after one that search_history has found, or of a "
        "chapter that the notes list. Use it where a found passage or a line of the notes is not enough to answer."
    )
    parameters = schema(
        "message",
        message={
            "type": "string",
            "minLength": 1,
            "description": "The number before a found message, such as #57, or a chapter's range, such as #57-#230.",
        },
        words={"type": "string", "description": "What you look for in a chapter: what holds it is shown first."},
        before={**_BESIDE_IT, "description": "So many before it. Default: 4."},
        after={**_BESIDE_IT, "description": "So many after it. Default: 4."},
    )
    read_only = True
    idempotent = True
    brings = ""
    recalls = True
    timeout = 20.0

    redact: Callable[[str], str]

    async def run(self, arguments: Mapping[str, Any], context: LooksBack) -> str:
        """The message among its neighbours, oldest first, each with its time."""
        if chapter := _RANGE.fullmatch(arguments["message"].strip()):
            return await self._chapter(chapter[1], chapter[2], arguments.get("words", ""), context)
        before, after = arguments.get("before", 4), arguments.get("after", 4)
        name = message_named(arguments["message"].strip())
        turns = await context.around(name, max(before, after)) if name else ()
        place = next((at for at, turn in enumerate(turns) if note_of(turn.message)["id"] == name), None)
        if place is None:
            raise ToolError(f"There is no message {arguments['message'][:40]!r} here; search_history finds some.")
        shown = turns[max(0, place - before) : place + after + 1]
        return "\n".join(self._line(turn, _READ if turn is turns[place] else _READ_BESIDE) for turn in shown)

    async def _chapter(self, first: str, last: str, words: str, context: LooksBack) -> str:
        """The messages from one to another, oldest first, as many as there is room for: those that hold the words, and
        then the others. A line says which are left out."""
        ends = [message_named(each) or "" for each in (first, last)]
        turns: Sequence[Found] = ()
        for name in filter(None, ends):
            turns = turns or await context.around(name, _MOST_OF_IT)
        names = [note_of(turn.message)["id"] for turn in turns]
        begin, end = (names.index(each) if each in names else None for each in ends)
        turns = turns[begin : None if end is None else end + 1]
        if not turns:
            raise ToolError(f"There are no messages {first[:20]}-{last[:20]} here; search_history finds some.")
        holds = Holds(words)
        held = [len(holds.held(text_of(turn.message))) if words else 0 for turn in turns]
        lines, room = dict[int, str](), _CHAPTER
        for place in sorted(range(len(turns)), key=lambda each: -held[each]):
            line = self._line(turns[place], _READ_BESIDE if held[place] else _OF_IT, words)
            if len(line) > room:
                break
            lines[place], room = line, room - len(line) - 1
        return "\n".join(_with_gaps(lines, turns))

    def _line(self, turn: Found, size: int, words: str = "") -> str:
        when = datetime.fromtimestamp(turn.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        who, text = speaker_of(turn, {}), _excerpt(turn, words, self.redact, size)
        return f"{handle(note_of(turn.message)['id'])} {when} {who}: {text}"


def _with_gaps(lines: Mapping[int, str], turns: Sequence[Found]) -> Iterator[str]:
    """Lines in their order, and one for each run of messages between that are not shown."""
    left: list[str] = []
    for place, turn in enumerate(turns):
        if place not in lines:
            left.append(handle(note_of(turn.message)["id"]))
        if left and (place in lines or place == len(turns) - 1):
            yield f"[{len(left)} left out: {left[0]}-{left[-1]}]"
            left = []
        if place in lines:
            yield lines[place]


def render(found: Passage, words: str, redact: Callable[[str], str]) -> str:
    """The date and the session, then each message with its speaker, for a model."""
    day = datetime.fromtimestamp(found.hit.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = lines_of(found, words, redact, {})
    named = (f"{handle(note_of(turn.message)['id'])} {line}" for turn, line in zip(found.turns, lines, strict=True))
    return "\n".join([f"{day} (session {found.hit.session_id}):", *named])


def lines_of(found: Passage, words: str, redact: Callable[[str], str], speakers: Mapping[str, str]) -> list[str]:
    """Each message with its speaker. `speakers` are the reader's names for the roles."""
    return [
        f"{speaker_of(turn, speakers)}: {_excerpt(turn, words, redact, _EXCERPT if turn is found.hit else _BESIDE)}"
        for turn in found.turns
    ]


def not_yet_found(left: int) -> list[str]:
    """A sentence on the messages that no search finds yet, if there are any."""
    return [f"{counted(left, 'older message')} {'is' if left == 1 else 'are'} not searchable yet."] if left else []


def speaker_of(hit: Found, speakers: Mapping[str, str]) -> str:
    """Return the speaker of a found message. `speakers` are the reader's names for the roles."""
    role = str(hit.message.get("role"))
    return "a tool's result" if role == "tool" else speakers.get(role, role)


def _excerpt(turn: Found, words: str, redact: Callable[[str], str], size: int) -> str:
    """A message or, if it is long, the part around the words. A tool's result is redacted, because nobody in the chat
    ever saw it."""
    text = text_of(turn.message)
    if turn.message.get("role") == "tool":
        text = redact(text)
    if len(text) <= size:
        return text
    part = part_around(text, words, size)
    before, after = "" if text.startswith(part) else "… ", "" if text.endswith(part) else " …"
    return f"{before}{part}{after} ({len(text):,} characters in all)"


TOOLS = (lambda host: HistoryTool(host.redact), lambda host: HistoryReadTool(host.redact))
