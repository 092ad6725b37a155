"""The outbox: everything people are shown goes through here, and only here.

Every Outbound is a row before it is sent. A row is marked as being sent (durably, by whoever
claimed it) before the platform is called, so that a crash leaves one of three facts behind: not
begun (send it), begun (ambiguous: repeat it as often as the platform's limits allow), or sent.
Within a chat the next row is claimed only when the one before it is in a final state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace

import structlog

from gateway.delivery.drafts import Draft
from gateway.delivery.silence import Silence
from gateway.delivery.splitting import split_text
from gateway.domain.adapter import Adapter, CanEdit, CanPreview, CanSendFiles, HasButtons, HasRates, Limits, account_of
from gateway.domain.chat import ChatAddress, Outbound, OutboundKind, SessionKey
from gateway.domain.file import KeptFile
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock, Ids, lasting_id
from gateway.runtime.errors import (
    AdapterError,
    Ambiguous,
    ChatGone,
    DeliveryRefused,
    MessageGone,
    RateLimited,
    StoreError,
)
from gateway.runtime.metrics import Counter, Metrics, outcome_of
from gateway.runtime.points import Points
from gateway.runtime.tasks import Background
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, Lease, Sent

log = structlog.get_logger(__name__)

SENDS = Counter(name="sends", text="Attempts to show a message, and how they ended.", labels=("platform", "outcome"))
REDELIVERIES = Counter(name="redeliveries", text="Attempts that repeat an earlier one.", labels=("platform",))
ISOLATION_ABORTS = Counter(
    name="isolation_aborts", text="Messages held back on their way to another conversation.", labels=("platform",)
)

_FIRST_RETRY = 1.0
_LAST_RETRY = 60.0
_CLAIM_BATCH = 256
_UNKNOWN = Limits()  # of a platform that nothing is known of here


class Outbox:
    """Splits, delivers and retries; the sole caller of `Adapter.send`. `limits` are those of every
    platform whose turns run here, also of one that another process sends to."""

    def __init__(
        self,
        *,
        store: Store,
        adapters: Mapping[str, Adapter],
        limits: Mapping[str, Limits],
        clock: Clock,
        ids: Ids,
        background: Background,
        points: Points,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._adapters = adapters
        # Asked once, not for each message: isinstance looks for all of a Protocol's fields one by one.
        self._rated = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, HasRates)}
        self._tokens = {name: each.longest_token for name, each in adapters.items() if isinstance(each, HasButtons)}
        self._editors = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, CanEdit)}
        self._previewers = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, CanPreview)}
        self._silence = Silence(store=store, clock=clock, rated=self._rated)
        self._limits = limits
        self._clock = clock
        self._ids = ids
        self._background = background
        self._points = points
        self._metrics = metrics
        self._wake = asyncio.Event()
        self._in_flight = 0
        # Where a send that may have been repeated always is, the next waits until the one before is
        # marked, so that a crash repeats one message and not one of every chat.
        self._one_by_one = {
            name: asyncio.Lock() for name, adapter in adapters.items() if adapter.limits.ambiguous_retries is None
        }

    @property
    def in_flight(self) -> int:
        """How many chats are being delivered to right now."""
        return self._in_flight

    def compose(
        self,
        key: SessionKey,
        to: ChatAddress,
        kind: OutboundKind,
        text: str,
        *,
        session_id: str | None = None,
        answers: str | None = None,
        first_id: str | None = None,
    ) -> list[Outbound]:
        """The rows that show `text` in a chat: one for each part the platform's limits ask for.
        `first_id` is the id of the first, where it was given out already.

        A notice about an event gets its id from both, so that a turn that a crash made start again
        does not say again what was said: the store keeps each id once.
        """
        limits = self._limits.get(to.platform, _UNKNOWN)
        if kind in ("reply", "remark") and limits.split_reply is not None:
            parts = limits.split_reply(text)
        else:
            parts = split_text(text, limits.text_units, utf16=limits.unit == "utf16")
        return [
            Outbound(
                id=self._id_of(key, kind, part, answers, number) if number or not first_id else first_id,
                key=key,
                to=to,
                kind=kind,
                text=part,
                session_id=session_id,
                answers=answers,
                created_at=self._clock.now(),
            )
            for number, part in enumerate(parts)
        ]

    def answer(
        self,
        about: InboxItem | Arrival,
        kind: OutboundKind,
        text: str,
        *,
        session_id: str | None = None,
        first_id: str | None = None,
    ) -> list[Outbound]:
        """`compose` where an Inbound came from, about it."""
        inbound = about.inbound
        return self.compose(
            about.key,
            inbound.source.address,
            kind,
            text,
            session_id=session_id,
            answers=inbound.event_id if inbound.kind != "expiry" else None,
            first_id=first_id,
        )

    def with_file(self, about: InboxItem, file: KeptFile, caption: str, row_id: str) -> list[Outbound]:
        """The rows that show a file where an Inbound came from, the first under this id: its caption, which is
        Markdown, goes with it, or in messages of its own behind it where the platform has no room for that."""
        fits = self._limits.get(about.inbound.source.platform, _UNKNOWN).fits_caption
        short = caption if fits is None or fits(caption) else ""
        # Not a reply: whoever waits for the answer goes on waiting.
        (shown,) = self.answer(about, "notice", "", first_id=row_id)
        behind = self.answer(about, "remark", caption) if short != caption else []
        others = (replace(row, id=f"{row_id}.{number}") for number, row in enumerate(behind, 1))
        return [replace(shown, text=short, file=file), *others]

    def largest_file(self, platform: str) -> int | None:
        """Bytes of the largest file that a platform shows; None: it shows none."""
        return self._limits.get(platform, _UNKNOWN).file_bytes

    def _id_of(self, key: SessionKey, kind: OutboundKind, part: str, answers: str | None, number: int) -> str:
        if kind != "notice" or answers is None:
            return self._ids.new("o")
        return lasting_id("o", key, answers, number, part)

    def new_id(self) -> str:
        """An id for a message that is shown in part before it is composed."""
        return self._ids.new("o")

    def draft(self, lease: Lease, item: InboxItem, reply_id: str) -> Draft | None:
        """Show the item's reply as it grows, where the platform can; it will have this id."""
        to = item.inbound.source.address
        editor = self._editors.get(to.platform)
        if editor is None:
            return None
        (row,) = self.answer(item, "reply", "", first_id=reply_id)
        draft = Draft(
            editor=editor,
            previewer=self._previewers.get(to.platform),
            store=self._store,
            silence=self._silence,
            clock=self._clock,
            lease=lease,
            item=item,
            row=row,
        )
        self._background.start(draft.run(), name=f"draft {reply_id}")
        return draft

    def deliver(self, claimed: Iterable[Outbound]) -> None:
        """Send rows that a store step has just claimed for this worker, without waiting."""
        for row in claimed:
            self._in_flight += 1
            self._background.start(self._drain_chat(row), name=f"outbox {row.to.platform} {row.id}")

    async def emit(self, rows: list[Outbound]) -> None:
        """Store and send messages that belong to no turn's end."""
        self.deliver(await self._store.emit(rows))

    def announce(self, row: Outbound) -> None:
        """Show something once without storing it, best effort: for when the store is what fails."""
        self._background.start(self._announce(row), name=f"announce {row.id}")

    async def _announce(self, row: Outbound) -> None:
        adapter = self._adapters.get(row.to.platform)
        if adapter is None:
            return
        try:
            await adapter.send(row)
        except AdapterError as error:
            log.warning("announcement_lost", outbound=row.id, error=str(error))

    def look(self) -> None:
        """Ask the store for rows again: there may be some that nobody here has put there."""
        self._wake.set()

    async def serve(self) -> None:
        """Send what an earlier process left, and every retry when it is due, until cancelled."""
        while True:
            self._wake.clear()  # before looking: whoever calls while we look is heard after it
            try:
                claimed = await self._store.claim_outbound(_CLAIM_BATCH)
                self.deliver(claimed)
                wait = None if claimed else await self._store.next_due()
            except StoreError as error:  # whatever it is: without this loop no retry is ever made
                log.error("outbox_unreadable", error=str(error))
                wait = _FIRST_RETRY
            await self._rest_for(wait)

    async def _rest_for(self, seconds: float | None) -> None:
        if seconds is None:
            await self._wake.wait()
            return
        try:
            async with self._clock.limit(max(0.01, seconds)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _drain_chat(self, row: Outbound) -> None:
        following: Outbound | None = row
        try:
            while following is not None:
                following = (await self._attempt(following)).next
        except asyncio.CancelledError:
            following = None  # the next start finds the row as it is: begun, outcome unknown
            raise
        finally:
            try:
                if following is not None:
                    # A bug in an adapter: it may have sent, and the chat must not hang for ever.
                    await self._retry(following, self._backoff(following), ambiguous=True)
            finally:
                self._in_flight -= 1
                self._wake.set()

    async def _attempt(self, row: Outbound) -> Sent:
        if (row.key.platform, row.key.chat) != (row.to.platform, row.to.chat):
            # The last wall against mixing conversations up: never send across keys.
            log.error("isolation_abort", outbound=row.id)
            self._metrics.count(ISOLATION_ABORTS, row.to.platform)
            return await self._refuse(row, "the message's chat is not its conversation's chat", None)
        adapter = self._adapters[row.to.platform]  # no other platform's rows are claimed here
        if row.edits is not None and not self._is_edited(row):
            return await self._mark_sent(row, None)  # what it would change cannot be changed, or was never shown
        allowed = adapter.limits.ambiguous_retries
        if allowed is not None and row.ambiguous > allowed and not self._is_edited(row):
            log.warning("delivery_unknown", outbound=row.id, attempts=row.attempts)
            return await self._mark_sent(row, row.platform_message_id)
        return await self._send(adapter, row)

    async def _send(self, adapter: Adapter, row: Outbound) -> Sent:
        turn: AbstractAsyncContextManager[object] = self._one_by_one.get(adapter.name) or nullcontext()
        async with turn:
            return await self._show(adapter, row)

    async def _show(self, adapter: Adapter, row: Outbound) -> Sent:
        if wait := await self._until_allowed(adapter, row):
            # Put off, not kept: who is killed with it in hand would have to take it for begun.
            return await self._retry(row, wait, ambiguous=False, counted=False)
        self._points("outbox.before_send")
        if not self._store.owns(row):
            # This process was silent for too long, and another may be sending it: whose it is now, the
            # store knows, and to a row that is another's this does nothing.
            return await self._retry(row, 0.0, ambiguous=False, counted=False)
        try:
            platform_id = await self._shown(adapter, row)
        except RateLimited as error:
            await self._silence.keep(row.to, error)
            return await self._retry(row, error.retry_after, ambiguous=False, counted=False)
        except ChatGone as error:
            return await self._refuse(row, str(error), None, gone=True)
        except MessageGone:
            if row.edits is not None:
                return await self._mark_sent(row, None)  # nobody sees any more what it would change
            return await self._retry(row, 0.0, ambiguous=False, anew=True)
        except DeliveryRefused as error:
            return await self._refuse(row, str(error), self._instead_of(row, str(error)))
        except Ambiguous:
            return await self._retry(row, self._backoff(row), ambiguous=True)
        except AdapterError:
            return await self._retry(row, self._backoff(row), ambiguous=False)
        self._points("outbox.after_send")
        sent = await self._mark_sent(row, platform_id)
        self._points("outbox.marked")
        return sent

    def _is_edited(self, row: Outbound) -> bool:
        """Whether the row has a message already, which its text is to replace."""
        return row.platform_message_id is not None and row.to.platform in self._editors

    async def _shown(self, adapter: Adapter, row: Outbound) -> str:
        """The platform's id of the message; every attempt is counted here."""
        outcome = "broken_off"
        if row.attempts > 1:
            self._metrics.count(REDELIVERIES, adapter.name)
        try:
            platform_id = await self._show_or_edit(adapter, row)
            outcome = "sent"
        except AdapterError as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._metrics.count(SENDS, adapter.name, outcome)
        return platform_id

    async def _show_or_edit(self, adapter: Adapter, row: Outbound) -> str:
        most = self._tokens.get(adapter.name, -1)
        if any(len(button.token.encode()) > most for line in row.buttons for button in line):
            row = replace(row, buttons=())
        if row.platform_message_id is not None and (editor := self._editors.get(adapter.name)) is not None:
            await editor.edit(row, row.platform_message_id)
            return row.platform_message_id
        if row.file is not None:
            return await self._shown_file(adapter, row, row.file)
        return await adapter.send(row)

    async def _shown_file(self, adapter: Adapter, row: Outbound, file: KeptFile) -> str:
        content = await insist(
            lambda: self._store.file_content(row.key, file.digest), clock=self._clock, what="file_content"
        )
        if content is None or not isinstance(adapter, CanSendFiles):
            raise DeliveryRefused(f"the file {file.name} cannot be shown here")
        return await adapter.send_file(row, content)

    # What the platform allows in which time is shared by all processes: see `Store.take`.

    async def _until_allowed(self, adapter: Adapter, row: Outbound) -> float:
        """Seconds until the moment at which the row may be sent; 0.0: it is now."""
        rated = self._rated.get(adapter.name)
        if rated is None:
            return 0.0
        account, rates = account_of(rated), rated.rates(row.to)
        return await insist(lambda: self._store.take(account, row.id, rates), clock=self._clock, what="take")

    async def rests(self, to: ChatAddress) -> bool:
        """Whether a chat is gone, or its platform asked for silence: then nothing that can be spared is shown."""
        if to.platform not in self._rated:
            return False
        with suppress(StoreError):
            return await self._store.closed(to) is not None or await self._silence.left(to) > 0.0
        return False

    # A person has seen (or will not see) the message; forgetting that would show it twice.

    async def _mark_sent(self, row: Outbound, platform_id: str | None) -> Sent:
        return await insist(lambda: self._store.mark_sent(row.id, platform_id), clock=self._clock, what="mark_sent")

    async def _refuse(self, row: Outbound, reason: str, instead: Outbound | None, *, gone: bool = False) -> Sent:
        log.warning("delivery_refused", outbound=row.id, reason=reason, chat_gone=gone)
        return await insist(
            lambda: self._store.mark_refused(row.id, reason, instead, gone=gone), clock=self._clock, what="mark_refused"
        )

    async def _retry(
        self, row: Outbound, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> Sent:
        await insist(
            lambda: self._store.mark_retry(row.id, seconds, ambiguous=ambiguous, anew=anew, counted=counted),
            clock=self._clock,
            what="mark_retry",
        )
        return Sent(next=None)

    def _instead_of(self, row: Outbound, reason: str) -> Outbound | None:
        if row.kind == "error":
            return None
        sentence = f"I could not show a message here because {row.to.platform} refused it: {reason}"
        return self.compose(row.key, row.to, "error", sentence, session_id=row.session_id, answers=row.answers)[0]

    @staticmethod
    def _backoff(row: Outbound) -> float:
        return Backoff(_FIRST_RETRY, _LAST_RETRY, failures=row.attempts).pause()
