"""The promises of every run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from adapters.matrix.codec import asked_by
from adapters.matrix.formatting import content, plain, split
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
from tests.chaos.matrix.script import EDIT, SEND, Schedule
from tests.emulators.journal import Call
from tests.emulators.matrix import MatrixServer, text_in

_COMMANDS: Final = frozenset(
    name for each in all_commands().commands for name in (each.entry.name, *each.entry.aliases)
)


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    matrix: MatrixServer
    heard: list[Heard]


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets what was seen."""
    yield from ended_badly(evidence)
    yield from everything_is_answered(
        evidence.rows, evidence.heard, counts, message_of=message_of, shown_as=shown_as, parts=_parts
    )
    seen = _seen(evidence)
    yield from everything_is_seen_once(evidence.rows, seen, shown_as=shown_as)
    yield from answered_out_of_order(in_lanes(evidence.rows, evidence.heard, message_of))
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.matrix.journal.calls:
        if call.method in (SEND, EDIT) and call.done:
            calls[call.chat_id].append(call)
    struck = Counter((call.chat_id, said_in(call)) for call in evidence.matrix.journal.of(SEND) if call.ambiguous)
    yield from shown_out_of_order(evidence.rows, calls, read_in=said_in, shown_as=shown_as, struck=struck)
    for violation in evidence.matrix.violations:
        yield f"Matrix: {violation}"
    counts["messages of the bot"] += sum(map(len, seen.values()))
    counts["edits"] += sum(call.done for call in evidence.matrix.journal.of(EDIT))
    counts["sends that were repeated"] += evidence.matrix.repeats
    counts["messages said while the bot was down"] += sum(each.down for each in evidence.schedule.said)


def message_of(event: str | None) -> str:
    """The message of a row's event."""
    return (asked_by(event) or ("",))[0]


def bare(text: str) -> str:
    """A text without its white space."""
    return "".join(text.split())


def shown_as(row: Row) -> str:
    """The visible text of a row."""
    if row.kind == "reply":
        return bare(content(row.text)["body"])
    text = without_columns(row.text) if row.kind == "command" else row.text
    return bare(plain(as_typed(text, _COMMANDS, "!"))["body"])


def said_in(call: Call) -> str:
    """The visible text of a call."""
    return bare(text_in(call.parameters["body"])) if call.method in (SEND, EDIT) else ""


def _parts(text: str) -> list[str]:
    return [bare(content(part)["body"]) for part in split(text)]


def _seen(evidence: Evidence) -> dict[tuple[str, str | None], list[str]]:
    found: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for room in evidence.matrix.world.rooms.values():
        for event in evidence.matrix.shown(room):
            relation = evidence.matrix.world.event(event["event_id"])["content"].get("m.relates_to") or {}
            thread = relation.get("event_id") if relation.get("rel_type") == "m.thread" else None
            found[room.id, thread].append(bare(text_in(event["content"])))
    return found
