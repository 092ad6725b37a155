"""The promises of every run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from adapters.discord.formatting import plain, shown, split
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.turn import BUSY, STOPPED
from gateway.turns.reception import ASKING, ASKING_IN_GROUP
from tests.chaos.bots.check import answered_out_of_order, ended_badly, shown_out_of_order
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.stores import Row
from tests.chaos.discord.evidence import Evidence, Heard, number_of
from tests.chaos.discord.script import EDIT, SEND
from tests.chaos.discord.slash import (
    is_given,
    is_private,
    problems_of_presses,
    problems_of_slash_commands,
    stopped_by_new,
)
from tests.emulators.journal import Call

UNFINISHED: Final = "beginnings of replies left by a send in doubt, as Discord forgets nonces"
TWICE: Final = "messages shown twice after a send in doubt, as Discord forgets nonces"
AWAY: Final = "I was away for"
_BESIDE_THE_LANE: Final = ("/status", "/version")


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets the excuses with their reasons."""
    yield from ended_badly(evidence)
    yield from _everything_is_answered(evidence, counts)
    yield from _everything_is_seen_once(evidence, counts)
    yield from _answers_come_in_order(evidence)
    yield from _the_order_is_that_of_emission(evidence)
    yield from _answers_stand_in_order(evidence, counts)
    yield from problems_of_slash_commands(evidence, counts)
    yield from problems_of_presses(evidence, counts)
    for violation in evidence.town.discord.violations:
        yield f"Discord: {violation}"
    journal = evidence.town.discord.journal
    counts["messages of the bot"] += sum(1 for _ in evidence.town.shown())
    counts["edits"] += sum(call.done for call in journal.of(EDIT))
    counts["messages said while the bot was down"] += sum(each.down for each in evidence.schedule.said)
    counts["sessions resumed"] += sum(call.done for call in journal.of("send RESUMED"))
    counts["sessions begun"] += sum(call.done for call in journal.of("send READY"))


def shown_as(row: Row) -> str:
    """Return the visible text of a row."""
    if row.kind == "reply":
        return shown(row.text).strip()
    return plain(without_columns(row.text) if row.kind == "command" else row.text).strip()


def body_of(call: Call) -> dict[str, Any]:
    """The form that a call brought; a list of commands is none."""
    body = call.parameters.get("body")
    return body if isinstance(body, dict) else {}


def said_in(call: Call) -> str:
    """Return the visible text of a call."""
    return str(body_of(call).get("content") or "").strip()


def _everything_is_answered(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Each message has the whole answer to it, once; nothing else is a reply, and nothing failed."""
    answers: dict[int, list[Row]] = defaultdict(list)
    given_up = stopped_by_new(evidence)
    counts["payments that /new ended"] += len(given_up)
    for row in evidence.rows:
        if is_given(row.answers) and row.kind != "notice":
            continue
        if row.text == STOPPED and number_of(row.answers) in given_up:
            continue
        if row.kind in ("reply", "command"):
            answers[number_of(row.answers)].append(row)
        elif row.kind == "notice" and row.text.startswith(AWAY):
            counts["absences told of"] += 1
        elif row.kind not in ("question", "remark") and row.text not in (BUSY, ASKING, ASKING_IN_GROUP):
            yield f"{row.kind}: {row.text}"
        if row.state != "sent":
            yield f"a {row.kind} is {row.state}: {row.text[:80]}"
    for heard in evidence.town.heard:
        if heard.message.id not in given_up:
            yield from _is_answered(heard, answers.pop(heard.message.id, []))
    for rows in answers.values():
        yield f"nobody asked for {rows[0].text[:80]}"


def _is_answered(heard: Heard, rows: list[Row]) -> Iterator[str]:
    if {row.thread or row.chat for row in rows} - {heard.chat}:
        yield f"{heard.said.text} was answered elsewhere"
    if not heard.said.token:
        if len(rows) != 1:
            yield f"{heard.said.text} has {len(rows)} answers"
        return
    expected = [shown(part).strip() for part in split(reply_to(heard.said.kind, heard.said.token))]
    found = [shown_as(row) for row in rows]
    if found != expected:
        yield f"{heard.said.text} was answered by {len(found)} messages, not {len(expected)}: {found}"


def _everything_is_seen_once(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """People see exactly the outbox. While Discord remembers nonces, nothing excuses another copy; when it forgets
    them, a send whose outcome nobody knows may leave one, or the beginning of a reply."""
    changed = {row.edits for row in evidence.rows if row.state == "sent"}
    public = [row for row in evidence.rows if row.state == "sent" and not is_private(row) and row.id not in changed]
    wanted = Counter((row.thread or row.chat, shown_as(row)) for row in public)
    seen = Counter((chat, message.content.strip()) for chat, message in evidence.town.shown())
    doubted = _doubted(evidence)
    for place, text in wanted.keys() | seen.keys():
        missing = wanted[place, text] - seen[place, text]
        if missing > 0:
            yield f"{place}: shown {seen[place, text]} times, not {wanted[place, text]}: {text[:80]}"
        elif missing < 0 and (evidence.schedule.nonces or doubted[place] < -missing):
            what = "shown too often" if wanted[place, text] else "nobody wrote this, or left it unfinished"
            yield f"{place}: {what} ({-missing} times): {text[-80:]}"
        elif missing < 0:
            counts[TWICE if wanted[place, text] else UNFINISHED] -= missing


def _doubted(evidence: Evidence) -> Counter[str]:
    """Return the sends of each channel that were done without a word to their senders, or whose senders died too
    early to note it."""
    sends = list(evidence.town.discord.journal.of(SEND))
    doubted = Counter(call.chat_id for call in sends if call.ambiguous)
    for death in evidence.deaths:
        recorded = {row.message for row in death.rows}
        before = [call for call in sends if call.number <= death.last_call and call.done and call.answered]
        doubted.update(call.chat_id for call in before if str(call.result["id"]) not in recorded)
    return doubted


def _answers_come_in_order(evidence: Evidence) -> Iterator[str]:
    """In each lane in the order in which they were said."""
    lanes: dict[tuple[str, str], list[int]] = defaultdict(list)
    asked = {heard.message.id: (place, heard) for place, heard in enumerate(evidence.town.heard)}
    for row in evidence.rows:
        place, heard = asked.get(number_of(row.answers), (0, None))
        if row.kind in ("reply", "command") and heard and heard.said.kind not in _BESIDE_THE_LANE:
            lanes[heard.chat, heard.said.speaker].append(place)
    yield from answered_out_of_order(lanes)


def _the_order_is_that_of_emission(evidence: Evidence) -> Iterator[str]:
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.town.discord.journal.calls:
        if call.method in (SEND, EDIT) and call.done:
            calls[call.chat_id].append(call)
    struck = Counter((call.chat_id, said_in(call)) for call in evidence.town.discord.journal.of(SEND) if call.ambiguous)
    rows = [
        row for row in evidence.rows if not is_given(row.answers)
    ]  # the others have their place when they are given
    yield from shown_out_of_order(rows, calls, read_in=said_in, shown_as=shown_as, struck=struck)


def _answers_stand_in_order(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """In each lane a reply stands below those before it, also one that was shown while it grew. A send in doubt may
    have left its message further above, if Discord forgets nonces."""
    asked = {heard.message.id: heard.said.speaker for heard in evidence.town.heard}
    last: dict[tuple[str, str | None], tuple[int, str]] = {}
    for row in evidence.rows:
        if row.kind != "reply" or row.message is None:
            continue
        lane = (row.chat, asked.get(number_of(row.answers)))
        above, text = last.get(lane, (0, ""))
        number = int(row.message)
        if number < above and evidence.schedule.nonces:
            yield f"{lane}: {row.text[:60]} stands above {text[:60]}, which was answered before"
        counts["replies that stand above an earlier one"] += number < above
        last[lane] = max((above, text), (number, row.text))
