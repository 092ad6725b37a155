"""Questions that only a person may decide: a turn asks, a button or a command answers.

A question is bound to one tool call and to the person whom the turn answers; an admin may answer it, too. The first
answer decides it, in whatever process. Until then its turn waits, and after its deadline it counts as a no. All of
this is in the store, so a turn that starts again after a crash finds its question, or the decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.delivery.outbox import Outbox
from gateway.domain.approval import LABELS, Approval, Labels, Verdict
from gateway.domain.chat import Button, Inbound, Outbound, SessionKey, Source
from gateway.people.access import Access
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.tasks import unbroken
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Decision, InboxItem, Lease

_LOOK_AGAIN: Final = 5.0  # seconds: news of a decision may be lost on their way
# Seconds that a person needs to read a question, at least. Words that were sent earlier answer another question.
_READ_WITHIN: Final = 2.0
_WORDS: Final = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny"}  # what they mean while a question waits

ASKED: Final = "{question}\n\n{how}. Without an answer within {span} I take it as a no."
DECIDED: Final[dict[Verdict, str]] = {
    "approved": "Approved.",
    "denied": "Denied.",
    "expired": "Nobody answered in time, so it was not done.",
}
WITHDRAWN: Final = "No longer needed: it was not done."
NOT_YOURS: Final = "This is for somebody else; nothing was done."
GONE: Final = "This question is not open any more, so this answer changed nothing."
CHOSEN: Final = "{label} was chosen."  # of a question whose buttons have labels of their own
CHOSEN_BEFORE: Final = "{label} was chosen before."
BEFORE: Final[dict[Verdict, str]] = {
    "approved": "This was approved before.",
    "denied": "This was denied before.",
    "expired": "This came too late: without an answer it counted as a no.",
}


@dataclass(slots=True, kw_only=True)
class Approvals:
    """The service of approvals. `seconds`: how long an answer may take. Only `_waiting` changes: the turns of this
    process that wait for an answer."""

    store: Store
    outbox: Outbox
    access: Access
    clock: Clock
    ids: Ids
    seconds: float
    _waiting: dict[SessionKey, asyncio.Event] = field(default_factory=dict)

    # -- asking -----------------------------------------------------------------------------

    async def ask(
        self,
        lease: Lease,
        item: InboxItem,
        call: str,
        question: str,
        number: int,
        before: Sequence[Outbound],
        labels: Labels = LABELS,
    ) -> Approval:
        """Store a question and show it, behind the rows `before`."""
        token, now = self.ids.new("a"), self.clock.now()
        which = f" {number}" if number > 1 else ""
        plain = number == 1 and item.inbound.source.chat_type == "direct"
        yes, no = ("y", "n") if plain else (f"/approve{which}", f"/deny{which}")
        if labels != LABELS:
            yes, no = (f"{word} ({label.lower()})" for word, label in zip((yes, no), labels, strict=True))
        how, span = f"{'Answer ' if plain else ''}{yes} or {no}", _span(self.seconds)
        *first, last = self.outbox.rows(item, "question", ASKED.format(question=question, how=how, span=span))
        buttons = (Button(label=labels[0], token=f"approve {token}"), Button(label=labels[1], token=f"deny {token}"))
        rows = [*before, *first, replace(last, buttons=(buttons,))]
        asked = Approval(
            token=token,
            key=item.key,
            item=item.id,
            call=call,
            number=number,
            person=item.inbound.source.user,
            question=question,
            shown_as=last.id,
            asked_at=now,
            expires_at=now + self.seconds,
            labels=labels,
        )
        step = insist(lambda: self.store.ask(lease, asked, rows), clock=self.clock, what="ask approval")
        self.outbox.deliver(await step)
        return asked

    @contextmanager
    def listening(self, key: SessionKey) -> Iterator[asyncio.Event]:
        """The event is set whenever something of this key may have been decided."""
        news = self._waiting[key] = asyncio.Event()
        try:
            yield news
        finally:
            if self._waiting.get(key) is news:  # else another turn has the lane by now, and listens
                del self._waiting[key]

    def heard(self, key: SessionKey) -> None:
        """Something was decided, here or in another process."""
        if (news := self._waiting.get(key)) is not None:
            news.set()

    # -- answering --------------------------------------------------------------------------

    async def pressed(self, inbound: Inbound) -> str:
        """Do what a button says, if it still means something. Returns a sentence for the person who pressed it."""
        verb, _, token = inbound.text.partition(" ")
        verdict: Verdict | None = "approved" if verb == "approve" else "denied" if verb == "deny" else None
        asked = await self.store.approvals(inbound.source.address)
        approval = next((each for each in asked if each.token == token), None)
        if verdict is None or approval is None:
            return GONE
        if not approval.may_be_answered_by(inbound.source, admin=self.access.is_admin(inbound.source)):
            return NOT_YOURS
        return await self.answer(approval, verdict, inbound.source)

    async def answerable(self, source: Source) -> list[Approval]:
        """The open questions that a person may answer in a chat: their own, else, for an admin, everybody's."""
        admin = self.access.is_admin(source)
        found = [each for each in await self.store.approvals(source.address) if each.key.thread == source.thread]
        there = [each for each in found if each.is_open and each.may_be_answered_by(source, admin=admin)]
        return [each for each in there if each.person == source.user] or there

    async def command_in(self, inbound: Inbound) -> str | None:
        """The name of the command that a plain y or n stands for, if a question waits for the person who says it."""
        command = _WORDS.get(inbound.text.strip().rstrip(".!").lower())
        if command is None or inbound.kind != "message" or inbound.attachments:
            return None
        there = await self.answerable(inbound.source)
        return command if any(each.person == inbound.source.user for each in there) else None

    def came_before(self, inbound: Inbound, approval: Approval) -> bool:
        """Say whether the person cannot have read the question before they wrote: they meant another one. In a
        terminal of the operator's own, every line is written below the question."""
        if not inbound.sent_at or inbound.source.platform in self.access.trusted:
            return False
        return approval.asked_at > inbound.sent_at - _READ_WITHIN

    async def answer(self, approval: Approval, verdict: Verdict, source: Source) -> str:
        """Decide a question for a person who may. Returns what became of it, as a sentence."""
        late = self.clock.now() >= approval.expires_at
        decision = await self.decide(approval, "expired" if late else verdict, source.user)
        if decision is None:
            return GONE
        state = decision.approval.state
        if state == "open":
            raise AssertionError("a verdict leaves no question open")
        return _told(decision.approval, state, before=late or not decision.first)

    async def decide(self, approval: Approval, verdict: Verdict, by: str | None) -> Decision | None:
        """Decide a question, and say so under it. None: the question is gone."""
        rows = self._edit(approval, _told(approval, verdict))
        at = self.clock.now()
        step = insist(lambda: self.store.decide(approval, verdict, by, at, rows), clock=self.clock, what="decide")
        decision = await step
        if decision is not None:
            self.outbox.deliver(decision.outbound)
        return decision

    async def withdrawn(self, item: InboxItem) -> list[Outbound]:
        """The rows to show under the questions of an item that ends without their answers."""
        asked = await self.store.approvals(item.inbound.source.address)
        left = [each for each in asked if each.item == item.id and each.key == item.key and each.is_open]
        return [row for each in left for row in self._edit(each, WITHDRAWN)]

    def _edit(self, approval: Approval, text: str) -> list[Outbound]:
        key = approval.key
        *_, last = self.outbox.compose(key, key.address, "question", f"{approval.question}\n\n{text}")
        return [replace(last, edits=approval.shown_as)]


@dataclass(slots=True, kw_only=True)
class TurnQuestions:
    """The agent's `Questions` for the turn of one item. `known` are the questions that the turn asked, by call.
    `labels` stand on the buttons of new ones."""

    approvals: Approvals
    lease: Lease
    item: InboxItem
    known: dict[str, Approval]
    labels: Labels = LABELS

    def has_asked(self, call: str) -> bool:
        """Say whether this turn has asked about the call."""
        return call in self.known

    async def ask(self, call: str, question: str, said: str, said_as: str | None) -> None:
        """Put a question, behind the words that the model said before it."""
        approvals, number = self.approvals, len(self.known) + 1
        before = await approvals.outbox.written(self.item, "remark", said, first_id=said_as) if said else []
        asking = approvals.ask(self.lease, self.item, call, question, number, before, self.labels)
        self.known[call] = await unbroken(asking)

    async def answer(self, call: str) -> Verdict:
        """Wait until the question is decided, at the latest by its deadline."""
        approvals = self.approvals
        with approvals.listening(self.item.key) as news:
            while True:
                news.clear()  # before looking: a decision in between is heard after it
                asked = await approvals.store.approvals(self.item.inbound.source.address)
                self.known.update({each.call: each for each in asked if each.item == self.item.id})
                approval = self.known[call]
                if approval.state != "open":
                    return approval.state
                left = approval.expires_at - approvals.clock.now()
                if left > 0:
                    with suppress(TimeoutError):
                        async with approvals.clock.limit(min(left, _LOOK_AGAIN)):
                            await news.wait()
                elif await approvals.decide(approval, "expired", None) is None:
                    return "expired"


def listed(approvals: Collection[Approval]) -> str:
    """Open questions with their numbers, one line each."""
    return "\n".join(f"{each.number}. {each.question}" for each in approvals)


def _told(approval: Approval, verdict: Verdict, *, before: bool = False) -> str:
    """The sentence about a verdict, in the words of the question's buttons. `before`: it is not new."""
    if verdict == "expired" or approval.labels == LABELS:
        return (BEFORE if before else DECIDED)[verdict]
    return (CHOSEN_BEFORE if before else CHOSEN).format(label=approval.labels[verdict == "denied"])


def _span(seconds: float) -> str:
    return f"{seconds:g} seconds" if seconds < 120 else f"{seconds / 60:g} minutes"
