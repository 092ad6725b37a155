"""The promises of every run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from adapters.slack.commands import SlashCommands
from adapters.slack.formatting import plain, shown, split
from gateway.app.plugins import all_commands
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.command import as_typed
from gateway.turns.reception import BUSY
from tests.chaos.bots.check import answered_out_of_order, ended_badly, shown_out_of_order
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.run import Record
from tests.chaos.bots.script import Said
from tests.chaos.bots.stores import Row
from tests.chaos.slack.script import EDIT, SEND, Schedule
from tests.emulators.journal import Call
from tests.emulators.slack import Message, SlackServer

AWAY: Final = "I was away for"
_COMMANDS: Final = SlashCommands([each.entry for each in all_commands().commands]).names
_BESIDE_THE_LANE: Final = ("/status", "/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something that was said, and the message that it became."""

    said: Said
    message: Message

    @property
    def place(self) -> tuple[str, str | None]:
        """The channel and the thread of its answer: each mention in a channel has a thread of its own."""
        channel = self.message.channel
        return channel.id, None if channel.kind == "im" else self.message.thread_ts or self.message.ts


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    slack: SlackServer
    heard: list[Heard]


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets what was seen."""
    yield from ended_badly(evidence)
    yield from _everything_is_answered(evidence, counts)
    yield from _everything_is_seen_once(evidence)
    yield from _answers_come_in_order(evidence)
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.slack.journal.calls:
        if call.method in (SEND, EDIT) and call.done:
            calls[call.chat_id].append(call)
    struck = Counter((call.chat_id, said_in(call)) for call in evidence.slack.journal.of(SEND) if call.ambiguous)
    yield from shown_out_of_order(evidence.rows, calls, read_in=said_in, shown_as=shown_as, struck=struck)
    for violation in evidence.slack.violations:
        yield f"Slack: {violation}"
    counts["messages of the bot"] += sum(len(texts) for texts in _seen(evidence).values())
    counts["edits"] += sum(call.done for call in evidence.slack.journal.of(EDIT))
    counts["messages said while the bot was down"] += sum(each.down for each in evidence.schedule.said)
    counts["envelopes sent again"] += sum(
        envelope.attempts > 0 for envelope in evidence.slack.delivery.waiting.values()
    )


def bare(text: str) -> str:
    """A text without its white space, which blocks of code and quotes have beside them or not."""
    return "".join(text.split())


def shown_as(row: Row) -> str:
    """The visible text of a row."""
    if row.kind == "reply":
        return bare(shown(row.text).text)
    text = without_columns(row.text) if row.kind == "command" else row.text
    return bare(plain(as_typed(text, _COMMANDS, "/legato ")).text)


def said_in(call: Call) -> str:
    """The visible text of a call."""
    if call.method not in (SEND, EDIT):
        return ""
    blocks = json.loads(call.parameters.get("blocks") or "[]")
    elements = [each for block in blocks if block["type"] == "rich_text" for each in block["elements"]]
    return bare("".join(part.get("text") or part["url"] for group in elements for part in group["elements"]))


def _seen(evidence: Evidence) -> dict[tuple[str, str | None], list[str]]:
    found: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for channel in evidence.slack.world.channels.values():
        for message in channel.messages:
            if message.user is evidence.slack.world.bot and not message.deleted:
                found[channel.id, message.thread_ts].append(bare(message.visible))
    return found


def _message_of(event: str | None) -> str:
    parts = (event or "").split(":")
    return parts[3] if len(parts) > 3 else ""


def _everything_is_answered(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Each message has the whole answer to it, once; nothing else is a reply, and nothing failed."""
    answers: dict[str, list[Row]] = defaultdict(list)
    for row in evidence.rows:
        if row.kind in ("reply", "command"):
            answers[_message_of(row.answers)].append(row)
        elif row.kind == "notice" and row.text.startswith(AWAY):
            counts["absences told of"] += 1
        elif row.text != BUSY:
            yield f"{row.kind}: {row.text}"
        if row.state != "sent":
            yield f"a {row.kind} is {row.state}: {row.text[:80]}"
    for heard in evidence.heard:
        rows = answers.pop(heard.message.ts, [])
        if {(row.chat, row.thread) for row in rows} - {heard.place}:
            yield f"{heard.said.text} was answered elsewhere"
        if not heard.said.token:
            if len(rows) != 1:
                yield f"{heard.said.text} has {len(rows)} answers"
            continue
        expected = [bare(shown(part).text) for part in split(reply_to(heard.said.kind, heard.said.token))]
        found = [shown_as(row) for row in rows]
        if found != expected:
            yield f"{heard.said.text} was answered by {len(found)} messages, not {len(expected)}: {found}"
    for rows in answers.values():
        yield f"nobody asked for {rows[0].text[:80]}"


def _everything_is_seen_once(evidence: Evidence) -> Iterator[str]:
    """People see exactly the outbox: a send in doubt is looked for by its metadata."""
    wanted = Counter(((row.chat, row.thread), shown_as(row)) for row in evidence.rows if row.state == "sent")
    seen = Counter((place, text) for place, texts in _seen(evidence).items() for text in texts)
    for place, text in wanted.keys() | seen.keys():
        if wanted[place, text] != seen[place, text]:
            yield f"{place}: shown {seen[place, text]} times, not {wanted[place, text]}: {text[:80]}"


def _answers_come_in_order(evidence: Evidence) -> Iterator[str]:
    """In each lane in the order in which they were said."""
    lanes: dict[tuple[tuple[str, str | None], str], list[int]] = defaultdict(list)
    asked = {heard.message.ts: (place, heard) for place, heard in enumerate(evidence.heard)}
    for row in evidence.rows:
        place, heard = asked.get(_message_of(row.answers), (0, None))
        if row.kind in ("reply", "command") and heard and heard.said.kind not in _BESIDE_THE_LANE:
            lanes[heard.place, heard.said.speaker].append(place)
    yield from answered_out_of_order({str(lane): places for lane, places in lanes.items()})
