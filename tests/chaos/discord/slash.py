"""The promises about slash commands and buttons: each is acknowledged, and answered once, like a typed one.

Discord sends no interaction again. So one whose process died before it was stored is lost, and its person is told so by
Discord; only such a one may be without an answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from adapters.discord.interactions import TOO_LATE
from gateway.domain.turn import STOPPED
from tests.chaos.bots.stores import Row
from tests.chaos.discord.evidence import Evidence, Given, Press, number_of

LOST = "slash commands lost with their process or its connection"
LATE = "private answers that Discord took no more"
THINKS = "commands that were acknowledged and lost"


def is_given(event: str | None) -> bool:
    """Say whether an event is a slash command."""
    return _mark(event)[:1] in ("i", "p", "c")


def is_private(row: Row) -> bool:
    """Say whether only one person sees it."""
    return (row.message or "").startswith("@")


def problems_of_slash_commands(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Yield the faults in sentences; `counts` gets the excuses."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows:
        if is_given(row.answers) and row.kind != "notice":
            rows[int(_mark(row.answers)[1:])].append(row)
    for given in evidence.town.given:
        yield from _is_answered_once(evidence, given, rows.pop(given.interaction.id, []), counts)
    for left in rows.values():
        yield f"nobody gave the command of {left[0].text[:80]}"
    yield from _say_the_same(evidence)


def _is_answered_once(evidence: Evidence, given: Given, rows: list[Row], counts: Counter[str]) -> Iterator[str]:
    counts["slash commands"] += 1
    shown = [message.content.strip() for message in given.interaction.shown if not given.waits]
    if not rows:
        if not _may_be_lost(evidence, given):
            yield f"/{given.name} was not answered, though its process lived"
        if any(_mark(event)[1:] == str(given.interaction.id) for event in evidence.stored if is_given(event)):
            yield f"/{given.name} was stored, and not answered"
        if shown:
            yield f"/{given.name} was answered by nobody: {shown}"
        counts[LOST] += 1
        counts[THINKS] += given.waits
        return
    row, *others = rows
    if row.state == "refused" and row.error == TOO_LATE and given.interaction.answer is None:
        counts[LATE] += 1  # the person reads that the command failed, and why nobody saw its answer
        if [each.kind for each in others] != ["error"]:
            yield f"nobody is told that the answer to /{given.name} came too late"
        return
    if others:
        yield f"/{given.name} has {len(rows)} answers"
    if row.kind != "command":
        yield f"/{given.name} was answered by a {row.kind}: {row.text[:80]}"
    if row.state != "sent":
        yield f"the answer to /{given.name} is {row.state}: {row.error}"
    if given.waits and not _may_be_lost(evidence, given):
        yield f"/{given.name} is answered, and its person is shown that the bot thinks"
    if is_private(row) and len(shown) != 1:
        yield f"the private answer to /{given.name} is shown {len(shown)} times"
    if len(shown) > 1:
        yield f"/{given.name} is answered {len(shown)} times: {shown}"
    counts["slash commands answered"] += 1


def stopped_by_new(evidence: Evidence) -> set[int]:
    """The messages whose question was open when somebody began anew there: it counts as a no, and ends the turn."""
    told = {number_of(row.answers) for row in evidence.rows if row.kind == "notice" and row.text == STOPPED}
    fresh = {heard.chat for heard in evidence.town.heard if heard.said.text == "/new"}
    fresh |= {str(given.interaction.channel.id) for given in evidence.town.given if given.name == "new"}
    return {
        heard.message.id
        for heard in evidence.town.heard
        if heard.said.kind == "pay" and heard.chat in fresh and heard.message.id in told
    }


def problems_of_presses(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """Each question has one decision, and what was asked about was done once, unless its process died in between."""
    questions = {row.id: row for row in evidence.rows if row.kind == "question" and row.edits is None}
    decided = Counter(row.edits for row in evidence.rows if row.kind == "question" and row.edits is not None)
    for row in questions.values():
        if decided[row.id] != 1:
            yield f"{row.text[:40]} was decided {decided[row.id]} times"
    given_up = stopped_by_new(evidence)
    for heard in evidence.town.heard:
        if heard.said.kind != "pay":
            continue
        counts["payments"] += 1
        paid = evidence.paid.count(heard.said.token)
        if paid > 1 or not (paid or evidence.deaths or heard.message.id in given_up):
            yield f"{heard.said.token} was paid {paid} times"
        counts["payments whose process died before or in them"] += not paid
    for press in evidence.town.presses:
        counts["presses"] += 1
        if press.interaction.answer is None and not _may_be_lost(evidence, press):
            yield f"a press under {press.message.content[:40]} was not acknowledged, though its process lived"
        if len(press.interaction.followups) > 1:
            yield f"a press under {press.message.content[:40]} was answered {len(press.interaction.followups)} times"


def _may_be_lost(evidence: Evidence, given: Given | Press) -> bool:
    """Say whether its process died, or the gateway or the first word broke."""
    broken = any(call.fault for call in evidence.town.discord.journal.calls if _is_of_reading(call.method))
    return given.process < len(evidence.deaths) or broken


def _is_of_reading(method: str) -> bool:
    return method.startswith(("send ", "receive ", "GET /gateway")) or method.endswith("/callback")


def _say_the_same(evidence: Evidence) -> Iterator[str]:
    """A command that is chosen from the menu and one that is typed."""
    typed = {heard.message.id for heard in evidence.town.heard if heard.said.kind == "/version"}
    chosen = {given.interaction.id for given in evidence.town.given if given.name == "version"}
    texts = set()
    for row in evidence.rows:
        mark = _mark(row.answers)
        number = int(mark[1:] if is_given(row.answers) else mark or 0) if mark[1:].isdecimal() else 0
        if row.kind == "command" and number in typed | chosen:
            texts.add(row.text.partition(",")[0])  # what follows is since when the process runs
    if len(texts) > 1:
        yield f"/version is answered in {len(texts)} ways: {sorted(texts)}"


def _mark(event: str | None) -> str:
    """The letter of a command's event and its number."""
    parts = (event or "").split(":")
    return parts[3] if len(parts) > 3 else ""
