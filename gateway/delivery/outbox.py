"""The outbox: everything that people are shown goes through here, and only here.

Every Outbound is a row before it is sent. The process that claims a row marks it durably as being sent
before it calls the platform. So a crash leaves one of three facts behind: not begun (send it), begun
(ambiguous: repeat it with a mark until an attempt is answered, each time after the platform has answered), or sent.
Within a chat the next row is claimed only when the one before it is in a final state, or many of its sends had no
answer.

    rows, compose   make rows of a text                deliver   sends rows that a store step has claimed
    tell, emit      store rows, then deliver them       announce  shows a text that cannot be stored
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial

import structlog

from gateway.delivery.contact import Contact
from gateway.delivery.drafts import FIRST_LOOK, STANDS_IN_AFTER, Draft
from gateway.delivery.markdown.characters import split_text
from gateway.delivery.pacing import Pacing
from gateway.domain.adapter import (
    REPEATED,
    Adapter,
    CanEdit,
    CanPing,
    CanPreview,
    CanSendAlbums,
    CanSendFiles,
    HasButtons,
    HasRates,
    HasRooms,
    Limits,
    MakesPolls,
)
from gateway.domain.chat import MOST_DOUBTS, ChatAddress, KeptFile, Outbound, OutboundKind, OutboundState, SessionKey
from gateway.domain.wording import counted
from gateway.runtime.aside import RunsAside, at_once
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
    TookTooLong,
)
from gateway.runtime.metrics import Counter, outcome_of
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background, Later, best_effort
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, Lease

log = structlog.get_logger(__name__)

SENDS = Counter(name="sends", text="Attempts to send a message, and how they ended.", labels=("platform", "outcome"))
REDELIVERIES = Counter(name="redeliveries", text="Attempts to resend a message.", labels=("platform",))
ISOLATION_ABORTS = Counter(
    name="isolation_aborts",
    text="Messages not sent because they belonged to another conversation.",
    labels=("platform",),
)

MAYBE_MISSING = (
    "I sent a message here more than once, and do not know whether it arrived. /last shows my last answer again."
)
WITHHELD = "I could not show {answers} here. /last shows {whose}."
OUTCOME_UNKNOWN = "it is not known whether this was shown"

_FIRST_RETRY = 1.0
_LAST_RETRY = 60.0
_LAST_REPEAT = 3_600.0  # of what holds up no other row, and may be shown each time
_REPEATED_FOR = 86_400.0  # seconds since the row was made
MOST_REPEATS = 30  # of what may be shown each time
_CLAIM_BATCH = 256
_MOST_COUNTED = 1_000  # rows that wait to be asked for
_UNKNOWN = Limits()  # of a platform that nothing is known of here


class Outbox:
    """Splits, delivers and retries; only this calls `Adapter.send`. `limits` has every platform whose turns run here,
    even if another process sends to it. `aside` runs the functions that read Markdown."""

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
        aside: RunsAside = at_once,
    ) -> None:
        self._store = store
        self._aside = aside
        self._adapters = adapters
        # Asked once, not for each message: isinstance looks for all of a Protocol's fields one by one.
        rated = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, HasRates)}
        self._tokens = {name: each.longest_token for name, each in adapters.items() if isinstance(each, HasButtons)}
        self._editors = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, CanEdit)}
        self._previewers = {name: adapter for name, adapter in adapters.items() if isinstance(adapter, CanPreview)}
        self._contacts = {
            name: Contact(name=name, adapter=adapter, clock=clock, background=background)
            for name, adapter in adapters.items()
            if isinstance(adapter, CanPing)
        }
        self.rooms = {name: each.rooms for name, each in adapters.items() if isinstance(each, HasRooms) and each.rooms}
        self.pacing = Pacing(store=store, clock=clock, rated=rated)
        self._limits = limits
        self._clock = clock
        self._ids = ids
        self._background = background
        self._points = points
        self.first_looks = Later(background, clock, FIRST_LOOK)
        self.stand_ins = Later(background, clock, STANDS_IN_AFTER)
        self._wake = asyncio.Event()
        self.in_flight = 0  # chats that are being delivered to right now
        self._failing: dict[ChatAddress, int] = {}  # how many sends in a row failed
        # A platform whose ambiguous sends are always repeated gets one message at a time, so that a crash
        # repeats one message and not one of every chat.
        self._one_by_one = {
            name: asyncio.Lock() for name, adapter in adapters.items() if adapter.limits.ambiguous_retries is None
        }

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
        parts: Sequence[str] | None = None,
    ) -> list[Outbound]:
        """The rows that show `text` in a chat: one for each part that the platform's limits need, or for each of
        `parts`.

        `first_id` is the id of the first one, if it was already given out. The id of a notice about an event is made of
        both, so that a turn which starts again after a crash does not repeat its notices.
        """
        limits = self._limits.get(to.platform, _UNKNOWN)
        if not parts:
            parts = [text] if limits.text_units is None else split_text(text, limits.text_units, limits.unit)
        rows = list[Outbound]()
        for number, part in enumerate(parts):
            row = Outbound(
                id=self._id_of(key, kind, part, answers, number) if number or not first_id else first_id,
                key=key,
                to=to,
                kind=kind,
                text=part,
                session_id=session_id,
                answers=answers,
                created_at=self._clock.now(),
            )
            rows.append(row)
        return rows

    async def written(
        self,
        about: InboxItem | Arrival,
        kind: OutboundKind,
        text: str,
        *,
        session_id: str | None = None,
        first_id: str | None = None,
    ) -> list[Outbound]:
        """Like `rows`; a reply or a remark is Markdown, and is cut as such if there is time."""
        split = self._limits.get(about.inbound.source.platform, _UNKNOWN).split_reply
        parts: Sequence[str] | None = None
        if kind in ("reply", "remark") and split is not None:
            try:
                parts = await self._aside(split, text)
            except TookTooLong:
                log.warning("cut_plainly", about=about.inbound.event_id, size=len(text))
        return self.rows(about, kind, text, session_id=session_id, first_id=first_id, parts=parts)

    def rows(
        self,
        about: InboxItem | Arrival,
        kind: OutboundKind,
        text: str,
        *,
        session_id: str | None = None,
        first_id: str | None = None,
        parts: Sequence[str] | None = None,
    ) -> list[Outbound]:
        """`compose` for the place that an Inbound came from."""
        inbound = about.inbound
        answers = inbound.event_id if inbound.kind not in ("expiry", "forget") else None
        return self.compose(
            *(about.key, inbound.source.address, kind, text),
            session_id=session_id,
            answers=answers,
            first_id=first_id,
            parts=parts,
        )

    async def with_file(self, about: InboxItem, file: KeptFile, caption: str, row_id: str) -> list[Outbound]:
        """The rows that show a file in the chat of an item, the first of them under this id. The caption is Markdown.
        If the platform has no room for it beside the file, it follows in messages of its own."""
        fits = self._limits.get(about.inbound.source.platform, _UNKNOWN).fits_caption
        short = caption
        with suppress(TookTooLong):
            short = caption if fits is None or await self._aside(fits, caption) else ""
        # No row of it is a reply: that is yet to come.
        (shown,) = self.rows(about, "notice", "", first_id=row_id)
        behind = await self.written(about, "remark", caption) if short != caption else []
        others = (replace(row, id=f"{row_id}.{number}") for number, row in enumerate(behind, 1))
        return [replace(shown, text=short, file=file), *others]

    def direct_chat(self, platform: str, user: str) -> str | None:
        """The chat in which a person is alone with the bot; None if it is unknown."""
        chat_of = self._limits.get(platform, _UNKNOWN).direct_chat
        return None if chat_of is None else chat_of(user)

    def knows(self, platform: str) -> bool:
        """Whether this process knows the limits of a platform's messages."""
        return platform in self._limits

    def has_buttons(self, platform: str) -> bool:
        """Whether a platform shows buttons under messages."""
        return platform in self._tokens

    def album(self, platform: str) -> int:
        """How many files one message of a platform can show."""
        return self._limits.get(platform, _UNKNOWN).album

    def largest_file(self, platform: str) -> int | None:
        """The largest file that a platform shows, in bytes; None: it shows none."""
        return self._limits.get(platform, _UNKNOWN).file_bytes

    def reach(self, platform: str) -> float | None:
        """For how many seconds after a person's words a platform shows them what the bot sends unasked; None:
        always."""
        return self._limits.get(platform, _UNKNOWN).reach

    def speaks_in_room(self, to: ChatAddress) -> bool:
        """Whether this process says the answers of a chat aloud in a room."""
        return to.platform in self.rooms and self.rooms[to.platform].speaks(to)

    def voice_form(self, platform: str) -> str:
        """The format in which a platform shows an answer said aloud."""
        return self._limits.get(platform, _UNKNOWN).voice

    def _id_of(self, key: SessionKey, kind: OutboundKind, part: str, answers: str | None, number: int) -> str:
        if kind != "notice" or answers is None:
            return self._ids.new("o")
        return lasting_id("o", key, answers, number, part)

    def new_id(self) -> str:
        """An id for a message that is shown in part before it is composed."""
        return self._ids.new("o")

    def grows(self, platform: str) -> bool:
        """Whether a platform shows replies while they grow."""
        return platform in self._editors

    def draft(self, lease: Lease, item: InboxItem, reply_id: str) -> Draft | None:
        """Start showing the item's reply, which will have this id, while it grows; None if the platform cannot."""
        to = item.inbound.source.address
        editor = self._editors.get(to.platform)
        if editor is None:
            return None
        (row,) = self.rows(item, "reply", "", first_id=reply_id)
        draft = Draft(
            editor=editor,
            previewer=self._previewers.get(to.platform),
            store=self._store,
            pacing=self.pacing,
            clock=self._clock,
            lease=lease,
            item=item,
            row=row,
            aside=self._aside,
        )
        self._background.start(draft.run(), name=f"draft {draft.row.id}")
        return draft

    def deliver(self, claimed: Iterable[Outbound]) -> None:
        """Send rows that a store step has just claimed for this worker. Returns at once."""
        for row in claimed:
            self.in_flight += 1
            self._background.start(self._drain_chat(row), name=f"outbox {row.to.platform} {row.id}")

    async def emit(self, rows: list[Outbound]) -> None:
        """Store and send messages that belong to no turn's end."""
        self.deliver(await self._store.emit(rows))

    async def tell_withheld(self, about: InboxItem | Arrival) -> None:
        """The chat of an Inbound was closed until now: say how many answers can be asked for there."""
        to = about.inbound.source.address
        rows = await self._store.outbox(to, _MOST_COUNTED, (OutboundState.WITHHELD,))
        if answers := len({row.answers or row.id for row in rows}):
            whose = "them" if about.key.user is None else "each person theirs"
            await self.tell(about, WITHHELD.format(answers=counted(answers, "answer"), whose=whose))

    async def tell(self, about: InboxItem | Arrival, text: str) -> None:
        """Store and send a notice about an Inbound."""
        await self.emit(self.rows(about, "notice", text))

    def announce(self, about: InboxItem | Arrival, kind: OutboundKind, text: str) -> None:
        """Show a text once without storing it, while the store is failing. Best effort."""
        (row, *_) = self.rows(about, kind, text)
        self._background.start(self.show_unstored(row), name=f"announce {row.id}")

    async def show_unstored(self, row: Outbound) -> None:
        """Show a row once without storing it. Best effort."""
        if (adapter := self._adapters.get(row.to.platform)) is not None:
            await best_effort(adapter.send(row), what="announce")

    def look(self) -> None:
        """Ask the store for rows again, because another process may have put some there."""
        self._wake.set()

    async def serve(self) -> None:
        """Send what an earlier process left, and every retry when it is due, until cancelled."""
        while True:
            self._wake.clear()  # before looking: a call of `look` in between is heard after it
            try:
                claimed = await self._store.claim_outbound(_CLAIM_BATCH)
                self.deliver(claimed)
                wait = None if claimed else await self._store.next_due()
            except StoreError as error:  # of any kind: without this loop no retry is ever made
                log.error("outbox_unreadable", error=str(error))
                wait = _FIRST_RETRY
            with suppress(TimeoutError):
                async with nullcontext() if wait is None else self._clock.limit(max(0.01, wait)):
                    await self._wake.wait()

    async def _drain_chat(self, row: Outbound) -> None:
        following: Outbound | None = row
        waits = True
        try:
            while following is not None:
                following = await self._attempt(following)
            waits = await self._store.next_due() is not None
        except asyncio.CancelledError:
            following = None  # the next start finds the row as it is: begun, outcome unknown
            raise
        finally:
            try:
                if following is not None:
                    # A bug in an adapter, which may have sent the row. The chat must not hang for ever.
                    await self._retry(following, ambiguous=True)
            finally:
                self.in_flight -= 1
                if waits:  # most often nothing does, and `serve` need not look
                    self._wake.set()

    async def _attempt(self, row: Outbound) -> Outbound | None:
        """Send a row once. Returns the chat's next row, if it is to be sent now."""
        if (row.key.platform, row.key.chat) != (row.to.platform, row.to.chat):
            # The last wall against mixing conversations up: never send across keys.
            log.error("isolation_abort", outbound=row.id)
            ISOLATION_ABORTS.count(row.to.platform)
            return await self._refuse(row, "the message's chat is not its conversation's chat")
        adapter = self._adapters[row.to.platform]  # no other platform's rows are claimed here
        is_edited = row.platform_message_id is not None and row.to.platform in self._editors
        if row.edits is not None and not is_edited:
            return await self._mark_sent(row, None)  # the message to be changed cannot be, or was never shown
        allowed = adapter.limits.ambiguous_retries
        if allowed is not None and row.ambiguous and not is_edited:
            old = self._clock.now() - row.created_at > _REPEATED_FOR
            if row.ambiguous > allowed and (old or row.ambiguous > allowed + MOST_REPEATS):
                return await self._lose(row)
            if (contact := self._contacts.get(adapter.name)) is not None and (wait := contact.wait()):
                return await self._retry(row, wait, counted=False)
        if (alone := self._one_by_one.get(adapter.name)) is None:
            return await self._send(adapter, row)
        async with alone:
            return await self._send(adapter, row)

    async def _send(self, adapter: Adapter, row: Outbound) -> Outbound | None:
        if row.to.platform in self.pacing.rated and (wait := await self.pacing.wait(row)):
            # Put off, not kept in hand: a process killed with it would leave a row that seems begun.
            return await self._retry(row, wait, counted=False)
        self._points("outbox.before_send")
        if not self._store.owns(row):
            # This process was silent for too long, and another one may be sending the row. If so, the store
            # leaves the row alone.
            return await self._retry(row, 0.0, counted=False)
        try:
            platform_id = await self._call(adapter, row)
        except RateLimited as error:
            await self.pacing.keep(row.to, error)
            return await self._retry(row, error.retry_after, counted=False)
        except ChatGone as error:
            return await self._refuse(row, str(error), gone=True)
        except MessageGone as error:
            if row.edits is not None:
                return await self._mark_sent(row, None)  # nobody sees the message any more
            return await self._retry(row, 0.0, anew=True, ambiguous=error.stays)
        except DeliveryRefused as error:
            return await self._refuse(row, str(error), told=True)
        except Ambiguous:
            if (contact := self._contacts.get(adapter.name)) is not None:
                contact.doubt()
            return await self._retry(row, ambiguous=True)
        except AdapterError:
            return await self._retry(row)
        self._points("outbox.after_send")
        following = await self._mark_sent(row, platform_id)
        self._points("outbox.marked")
        return following

    async def _call(self, adapter: Adapter, row: Outbound) -> str:
        """The platform's id of the message; every attempt is counted here."""
        outcome = "broken_off"
        if row.attempts > 1:
            REDELIVERIES.count(adapter.name)
        try:
            platform_id = await self._show(adapter, row)
            outcome = "sent"
        except AdapterError as error:
            outcome = outcome_of(error)
            if not isinstance(error, RateLimited | ChatGone | DeliveryRefused | MessageGone):
                self._fails(row.to, error)
            raise
        finally:
            SENDS.count(adapter.name, outcome)
        if self._failing and (failed := self._failing.pop(row.to, 0)):
            log.warning("delivery_works_again", platform=adapter.name, chat=row.to.chat, failed=failed)
        return platform_id

    def _fails(self, to: ChatAddress, error: AdapterError) -> None:
        """Count a failed send. Only the first of a chat is logged, and the one that works again; otherwise there would
        be a line a minute for hours."""
        failed = self._failing[to] = self._failing.get(to, 0) + 1
        if failed == 1:
            log.warning("delivery_fails", platform=to.platform, chat=to.chat, error=str(error))

    async def _show(self, adapter: Adapter, row: Outbound) -> str:
        most = self._tokens.get(adapter.name, -1)
        if row.buttons and any(len(button.token.encode()) > most for line in row.buttons for button in line):
            row = replace(row, buttons=())
        if row.platform_message_id is not None and (editor := self._editors.get(row.to.platform)) is not None:
            await editor.edit(row, row.platform_message_id)
            return row.platform_message_id
        allowed = adapter.limits.ambiguous_retries
        if allowed is not None and row.ambiguous > allowed:
            row = await self._marked(adapter.limits, row)
        if row.file is None:
            return await adapter.send(row)
        contents = [await self._content(row, file) for file in row.files]
        if len(contents) > 1 and isinstance(adapter, CanSendAlbums):
            return await adapter.send_album(row, contents)
        if len(contents) > 1 or not isinstance(adapter, CanSendFiles):
            raise DeliveryRefused(f"the file {row.file.name} cannot be shown here")
        return await adapter.send_file(row, contents[0])

    async def close_poll(self, row: Outbound) -> str:
        """End a poll that was shown; returns its counts in words. Raises AdapterError."""
        adapter = self._adapters.get(row.to.platform)
        if row.platform_message_id is None or not isinstance(adapter, MakesPolls):
            raise AdapterError("it is not shown as one")
        return await adapter.close_poll(row.to, row.platform_message_id)

    async def _content(self, row: Outbound, file: KeptFile) -> bytes:
        step = partial(self._store.file_content, row.key, file.digest)
        content = await insist(step, clock=self._clock, what="file_content")
        if content is None:
            raise DeliveryRefused(f"the file {file.name} cannot be shown here")
        return content

    async def _marked(self, limits: Limits, row: Outbound) -> Outbound:
        """The row, marked as a possible repeat."""
        # The mark must not stand before a list, a heading or a fence.
        plain = row.kind not in ("reply", "remark") or row.text[:1].isalpha()
        text = f"{REPEATED.strip()} {row.text}" if plain else f"{REPEATED}{row.text}".rstrip()
        if row.file is not None and limits.fits_caption is not None:
            with suppress(TookTooLong):
                return replace(row, text=text) if await self._aside(limits.fits_caption, text) else row
        return replace(row, text=text)

    # The fate of a row is insisted on: a message whose fate is forgotten would be shown twice.

    def _mark_sent(self, row: Outbound, platform_id: str | None) -> Awaitable[Outbound | None]:
        step = partial(self._store.mark_sent, row.id, platform_id)
        return insist(step, clock=self._clock, what="mark_sent")

    async def _refuse(self, row: Outbound, reason: str, *, gone: bool = False, told: bool = False) -> Outbound | None:
        """Give a row up. `told`: the chat is told, unless the row is itself such a notice."""
        self._failing.pop(row.to, None)
        log.warning("delivery_refused", outbound=row.id, reason=reason, chat_gone=gone)
        instead: Outbound | None = None
        if told:
            instead = self._told(row, f"I could not show a message here because {row.to.platform} refused it: {reason}")
        return await insist(
            lambda: self._store.mark_refused(row.id, reason, instead, gone=gone), clock=self._clock, what="mark_refused"
        )

    async def _lose(self, row: Outbound) -> Outbound | None:
        """Stop repeating the row. Nobody knows whether it was shown, and the chat is told so, unless the row is only a
        notice."""
        log.warning("delivery_unknown", outbound=row.id, attempts=row.attempts)
        instead = self._told(row, MAYBE_MISSING) if row.kind != "notice" or row.file is not None else None
        return await insist(
            lambda: self._store.mark_refused(row.id, OUTCOME_UNKNOWN, instead, keeps=True),
            clock=self._clock,
            what="mark_refused",
        )

    def _told(self, row: Outbound, sentence: str) -> Outbound | None:
        """The sentence in place of a row, unless the row is itself such a notice."""
        if row.kind == "error":
            return None
        told, *_ = self.compose(row.key, row.to, "error", sentence, session_id=row.session_id, answers=row.answers)
        return told

    async def _retry(
        self,
        row: Outbound,
        seconds: float | None = None,
        *,
        ambiguous: bool = False,
        anew: bool = False,
        counted: bool = True,
    ) -> Outbound | None:
        """Try the row again later. `seconds` None: after a pause that grows with every attempt. Returns no next row of
        the chat."""
        longest = _LAST_RETRY if row.ambiguous < MOST_DOUBTS else _LAST_REPEAT
        pause = Backoff(_FIRST_RETRY, longest, failures=row.attempts).pause() if seconds is None else seconds
        return await insist(
            lambda: self._store.mark_retry(
                row.id, pause, ambiguous=ambiguous, anew=anew, counted=counted, attempt=row.attempts
            ),
            clock=self._clock,
            what="mark_retry",
        )
