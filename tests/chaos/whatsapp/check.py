"""The promises of every run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from adapters.whatsapp.codec import message_of
from adapters.whatsapp.formatting import plain, shown, split
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.adapter import REPEATED
from gateway.domain.turn import BUSY
from tests.chaos.bots.check import Heard, answered_out_of_order, ended_badly, in_lanes, shown_out_of_order
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.run import Record
from tests.chaos.bots.stores import Row
from tests.chaos.whatsapp.script import SEND, Schedule
from tests.emulators.journal import Call
from tests.emulators.whatsapp import Message, WhatsAppServer
from tests.emulators.whatsapp.checks import visible

_MARK = REPEATED.strip()


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    whatsapp: WhatsAppServer
    heard: list[Heard]


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets what was seen."""
    yield from ended_badly(evidence)
    yield from _everything_is_answered(evidence, counts)
    yield from _nothing_is_repeated_without_a_mark(evidence, counts)
    yield from answered_out_of_order(in_lanes(evidence.rows, evidence.heard, message_of))
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.whatsapp.journal.of(SEND):
        if call.done:
            calls[call.chat_id].append(call)
    struck = Counter((call.chat_id, said_in(call)) for call in evidence.whatsapp.journal.of(SEND) if call.ambiguous)
    yield from shown_out_of_order(evidence.rows, calls, read_in=said_in, shown_as=shown_as, struck=struck)
    for violation in evidence.whatsapp.violations:
        yield f"WhatsApp: {violation}"
    counts["messages said while the bot was down"] += sum(each.down for each in evidence.schedule.said)
    counts["webhooks brought again"] += sum(each.attempts > 1 for each in evidence.whatsapp.delivery.told)


def _bare(text: str) -> str:
    return "".join(text.split())


def shown_as(row: Row) -> str:
    """The visible text of a row."""
    if row.kind == "reply":
        return _bare(visible(shown(row.text)))
    return _bare(visible(plain(without_columns(row.text) if row.kind == "command" else row.text)))


def said_in(call: Call) -> str:
    """The visible text of a call, without the mark of a repeat."""
    body = call.parameters.get("text") if call.method == SEND else None
    return _bare(visible(body["body"])).removeprefix(_MARK) if body else ""


def _everything_is_answered(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Each message has the whole answer to it, once; nothing else is a reply, and nothing failed."""
    answers: dict[str, list[Row]] = defaultdict(list)
    for row in evidence.rows:
        if row.kind in ("reply", "command"):
            answers[message_of(row.answers)].append(row)
        elif row.text != BUSY:
            yield f"{row.kind}: {row.text}"
        if row.state != "sent":
            yield f"a {row.kind} is {row.state}: {row.text[:80]}"
    first = evidence.whatsapp.settings.numbers[0]
    for heard in evidence.heard:
        rows = answers.pop(heard.message, [])
        if {(row.chat, row.thread or first) for row in rows} - {heard.place}:
            yield f"{heard.said.text} was answered elsewhere"
        if not heard.said.token:
            if len(rows) != 1:
                yield f"{heard.said.text} has {len(rows)} answers"
            continue
        expected = [_bare(visible(shown(part))) for part in split(reply_to(heard.said.kind, heard.said.token))]
        found = [shown_as(row) for row in rows]
        if found != expected:
            yield f"{heard.said.text} was answered by {len(found)} messages, not {len(expected)}: {found}"
    for rows in answers.values():
        yield f"nobody asked for {rows[0].text[:80]}"
    counts["rows"] += len(evidence.rows)


def _nothing_is_repeated_without_a_mark(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Each row is seen, where it belongs; what is seen again says so."""
    seen: dict[str, list[Message]] = defaultdict(list)
    for message in evidence.whatsapp.world.messages:
        if message.by_bot:
            seen[message.row].append(message)
    first = evidence.whatsapp.settings.numbers[0]
    for row in evidence.rows:
        messages = seen.pop(row.id, [])
        bare = [_bare(visible(each.text)) for each in messages]
        marked = sum(text.startswith(_MARK) for text in bare)
        counts["marked repeats"] += marked
        counts["known by a status"] += len(messages) == 1 and message_lost(evidence, row.id)
        if not messages or len(messages) - marked > 1:
            yield f"shown {len(messages) - marked} times and {marked} times with a mark: {row.text[:80]}"
        if {text.removeprefix(_MARK) for text in bare} - {shown_as(row)}:
            yield f"shown otherwise: {row.text[:80]}"
        if {(each.person.number, each.number) for each in messages} - {(row.chat, row.thread or first)}:
            yield f"shown elsewhere: {row.text[:80]}"
    for row_id, messages in seen.items():
        yield f"nobody stored {row_id}: {messages[0].text[:80]}"


def message_lost(evidence: Evidence, row: str) -> bool:
    """Say whether the answer to a send of this row was lost."""
    named = (call for call in evidence.whatsapp.journal.of(SEND) if call.ambiguous)
    return any(call.parameters.get("biz_opaque_callback_data") == row for call in named)
