"""The bot: what it shows, from any process; and the one that polls while its process holds the account.

The other way to read, a webhook, is in `webhook`.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import structlog
from telegram import Bot, MessageEntity, ReplyParameters, WebhookInfo
from telegram.error import ChatMigrated, InvalidToken, TelegramError
from telegram.warnings import PTBDeprecationWarning, PTBUserWarning

from adapters.telegram import codec, drafts, failures, polls
from adapters.telegram.buttons import LONGEST_TOKEN, ButtonAnswers, keyboard, show, show_page
from adapters.telegram.files import Downloads, upload, upload_album
from adapters.telegram.formatting import Rendered, caption, plain, render
from adapters.telegram.limits import LIMITS, draft_rates, in_group, preview_rates, rates
from adapters.telegram.migrated_chats import MigratedChats
from adapters.telegram.platform import TelegramSettings
from adapters.telegram.receiving import POLL_SECONDS, UNREADABLE, Receiver, ReceivingBot, poll
from adapters.telegram.requests import TelegramRequest, way
from gateway.delivery.markdown.showing import shown_of
from gateway.domain.adapter import Accept, Finding, Notebook, Rate, Renamed, Sign
from gateway.domain.chat import Attachment, ChatAddress, Outbound
from gateway.domain.place import rule_of
from gateway.domain.platform import AdapterHost
from gateway.domain.reading import reached
from gateway.runtime.backoff import Rests
from gateway.runtime.errors import AdapterError, DeliveryRefused
from gateway.runtime.tasks import Renewed, best_effort

log = structlog.get_logger(__name__)

T = TypeVar("T")

_TELEGRAM: Final = "https://api.telegram.org"
_CONNECTIONS: Final = 64  # sends at once: Telegram takes thirty a second
_ANSWER_SECONDS: Final = 20.0
_GENERAL: Final = "1"
_TYPING_SECONDS: Final = 4.0  # Telegram shows it for five
_PRIVATE: Final = (
    "in groups where the bot is not an admin, it sees only commands, mentions, replies and the start of a long text "
    "(privacy mode; @BotFather changes it)"
)
_PRIVATE_AND_FREE: Final = (
    "chats in config.yaml has listen: free, but where the bot is not an admin it sees only commands, mentions and "
    "replies (privacy mode; @BotFather changes it)"
)


class TelegramBot:
    """One bot, but for how it reads. `paced`: keep to Telegram's own rates; a server of one's own may have none.
    `patience`: seconds for an answer of Telegram's. Raises ConfigError if the proxy is of no use."""

    name = codec.PLATFORM
    limits = LIMITS
    longest_token = LONGEST_TOKEN
    preview_seconds = drafts.SECONDS
    renamed: Renamed | None = None
    notebook: Notebook | None = None

    def __init__(
        self, settings: TelegramSettings, host: AdapterHost, *, paced: bool = True, patience: float = _ANSWER_SECONDS
    ) -> None:
        assert settings.token is not None, "the configuration sees to it that there is one"
        _quieten_the_library()
        token = settings.token.get_secret_value()
        self.account = token.partition(":")[0]
        clock = self._clock = host.clock
        self._menu = partial(show, entries=host.menu, admins=[each for each in host.admins if each.isdigit()])
        self._page = settings.page
        self._paced, self._aside, self._shows = paced, host.aside, host.shows
        self._grows = settings.streaming != "none"
        self._drafts = drafts.Drafts(settings.streaming)
        self._button_answers = ButtonAnswers()
        self._receiver = Receiver(
            clock,
            stored=lambda updates, accepted: self._button_answers.answer(self._bot, updates, accepted),
            listens=host.listens,
            notebook=lambda: self.notebook,
        )
        self._hears_all = "free" in host.listens.rules.values()
        self._silence = Rests(platform="Telegram", clock=clock)
        # People write the address with and without /bot.
        server = (settings.base_url or "").rstrip("/").removesuffix("/bot")
        address = {"base_url": f"{server}/bot", "base_file_url": f"{server}/file/bot"} if server else {}
        how = partial(way, server or _TELEGRAM, settings.proxy)
        self._requests = (  # one for what is asked, one for what is waited for
            TelegramRequest(how(most=2), patience=POLL_SECONDS + patience),
            TelegramRequest(how(most=_CONNECTIONS), patience=patience),
        )
        self._bot = ReceivingBot(
            self._receiver, token=token, get_updates_request=self._requests[0], request=self._requests[1], **address
        )
        self._downloads = Downloads(patience, lambda most: how(most=most))
        self._opening = asyncio.Lock()
        self._open = False
        self._migrated = MigratedChats(lambda: self.renamed)
        self._previews = settings.previews
        self._typing = Renewed(clock, _TYPING_SECONDS)

    @asynccontextmanager
    async def _menu_set(self) -> AsyncIterator[None]:
        """Set the menus while the block runs: no message waits for them, and no failure of theirs ends it."""
        begin = asyncio.get_running_loop().create_task
        setting = [
            begin(best_effort(self._menu(self._bot), what="menu")),
            begin(best_effort(show_page(self._bot, self._page), what="page button")),
        ]
        try:
            yield
        finally:
            for each in setting:
                each.cancel()
            await asyncio.wait(setting)

    # -- the account ------------------------------------------------------------------------

    async def _introduced(self) -> codec.Me:
        await reached(self._clock, "telegram", self._tried, lambda error: isinstance(error.__cause__, InvalidToken))
        self._receiver.reached(yes=True)
        return codec.Me(id=self._bot.id, username=self._bot.username)

    async def _tried(self) -> None:
        try:
            await self._opened()
        except TelegramError as error:
            self._receiver.reached(yes=False)
            raise failures.mapped(error) from error

    async def _opened(self) -> Bot:
        async with self._opening:
            if not self._open:
                try:
                    await self._bot.initialize()
                except UNREADABLE as error:
                    raise TelegramError("Telegram's answer about the bot cannot be read") from error
                self._open = True
        return self._bot

    async def probe(self) -> Sequence[Finding]:
        try:
            await self._opened()
            reading = self._of_reading(await self._bot.get_webhook_info())
        except TelegramError as error:
            return [Finding(what="telegram", ok=False, detail=str(failures.mapped(error)))]
        found = [Finding(what="telegram", ok=True, detail=f"@{self._bot.username} (bot {self._bot.id})")]
        if not self._bot.can_read_all_group_messages:
            told = _PRIVATE_AND_FREE if self._hears_all else _PRIVATE
            found.append(Finding(what="telegram groups", ok=None, detail=told))
        return [*found, *reading]

    def _of_reading(self, webhook: WebhookInfo) -> Sequence[Finding]:
        """Say what is wrong with the way that messages come, given the address that Telegram calls now."""
        return ()

    async def ping(self) -> None:
        try:
            await self._bot.get_me()
        except TelegramError as error:
            raise failures.mapped(error) from error
        except UNREADABLE:  # it answers, whatever it says
            return

    @property
    def unreached_since(self) -> float | None:
        return self._receiver.unreached_since

    async def unread(self) -> int:
        try:
            return (await self._bot.get_webhook_info()).pending_update_count
        except TelegramError as error:
            raise failures.mapped(error) from error
        except UNREADABLE:
            return 0

    # -- showing ----------------------------------------------------------------------------

    def rates(self, to: ChatAddress) -> Sequence[Rate]:
        return rates(to) if self._paced else ()

    async def send(self, outbound: Outbound) -> str:
        """Show a message; a reply's Markdown becomes entities. Raises AdapterError."""
        return await self._shown(outbound, lambda chat: self._formatted(outbound, partial(self._send, chat, outbound)))

    async def _formatted(self, outbound: Outbound, show: Callable[[Rendered], Awaitable[T]]) -> T:
        """Show a message with its formatting, or plainly where Telegram will not have that."""
        rendered = await shown_of(outbound, self._aside, render if outbound.file is None else caption, plain)
        try:
            return await show(rendered)
        except TelegramError as error:
            if not (rendered.entities and failures.is_about_format(error)):
                raise
            log.warning("formatting_refused", outbound=outbound.id, error=error.message)
        return await show(Rendered(text=outbound.text, entities=()))

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        (file,) = outbound.files

        async def show(chat: int, laid_out: Rendered) -> tuple[int, int]:
            return await upload(self._bot, self._where(outbound, chat), file, content, _caption(laid_out))

        return await self._shown(outbound, lambda chat: self._formatted(outbound, partial(show, chat)))

    async def send_album(self, outbound: Outbound, contents: Sequence[bytes]) -> str:
        files, own = list(zip(outbound.files, contents, strict=True)), outbound.own_captions

        async def show(chat: int, laid_out: Rendered) -> tuple[int, int]:
            lay_out = caption if laid_out.entities else plain
            each = [_caption(await self._aside(lay_out, text)) for text in own]
            return await upload_album(self._bot, self._where(outbound, chat), files, _caption(laid_out), each)

        return await self._shown(outbound, lambda chat: self._formatted(outbound, partial(show, chat)))

    async def _shown(self, outbound: Outbound, show: Callable[[int], Awaitable[tuple[int, int]]]) -> str:
        """Call `show` with the chat's number, and return the platform id of the message, of which it gives the numbers
        of chat and message. Raises AdapterError."""
        return self._migrated.note(outbound.to.chat, *await self._reach(outbound.to.chat, show))

    async def _reach(self, chat: str, call: Callable[[int], Awaitable[T]]) -> T:
        """Call `call` with the chat's number. Raises AdapterError."""
        self._silence.check(chat)
        try:
            return await self._migrated.reach(chat, call)
        except TelegramError as error:
            raise self._rested(chat, failures.mapped(error)) from error

    def _rested(self, chat: str, error: AdapterError) -> AdapterError:
        self._silence.heard(chat, error)
        return error

    def _where(self, outbound: Outbound, chat: int) -> dict[str, Any]:
        """Where a message is, and whether its people are called."""
        return {
            "chat_id": chat,
            "message_thread_id": _thread(outbound.to),
            "reply_parameters": self._answered(outbound, chat),
            "disable_notification": self._shows.silences(outbound, group=chat < 0) or None,
        }

    async def _send(self, chat: int, outbound: Outbound, rendered: Rendered) -> tuple[int, int]:
        where = self._where(outbound, chat)
        is_poll = outbound.kind == "poll"
        if is_poll and (shown := await polls.show(self._bot, outbound, where)) is not None:
            return shown
        # The library's own way would make an object of a hundred fields of the message: two of them are needed.
        sent = await self._bot.do_api_request(
            "sendMessage",
            {
                **where,
                "text": rendered.text,
                "entities": _entities(rendered) or None,
                "link_preview_options": {"is_disabled": not self._has_previews(outbound.to)},
                "reply_markup": None if is_poll else keyboard(outbound.buttons),
            },
        )
        return sent["chat"]["id"], sent["message_id"]

    async def close_poll(self, to: ChatAddress, platform_message_id: str) -> str:
        return await polls.close(self._bot, *self._migrated.place(to.chat, platform_message_id))

    def _has_previews(self, to: ChatAddress) -> bool:
        rule = rule_of(self._shows.previews, to)
        return self._previews if rule is None else rule

    def _answered(self, outbound: Outbound, chat: int) -> ReplyParameters | None:
        """Return the message that this one answers; None in a chat of two, where that is plain."""
        number, post = codec.message_of(outbound.answers, chat), codec.post_of(outbound.to.thread)
        if outbound.kind == "notice" or chat > 0 or number is None or rule_of(self._shows.reply, outbound.to) is False:
            number = post  # only a reply stands among the comments of a post
        if number is None:
            return None
        return ReplyParameters(message_id=number, allow_sending_without_reply=True)

    # -- files ------------------------------------------------------------------------------

    async def fetch(self, file: Attachment) -> bytes:
        return await self._downloads.fetch(self._bot, file)

    # -- editing ----------------------------------------------------------------------------

    def draft_rates(self, to: ChatAddress) -> Sequence[Rate] | None:
        """The rates of Telegram; unfinished replies take a share of them where they are shown."""
        return draft_rates(to, paced=self._paced) if self._grows else None

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        chat, message = self._migrated.place(outbound.to.chat, platform_message_id)
        try:
            await self._formatted(outbound, partial(self._edit, chat, message, outbound))
        except TelegramError as error:
            if isinstance(error, ChatMigrated):
                await self._migrated.learn(outbound.to.chat, error)
            if not failures.is_unchanged(error):
                raise self._rested(outbound.to.chat, failures.mapped_edit(error)) from error

    async def _edit(self, chat: int, message: int, outbound: Outbound, rendered: Rendered) -> None:
        self._silence.check(outbound.to.chat)
        await self._bot.edit_message_text(
            rendered.text,
            chat_id=chat,
            message_id=message,
            entities=_entities(rendered),
            disable_web_page_preview=not self._has_previews(outbound.to),
            reply_markup=keyboard(outbound.buttons),
        )

    # -- drafts -----------------------------------------------------------------------------

    def preview_rates(self, to: ChatAddress) -> Sequence[Rate] | None:
        return preview_rates(to) if self._drafts.may_be_shown(to) else None

    async def preview(self, outbound: Outbound) -> None:
        try:
            await self._formatted(outbound, partial(self._draft, outbound))
        except TelegramError as error:
            self._drafts.note(outbound.to, error)
            raise self._rested(outbound.to.chat, failures.mapped_edit(error)) from error

    async def _draft(self, outbound: Outbound, rendered: Rendered) -> None:
        to = outbound.to
        self._silence.check(to.chat)
        await self._bot.send_message_draft(
            chat_id=int(to.chat),
            draft_id=drafts.number_of(outbound.id),
            text=rendered.text,
            message_thread_id=_thread(to),
            entities=_entities(rendered),
        )

    # -- topics -----------------------------------------------------------------------------

    async def open_topic(self, to: ChatAddress, name: str, text: str) -> None:
        await self._reach(to.chat, lambda chat: self._bot.create_forum_topic(chat, name))

    async def change_topic(self, to: ChatAddress, *, name: str, closed: bool) -> None:
        thread = _thread(to)
        if thread is None:
            raise DeliveryRefused("this is not a forum topic")
        if closed:
            await self._reach(to.chat, lambda chat: self._bot.close_forum_topic(chat, thread))
        else:
            await self._reach(to.chat, lambda chat: self._bot.edit_forum_topic(chat, thread, name=name))

    # -- typing -----------------------------------------------------------------------------

    async def typing(self, to: ChatAddress, active: bool) -> None:
        self._typing.switch(to, partial(self._type, to), active=active)

    async def _type(self, to: ChatAddress) -> None:
        await self._reach(
            to.chat,
            lambda chat: self._bot.send_chat_action(
                chat, "typing", message_thread_id=int(to.thread) if to.thread and not codec.post_of(to.thread) else None
            ),
        )

    # -- signs ------------------------------------------------------------------------------

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        self._silence.check(to.chat)
        try:
            await self._migrated.reach(
                to.chat, lambda chat: self._bot.set_message_reaction(chat, int(message), codec.SIGNS[sign])
            )
        except TelegramError as error:  # answers wait for no pause that Telegram asks of signs
            raise failures.mapped(error) from error

    async def aclose(self) -> None:
        await self._typing.aclose()
        self._open = False
        await self._button_answers.aclose()
        await self._downloads.aclose()
        for each in self._requests:  # the library leaves a connection open where nobody ever answered
            await each.shutdown()


class TelegramAdapter(TelegramBot):
    """A bot that asks Telegram for its messages. One process at a time may."""

    waits_for_account = True
    reader_sends = False
    longest_silence = 300.0  # Telegram answers within half a minute, and may ask for a pause

    @property
    def alive_at(self) -> float | None:
        """When it asked for messages last (monotonic)."""
        return self._receiver.asked_at

    async def run(self, accept: Accept) -> None:
        """Poll until cancelled. Raises AdapterError if Telegram does not know the token."""
        try:
            me = await self._introduced()
            self._receiver.begin(accept, me)
            async with self._menu_set():
                await poll(self._bot, self._receiver)
        except InvalidToken as error:
            raise failures.mapped(error) from error

    def _of_reading(self, webhook: WebhookInfo) -> Sequence[Finding]:
        if not webhook.url:
            return ()
        detail = "another program receives the bot's messages through a webhook; starting Legato here ends that webhook"
        return [Finding(what="telegram webhook", ok=None, detail=detail)]


def _quieten_the_library() -> None:
    # It warns of its own future whenever Telegram asks it to wait, and its reader logs a traceback of troubles that
    # get a line here.
    warnings.filterwarnings("ignore", category=PTBDeprecationWarning)
    logging.getLogger("telegram.ext").setLevel(logging.CRITICAL)
    # It logs unreadable updates in full, and asks for other calls than those that make no objects.
    logging.getLogger("telegram.ext.ExtBot").setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message="Please use 'Bot\\.", category=PTBUserWarning)


def _entities(rendered: Rendered) -> list[MessageEntity]:
    return [
        MessageEntity(each.type, each.offset, each.length, url=each.url, language=each.language)
        for each in rendered.entities
    ]


def _caption(rendered: Rendered) -> dict[str, Any]:
    return {"caption": rendered.text, "caption_entities": _entities(rendered)} if rendered.text else {}


def _thread(to: ChatAddress) -> int | None:
    """In a group Telegram finds no message thread 1, the topic General: what is shown there names none. Typing does."""
    if not to.thread or codec.post_of(to.thread) or (to.thread == _GENERAL and in_group(to)):
        return None
    return int(to.thread)
