"""Questions that only a person may decide: a turn asks, a button or a command answers.

A question is bound to one tool call and to the person whom the turn answers; an admin may answer it, too. The first
answer decides, in whatever process. Until then the turn waits; after its deadline the question counts as a no. All of
this is in the store, so a turn that starts again after a crash finds its question, or the decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.json import decode, encode

from gateway.agent.tools.base import Question
from gateway.delivery.outbox import Outbox
from gateway.domain.approval import ANYTHING, LABELS, WORDS, Approval, Choices, Labels, Lasts, Verdict, command_meant
from gateway.domain.chat import JOINED, Button, ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.people.access import Access
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.structs import replace
from gateway.runtime.tasks import unbroken
from gateway.store.insist import insist
from gateway.store.port import Documents, Store, under
from gateway.store.records import Arrival, Decision, InboxItem, Lease

_LOOK_AGAIN: Final = 5.0  # seconds: news of a decision may be lost on their way
# Seconds that a person needs to read a question, at least. Words that were sent earlier answer another question.
_READ_WITHIN: Final = 2.0
_BEHIND: Final = 20  # waiting items that are looked at for an answer: it stands first, or there is none

UNHEARD: Final = "Nobody was there to say yes, so I did nothing. Ask again in `legato chat`."
NOBODY: Final = f"{UNHEARD} Or write into {{where}} what I may do without asking."
ASKED: Final = "{question}\n\n{how}Without an answer within {span}, I do nothing."
DECIDED: Final[dict[Verdict, str]] = {
    "approved": "Approved.",
    "denied": "Denied.",
    "expired": "Nobody answered in time, so I did nothing.",
}
_WORDS: Final = "Your {next} is the answer{answer}. "
_CHOICE: Final = "Press a button, or {send} the number{refuse}. "
NOTHING_CHOSEN: Final = "You have chosen nothing yet. Choose what you mean, then press Done."
NOT_CHOSEN: Final = "Choose one of the options: press a button, send its number, or send /deny."
NO_FORM: Final = "Write your answer as your next message."
ANSWERED: Final = "Thank you for your answer."
CHOSE: Final = "Answered: {answer}"
NO_WORDS: Final = "I have not asked you anything here."
_ANSWERS: Final = "answers"  # the folder of the words that answer questions, by token, until their turns have read them
_TICKS: Final = "ticks "  # begins the names of notes there: the options that are ticked so far
_LONGEST_LABEL: Final = 40  # characters
_STANDING: Final = "approved"
_LASTS: Final[dict[Lasts, str]] = {"session": "This session", "always": "Always"}
_MAY_LAST: Final[dict[Lasts, tuple[Lasts, ...]]] = {
    "once": (),
    "session": ("session",),
    "always": ("session", "always"),
}
_LASTING: Final = "To allow exactly the same in the future, send {yes} {lasting}."
KEPT: Final[dict[Lasts, str]] = {
    "session": "Approved. I will not ask you this again in this session. To withdraw your yes, send /approvals.",
    "always": "Approved. I will not ask you this again here. To withdraw your yes, send /approvals.",
}
WITHDRAWN: Final = "I no longer need the answer, so I did nothing."
NOT_YOURS: Final = "This question was for someone else, so your answer changed nothing."
GONE: Final = "This question is already closed, so your answer changed nothing."
CHOSEN: Final = "{label} was chosen."  # of a question whose buttons have labels of their own
CHOSEN_BEFORE: Final = "{label} was chosen before."
BEFORE: Final[dict[Verdict, str]] = {
    "approved": "This was approved before.",
    "denied": "This was denied before.",
    "expired": "Your answer came too late, so I did nothing. Please ask me again.",
}


class _Wait(Struct):
    """A turn that waits. `left`: its question is for the next start, because nobody here knows of it."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    left: bool = False


class Approvals(Struct, kw_only=True):
    """The service of approvals. `seconds`: how long an answer may take; `lasts`: the longest that a yes may hold. Two
    fields change: `_waiting` has the turns of this process that wait for an answer, and `unattended` says that nobody
    can write here any more."""

    store: Store
    outbox: Outbox
    access: Access
    clock: Clock
    ids: Ids
    seconds: float
    lasts: Lasts = "once"
    unattended: bool = False
    _waiting: dict[SessionKey, _Wait] = field(default_factory=dict)

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
        choices: Choices = ANYTHING,
        deed: tuple[str, str] = ("", ""),
        code_at: int = 0,
    ) -> Approval:
        """Store a question and show it, after the rows `before`. `choices`: for a question that is answered in words.
        `deed`: names what a lasting yes would allow, and the session. `code_at`: as of `Question`."""
        token, now = self.ids.new("a"), self.clock.now()
        which = f" {number}" if number > 1 else ""
        plain = number == 1 and item.inbound.source.chat_type == "direct"
        yes, no = ("y", "n") if plain else (f"/approve{which}", f"/deny{which}")
        if labels != LABELS:
            yes, no = (f"{word} ({label.lower()})" for word, label in zip((yes, no), labels, strict=True))
        has_buttons, span = self.outbox.has_buttons(item.key.platform), _span(self.seconds)
        how = "" if has_buttons else f"{'Answer ' if plain else ''}{yes} or {no}. "
        text = question if self.unattended else ASKED.format(question=question, how=how, span=span)
        refuse = Button(label=labels[1], token=f"deny {token}")
        buttons: tuple[tuple[Button, ...], ...] = ((Button(label=labels[0], token=f"approve {token}"), refuse),)
        lasting = _MAY_LAST[self.lasts] if deed[0] and not self.unattended else ()
        if lasting and not has_buttons:
            text = f"{text} {_LASTING.format(yes=f'/approve{which}', lasting=' or '.join(lasting))}"
        if lasting:
            longer = tuple(Button(label=_LASTS[each], token=f"{each} {token}") for each in lasting)
            buttons = ((buttons[0][0], *longer), (refuse,))
        if labels == WORDS:
            refused = "" if has_buttons else f", or refuse with /deny{which}"
            how = _CHOICE if choices.closed else _WORDS
            # In a group the bot may not see what is no reply to it.
            is_group = item.inbound.source.chat_type != "direct"
            means = (
                {"next": "reply to this", "send": "reply with"}
                if is_group
                else {"next": "next message", "send": "send"}
            )
            means |= {"refuse": refused, "answer": refused and f". You can also send /answer and your words{refused}"}
            text = ASKED.format(question=question, how=how.format(**means), span=span)
            ticks = choices.several and self.outbox.grows(item.key.platform)
            buttons = _options(choices, token, set() if ticks or not choices.several else None)
        *first, last = self.outbox.rows(item, "question", text)
        rows = [*before, *first, replace(last, buttons=buttons, code_at=0 if first else code_at)]
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
            deed=deed[0] if lasting else "",
            session=deed[1] if lasting else "",
            choices=choices,
            code_at=code_at,
        )
        step = insist(lambda: self.store.ask(lease, asked, rows), clock=self.clock, what="ask approval")
        self.outbox.deliver(await step)
        return asked

    @contextmanager
    def listening(self, key: SessionKey) -> Iterator[_Wait]:
        """Its `news` are set whenever something of this key may have been decided."""
        wait = self._waiting[key] = _Wait()
        try:
            yield wait
        finally:
            if self._waiting.get(key) is wait:  # else another turn has the lane by now, and listens
                del self._waiting[key]

    def heard(self, key: SessionKey) -> None:
        """Something was decided, here or in another process."""
        if (wait := self._waiting.get(key)) is not None:
            wait.news.set()

    def nobody_is_left(self) -> None:
        """Nobody can write here any more: the turns of this process need not wait for an answer."""
        if not self.unattended:
            self.unattended = True
            for wait in self._waiting.values():
                wait.news.set()

    def left(self) -> int:
        """Return the number of turns whose question is left for the next start."""
        return sum(wait.left for wait in self._waiting.values())

    # -- answering --------------------------------------------------------------------------

    async def pressed(self, inbound: Inbound) -> str:
        """Do what a button says, if it still means something. Returns a sentence for the person who pressed it."""
        verb, _, token = inbound.text.partition(" ")
        lasts: Lasts = "session" if verb == "session" else "always" if verb == "always" else "once"
        yes = verb == "approve" or lasts != "once"
        verdict: Verdict | None = "approved" if yes else "denied" if verb == "deny" else None
        asked = await self.store.approvals(inbound.source.address)
        approval = next((each for each in asked if each.token == token), None)
        if (wanted := await self._of_words(verb, token, inbound.source.address)) is not None:
            return await self._answered(wanted, inbound) if wanted.person == inbound.source.user else NOT_YOURS
        if verdict is None or approval is None:
            return GONE
        if not approval.may_be_answered_by(inbound.source, admin=self.access.is_admin(inbound.source)):
            return NOT_YOURS
        return await self.answer(approval, verdict, inbound.source, lasts)

    async def answerable(self, source: Source) -> list[Approval]:
        """The open questions that a person may answer in a chat: their own, else, for an admin, everybody's."""
        asked = await self.store.approvals(source.address)
        if not asked:
            return []
        admin = self.access.is_admin(source)
        found = [each for each in asked if each.is_open and each.key.thread == source.thread]
        there = [each for each in found if each.may_be_answered_by(source, admin=admin)]
        return [each for each in there if each.person == source.user] or there

    async def command_in(self, inbound: Inbound) -> str | None:
        """The name of the command that a plain y or n stands for, if a question waits for the person who says it."""
        if inbound.own is not None:  # as the words of a reply are, behind the line that quotes
            return await self._command_in_reply(inbound)
        command = _word(inbound)
        if command is None:
            return None
        there = await self.answerable(inbound.source)
        return command if any(each.person == inbound.source.user and not each.wants_words for each in there) else None

    async def _command_in_reply(self, inbound: Inbound) -> str | None:
        """The command that a y or n stands for in a reply to the question itself; none in a reply to anything else."""
        word = command_meant(inbound.own or "") if inbound.kind == "message" and not inbound.attachments else None
        if word is None or inbound.reply_to is None:
            return None
        there = [each for each in await self.answerable(inbound.source) if not each.wants_words]
        replied = await self._replied_to(inbound, there)
        return None if replied is None else f"{word} {replied.number}"

    async def _replied_to(self, inbound: Inbound, there: Sequence[Approval]) -> Approval | None:
        known = {each.shown_as: each for each in there}
        rows = await self.store.rows(inbound.source.address, list(known)) if known and inbound.reply_to else []
        return next((known[row.id] for row in rows if row.platform_message_id == inbound.reply_to), None)

    async def _of_words(self, verb: str, rest: str, chat: ChatAddress) -> Approval | None:
        token = rest.partition("\n")[0].partition(" ")[0] if verb in ("choose", "tick", "send", "words") else ""
        there = await self.store.approvals(chat) if token else []
        return next((each for each in there if each.token == token and each.wants_words), None)

    async def _answered(self, asked: Approval, press: Inbound) -> str:
        """Take a press, a menu or a form for the answer to a question in words, or a part of it."""
        first, *lines = press.text.split("\n")
        verb, number = first.partition(" ")[0], first.rpartition(" ")[2]
        if asked.state != "open":
            return _told(asked, asked.state, before=True)
        if verb == "tick":
            return await self._tick(asked, number)
        if verb == "send":
            chosen = [line.rpartition(" ")[2] for line in lines]
            words = ", ".join(chosen or await self._ticked(asked))
        else:
            words = number if verb == "choose" else "\n".join(lines).strip()
        if not words or asked.choices.named(words) is None:
            return NOTHING_CHOSEN if verb == "send" else NOT_CHOSEN if asked.choices.closed else NO_FORM
        return await self._finish_words(asked, words, press.source)

    async def _ticked(self, asked: Approval) -> list[str]:
        noted = (await self.store.notes(_ANSWERS)).get(f"{_TICKS}{asked.token}", "")
        return noted.split()

    async def _tick(self, asked: Approval, number: str) -> str:
        """Tick an option, or take its tick away, and show that."""
        while True:
            before = await self._ticked(asked)
            after = (
                sorted({*before} ^ {number}, key=int) if asked.choices.named(number) and number.isdecimal() else before
            )
            name, noted = f"{_TICKS}{asked.token}", " ".join(before) or None
            if await self.store.set_notes(_ANSWERS, {name: " ".join(after) or None}, {name: noted}):
                break
        rows = await self.store.rows(asked.key.address, [asked.shown_as])
        if rows:
            *_, last = self.outbox.compose(asked.key, asked.key.address, "question", rows[0].text)
            buttons = _options(asked.choices, asked.token, set(after))
            await self.outbox.emit([replace(last, edits=asked.shown_as, buttons=buttons)])
        return ""

    async def _finish_words(self, asked: Approval, words: str, source: Source) -> str:
        """Decide a question by words: the first that came."""
        await self.store.set_notes(_ANSWERS, {asked.token: words}, {asked.token: None})
        return await self.answer(asked, "approved", source)

    async def answer_in_words(self, source: Source, key: SessionKey, words: str) -> str:
        """Answer the person's own question in words. Returns the result as a sentence."""
        if (asked := await self._wanting_words(source, key)) is None:
            return NO_WORDS
        return NOT_CHOSEN if asked.choices.named(words) is None else await self._finish_words(asked, words, source)

    async def takes(self, arrival: Arrival) -> str:
        """Take a message that waits behind a question as its answer in words. Returns the event of the turn that asked;
        "" if it is not an answer."""
        inbound = arrival.inbound
        words = _said(inbound)
        if inbound.kind != "message" or inbound.command is not None or inbound.attachments or not words:
            return ""
        asked = await self._wanting_words(inbound.source, arrival.key)
        if asked is None or asked.choices.named(words) is None:
            return ""
        if self.came_before(inbound, asked) and await self._replied_to(inbound, [asked]) is None:
            return ""
        asking = await self.store.running(arrival.key)
        # In this order, so that no kill in between loses the words: `answered_unheard` goes on with either.
        await self.store.set_notes(_ANSWERS, {asked.token: words}, {asked.token: None})
        if not await self.store.amend(replace(arrival, inbound=replace(inbound, kind="withdrawn"))):
            await self.store.set_notes(_ANSWERS, {asked.token: None}, {asked.token: words})
            return ""
        await self.answer_in_words(inbound.source, arrival.key, words)
        return asking.inbound.event_id if asking is not None else inbound.event_id

    async def answered_unheard(self, asked: Approval) -> bool:
        """Take an answer in words whose process died after it had stored it and before it closed the question. Say
        whether there was one."""
        if not asked.wants_words:
            return False
        taken = (await self.store.notes(_ANSWERS)).get(asked.token)
        since = self.clock.now() - _LOOK_AGAIN  # what came later is in the hands of a process that lives
        for item in await self.store.waiting(asked.key, _BEHIND):
            is_theirs = item.inbound.source.user == asked.person and item.accepted_at > asked.asked_at
            is_left = item.accepted_at <= since if taken is None else taken == _said(item.inbound)
            if is_theirs and is_left and await self.takes(_again(item)):
                return True
        return taken is not None and await self.decide(asked, "approved", asked.person) is not None

    async def _wanting_words(self, source: Source, key: SessionKey) -> Approval | None:
        there = [each for each in await self.answerable(source) if each.wants_words and each.key == key]
        return next((each for each in reversed(there) if each.person == source.user), None)

    async def words(self, asked: Approval) -> str:
        """The words with which a question was answered. They are kept until its turn ends: it may begin again."""
        return (await self.store.notes(_ANSWERS)).get(asked.token, "")

    def came_before(self, inbound: Inbound, approval: Approval) -> bool:
        """Whether the person cannot have read the question before they wrote, so that they meant another one. In the
        operator's own terminal, every line is written below the question."""
        if not inbound.sent_at or inbound.source.platform in self.access.trusted:
            return False
        return approval.asked_at > inbound.sent_at - _READ_WITHIN

    async def answer(self, approval: Approval, verdict: Verdict, source: Source, lasts: Lasts = "once") -> str:
        """Decide a question for a person who may. Returns the result as a sentence. A yes lasts if it may, and if it is
        the person's own."""
        late = self.clock.now() >= approval.expires_at
        decision = await self.decide(approval, "expired" if late else verdict, source.user)
        if decision is None:
            return GONE
        state = decision.approval.state
        if state == "open":
            raise AssertionError("a verdict leaves no question open")
        may_last = lasts in _MAY_LAST[self.lasts] and bool(approval.deed) and source.user == approval.person
        if may_last and decision.first and state == "approved":
            await keep(self.store, approval, lasts, self.clock.now())
            return KEPT[lasts]
        return _told(decision.approval, state, before=late or not decision.first)

    async def decide(self, approval: Approval, verdict: Verdict, by: str | None) -> Decision | None:
        """Decide a question, and say so under it. None: the question is gone."""
        told = _told(approval, verdict)
        if told == ANSWERED and approval.choices.options:
            told = CHOSE.format(answer=approval.choices.named(words := await self.words(approval)) or words)
        rows = self._edit(approval, told)
        at = self.clock.now()
        step = insist(lambda: self.store.decide(approval, verdict, by, at, rows), clock=self.clock, what="decide")
        decision = await step
        if decision is not None:
            self.outbox.deliver(decision.outbound)
        return decision

    async def answered_behind(self, approval: Approval, behind: Sequence[InboxItem]) -> bool:
        """Take the first message that waits behind a turn as the answer to its question, if it is a plain y or n of the
        same person: a script writes it before anything is asked. Returns whether it was one."""
        if not behind or behind[0].inbound.source.user != approval.person:
            return False
        item, word = behind[0], _word(behind[0].inbound)
        if word is None or approval.wants_words:
            return False
        told = await self.answer(approval, "approved" if word == "approve" else "denied", item.inbound.source)
        gone = _again(replace(item, inbound=replace(item.inbound, kind="withdrawn")))
        if await insist(lambda: self.store.amend(gone), clock=self.clock, what="take answer"):
            rows = self.outbox.rows(item, "command", told)
            await insist(lambda: self.outbox.emit(rows), clock=self.clock, what="tell answer")
        return True

    async def withdrawn(self, item: InboxItem) -> list[Outbound]:
        """The rows to show under the questions of an item that ends without their answers. Words that answered some are
        forgotten."""
        asked = await self.store.approvals(item.inbound.source.address)
        own = [each for each in asked if each.item == item.id and each.key == item.key]
        if any(each.wants_words for each in own):
            noted = dict.fromkeys([name for each in own for name in (each.token, f"{_TICKS}{each.token}")])
            await insist(lambda: self.store.set_notes(_ANSWERS, noted), clock=self.clock, what="forget answers")
        return [row for each in own if each.is_open for row in self._edit(each, WITHDRAWN)]

    def _edit(self, approval: Approval, text: str) -> list[Outbound]:
        key = approval.key
        *first, last = self.outbox.compose(key, key.address, "question", f"{approval.question}\n\n{text}")
        return [replace(last, edits=approval.shown_as, code_at=0 if first else approval.code_at)]


class TurnQuestions(Struct, kw_only=True):
    """The agent's `Questions` for the turn of one item. `known` are the questions that the turn asked, by call.
    `labels` are on the buttons of new ones."""

    approvals: Approvals
    lease: Lease
    item: InboxItem
    known: dict[str, Approval]
    labels: Labels = LABELS
    session: str = ""
    overhears: bool = False  # the turn is shown what others said in the group
    _allowed: set[str] = field(default_factory=set)  # the calls that an earlier yes covers
    _unheard: set[str] = field(default_factory=set)  # the calls that counted as a no because nobody could answer
    _settings: dict[str, str] = field(default_factory=dict)  # by call: the setting that decides whether it is asked
    _own: set[str] = field(default_factory=set)  # the calls about which this process asked

    def has_asked(self, call: str) -> bool:
        return call in self.known

    @property
    def footer(self) -> str:
        """The sentence below the reply if nobody could answer; otherwise ""."""
        if not self._unheard:
            return ""
        settings = sorted({f"`{self._settings[call]}`" for call in self._unheard if self._settings.get(call)})
        return NOBODY.format(where=" and ".join(settings)) if settings else UNHEARD

    async def allowed(self, deeds: Mapping[str, str], people: Collection[str]) -> Collection[str]:
        """Return those of these calls that an earlier yes of the person's covers; none in a turn that no person began,
        or that others had a word in."""
        inbound = self.item.inbound
        unasked = inbound.kind in ("event", "ended", "helper") or inbound.event_id.startswith(JOINED)
        own = not unasked and not self.overhears and {*people} <= {inbound.source.user}
        if self.approvals.lasts == "once" or not any(deeds.values()) or not own:
            return ()
        held = await standing(self.approvals.store, self.item.key, inbound.source.user, self.session)
        named = {each.deed for each in held if self.approvals.lasts == "always" or each.session}
        self._allowed |= {call for call, deed in deeds.items() if deed in named and call not in self.known}
        return self._allowed & deeds.keys()

    async def ask(self, call: str, question: Question, said: str, said_as: str | None) -> None:
        approvals, number = self.approvals, len(self.known) + 1
        before = await approvals.outbox.written(self.item, "remark", said, first_id=said_as) if said else []
        deed = question.deed, self.session
        labels, code_at = self.labels, question.code_at
        asking = approvals.ask(
            self.lease, self.item, call, question.text, number, before, labels, deed=deed, code_at=code_at
        )
        self._own.add(call)
        self._settings[call] = question.setting
        await unbroken(self._know(call, asking))

    async def _know(self, call: str, asking: Awaitable[Approval]) -> None:
        """Know of a question, even if the turn is stopped while the store writes it: its end withdraws it."""
        self.known[call] = await asking

    async def put(
        self, text: str, labels: Labels | None, choices: Choices, said: str, said_as: str | None
    ) -> tuple[Verdict, str]:
        """Ask a question in the middle of a call, after the words that the model said before it, and wait: for one of
        the two `labels` or, if there are none, for words, perhaps among `choices`. A question that an earlier process
        asked is not asked again."""
        approvals, number = self.approvals, len(self.known) + 1
        call = self._put_before(text) or f"asked/{number}"
        if call not in self.known:
            self._own.add(call)
            before = await approvals.outbox.written(self.item, "remark", said, first_id=said_as) if said else []
            asking = approvals.ask(self.lease, self.item, call, text, number, before, labels or WORDS, choices)
            await unbroken(self._know(call, asking))
        verdict = await self.answer(call)
        self._own.add(call)
        return verdict, await approvals.words(self.known[call]) if verdict == "approved" and labels is None else ""

    def _put_before(self, text: str) -> str | None:
        """The call under which an earlier process put this question, which only the answer is still wanted of."""
        left = [each for each in self.known.values() if each.call not in self._own and each.question == text]
        return left[0].call if left and left[0].call.startswith("asked/") else None

    async def answer(self, call: str) -> Verdict:
        """Wait until the question is decided, at the latest by its deadline."""
        approvals, looked = self.approvals, False
        if call in self._allowed:
            return "approved"
        with approvals.listening(self.item.key) as wait:
            while True:
                wait.news.clear()  # before looking: a decision in between is heard after it
                asked = await approvals.store.approvals(self.item.inbound.source.address)
                self.known.update({each.call: each for each in asked if each.item == self.item.id})
                approval = self.known[call]
                if approval.state != "open":
                    return approval.state
                left = approval.expires_at - approvals.clock.now()
                if not looked:
                    looked = True
                    if await self._answered_before(approval):
                        continue
                if left > 0 and await approvals.answered_unheard(approval):
                    continue
                if left > 0 and approvals.unattended and not wait.left:
                    wait.left = not await self._settled_alone(approval)
                elif left > 0:
                    with suppress(TimeoutError):
                        async with approvals.clock.limit(min(left, _LOOK_AGAIN)):
                            await wait.news.wait()
                elif await approvals.decide(approval, "expired", None) is None:
                    return "expired"

    async def _answered_before(self, approval: Approval) -> bool:
        """Whether the next line of a terminal or a program is a no that was written before it saw the question. A
        yes from before may have meant anything, and elsewhere a no may, too."""
        if self.item.inbound.source.platform not in self.approvals.access.trusted:
            return False
        waiting = await self.approvals.store.waiting(self.item.key, _BEHIND)
        behind = [each for each in waiting if each.inbound.kind != "withdrawn"]  # these answered earlier questions
        said_no = bool(behind) and _word(behind[0].inbound) == "deny"
        return said_no and await self.approvals.answered_behind(approval, behind)

    async def _settled_alone(self, approval: Approval) -> bool:
        """Decide a question that nobody can answer any more. False: an earlier process asked it and nothing waits
        behind it, so it is left for the next start."""
        waiting = await self.approvals.store.waiting(self.item.key, _BEHIND)
        behind = [each for each in waiting if each.inbound.kind != "withdrawn"]  # these answered earlier questions
        if await self.approvals.answered_behind(approval, behind):
            return True
        if approval.call not in self._own and not behind:
            return False
        if await self.approvals.decide(approval, "expired", None) is None:
            return False
        self._unheard.add(approval.call)
        return True


def _options(choices: Choices, token: str, ticked: Collection[str] | None) -> tuple[tuple[Button, ...], ...]:
    """The buttons of a question in words. `ticked`: numbers of the options; None: one of them is the answer, unless
    there may be several, which then only words say."""
    refuse = Button(label=WORDS[1], token=f"deny {token}")
    words = [] if choices.closed else [Button(label="In other words …", token=f"words {token}", kind="words")]
    named = [(f"{number}", each[:_LONGEST_LABEL]) for number, each in enumerate(choices.options, 1)]
    if ticked is None or not choices.several:
        options = [] if choices.several else [(Button(label=label, token=f"choose {token} {n}"),) for n, label in named]
        return (*options, (*words, refuse))
    ticks = [
        (Button(label=f"{'✓ ' if n in ticked else ''}{label}", token=f"tick {token} {n}", kind="tick"),)
        for n, label in named
    ]
    return (*ticks, (Button(label="Done", token=f"send {token}", kind="send"), *words, refuse))


def listed(approvals: Collection[Approval]) -> str:
    """Open questions with their numbers, one line each."""
    return "\n".join(f"{each.number}. {each.question}" for each in approvals)


def _said(inbound: Inbound) -> str:
    return (inbound.text if inbound.own is None else inbound.own).strip()


def _again(item: InboxItem) -> Arrival:
    return Arrival(inbound=item.inbound, key=item.key, at=item.accepted_at)


def _word(inbound: Inbound) -> Literal["approve", "deny"] | None:
    """The command that a message stands for while a question waits."""
    return command_meant(inbound.text) if inbound.kind == "message" and not inbound.attachments else None


def _told(approval: Approval, verdict: Verdict, *, before: bool = False) -> str:
    """The sentence about a verdict, in the words of the question's buttons. `before`: it is not new."""
    if approval.wants_words and verdict == "approved":
        return ANSWERED
    if verdict == "expired" or approval.labels == LABELS:
        return (BEFORE if before else DECIDED)[verdict]
    return (CHOSEN_BEFORE if before else CHOSEN).format(label=approval.labels[verdict == "denied"])


def _span(seconds: float) -> str:
    return f"{seconds:g} seconds" if seconds < 120 else f"{seconds / 60:g} minutes"


# -- yeses that last -----------------------------------------------------------------------------------


class Standing(Struct, frozen=True, kw_only=True):
    """A yes to one very call with just these arguments, for one person in one conversation, in turns that a person
    began. `question`: as they read it; `session`: where it holds, with the continuations; "": in all."""

    deed: str
    person: str
    question: str
    at: float
    session: str = ""


async def keep(store: Documents, asked: Approval, lasts: Lasts, at: float) -> None:
    """Let the yes to a question last. Raises StoreUnavailable."""
    session = asked.session if lasts == "session" else ""
    made = Standing(deed=asked.deed, person=asked.person, question=asked.question, at=at, session=session)
    await store.set_notes(under(asked.key.owner, _STANDING), {_note_of(made): encode(made).decode()})


async def standing(store: Store, key: SessionKey, person: str, session: str) -> list[Standing]:
    """The yeses of a person that hold in a session, oldest first. Raises StoreUnavailable."""
    mine = [each for each in await _all_standing(store, key) if each.person == person]
    chain = {each.id for each in await store.lineage(session)} if session and any(each.session for each in mine) else ()
    return sorted((each for each in mine if not each.session or each.session in chain), key=lambda each: each.at)


async def take_back(store: Documents, key: SessionKey, yes: Standing) -> None:
    """Let a yes hold no more. Raises StoreUnavailable."""
    await store.set_notes(under(key.owner, _STANDING), {_note_of(yes): None})


async def _all_standing(store: Documents, key: SessionKey) -> list[Standing]:
    return [decode(text, type=Standing) for text in (await store.notes(under(key.owner, _STANDING))).values()]


def _note_of(yes: Standing) -> str:
    return f"{yes.deed} {yes.session} {yes.person}"
