"""Storing updates before Telegram is told that they were received.

An update is confirmed by the next request, whose offset lies behind it. So the bot that the
library polls with gives its updates back only when they are stored: whatever the library does with
them then, nothing is lost.

An update that cannot be read is passed over: not confirmed, it would come again at once, for ever, and nobody
who wrote after it would be heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from msgspec import Struct, field
from telegram import WebhookInfo
from telegram.error import BadRequest, Conflict, EndPointNotFound, InvalidToken, NetworkError, TelegramError
from telegram.ext import ExtBot, Updater

from adapters.telegram import failures
from adapters.telegram.codec import Me, inbound, without_mention
from adapters.telegram.updates import Message, Update, read
from gateway.domain.adapter import Accept, Accepted, Notebook
from gateway.domain.chat import Inbound
from gateway.domain.place import NOT_SAID, ListenRules
from gateway.domain.reading import Recent, wordings
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 30  # for how long Telegram may hold a request open
_FAILED_SECONDS: Final = 300.0  # since Telegram's last failed call, within which a webhook counts as failing
_LAST_WORDS: Final = 3.0  # seconds for confirming what was stored
WANTED: Final = ("message", "edited_message", "callback_query", "my_chat_member", "message_reaction")

UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError)  # what Telegram sent is of another shape


Stored = Callable[[Sequence[Update], Sequence[Accepted]], None]


class Receiver:
    """Hands updates to `accept` until they are durable; then calls `stored` with them."""

    def __init__(
        self,
        clock: Clock,
        *,
        stored: Stored,
        listens: ListenRules = NOT_SAID,
        notebook: Callable[[], Notebook | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._listens = listens
        self._stored = stored
        self._accept: Accept | None = None
        self._me: Me | None = None
        self._ending = False
        self._backoff = Backoff(0.1, 5.0)  # before what could not be stored is asked for again
        self._refused: asyncio.Future[None] | None = None
        self._full = FullLanes(clock=clock)
        self._wordings = Wordings()
        self._posts = Posts(notebook)
        self.has_polled = False  # since `begin`: no webhook of an earlier program is in the way any more
        self.asked_at: float | None = None  # monotonic: when Telegram was asked for updates last
        self.unreached_since: float | None = None  # the same: since when it could not be reached

    def asked(self) -> None:
        """Telegram is asked for updates now."""
        self.asked_at = self._clock.monotonic()

    def reached(self, *, yes: bool) -> None:
        """An attempt to reach Telegram has ended."""
        if yes:
            self.unreached_since = None
        elif self.unreached_since is None:
            self.unreached_since = self._clock.monotonic()

    def begin(self, accept: Accept, me: Me) -> None:
        """Store updates with `accept` from now on."""
        self._accept, self._me, self._ending, self.has_polled = accept, me, False, False
        self._refused = asyncio.get_running_loop().create_future()

    def now(self) -> float:
        return self._clock.now()

    async def refused(self) -> None:
        """Wait until Telegram does not know the bot any more. Raises InvalidToken then."""
        assert self._refused is not None, "polling begins after `begin`"
        await self._refused

    def refuse(self, error: InvalidToken) -> None:
        """The token was revoked: the library stops polling without telling anybody."""
        if self._refused is not None and not self._refused.done():
            self._refused.set_exception(error)

    def end(self) -> None:
        """Store later updates only if that works at once; else Telegram keeps them."""
        self._ending = True

    async def take(self, updates: Sequence[Update]) -> bool:
        """Store these updates. Returns whether they are stored; if not, a growing pause has passed. Raises
        NetworkError, which ends no polling, if they are not and nobody can wait for it."""
        try:
            await self.store(updates)
        except StoreUnavailable as error:
            if self._ending:
                raise NetworkError("the store cannot take these updates now") from error
            log.warning("updates_wait", count=len(updates), error=str(error))
            await self._clock.sleep(self._backoff.pause())
            return False
        self._backoff.reset()
        return True

    async def store(self, updates: Sequence[Update]) -> None:
        """Return when these are stored. Raises StoreUnavailable if they cannot be now."""
        assert self._accept is not None, "reading begins after `begin`"
        await self._posts.learn(updates)
        batch = [message for message in map(self._read, updates) if message is not None]
        accepted = await self._accept(batch) if batch else ()
        self._full.note(batch, accepted)
        self._stored(updates, accepted)

    def _read(self, update: Update) -> Inbound | None:
        assert self._me is not None
        try:
            if self._full.refuses(update, self._me.username):
                return None
            earlier = self._wordings.earlier(update)
            message = None if earlier is None else inbound(update, self._me, self._listens, earlier, self._posts.known)
        except UNREADABLE:
            log.exception("update_unreadable", update=update.update_id)
            return None
        if message is None:
            log.debug("update_ignored", update=update.update_id)
        elif message.kind == "message":
            self._wordings.note(update, message)
        return message


class ReceivingBot(ExtBot[None]):
    """A bot that stores its updates before it hands them out."""

    def __init__(self, receiver: Receiver, **settings: Any) -> None:
        super().__init__(**settings)
        self._receiver = receiver

    async def get_updates(self, **asked: Any) -> tuple[Update, ...]:  # type: ignore[override]  # the updater asks alone
        """As the library's, and stored. What cannot be stored is asked for again, with what came after it: that can
        show that not everything meets what keeps it out."""
        while True:
            try:
                updates = await self._fetched(asked)
            except InvalidToken as error:
                self._receiver.refuse(error)
                raise
            if await self._receiver.take(updates):
                return updates

    async def delete_webhook(self, *_: Any, **__: Any) -> bool:
        """Do nothing: the library would not poll before this is answered. A webhook that is in the way shows itself."""
        return True

    async def _fetched(self, asked: dict[str, Any]) -> tuple[Update, ...]:
        self._receiver.asked()
        try:
            updates = await self._asked(asked)
            self._receiver.has_polled = True
            self._receiver.reached(yes=True)
            return updates
        except NetworkError as error:
            self._receiver.reached(yes=isinstance(error, BadRequest))
            raise
        except Conflict:
            if not await self._end_webhook():
                self._receiver.reached(yes=False)  # another program takes the messages
                raise
            return await self._asked(asked)

    async def _asked(self, asked: dict[str, Any]) -> tuple[Update, ...]:
        try:
            return tuple(map(read, await self.do_api_request("getUpdates", asked)))
        except EndPointNotFound as error:
            if failures.is_unknown_method(error):
                raise NetworkError(error.message) from error
            raise InvalidToken(error.message) from error

    async def _end_webhook(self) -> bool:
        """Whether a webhook was in the way, and ended. At the start each is: this program was told to poll. One
        that is set later is another program's to answer for, unless it fails; then messages would wait for ever."""
        told = await self.get_webhook_info()
        fails = told.pending_update_count and any(troubles(told, since=self._receiver.now() - _FAILED_SECONDS))
        if not told.url or (self._receiver.has_polled and not fails):
            return False
        await super().delete_webhook(drop_pending_updates=False)
        log.warning("webhook_ended", host=urlsplit(told.url).hostname, waiting=told.pending_update_count)
        return True


def troubles(told: WebhookInfo, *, since: float) -> Iterator[str]:
    """Return what Telegram says of its last failed call, unless the call was before `since`."""
    if told.last_error_message and told.last_error_date and told.last_error_date.timestamp() >= since:
        yield f"{told.last_error_message} ({told.last_error_date.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"


class _Nowhere(asyncio.Queue[object]):
    """A queue that drops updates, because they are stored already."""

    async def put(self, item: object) -> None:
        """Drop it."""


async def poll(bot: ReceivingBot, receiver: Receiver) -> None:
    """Poll until cancelled, then confirm what was stored. Call `receiver.begin` first. Raises InvalidToken."""
    updater = Updater(bot, update_queue=_Nowhere())
    await updater.initialize()
    try:
        await updater.start_polling(
            timeout=POLL_SECONDS,
            bootstrap_retries=-1,
            allowed_updates=list(WANTED),
            drop_pending_updates=False,
            error_callback=_report,
        )
        await receiver.refused()
    finally:
        receiver.end()
        receiver.asked_at = None
        if updater.running:
            try:
                async with asyncio.timeout(_LAST_WORDS):
                    await updater.stop()
            except TimeoutError:
                log.info("updates_not_confirmed")  # they come again, and are known by then


def _report(error: TelegramError) -> None:
    if isinstance(error, Conflict):
        log.warning("telegram_polled_by_another", error=error.message)
    else:
        log.warning("telegram_unreachable", error=error.message)


# -- lanes that are full -------------------------------------------------------------------------------


_WRITERS: Final = 10_000
_LONGEST_YES: Final = 8  # characters of a word that answers a question

_Writer = tuple[str, str | None, str]  # chat, topic, person


class FullLanes(Struct, kw_only=True):
    """The writers whose plain words are refused for a moment. Their writers were told; what may have to reach a turn
    that runs, a command or a yes or no, is never refused here."""

    clock: Clock
    _until: dict[_Writer, float] = field(default_factory=dict)  # monotonic

    def note(self, batch: Iterable[Inbound], accepted: Iterable[Accepted]) -> None:
        """Remember the writers of those that met a full lane."""
        full = {each.event_id: each.full_for for each in accepted if each.full_for}
        if not full:
            return
        now = self.clock.monotonic()
        if len(self._until) > _WRITERS:
            self._until = {writer: until for writer, until in self._until.items() if until > now}
        for each in batch:
            if each.event_id in full:
                source = each.source
                self._until[source.chat, source.thread, source.user] = now + full[each.event_id]

    def refuses(self, update: Update, username: str) -> bool:
        """Whether an update brings plain words of such a writer to the bot of this name."""
        message = update.message
        if not self._until or message is None or message.migrate_to_chat_id or message.migrate_from_chat_id:
            return False
        writer = message.sender_chat or message.writer
        if writer is None:
            return False
        place = str(message.chat.id), message.thread, str(writer.id)
        if self._until.get(place, 0.0) <= self.clock.monotonic():
            return False
        said = without_mention(message.text or message.caption, username)
        return not said.startswith("/") and len(said) > _LONGEST_YES


# -- posts ---------------------------------------------------------------------------------------------


_POSTS: Final = 500
_NOTE: Final = "posts"


class Posts:
    """The channels' posts that were copied into the groups which discuss them. The newest are noted, for after a
    restart a reply to a comment does not tell that its thread began with one."""

    def __init__(self, notebook: Callable[[], Notebook | None]) -> None:
        self.known: dict[_Place, None] = {}
        self._notebook = notebook
        self._read = False

    async def learn(self, updates: Iterable[Update]) -> None:
        """Learn the posts of a batch. Raises StoreUnavailable."""
        read = [each for update in updates if (each := update.message) is not None and each.chat.type != "private"]
        if not any(each.message_thread_id or each.is_automatic_forward for each in read):
            return
        notebook = self._notebook()
        if not self._read and notebook is not None:
            noted = (await notebook.read()).get(_NOTE, "").split()
            self.known = {(int(chat), int(post)): None for chat, _, post in (each.partition(":") for each in noted)}
        self._read = True
        found = [post for each in read for post in (each, each.reply_to_message) if post is not None]
        new = {_place(post): None for post in found if post.is_automatic_forward and _place(post) not in self.known}
        if not new:
            return
        known = dict(list({**self.known, **new}.items())[-_POSTS:])
        if notebook is not None:
            await notebook.write({_NOTE: " ".join(f"{chat}:{post}" for chat, post in known)})
        self.known = known


# -- wordings ------------------------------------------------------------------------------------------


_EDITABLE: Final = 48 * 3_600.0  # seconds for which a person can edit a message

_Place = tuple[int, int]


class _Wording(Struct, frozen=True):
    events: tuple[str, ...]  # newest first
    words: int  # a hash
    update: int  # that brought them
    amended: tuple[str, ...]  # the events that it amended: it is read again where it could not be stored


class Wordings:
    """What was read lately, by chat and message."""

    def __init__(self) -> None:
        self._said: Recent[_Place, _Wording] = Recent()

    def earlier(self, update: Update) -> tuple[str, ...] | None:
        """The events of the message's earlier wordings, newest first; () for a new message, or one that is not
        remembered. None: the update changes no words."""
        message = update.edited_message
        if message is None:
            return ()
        said = self._said.get(_place(message))
        if said is not None and said.update == update.update_id:
            return said.amended
        if said is not None:
            return None if said.words == _words(message) else said.events
        return None if (message.edit_date or 0.0) - message.date > _EDITABLE else ()

    def note(self, update: Update, inbound: Inbound) -> None:
        """Remember what was read."""
        message = update.message or update.edited_message
        if message is None:
            return
        said = _Wording(wordings(inbound), _words(message), update.update_id, inbound.amends)
        self._said[_place(message)] = said


def _place(message: Message) -> _Place:
    return (message.chat.id, message.message_id)


def _words(message: Message) -> int:
    files = (*message.photo[-1:], message.document, message.video, message.audio, message.voice, message.animation)
    return hash((message.text, message.caption, *(file.file_unique_id for file in files if file is not None)))
