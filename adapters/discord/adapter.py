"""The bot: what it shows, from any process; and the one that reads while its process holds the account."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from typing import Any, Final

import structlog
from discord.errors import HTTPException, LoginFailure
from discord.http import Route

from adapters.discord import codec, failures, files, polls, reactions, topics
from adapters.discord.commands import SlashCommands
from adapters.discord.components import components
from adapters.discord.connection import SILENT_SECONDS, ApiClient, DiscordClient
from adapters.discord.formatting import plain, shown, split_off
from adapters.discord.interactions import Interactions
from adapters.discord.limits import LIMITS, LONGEST_TOKEN, draft_rates
from adapters.discord.listening import Listening
from adapters.discord.permissions import MissingPermissions
from adapters.discord.platform import DiscordSettings
from adapters.discord.presence import Presence
from adapters.discord.receiving import Receiver
from adapters.discord.rooms import HEARD, LOST, Rooms
from gateway.delivery.markdown.showing import shown_of
from gateway.domain.adapter import Accept, Admits, Finding, Notebook, Propose, Sign
from gateway.domain.chat import Attachment, ChatAddress, Outbound
from gateway.domain.place import AS_USUAL, rule_of
from gateway.domain.platform import AdapterHost
from gateway.domain.reading import WITH, DirectChats, Pointing, Recent, reached
from gateway.runtime.errors import DeliveryRefused, FileRefused, MessageGone
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Renewed

log = structlog.get_logger(__name__)

_PATIENCE: Final = 20.0  # seconds for an answer of Discord's
_TYPING_SECONDS: Final = 8.0  # Discord shows it for ten
_LONGEST_NONCE: Final = 25  # https://discord.com/developers/docs/resources/message#create-message
_NO_PREVIEWS: Final = 1 << 2  # a message's flags
_EDITED_FOR: Final = 3_300.0  # seconds: Discord slows edits of messages down that are an hour old
_LOOKED_AT: Final = 50  # messages, for one that may have been sent
_NONCE_SECONDS: Final = 60.0  # for which Discord surely knows a nonce: it says "the past few minutes"
_CLOCKS_DIFFER: Final = 120.0  # seconds
_UNWRITABLE: Final = "the bot needs the permission Attach Files here"


class DiscordAdapter:
    """One bot. `patience`: seconds for an answer of Discord's; `silence`: of the gateway, after which its socket is
    replaced."""

    name = codec.PLATFORM
    limits = LIMITS
    longest_token = LONGEST_TOKEN
    waits_for_account = True
    reader_sends = False
    notebook: Notebook | None = None
    admits: Admits | None = None
    propose: Propose | None = None
    draft_rates = staticmethod(draft_rates)

    def __init__(
        self,
        settings: DiscordSettings,
        host: AdapterHost,
        *,
        patience: float = _PATIENCE,
        silence: float = SILENT_SECONDS,
    ) -> None:
        assert settings.token is not None, "the configuration sees to it that there is one"
        token = settings.token.get_secret_value()
        listening = Listening(settings, host.listens)
        self.account = account_of(token)
        clock = self._clock = host.clock
        self._shows, self._aside = host.shows, host.aside
        self._commands = SlashCommands(host.menu, for_people=settings.user_install)
        self._direct = DirectChats(self._direct_chat)
        self._receiver = Receiver(settings, clock, self._commands, listening, self._direct)
        self._connection = DiscordClient(
            settings,
            clock=clock,
            heard=self._receiver.heard,
            patience=patience,
            silence=silence,
            content=listening.reads_content,
        )
        receiver = self._receiver
        self.rooms = (
            Rooms(self._connection, clock, receiver.lets_in, receiver.listened) if settings.voice_channels else None
        )
        self._presence = Presence(clock, settings.status, self._connection.show_status) if settings.shows_work else None
        self._interactions = Interactions(self._connection, self._commands, clock)
        self._permissions = MissingPermissions()
        self._typing = Renewed(clock, _TYPING_SECONDS)
        self._shown_ids: Recent[str, None] = Recent()  # messages of this process
        self._pointing = Pointing()

    # -- reading ----------------------------------------------------------------------------

    async def run(self, accept: Accept) -> None:
        """Read until cancelled. Raises AdapterError if Discord does not know the token."""
        assert self.notebook is not None, "the program gives one before it lets anybody read"
        self._receiver.admits, self._receiver.propose = self.admits, self.propose
        me = await self._introduced()
        writing = asyncio.get_running_loop().create_task(self._write_commands())
        try:
            await self._receiver.run(accept, self._connection, self._interactions, self.notebook, me)
        finally:
            writing.cancel()

    @property
    def unreached_since(self) -> float | None:
        """Since when Discord cannot be reached (monotonic); None: it can."""
        return self._connection.unreached_since

    async def _introduced(self) -> codec.Me:
        await reached(self._clock, "discord", self._opened, lambda error: isinstance(error.__cause__, LoginFailure))
        user = self._connection.user
        assert user is not None, "a bot that is logged in is known"
        return codec.Me(id=str(user.id), name=user.name)

    async def _opened(self) -> None:
        with failures.told():
            try:
                await self._connection.opened()
            except failures.Foreign:
                self._connection.lost()
                raise

    async def _write_commands(self) -> None:
        assert self._connection.application_id is not None
        await self._commands.write(self._connection.calls, self._connection.application_id)

    async def ping(self) -> None:
        with failures.told():
            calls = await self._connection.opened()
            await calls.request(Route("GET", "/users/@me"))

    async def probe(self) -> Sequence[Finding]:
        try:
            calls = await self._connection.opened()
            guilds = await calls.get_guilds(200)
            assert self._connection.application_id is not None
            offered = await calls.get_global_commands(self._connection.application_id)
        except failures.Foreign as error:
            return [Finding(what="discord", ok=False, detail=str(failures.mapped(error)))]
        user = self._connection.user
        found = [Finding(what="discord", ok=True, detail=f"{user.name if user else ''} (bot {self.account})")]
        if not self._connection.reads_everything:
            detail = (
                "switched off, so the bot reads only mentions, replies and direct messages; switch it on at "
                f"{failures.PORTAL}"
            )
            found.append(Finding(what="discord Message Content", ok=None, detail=detail))
        where = "the bot is not in a server yet; docs/discord.md says how to invite it"
        if guilds:
            names = ", ".join(str(each["name"]) for each in guilds[:5])
            where = f"{len(guilds)}: {names}{', …' if len(guilds) > 5 else ''}"
        found.append(Finding(what="discord servers", ok=bool(guilds) or None, detail=where))
        told = (
            f"{len(offered)} offered"
            if offered
            else "Discord knows no commands of the bot yet; the next start adds them"
        )
        return [*found, Finding(what="discord commands", ok=bool(offered) or None, detail=told)]

    # -- showing ----------------------------------------------------------------------------

    async def send(self, outbound: Outbound) -> str:
        return await self._shown(outbound, None)

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        if self.rooms is not None and outbound.files[0].is_voice and self.rooms.say(outbound, content):
            return f"aloud-{outbound.id}"
        return await self.send_album(outbound, [content])

    async def send_album(self, outbound: Outbound, contents: Sequence[bytes]) -> str:
        limit = self._largest(outbound.to.chat)
        if max(map(len, contents)) > limit:
            raise DeliveryRefused(f"it is larger than the {limit // 1024**2} MB that Discord takes here")
        return await self._shown(outbound, contents)

    def _largest(self, chat: str) -> int:
        channel = None if chat.startswith(WITH) else self._connection.get_channel(int(chat))
        guild = getattr(channel, "guild", None)
        return LIMITS.file_bytes or 0 if guild is None else int(guild.filesize_limit)

    async def _shown(self, outbound: Outbound, contents: Sequence[bytes] | None) -> str:
        payload = await self._payload(outbound)
        try:
            calls = await self._connection.opened()
            interaction = codec.interaction_of(outbound.answers)
            # The place of the answer is kept for the answer: a notice comes before it.
            if interaction is not None and contents is None and outbound.kind not in ("notice", "poll"):
                may_be_public = outbound.kind == "error"
                told = await self._interactions.show(interaction, payload, may_be_public=may_be_public)
                if told is not None:
                    return told
            outbound = replace(outbound, to=replace(outbound.to, chat=await self._direct.id_of(outbound.to.chat)))
            old = self._clock.now() - outbound.created_at > _NONCE_SECONDS
            if outbound.ambiguous and old and (found := await self._found(calls, outbound, payload)):
                return self._known(found)
            message = await self._posted(calls, outbound, payload, contents)
            if contents is None and payload["content"].strip() not in ("", (message.get("content") or "").strip()):
                # Its nonce was known: an earlier attempt showed the beginning of it.
                await calls.request(_message("PATCH", outbound.to.chat, message["id"]), json=_edit(payload))
        except failures.Foreign as error:
            if contents is not None and getattr(error, "code", 0) == failures.MISSING_PERMISSIONS:
                raise DeliveryRefused(_UNWRITABLE) from error
            if isinstance(error, HTTPException):
                await self._permissions.tell(self._connection.calls, outbound, error)
            raise failures.mapped(error) from error
        return self._known(str(message["id"]))

    async def _direct_chat(self, person: str) -> str:
        return str((await self._connection.calls.start_private_message(person))["id"])

    def _known(self, message: str) -> str:
        """A message that belongs to a row, and so to no other."""
        self._shown_ids[message] = None
        return message

    async def _posted(
        self, calls: ApiClient, outbound: Outbound, payload: dict[str, Any], contents: Sequence[bytes] | None
    ) -> Mapping[str, Any]:
        chat = outbound.to.chat
        try:
            if contents is None:
                route = Route("POST", "/channels/{channel_id}/messages", channel_id=chat)
                message: Mapping[str, Any] = await calls.request(route, json=payload)
            else:
                given = zip(outbound.files, contents, strict=True)
                message = await files.upload(calls, chat, given, payload)
        except HTTPException as error:
            if error.code == failures.NO_HISTORY and "message_reference" in payload:
                plainly = {name: value for name, value in payload.items() if name != "message_reference"}
            elif error.code in (failures.MISSING_PERMISSIONS, failures.INVALID_FORM) and "poll" in payload:
                plainly = {name: value for name, value in payload.items() if name != "poll"}
                plainly["content"] = await self._text(outbound, outbound.text)
            elif error.code == failures.MISSING_PERMISSIONS and payload["embeds"]:
                plainly = await self._without_card(outbound, payload)
            else:
                raise
            return await self._posted(calls, outbound, plainly, contents)
        return message

    async def _found(self, calls: ApiClient, outbound: Outbound, payload: Mapping[str, Any]) -> str | None:
        """The message of an earlier attempt whose answer was lost: Discord knows a nonce for minutes only."""
        if not (payload["content"] or "poll" in payload):
            return None
        since = codec.snowflake(outbound.created_at - _CLOCKS_DIFFER)
        try:
            recent = await calls.logs_from(int(outbound.to.chat), _LOOKED_AT, after=since)
        except HTTPException as error:
            log.info("sent_before_unknown", chat=outbound.to.chat, error=error.text)
            return None
        mine = (each for each in recent if each["author"]["id"] == self.account and each["id"] not in self._shown_ids)
        return next((str(each["id"]) for each in mine if _said(each) == _said(payload)), None)

    async def _payload(self, outbound: Outbound) -> dict[str, Any]:
        asker, point = codec.asked_by(outbound.answers), self._points_at(outbound)
        has_card = outbound.kind == "reply" and outbound.file is None and codec.interaction_of(outbound.answers) is None
        text, card = split_off(outbound.text) if has_card else (outbound.text, None)
        flags = self._flags(outbound)
        payload: dict[str, Any] = {
            "content": await self._text(outbound, text),
            "embeds": [] if card is None else [card],
            "nonce": _nonce(outbound.id),
            "enforce_nonce": True,
            "flags": flags if card is None else flags & ~_NO_PREVIEWS,
            "allowed_mentions": {"parse": [], "users": [asker] if asker else [], "replied_user": point is not None},
            "components": components(outbound.buttons),
        }
        if outbound.kind == "poll":
            payload |= {"components": [], **polls.payload(outbound)}
        if point is not None:
            payload["message_reference"] = {"message_id": point, "fail_if_not_exists": False}
        return payload

    async def _without_card(self, outbound: Outbound, payload: dict[str, Any]) -> dict[str, Any]:
        """The same message where the bot may not embed links."""
        text = await self._text(outbound, outbound.text)
        return {**payload, "content": text, "embeds": [], "flags": self._flags(outbound)}

    async def _text(self, outbound: Outbound, text: str) -> str:
        if outbound.file is not None and not text.strip():
            return ""
        return await shown_of(replace(outbound, text=text), self._aside, shown, plain)

    def _flags(self, outbound: Outbound) -> int:
        """A message's flags: no previews of links, and no sound."""
        around = self._around(outbound.to.chat) if self._shows is not AS_USUAL or outbound.beside else ()
        flags = 0 if rule_of(self._shows.previews, outbound.to, around) else _NO_PREVIEWS
        return flags | (codec.SILENT if self._shows.silences(outbound, around, group=bool(around)) else 0)

    def _around(self, chat: str) -> tuple[str, ...]:
        """The names of what a server's channel lies in; none for a chat of two."""
        channel = None if chat.startswith(WITH) else self._connection.get_channel(int(chat))
        guild = getattr(channel, "guild", None)
        above = [getattr(channel, name, None) for name in ("parent_id", "category_id")]
        return () if guild is None else (*(str(each) for each in above if each), f"guild-{guild.id}")

    def _points_at(self, outbound: Outbound) -> str | None:
        """In a channel the first message of an answer points at its question, and pings the person who asked."""
        number = codec.message_of(outbound.answers, outbound.to.chat)
        if number is None:
            return None
        if self._shows.reply and rule_of(self._shows.reply, outbound.to, self._around(outbound.to.chat)) is False:
            return None
        return number if self._pointing.is_first(outbound) else None

    # -- editing ----------------------------------------------------------------------------

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        number = platform_message_id.removeprefix("@")
        if outbound.edits is None and self._clock.now() - codec.moment(number) > _EDITED_FOR:
            raise MessageGone("the message is so old that Discord slows its edits down", stays=True)
        payload = await self._payload(outbound)
        try:
            calls = await self._connection.opened()
            interaction = codec.interaction_of(outbound.answers)
            if platform_message_id.startswith("@") and interaction is not None:
                await self._interactions.edit(interaction, number, _edit(payload))
            else:
                chat = await self._direct.id_of(outbound.to.chat)
                try:
                    await calls.request(_message("PATCH", chat, number), json=_edit(payload))
                except HTTPException as error:
                    if error.code != failures.MISSING_PERMISSIONS or not payload["embeds"]:
                        raise
                    payload = await self._without_card(outbound, payload)
                    await calls.request(_message("PATCH", chat, number), json=_edit(payload))
        except failures.Foreign as error:
            if failures.is_over(error):
                raise MessageGone("the answer can no longer be changed", stays=True) from error
            raise failures.mapped_edit(error) from error

    async def close_poll(self, to: ChatAddress, platform_message_id: str) -> str:
        with failures.told(failures.mapped_edit):
            calls = await self._connection.opened()
            where = {"channel_id": await self._direct.id_of(to.chat), "message_id": platform_message_id}
            ended = await calls.request(Route("POST", "/channels/{channel_id}/polls/{message_id}/expire", **where))
        return polls.words(ended["poll"])

    # -- files ------------------------------------------------------------------------------

    async def fetch(self, file: Attachment) -> bytes:
        if file.ref.startswith(HEARD):
            if self.rooms is None:
                raise FileRefused(LOST)
            return self.rooms.recording(file.ref)
        with failures.told(failures.mapped_edit):
            calls = await self._connection.opened()
        return await files.fetch(calls, file)

    # -- topics -----------------------------------------------------------------------------

    async def open_topic(self, to: ChatAddress, name: str, text: str) -> None:
        with failures.told():
            await topics.open_topic(await self._connection.opened(), self._connection, to.chat, name, text)

    async def change_topic(self, to: ChatAddress, *, name: str, closed: bool) -> None:
        with failures.told():
            calls = await self._connection.opened()
            await topics.change_topic(calls, self._connection, to.chat, name, closed=closed)

    # -- typing -----------------------------------------------------------------------------

    async def typing(self, to: ChatAddress, active: bool) -> None:
        self._typing.switch(to, partial(self._type, to), active=active)
        if self._presence is not None:
            self._presence.switch(to, active=active)

    async def _type(self, to: ChatAddress) -> None:
        with failures.told(failures.mapped_edit):
            calls = await self._connection.opened()
            await calls.send_typing(int(await self._direct.id_of(to.chat)))

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        with failures.told(failures.mapped_edit):
            calls = await self._connection.opened()
            await reactions.show(calls, await self._direct.id_of(to.chat), message, sign)

    async def aclose(self) -> None:
        await self._typing.aclose()
        if self._presence is not None:
            await self._presence.aclose()
        await self._connection.hang_up()


def create(settings: DiscordSettings, host: AdapterHost) -> DiscordAdapter:
    """The bot that the settings describe."""
    return DiscordAdapter(settings, host)


def account_of(token: str) -> str:
    """The bot's id, with which its token begins."""
    first = token.strip().partition(".")[0]
    with suppress(binascii.Error, ValueError):
        number = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
        if number.isdecimal():
            return number
    return blake2s(token.encode(), digest_size=8).hexdigest()


def _nonce(row: str) -> str:
    """A row's own nonce, the same at every attempt."""
    return row if len(row) <= _LONGEST_NONCE else blake2s(row.encode(), digest_size=12).hexdigest()


def _said(message: Mapping[str, Any]) -> tuple[str, str]:
    poll = message.get("poll") or {}
    return str(message["content"]).strip(), str(poll.get("question", {}).get("text", ""))


def _edit(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an edit may change; of the flags that is the one of previews."""
    changed = {name: payload[name] for name in ("content", "embeds", "components", "allowed_mentions")}
    return {**changed, "flags": payload["flags"] & _NO_PREVIEWS}


def _message(method: str, channel: str, message: str) -> Route:
    return Route(method, "/channels/{channel_id}/messages/{message_id}", channel_id=channel, message_id=message)
