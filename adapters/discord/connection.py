"""The socket to Discord's gateway, kept open; and the calls, which need none.

https://discord.com/developers/docs/events/gateway. The library's own `Client.connect` ends for good when the very first
handshake fails (discord.py issue 10520), closes all calls when a socket is refused, and gives a dead socket ninety
seconds. So its loop is written anew here, around the library's socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import aiohttp
import structlog
import yarl
from discord import ApplicationFlags, Client, CustomActivity, ForumChannel, Guild, Intents, MemberCacheFlags, Thread
from discord.errors import ConnectionClosed, DiscordException, RateLimited
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import HTTPClient, Route
from discord.state import AutoShardedConnectionState
from discord.utils import MISSING

from adapters.discord import failures
from adapters.discord.platform import DiscordSettings
from gateway.domain.reading import OddEvents
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.connections import at_most
from gateway.runtime.errors import AdapterError
from gateway.runtime.tasks import Crew

log = structlog.get_logger(__name__)

SILENT_SECONDS: Final = 48.0  # without a word from the gateway, which acknowledges a heartbeat every 41
_HANDSHAKE_SECONDS: Final = 30.0
CLOSING_SECONDS: Final = 1.0
_UPLOAD_SECONDS: Final = 300.0
_LONGEST_WAIT: Final = 30.0  # for a bucket, in the library; what takes longer goes back to the outbox
_PAUSES: Final = (1.0, 60.0)  # between two attempts to connect
_GOOD_AFTER: Final = 60.0  # seconds
_LONG_PAUSES: Final = (60.0, 900.0)  # the same, where somebody must change something first

_UNKNOWN_TOKEN: Final = 4004  # https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway
_REFUSED_INTENTS: Final = (4013, 4014)
_SHARDS: Final = (4010, 4011)
_BETWEEN: Final = 5.0  # seconds between two new sessions of a bot that has several
_INTENTS_PAGE: Final = f"{failures.PORTAL}, page Bot, Message Content Intent"

_EXEMPT: Final = ("/interactions/", "/webhooks/")  # in the addresses of calls about interactions
_PAUSE_UNSAID: Final = 1.0  # seconds
_LOOK_EVERY: Final = 600.0  # seconds between two looks at the portal's switches, while one is off
_LOOK_SECONDS: Final = 5.0
_THREADS: Final = (10, 11, 12)  # https://discord.com/developers/docs/resources/channel#channel-object-channel-types

Heard = Callable[[str, Any], None]


class _HeldBack(Exception):
    """A call that waited in its bucket when a pause for all began."""


class ApiClient(HTTPClient):
    """The library's client of the API, with its buckets. `base_url`: of another server. `patience`: seconds for an
    answer.

    The pause that Discord asks of all calls at once is kept here. The library's ends with the call that was told of it,
    holds up interactions, which are exempt, and lets go what waits in a bucket already.
    https://discord.com/developers/docs/topics/rate-limits#global-rate-limit"""

    base_url: str | None = None
    patience: float = 20.0

    def __init__(self, loop: asyncio.AbstractEventLoop, *, clock: Clock, **how: Any) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(self._leaving)
        trace.on_request_end.append(self._answered)
        super().__init__(loop, http_trace=trace, **how)
        self._clock = clock
        self._pause_ends = 0.0  # monotonic

    @property
    def _global_over(self) -> asyncio.Event:
        """The library's own pause, which is never in force."""
        over = asyncio.Event()
        over.set()
        return over

    @_global_over.setter
    def _global_over(self, _: asyncio.Event) -> None:
        pass

    async def request(self, route: Route, **how: Any) -> Any:
        """As the library's. Raises RateLimited in a pause of more than half a minute."""
        if self.base_url is not None and route.url.startswith(Route.BASE):
            route.url = self.base_url + route.url[len(Route.BASE) :]
        seconds = _UPLOAD_SECONDS if how.get("form") else self.patience
        how.setdefault("timeout", aiohttp.ClientTimeout(total=seconds))
        while True:
            while (left := self._pause_for(route.url)) > 0.0:
                if left > _LONGEST_WAIT:
                    raise RateLimited(left)
                await self._clock.sleep(left)
            with suppress(_HeldBack):
                return await super().request(route, **how)

    def _pause_for(self, url: str) -> float:
        """Seconds for which a call must not leave; files and the gateway's socket are no calls."""
        if not self._pause_ends:
            return 0.0
        counts = url.startswith(self.base_url or Route.BASE) and not any(each in url for each in _EXEMPT)
        return self._pause_ends - self._clock.monotonic() if counts else 0.0

    async def _leaving(self, _: Any, __: Any, call: aiohttp.TraceRequestStartParams) -> None:
        if self._pause_ends and self._pause_for(str(call.url)) > 0.0:
            raise _HeldBack

    async def _answered(self, _: Any, __: Any, call: aiohttp.TraceRequestEndParams) -> None:
        headers = call.response.headers
        if call.response.status == HTTPStatus.TOO_MANY_REQUESTS and "X-RateLimit-Global" in headers:
            seconds = float(headers.get("Retry-After", _PAUSE_UNSAID))
            self._pause_ends = max(self._pause_ends, self._clock.monotonic() + seconds)
            log.warning("discord_pauses_all", seconds=seconds)

    async def read(self, url: str, most: int) -> bytes | None:
        """A file's content; None if there are more than `most` bytes."""
        session: aiohttp.ClientSession = self._HTTPClient__session  # type: ignore[attr-defined]
        async with session.get(url, proxy=self.proxy, timeout=aiohttp.ClientTimeout(sock_read=self.patience)) as answer:
            answer.raise_for_status()
            return await at_most(answer.content.iter_chunked(1 << 16), most)


class _MoreShards(Exception):
    """Discord wants this many connections of this bot."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class _Shard:
    """One of the bot's connections, which brings its share of the guilds. `connected_at`: seconds since the epoch;
    `content`: its session was begun for every text."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.short, self.long = Backoff(*_PAUSES), Backoff(*_LONG_PAUSES)
        self.ws: DiscordWebSocket | None = None
        self.connected_at: float | None = None
        self.content = False


class _State(AutoShardedConnectionState["DiscordClient"]):
    """The library's picture of guilds and channels. Messages go to `heard` as they came: no objects are made of them
    and none is kept. An event that cannot be read ends nothing, and is told of once for each kind."""

    heard: Heard

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._odd = OddEvents(DiscordException)
        self.shard_count, self.shard_ids = 1, range(1)
        own: dict[str, Callable[[Any], None]] = {
            "MESSAGE_CREATE": lambda data: self.heard("message", data),
            "MESSAGE_UPDATE": lambda data: self.heard("edit", data),
            "MESSAGE_DELETE": lambda data: self.heard("delete", data),
            "MESSAGE_REACTION_ADD": lambda data: self.heard("reaction", {**data, "came": True}),
            "MESSAGE_REACTION_REMOVE": lambda data: self.heard("reaction", {**data, "came": False}),
            "INTERACTION_CREATE": lambda data: self.heard("interaction", data),
        }
        self.parsers = {event: partial(self._parsed, event, parse) for event, parse in (self.parsers | own).items()}

    def _parsed(self, event: str, parse: Callable[[Any], None], data: Any) -> None:
        with self._odd.contained(event):
            parse(data)

    def parse_ready(self, data: Any) -> None:
        """As the library's, which keeps guilds that the bot left while this shard was away."""
        told = {int(each["id"]) for each in data["guilds"]}
        for guild in [each for each in self.guilds if each.shard_id == data["shard"][0] and each.id not in told]:
            self._remove_guild(guild)
        super().parse_ready(data)

    def parse_message_delete_bulk(self, data: Any) -> None:
        for number in data["ids"]:
            self.heard("delete", {**data, "id": number})

    def parse_voice_state_update(self, data: Any) -> None:
        super().parse_voice_state_update(data)
        self._get_client().moved(int(data["guild_id"]))


class DiscordClient(Client):
    """One bot's. `heard` is given each event in the moment that it comes: "message", "edit", "delete", "reaction" (with
    `came`: it was put there) and "interaction" with Discord's JSON, "connected" (None) when a new session begins,
    "guild" with a guild whose channels are known, "ready" (None) when no more guilds come, "gone" with the id of a
    channel. `content`: it needs every text, also those that do not name the bot."""

    moved: Callable[[int], None]
    _parting: Callable[[], Awaitable[None]] | None = None

    def __init__(
        self,
        settings: DiscordSettings,
        *,
        clock: Clock,
        heard: Heard,
        patience: float,
        silence: float,
        content: bool,
    ) -> None:
        assert settings.token is not None, "the configuration sees to it that there is one"
        for name in ("client", "gateway", "state", "voice_client", "voice_state", "player"):
            logging.getLogger(f"discord.{name}").setLevel(logging.CRITICAL)  # what matters of it is told in a line here
        logging.getLogger("discord.http").setLevel(logging.ERROR)
        self._heard = heard
        self._wished = Intents(
            guilds=True, guild_messages=True, dm_messages=True, guild_reactions=True, dm_reactions=True
        )
        super().__init__(
            intents=self._wished,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=MemberCacheFlags.none(),
            heartbeat_timeout=2 * silence,  # the loop below sees to it, sooner
            max_ratelimit_timeout=_LONGEST_WAIT,
            proxy=settings.proxy,
        )
        calls = ApiClient(self.loop, clock=clock, proxy=settings.proxy, max_ratelimit_timeout=_LONGEST_WAIT)
        calls.base_url, calls.patience = settings.base_url and settings.base_url.rstrip("/"), patience
        self.http = self._connection.http = calls
        self._token = settings.token.get_secret_value()
        self._clock = clock
        self._silence = silence
        self._needs_content = content
        self._opening = asyncio.Lock()
        self._open = False
        self._wanted = None if settings.shards == "auto" else settings.shards  # None: as many as Discord advises
        self._status = _activity(settings.status)
        self._shards: list[_Shard] = []
        self._beginning, self._begun_at = asyncio.Lock(), -_BETWEEN  # of new sessions (monotonic)
        self._looked_at = 0.0  # the portal's switches (monotonic seconds)
        self.connected_at: float | None = None  # seconds since the epoch; None: not now
        self.unreached_since: float | None = None  # monotonic: since when no connection came about

    def _get_state(self, **options: Any) -> Any:
        state = _State(dispatch=self.dispatch, handlers=self._handlers, hooks=self._hooks, http=self.http, **options)
        state.heard = self._heard
        return state

    def follow_voices(self, moved: Callable[[int], None], parting: Callable[[], Awaitable[None]]) -> None:
        """Tell `moved` the id of a guild when somebody comes into a voice channel of it or goes, and await `parting`
        before a connection ends for good."""
        self._wished.voice_states = True
        self.moved, self._parting = moved, parting

    def _get_websocket(self, guild_id: int | None = None, *, shard_id: int | None = None) -> DiscordWebSocket:
        """The socket that serves a guild, through which one enters and leaves voice channels."""
        number = shard_id if shard_id is not None else ((guild_id or 0) >> 22) % max(1, len(self._shards))
        socket = self._shards[number].ws if self._shards else None
        return self.ws if socket is None else socket

    def dispatch(self, event: str, /, *given: Any, **options: Any) -> None:
        """Pass on the few events that matter here, at once."""
        match event, given:
            case "connect", _:
                self._heard("connected", None)
            case "shard_resumed", (int() as number,):
                for shard in self._shards[number : number + 1]:
                    shard.short.reset()
            case "shard_ready", _:
                self._heard("ready", None)
            case "guild_available" | "guild_join", (Guild() as guild,):
                self._heard("guild", guild)
                if self._parting is not None:
                    self.moved(guild.id)  # people may have come or gone while nobody told
            case "guild_channel_delete" | "raw_thread_delete", (place,):
                self._heard("gone", str(getattr(place, "thread_id", None) or place.id))
            case "guild_remove", (Guild() as guild,):
                for channel in (*guild.channels, *guild.threads):
                    self._heard("gone", str(channel.id))

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Nothing to wait for: the loop below makes its own pauses."""

    # -- calls ------------------------------------------------------------------------------

    @property
    def calls(self) -> ApiClient:
        """The client of the API. Its session begins with `opened`."""
        return cast(ApiClient, self.http)

    async def opened(self) -> ApiClient:
        """The calls, once Discord knows who asks. Raises what the library raises."""
        async with self._opening:
            if not self._open:
                try:
                    await self.login(self._token)
                except BaseException:
                    await self.http.close()
                    self.http.connector = MISSING
                    raise
                self._open = True
        return self.calls

    async def setup_hook(self) -> None:
        """The portal says whether the bot may read every text: to ask for more would end the connection."""
        flags = self.application.flags if self.application is not None else self.application_flags
        self._wished.message_content = _shows_content(flags)
        self._looked_at = self._clock.monotonic()
        if self._needs_content and not self._wished.message_content:
            log.warning("message_content_missing", turn_it_on_at=_INTENTS_PAGE)

    @property
    def reads_everything(self) -> bool:
        """Whether the bot receives texts that do not name it."""
        return self._wished.message_content

    async def _is_switched_on(self, shard: _Shard) -> bool:
        """Whether the portal lets the bot read every text by now, which it did not. Looked up now and then."""
        if self.reads_everything:
            return not shard.content
        if self._clock.monotonic() - self._looked_at < _LOOK_EVERY:
            return False
        self._looked_at = self._clock.monotonic()
        with suppress(*failures.Foreign):
            async with self._clock.limit(_LOOK_SECONDS):
                flags = (await self.calls.application_info()).get("flags", 0)
            self._wished.message_content = _shows_content(ApplicationFlags._from_value(flags))
        return self.reads_everything

    def forums(self) -> list[ForumChannel]:
        """The forums of all guilds."""
        return [forum for guild in self.guilds for forum in guild.forums]

    def knows_thread(self, data: Mapping[str, Any]) -> bool:
        """Add a thread that nobody uses at present to what is known; False if it is none, or its guild is not known.
        `data`: of https://discord.com/developers/docs/resources/channel#channel-object."""
        guild = self.get_guild(int(data.get("guild_id") or 0))
        if guild is None or data["type"] not in _THREADS:
            return False
        guild._add_thread(Thread(guild=guild, state=self._connection, data=cast(Any, data)))
        return True

    # -- the socket -------------------------------------------------------------------------

    async def keep(self) -> None:
        """Keep connected until cancelled. Raises AdapterError where only another configuration helps."""
        count = self._wanted or 1
        while True:
            state = cast(_State, self._connection)
            state.shard_count, state.shard_ids = count, range(count)
            self._shards = [_Shard(number) for number in range(count)]
            crew = Crew()
            for shard in self._shards:
                crew.start(self._keep(shard))
            try:
                await crew.work()
            except _MoreShards as more:
                count = more.count
                log.info("discord_shards", count=count)

    async def _keep(self, shard: _Shard) -> None:
        how: dict[str, Any] = {"initial": True}
        try:
            while True:
                how, wait = await self._once(shard, how)
                if shard.connected_at is None:
                    self.lost()
                shard.connected_at = self.connected_at = None
                await self._hang_up(shard)
                if wait:
                    await self._clock.sleep(wait)
        finally:
            shard.connected_at = self.connected_at = None
            if self._parting is not None:
                await self._parting()
            await self._hang_up(shard, code=1000)

    def lost(self) -> None:
        """An attempt to reach Discord has failed."""
        if self.unreached_since is None:
            self.unreached_since = self._clock.monotonic()

    async def _once(self, shard: _Shard, how: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """One connection, to its end. Gives how the next one is to begin, and the seconds before it."""
        try:
            await self._read(shard, how)
        except ReconnectWebSocket as error:
            wait = self._pause(shard)
            log.info("discord_reconnects", resumes=error.resume, again_in=wait)
            return (self._resumed(shard) if error.resume else {}), wait
        except TimeoutError:
            wait = self._pause(shard)
            log.warning("discord_silent", seconds=self._silence, again_in=wait)
            return self._resumed(shard), wait
        except ConnectionClosed as error:
            return {}, self._closed(shard, error.code)
        except failures.Foreign as error:
            if getattr(error, "status", 0) == 401:
                return {}, self._closed(shard, _UNKNOWN_TOKEN)
            wait = self._pause(shard)
            log.warning("discord_unreachable", error=str(failures.mapped(error)), again_in=wait)
            return self._resumed(shard), wait
        except failures.Unreadable as error:
            wait = shard.short.pause()
            log.warning("discord_unreadable", error=repr(error), again_in=wait)
            return {}, wait
        raise AssertionError("a connection ends with an error")

    async def _read(self, shard: _Shard, how: dict[str, Any]) -> None:
        if "resume" not in how:
            how = {**how, "gateway": await self._gateway()}
            await self._may_begin()
            shard.content = self.reads_everything
        async with self._clock.limit(_HANDSHAKE_SECONDS):
            self.ws = shard.ws = await DiscordWebSocket.from_client(self, shard_id=shard.number, **how)
        async with self._clock.limit(self._silence) as limit:
            while True:
                await shard.ws.poll_event()
                limit.extend(self._silence)
                if shard.connected_at is None and shard.ws.session_id is not None:
                    await self._connected(shard, shard.ws)
                if await self._is_switched_on(shard):
                    log.info("message_content_on")
                    raise ReconnectWebSocket(shard.number, resume=False)

    async def _connected(self, shard: _Shard, socket: DiscordWebSocket) -> None:
        shard.connected_at = self._clock.now()
        if all(each.connected_at is not None for each in self._shards):
            self.connected_at = shard.connected_at
        self.unreached_since = None
        shard.long.reset()
        if self._status is not None:
            await socket.change_presence(activity=self._status, status="online")

    async def show_status(self, line: str) -> None:
        """Let people see this line below the bot's name from now on, also on connections to come; "": none."""
        self._status = _activity(line)
        for shard in self._shards:
            if shard.ws is not None and shard.connected_at is not None:
                with suppress(*failures.Foreign):  # the next connection begins with the line
                    await shard.ws.change_presence(activity=self._status, status="online")

    async def _may_begin(self) -> None:
        """Wait until Discord takes another new session of a bot that has several.
        https://discord.com/developers/docs/events/gateway#rate-limiting"""
        if len(self._shards) == 1:
            return
        async with self._beginning:
            if (wait := self._begun_at + _BETWEEN - self._clock.monotonic()) > 0.0:
                await self._clock.sleep(wait)
            self._begun_at = self._clock.monotonic()

    def _pause(self, shard: _Shard) -> float:
        """The seconds before the next connection: none after one that was good for a while."""
        if shard.connected_at is None or self._clock.now() - shard.connected_at < _GOOD_AFTER:
            return shard.short.pause()
        shard.short.reset()
        return 0.0

    def _resumed(self, shard: _Shard) -> dict[str, Any]:
        socket = shard.ws
        if socket is None or socket.session_id is None:
            return {}
        return {"gateway": socket.gateway, "resume": True, "session": socket.session_id, "sequence": socket.sequence}

    def _closed(self, shard: _Shard, code: int) -> float:
        """The seconds to wait after the gateway hung up for a reason."""
        if code in _SHARDS:
            raise AdapterError(
                f"This bot is in too many servers for {self._connection.shard_count} connections to Discord. Set "
                "adapters.discord.shards to auto."
            )
        if code == _UNKNOWN_TOKEN:
            wait = shard.long.pause()
            log.error("discord_token_unknown", what_to_do=failures.UNKNOWN_TOKEN, again_in=wait)
        elif code in _REFUSED_INTENTS:
            self._wished.message_content = False
            self._looked_at = self._clock.monotonic()
            wait = shard.short.pause()
            log.error("discord_intent_missing", intent="Message Content", turn_it_on_at=_INTENTS_PAGE, again_in=wait)
        else:
            wait = self._pause(shard)
            log.warning("discord_closed", code=code, again_in=wait)
        return wait

    async def _gateway(self) -> yarl.URL:
        """The address for a new session, once one may begin: Discord takes the token from a bot that begins too many.
        https://discord.com/developers/docs/events/gateway#session-start-limit-object"""
        while True:
            told = await self.calls.request(Route("GET", "/gateway/bot"))
            if self._wanted is None and (advised := int(told.get("shards") or 1)) > len(self._shards):
                raise _MoreShards(advised)
            limit = told.get("session_start_limit") or {}
            if limit.get("remaining", 1) > 0:
                return yarl.URL(told["url"])
            wait = max(1.0, limit["reset_after"] / 1000)
            log.error("discord_sessions_used_up", a_day=limit.get("total"), again_in=wait)
            await self._clock.sleep(wait)

    async def _hang_up(self, shard: _Shard, code: int = 4000) -> None:
        """A peer that is gone acknowledges no goodbye."""
        socket = shard.ws
        if socket is not None:
            with suppress(TimeoutError, *failures.Foreign):
                async with self._clock.limit(CLOSING_SECONDS):
                    await socket.close(code)

    async def hang_up(self) -> None:
        """Let go of everything. Idempotent."""
        self._open = False
        await self.close()


def _activity(line: str) -> CustomActivity | None:
    return CustomActivity(name=line) if line else None


def _shows_content(flags: ApplicationFlags) -> bool:
    return flags.gateway_message_content or flags.gateway_message_content_limited
