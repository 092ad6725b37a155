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
from tests.chaos.bots.check import (
    Heard,
    answered_out_of_order,
    ended_badly,
    everything_is_answered,
    everything_is_seen_once,
    in_lanes,
    shown_out_of_order,
)
from tests.chaos.bots.run import Record
from tests.chaos.bots.stores import Row
from tests.chaos.slack.script import EDIT, SEND, TELL, Schedule
from tests.emulators.journal import Call
from tests.emulators.slack import SlackServer

_COMMANDS: Final = SlashCommands([each.entry for each in all_commands().commands]).names


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    slack: SlackServer
    heard: list[Heard]


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets what was seen."""
    yield from ended_badly(evidence)
    yield from everything_is_answered(
        evidence.rows, evidence.heard, counts, message_of=_message_of, shown_as=shown_as, parts=_parts
    )
    seen = _seen(evidence)  # a send in doubt is looked for by its metadata
    yield from everything_is_seen_once(evidence.rows, seen, shown_as=shown_as)
    late = {_told_of(call) for call in evidence.slack.journal.of(TELL) if call.fault == "Slow"}
    in_time = [each for each in evidence.heard if each.message not in late]  # of others Slack tells after later ones
    yield from answered_out_of_order(in_lanes(evidence.rows, in_time, _message_of))
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.slack.journal.calls:
        if call.method in (SEND, EDIT) and call.done:
            calls[call.chat_id].append(call)
    struck = Counter((call.chat_id, said_in(call)) for call in evidence.slack.journal.of(SEND) if call.ambiguous)
    yield from shown_out_of_order(evidence.rows, calls, read_in=said_in, shown_as=shown_as, struck=struck)
    for violation in evidence.slack.violations:
        yield f"Slack: {violation}"
    counts["messages of the bot"] += sum(map(len, seen.values()))
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


def _parts(text: str) -> list[str]:
    return [bare(shown(part).text) for part in split(text)]


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


def _told_of(call: Call) -> str:
    """The message that an envelope told of."""
    return str((call.parameters.get("event") or {}).get("ts", ""))
