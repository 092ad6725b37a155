"""The bot: what it shows, from any process; and how it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import structlog

from adapters.slack import codec, files, formatting, reactions
from adapters.slack.calls import APPS, SlackCalls, code_of, is_auth, mapped
from adapters.slack.commands import SlashCommands
from adapters.slack.components import LONGEST_TOKEN, components, form_for, pressed
from adapters.slack.endpoint import EventEndpoint
from adapters.slack.history import SlackHistory
from adapters.slack.limits import LIMITS, draft_rates, rates
from adapters.slack.platform import SlackSettings
from adapters.slack.receiving import Receiver
from adapters.slack.socket import SILENT_SECONDS, SocketMode
from gateway.delivery.markdown.showing import shown_of
from gateway.domain.adapter import REPEATED, Accept, Accepted, Admits, Finding, Notebook, Sign
from gateway.domain.chat import Attachment, ChatAddress, Outbound, Source
from gateway.domain.command import as_typed
from gateway.domain.platform import AdapterHost
from gateway.domain.reading import UNREADABLE, DirectChats, Doubts, reached
from gateway.runtime import errors
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, MessageGone, RateLimited
from gateway.runtime.tasks import Renewed, best_effort

log = structlog.get_logger(__name__)

SCOPES: Final = (
    "app_mentions:read channels:history channels:read chat:write commands files:read "
    "files:write groups:history groups:read im:history im:read im:write mpim:history mpim:read "
    "reactions:read reactions:write users:read"
)
_PATIENCE: Final = 20.0  # seconds for an answer of Slack's
_ANSWERED_IN: Final = 2.5  # seconds: Slack waits three for the first word about a command or a press
_STATUS_SECONDS: Final = 60.0  # Slack shows a status for two minutes
_ROW: Final = "legato_row"  # the kind of a message's metadata: https://docs.slack.dev/messaging/message-metadata
_CLOCKS_DIFFER: Final = 120.0  # seconds
_UNEDITABLE: Final = ("cant_update_message", "edit_window_closed", "message_not_found", "channel_not_found")
_MISLAID: Final = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long")
_HOOKS: Final = "https://hooks.slack.com"

HOME: Final = (
    "I am here, and {model} writes my answers. Answers in progress: {turns}.\n\nWrite to me under Messages, or "
    "mention me in a channel. /legato help lists what I can do."
)
LATER: Final = "This takes a little longer."
PROMPTS: Final = ("What can you do?", "What do you remember about me?", "What did we talk about last?")
"""Offered in a new assistant thread: four at most."""


class SlackBot:
    """One bot: what it shows. `patience`: seconds for an answer of Slack's. `paced`: keep to Slack's rates of its own
    accord."""

    name = codec.PLATFORM
    limits = LIMITS
    longest_token = LONGEST_TOKEN
    notebook: Notebook | None = None
    admits: Admits | None = None
    draft_rates = staticmethod(draft_rates)

    def __init__(
        self, settings: SlackSettings, host: AdapterHost, *, patience: float = _PATIENCE, paced: bool = True
    ) -> None:
        clock = self._clock = host.clock
        self._settings, self._host, self._paced = settings, host, paced
        self._calls = SlackCalls(settings, clock, patience=patience)
        self.account = account_of(self._calls.token)
        self._history = SlackHistory(self._calls, clock)
        self._commands = SlashCommands(host.menu)
        self._receiver = Receiver(settings, clock, self._commands, self._history, host.listens)
        self._typing = Renewed(clock, _STATUS_SECONDS)
        self._doubts = Doubts(clock)
        self._direct = DirectChats(self._opened)

    # -- reading ----------------------------------------------------------------------------

    async def _received(self, accept: Accept, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        assert self.notebook is not None, "the program gives one before it lets anybody read"
        self._receiver.admits = self.admits
        me = _me(await reached(self._clock, "slack", partial(self._calls, "auth.test"), is_auth))
        await self._receiver.run(accept, self.notebook, me, read())

    def _heard(self, kind: str, payload: dict[str, Any]) -> Awaitable[dict[str, Any] | None]:
        form = None
        if kind == "interactive":
            with suppress(*UNREADABLE):
                form, payload = form_for(payload), pressed(payload)
        if form is not None:
            return self._open_form(form)
        return self._answered(kind, payload, self._receiver.heard(kind, payload))

    async def _answered(
        self, kind: str, payload: Mapping[str, Any], taken: asyncio.Future[Accepted | None]
    ) -> dict[str, Any] | None:
        """What Slack is told of an envelope: of an event once it is stored; of a command or a press in time."""
        if kind == "events_api":
            await taken
            match event := payload.get("event") or {}:
                case {"type": "app_home_opened"}:
                    await best_effort(self._show_home(event), what="home")
                case {"type": "assistant_thread_started", "assistant_thread": thread}:
                    await best_effort(self._show_prompts(thread), what="prompts")
            return None
        try:
            async with self._clock.limit(_ANSWERED_IN):
                fate = await asyncio.shield(taken)
        except TimeoutError:
            return {"text": LATER} if kind == "slash_commands" else None
        if fate is None or not fate.told:
            return None
        if kind == "slash_commands":
            return {"text": fate.told} if fate.status == "refused" else None
        await best_effort(self._tell(payload, fate.told), what="press")
        return None

    async def _open_form(self, form: Mapping[str, Any]) -> None:
        """Open a form for who pressed a button. Slack waits three seconds for it; then they press again."""
        with suppress(TimeoutError):
            async with self._clock.limit(_ANSWERED_IN):
                await best_effort(self._calls("views.open", **form), what="form")

    async def _show_home(self, event: Mapping[str, Any]) -> None:
        """Show how the bot is on its Home tab, to who may talk."""
        source = await self._guest(event["channel"], event["user"])
        if event.get("tab") == "home" and source is not None:
            told = HOME.format(model=await self._host.model_of(source), turns=self._host.turns_running())
            view = {"type": "home", "blocks": [formatting.plain(told).block]}
            await self._calls("views.publish", user_id=event["user"], view=view)

    async def _show_prompts(self, thread: Mapping[str, Any]) -> None:
        """Offer who may talk some beginnings of a conversation in their new assistant thread."""
        if await self._guest(thread["channel_id"], thread["user_id"]) is not None:
            prompts = [{"title": each, "message": each} for each in PROMPTS]
            where = {"channel_id": thread["channel_id"], "thread_ts": thread["thread_ts"]}
            await self._calls("assistant.threads.setSuggestedPrompts", prompts=prompts, **where)

    async def _guest(self, channel: str, person: str) -> Source | None:
        """Who is alone with the bot there; None: they may not talk to it."""
        source = codec.source(codec.Place(channel=channel), codec.Me(id=""), person, {})
        return source if self.admits is not None and await self.admits(source) else None

    async def _tell(self, press: Mapping[str, Any], told: str) -> None:
        """Tell a sentence only to the person who pressed a button."""
        where = press["container"]
        thread = where.get("thread_ts") or (press.get("message") or {}).get("thread_ts")
        whom = {"channel": where["channel_id"], "user": press["user"]["id"], "thread_ts": thread}
        await self._calls("chat.postEphemeral", text=self._plain(told).fallback, **whom)

    async def ping(self) -> None:
        await self._calls("auth.test")

    async def probe(self) -> Sequence[Finding]:
        try:
            told, headers = await self._calls.with_headers("auth.test")
            found = [Finding(what="slack", ok=True, detail=f"{told['user']} in {told['team']} (bot {self.account})")]
            given = [each.strip() for each in headers.get("x-oauth-scopes", "").split(",")]
            if lacking := [each for each in SCOPES.split() if each not in given]:
                detail = (
                    f"the bot lacks {', '.join(lacking)}; add them at {APPS}, page OAuth & Permissions, and reinstall"
                )
                found.append(Finding(what="slack scopes", ok=None, detail=detail, public=True))
            listed = await self._calls("users.conversations", types="public_channel,private_channel", limit=200)
        except AdapterError as error:
            return [Finding(what="slack", ok=False, detail=str(error))]
        names = [f"#{each['name']}" for each in listed["channels"]]
        where = "the bot is not in a channel yet; /invite it into a channel, or write it a direct message"
        if names:
            where = f"{len(names)}: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
        return [*found, Finding(what="slack channels", ok=bool(names) or None, detail=where)]

    # -- showing ----------------------------------------------------------------------------

    def rates(self, to: ChatAddress) -> Sequence[Any]:
        return rates(to) if self._paced else ()

    async def send(self, outbound: Outbound) -> str:
        content = await self._content(outbound)
        command = codec.command_of(outbound.answers)
        if command is not None and command[1] and outbound.kind != "notice":
            return await self._whispered(command[0], content)
        channel = await self._channel(outbound.to)
        if self._doubts.concern(outbound, _begun(outbound)):
            found = await self._found(outbound, channel)
            if found:
                await self._shown("chat.update", content, channel=channel, ts=found)
                return found
            if found is None and outbound.ambiguous:  # nobody can know: the reader is told
                content["text"] = REPEATED + content["text"]
                content["blocks"] = [formatting.plain(REPEATED).block, *content["blocks"]]
        try:
            sent = await self._shown(
                "chat.postMessage",
                content,
                channel=channel,
                thread_ts=outbound.to.thread,
                unfurl_links=False,
                unfurl_media=False,
                metadata={"event_type": _ROW, "event_payload": {"id": outbound.id}},
            )
        except Ambiguous:
            self._doubts.note(outbound.id)
            raise
        except ChatGone:
            if command is None:
                raise
            return await self._whispered(command[0], content)  # the bot need not be where a command is given
        return str(sent["ts"])

    async def _shown(self, method: str, content: Mapping[str, Any], **where: Any) -> Mapping[str, Any]:
        """Show a text with its blocks; as the bare text where Slack does not take a link of it, say."""
        try:
            return await self._calls(method, **where, **content)
        except DeliveryRefused as error:
            if code_of(error) not in _MISLAID:
                raise
            log.warning("shown_plainly", error=str(error))
            blocks = [formatting.bare(each) for each in content["blocks"]]
            return await self._calls(method, **where, **{**content, "blocks": blocks})

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        assert outbound.file is not None, "only a row with a file is sent as one"
        channel = await self._channel(outbound.to)
        if self._doubts.concern(outbound, _begun(outbound)) and (found := await self._found(outbound, channel)):
            return found
        said = {"blocks": (await self._content(outbound))["blocks"]} if outbound.text.strip() else {}
        return await files.upload(
            self._calls, outbound.file, content, channel_id=channel, thread_ts=outbound.to.thread, **said
        )

    async def _content(self, outbound: Outbound) -> dict[str, Any]:
        shown = await shown_of(outbound, self._host.aside, formatting.shown, self._plain)
        return {"text": shown.fallback, "blocks": [shown.block, *components(outbound.buttons)]}

    def _plain(self, text: str) -> formatting.Shown:
        return formatting.plain(as_typed(text, self._commands.names, "/legato "))

    async def _channel(self, to: ChatAddress) -> str:
        return await self._direct.id_of(to.chat)

    async def _opened(self, person: str) -> str:
        return str((await self._calls("conversations.open", users=person))["channel"]["id"])

    async def _found(self, outbound: Outbound, channel: str) -> str | None:
        """The message of an earlier attempt whose answer was lost; "" if there is none; None if that cannot be looked
        up."""
        thread = outbound.to.thread
        method, how = ("conversations.replies", {"ts": thread}) if thread else ("conversations.history", {})
        oldest = codec.ts(codec.id_at(_begun(outbound) - _CLOCKS_DIFFER))
        try:
            page = await self._calls(
                method, channel=channel, oldest=oldest, limit=200, include_all_metadata=True, **how
            )
        except DeliveryRefused as error:
            log.info("sent_before_unknown", chat=channel, error=str(error))
            return None
        except RateLimited:
            if self._doubts.are_grave(outbound, _begun(outbound)):
                raise
            return ""  # nobody waits a minute for an answer because a process might have died
        for each in page["messages"]:
            if ((each.get("metadata") or {}).get("event_payload") or {}).get("id") == outbound.id:
                return str(each["ts"])
            if outbound.file is not None and self._is_file(each, outbound):
                return str(each["files"][0]["id"])
        return ""

    def _is_file(self, message: Mapping[str, Any], outbound: Outbound) -> bool:
        file = outbound.file
        sent = [(each.get("name"), each.get("size")) for each in message.get("files") or ()]
        return file is not None and bool(message.get("bot_id")) and sent == [(file.name or "file", file.size)]

    async def _whispered(self, path: str, content: Mapping[str, Any]) -> str:
        """Show the answer to a slash command only to its person. Raises AdapterError."""
        root = _HOOKS
        if self._settings.base_url is not None:
            parts = urlsplit(self._settings.base_url)
            root = f"{parts.scheme}://{parts.netloc}"
        body = {"response_type": "ephemeral", **content}
        try:
            async with self._calls.http.post(root + path, json=body, proxy=self._calls.client.proxy) as response:
                if response.status == 404:
                    raise DeliveryRefused("Slack no longer accepts an answer to this command; send the command again")
                response.raise_for_status()
        except (aiohttp.ClientError, OSError) as error:
            raise mapped(error) from error
        return f"@{path.rpartition('/')[2]}"

    # -- editing ----------------------------------------------------------------------------

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        if platform_message_id[:1] in ("@", "F"):
            raise MessageGone("only one person sees it, and it stays as it is", stays=True)
        content = await self._content(outbound)
        try:
            channel = await self._channel(outbound.to)
            await self._shown("chat.update", content, channel=channel, ts=platform_message_id)
        except AdapterError as error:
            if (code := code_of(error)) in _UNEDITABLE:
                raise MessageGone(f"Slack says {code}", stays=code != "message_not_found") from error
            raise errors.repeatable(error) from error

    # -- files and signs --------------------------------------------------------------------

    async def fetch(self, file: Attachment) -> bytes:
        return await files.fetch(self._calls, file)

    async def typing(self, to: ChatAddress, active: bool) -> None:
        if to.thread:  # Slack shows a status in threads alone
            self._typing.switch(to, partial(self._show_status, to), active=active)

    async def _show_status(self, to: ChatAddress) -> None:
        await self._calls("assistant.threads.setStatus", channel_id=to.chat, thread_ts=to.thread, status="is thinking…")

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        await reactions.show(self._calls, await self._channel(to), message, sign)

    async def aclose(self) -> None:
        await self._typing.aclose()
        await self._calls.aclose()


class SlackAdapter(SlackBot):
    """A bot that is connected to Slack. One process at a time is; `silence`: as of `SILENT_SECONDS`."""

    waits_for_account = True
    reader_sends = False

    def __init__(
        self, settings: SlackSettings, host: AdapterHost, *, silence: float = SILENT_SECONDS, **how: Any
    ) -> None:
        super().__init__(settings, host, **how)
        heard, begun = self._heard, self._receiver.begun
        self._socket = SocketMode(self._calls, settings, self._clock, heard=heard, begun=begun, silence=silence)
        self._receiver.connected = lambda: self._socket.connected_at is not None

    @property
    def unreached_since(self) -> float | None:
        return self._socket.unreached_since

    async def probe(self) -> Sequence[Finding]:
        found = await super().probe()
        try:
            await self._socket.address()
        except AdapterError as error:
            return [*found, Finding(what="slack socket", ok=False, detail=str(error))]
        return found

    async def run(self, accept: Accept) -> None:
        """Read until cancelled. Raises AdapterError if Slack does not know the tokens."""
        await self._received(accept, self._socket.keep)


class SlackEvents(SlackBot):
    """A bot that Slack calls. Slack may call any process, so all of them listen and none owns the account."""

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken or Slack does not know the token."""
        endpoint = EventEndpoint(self._settings.http, self._clock, self._heard, lambda: self._receiver.begun(True))
        await self._received(accept, endpoint.serve)


def create(settings: SlackSettings, host: AdapterHost) -> SlackBot:
    """The bot of these settings, in Socket Mode or called by Slack."""
    return SlackAdapter(settings, host) if settings.mode == "socket" else SlackEvents(settings, host)


def _begun(outbound: Outbound) -> float:
    """The earliest moment of its first attempt: a row that begins again counts as new."""
    asked = codec.asked_at(outbound.answers)
    return outbound.created_at if asked is None else min(asked, outbound.created_at)


def account_of(token: str) -> str:
    """The ids of the workspace and of the bot, with which its token begins."""
    match token.split("-"):
        case ["xoxb", team, bot, _, *_] if team.isdecimal() and bot.isdecimal():
            return f"{team}-{bot}"
    return blake2s(token.encode(), digest_size=8).hexdigest()


def _me(told: Mapping[str, Any]) -> codec.Me:
    return codec.Me(
        id=str(told["user_id"]),
        bot=str(told.get("bot_id") or ""),
        team=str(told.get("team_id") or ""),
        enterprise=str(told.get("enterprise_id") or ""),
    )
