"""The promises of every run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from adapters.telegram.formatting import render, split
from gateway.delivery.outbox import MAYBE_MISSING, OUTCOME_UNKNOWN
from gateway.domain.turn import BUSY
from tests.chaos.bots.check import answered_out_of_order, ended_badly, shown_out_of_order
from tests.chaos.bots.model import TOKEN, reply_to
from tests.chaos.bots.stores import Row
from tests.chaos.telegram.doubts import Doubts, place_of, read_in, shown_as, unmarked
from tests.chaos.telegram.drafted import drafts_are_no_more_than_that
from tests.chaos.telegram.evidence import Evidence, Heard
from tests.chaos.telegram.silence import silence_is_kept
from tests.emulators.journal import Call
from tests.emulators.telegram import Message

TWICE: Final = "messages shown twice after a send in doubt"
UNFINISHED: Final = "beginnings of replies left by a send in doubt"
_BESIDE_THE_LANE: Final = ("/status", "/version")


def problems(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults of a run in sentences; `counts` gets the excuses with their reasons."""
    doubts = Doubts.of(evidence)
    yield from ended_badly(evidence)
    yield from _everything_is_answered(evidence)
    yield from _everything_is_seen_once(evidence, doubts, counts)
    yield from _nothing_else_is_seen(evidence, doubts, counts)
    yield from _the_order_is_that_of_emission(evidence, doubts)
    yield from _answers_come_in_order(evidence)
    yield from _answers_stand_in_order(evidence, doubts)
    yield from drafts_are_no_more_than_that(evidence, counts)
    yield from silence_is_kept(evidence, counts)
    counts["messages of the bot"] += sum(len(_shown(evidence, chat)) for chat in evidence.street.chats)
    counts["edits"] += sum(call.done for call in evidence.street.telegram.journal.of("editMessageText"))
    counts["sends in doubt"] += len(doubts.lost)
    counts["messages said while the bot was down"] += sum(each.down for each in evidence.schedule.said)


def _everything_is_answered(evidence: Evidence) -> Iterator[str]:
    """Each message has the whole answer to it, once; nothing else is a reply, and nothing failed."""
    answers: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in evidence.rows:
        if row.kind in ("reply", "command"):
            answers[place_of(row.answers)].append(row)
        elif row.text not in (BUSY, MAYBE_MISSING):
            yield f"{row.kind}: {row.text}"
        if row.state != "sent" and not (row.state == "refused" and row.error == OUTCOME_UNKNOWN):
            yield f"a {row.kind} is {row.state}: {row.text[:80]}"
    for heard in evidence.street.heard:
        rows = answers.pop(heard.place, [])
        yield from _is_answered(heard, rows)
    for rows in answers.values():
        yield f"nobody asked for {rows[0].text[:80]}"


def _is_answered(heard: Heard, rows: list[Row]) -> Iterator[str]:
    wrong_place = {(row.chat, row.thread) for row in rows} - {heard.where}
    if wrong_place:
        yield f"{heard.said.text} was answered in {wrong_place}"
    if not heard.said.token:
        if len(rows) != 1:
            yield f"{heard.said.text} has {len(rows)} answers"
        return
    expected = [render(part).text.strip() for part in split(reply_to(heard.said.kind, heard.said.token))]
    found = [shown_as(row) for row in rows]
    if found != expected:
        yield f"{heard.said.text} was answered by {len(found)} messages, not {len(expected)}: {found}"


def _everything_is_seen_once(evidence: Evidence, doubts: Doubts, counts: Counter[str]) -> Iterator[str]:
    wanted = Counter((row.chat, row.thread, shown_as(row)) for row in evidence.rows)
    seen: dict[tuple[str, str | None, str], list[bool]] = defaultdict(list)
    unmarked_times = Counter[tuple[str, str | None, str]]()
    for message, in_doubt in _messages(evidence, doubts):
        seen[_place(evidence, message)].append(in_doubt)
        unmarked_times[_place(evidence, message)] += unmarked(message.text) == message.text.strip()
    for (chat, thread, text), times in wanted.items():
        found = seen[chat, thread, text]
        missing, more = times - len(found), len(found) - times
        if missing > 0:
            yield f"{chat} {thread}: shown {len(found)} times, not {times}: {text[:80]}"
        if more > sum(found):
            yield f"{chat} {thread}: shown {len(found)} times, with {sum(found)} sends in doubt: {text[:80]}"
        if unmarked_times[chat, thread, text] > times:
            yield f"{chat} {thread}: shown {unmarked_times[chat, thread, text]} times without a mark: {text[:80]}"
        counts[TWICE] += max(0, more)


def _nothing_else_is_seen(evidence: Evidence, doubts: Doubts, counts: Counter[str]) -> Iterator[str]:
    """Yield messages that neither are in the outbox nor begin one of its rows; such a beginning may stand there
    because its send was in doubt."""
    wanted = {(row.chat, row.thread, shown_as(row)) for row in evidence.rows}
    tokens: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for heard in evidence.street.heard:
        tokens[heard.where].add(heard.said.token)
    for message, in_doubt in _messages(evidence, doubts):
        chat, thread, text = _place(evidence, message)
        if set(TOKEN.findall(text)) - tokens[chat, thread]:
            yield f"{chat} {thread}: words of another conversation: {text[:80]}"
        if (chat, thread, text) in wanted:
            continue
        if not in_doubt:
            yield f"{chat} {thread}: was left unfinished: {text[-80:]}"
        counts[UNFINISHED] += in_doubt


def _the_order_is_that_of_emission(evidence: Evidence, doubts: Doubts) -> Iterator[str]:
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.street.telegram.journal.calls:
        if call.method in ("sendMessage", "editMessageText") and (call.done or "is not modified" in call.description):
            calls[evidence.street.chats[call.chat_id]].append(call)
    yield from shown_out_of_order(evidence.rows, calls, read_in=read_in, shown_as=shown_as, struck=doubts.struck)


def _answers_come_in_order(evidence: Evidence) -> Iterator[str]:
    """In each lane in the order in which they were said. Telegram calls a bot about several chats at once, and a
    group that became a supergroup is two of them: what was said in the one may be heard after words in the other.
    """
    lanes: dict[tuple[str, str | None, str], list[int]] = defaultdict(list)
    asked = {heard.place: heard for heard in evidence.street.heard}
    for row in evidence.rows:
        heard = asked.get(place_of(row.answers))
        if row.kind in ("reply", "command") and heard and heard.said.kind not in _BESIDE_THE_LANE:
            chat = heard.place[0] if evidence.schedule.called else heard.where[0]
            lanes[chat, heard.where[1], heard.said.speaker].append(evidence.street.heard.index(heard))
    yield from answered_out_of_order(lanes)


def _answers_stand_in_order(evidence: Evidence, doubts: Doubts) -> Iterator[str]:
    """In each lane the messages of an answer stand below those of the answers before it, also where the answer was
    shown while it grew. A send in doubt may have left its message further above."""
    asked = {heard.place: heard for heard in evidence.street.heard}
    last: dict[tuple[str, str | None, str], tuple[int, str]] = {}
    for row in evidence.rows:
        heard = asked.get(place_of(row.answers))
        if row.kind != "reply" or heard is None or row.message is None or doubts.struck[row.chat, shown_as(row)]:
            continue
        chat, _, number = row.message.rpartition(":")
        lane = (chat or row.chat, row.thread, heard.said.speaker)
        above, text = last.get(lane, (0, ""))
        if int(number) < above:
            yield f"{lane}: {row.text[:60]} stands above {text[:60]}, which was answered before"
        last[lane] = max((above, text), (int(number), row.text))


def _shown(evidence: Evidence, chat: str) -> list[Message]:
    telegram = evidence.street.telegram
    return telegram.shown(telegram.chats[int(chat)])


def _messages(evidence: Evidence, doubts: Doubts) -> Iterator[tuple[Message, bool]]:
    """All that is to be seen of the bot, and whether the send that made it was in doubt, or it stands in a group that
    had become a supergroup when it was to be finished."""
    journal = evidence.street.telegram.journal
    made = {(call.chat_id, call.result["message_id"]): call for call in journal.of("sendMessage") if call.done}
    left = {
        (call.chat_id, int(call.parameters["message_id"]))
        for call in journal.of("editMessageText")
        if "upgraded to a supergroup" in call.description
    }
    for chat in sorted(evidence.street.chats):
        for message in _shown(evidence, chat):
            yield message, made[chat, message.id].number in doubts.lost or (chat, message.id) in left


def _place(evidence: Evidence, message: Message) -> tuple[str, str | None, str]:
    home = evidence.street.chats[str(message.chat.id)]
    return home, str(message.topic) if message.topic else None, unmarked(message.text)
