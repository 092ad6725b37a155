"""Everything behind the server's door, in one place: what routes, people and the gateway work on."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gateway.runtime.clock import Clock
from tests.emulators.discord.buckets import Buckets, Limits
from tests.emulators.discord.disturbing import Mishap
from tests.emulators.discord.files import Files
from tests.emulators.discord.intents import KNOWN, Intent
from tests.emulators.discord.interactions import Interactions
from tests.emulators.discord.sessions import Op, Session
from tests.emulators.discord.snowflakes import Snowflakes
from tests.emulators.discord.views import message_json
from tests.emulators.discord.world import Channel, Guild, Kind, Member, Message, User, everybody
from tests.emulators.faults import Faults
from tests.emulators.journal import Journal

_ALL_INTENTS: Final = KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that may differ from bot to bot and from test to test.

    `allowed_intents`: those that are switched on for the bot in Discord's portal. `heartbeat`: seconds between two
    heartbeats, of the machine's time. `identify_every`: seconds that lie between two sessions (0: any number at
    once). `sessions_a_day`: how many may begin in `sessions_reset` seconds. `shards`: the connections that a bot
    needs. `kept`, `buffer`: how long a session without connection lives, and how many events of it. `nonces`:
    seconds for which a nonce is remembered; Discord says "the past few minutes". `acknowledge`: seconds in which an
    interaction must be answered first; `token_life`: seconds for which its token holds. `creates_a_day`: of
    commands. `link_life`: seconds for which the link of a file holds. `edits_of_old`: how many edits an hour a
    message older than an hour takes; Discord does not publish the number.
    """

    token: str = "NDI0MjQyNDI0MjQyNDI0MjQy.EMULAT.and_opens_nothing_anywhere_at_all"
    bot_name: str = "Legato"
    allowed_intents: int = _ALL_INTENTS
    heartbeat: float = 41.25
    identify_every: float = 5.0
    sessions_a_day: int = 1000
    shards: int = 1
    sessions_reset: float = 86_400.0
    kept: float = 90.0
    buffer: int = 10_000
    nonces: float = 180.0
    acknowledge: float = 3.0
    token_life: float = 900.0
    creates_a_day: int = 200
    link_life: float = 86_400.0
    edits_of_old: int = 5

    @property
    def bot_id(self) -> int:
        """The bot's id, with which its token begins."""
        return int(base64.urlsafe_b64decode(self.token.partition(".")[0]))


class Starts:
    """Counts the sessions that begin."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock, self._settings = clock, settings
        self._times: deque[float] = deque()

    @property
    def left(self) -> int:
        """Return how many more sessions may begin today."""
        while self._times and self._times[0] <= self._clock.monotonic() - self._settings.sessions_reset:
            self._times.popleft()
        return self._settings.sessions_a_day - len(self._times)

    @property
    def reset_after(self) -> float:
        """Return the seconds until one more may begin than now."""
        return max(0.0, self._times[0] + self._settings.sessions_reset - self._clock.monotonic()) if self._times else 0

    def begin_day(self) -> None:
        """Let as many begin as on a new day."""
        self._times.clear()

    def take(self) -> bool:
        """Say whether one may begin now."""
        now = self._clock.monotonic()
        if self.left <= 0 or (self._times and now - self._times[-1] < self._settings.identify_every):
            return False
        self._times.append(now)
        return True


@dataclass(slots=True)
class Registered:
    """The commands of one scope (0: everywhere; else a guild), and when commands were made there."""

    commands: dict[int, dict[str, Any]] = field(default_factory=dict)
    made: deque[float] = field(default_factory=deque)


class Closable(Protocol):
    """A connection of the gateway."""

    def close(self, code: int) -> None: ...

    def send(self, op: Op, data: Any = None) -> None: ...

    def silence(self) -> None: ...


class VoiceServers(Protocol):
    """Discord's voice servers, where a test has some."""

    def asked(self, data: dict[str, Any]) -> None: ...


@dataclass(slots=True, kw_only=True)
class Cloud:
    """The state of one emulated Discord."""

    settings: Settings
    clock: Clock
    ids: Snowflakes
    bot: User
    application: int
    buckets: Buckets
    files: Files
    journal: Journal
    faults: Faults[Mishap]
    frames: Faults[Mishap] = field(default_factory=Faults)
    users: dict[int, User] = field(default_factory=dict)
    guilds: dict[int, Guild] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    nonces: dict[tuple[int, str], tuple[float, Message]] = field(default_factory=dict)
    connections: set[Closable] = field(default_factory=set)
    old_edits: dict[int, deque[float]] = field(default_factory=dict)  # channel → when old messages were edited
    starts: Starts
    owner: User
    stickers: dict[str, bytes] = field(default_factory=dict)  # pictures, by the names of their files
    commands: dict[int, Registered] = field(default_factory=dict)  # scope → its commands
    interactions: Interactions = field(init=False)
    gateway_url: str = ""
    voice: VoiceServers | None = None

    def __post_init__(self) -> None:
        self.interactions = Interactions(self)

    @classmethod
    def make(cls, settings: Settings, clock: Clock, limits: Limits | None, *, keep: int) -> Cloud:
        """An empty one, with only the bot in it."""
        ids = Snowflakes(clock)
        bot = User(id=settings.bot_id, name=settings.bot_name, bot=True)
        journal = Journal(clock, keep=keep)
        cloud = cls(
            settings=settings,
            clock=clock,
            ids=ids,
            bot=bot,
            application=bot.id,
            buckets=Buckets(clock, limits),
            files=Files(clock, settings.link_life),
            journal=journal,
            faults=Faults(),
            starts=Starts(clock, settings),
            owner=User(id=ids.new(), name="owner", display="Owner"),
        )
        cloud.users |= {bot.id: bot, cloud.owner.id: cloud.owner}
        return cloud

    @property
    def application_flags(self) -> int:
        """Return the intents that the portal allows, as flags of the application.
        https://discord.com/developers/docs/resources/application#application-object-application-flags"""
        allowed = self.settings.allowed_intents
        flags = ((Intent.GUILD_PRESENCES, 1 << 13), (Intent.GUILD_MEMBERS, 1 << 15), (Intent.MESSAGE_CONTENT, 1 << 19))
        return sum(flag for intent, flag in flags if allowed & intent)

    # -- making things -----------------------------------------------------------------------------

    def add_user(self, name: str, *, display: str = "", bot: bool = False) -> User:
        """Somebody new."""
        user = User(id=self.ids.new(), name=name, display=display, bot=bot)
        self.users[user.id] = user
        return user

    def add_guild(self, name: str, owner: User, *, tier: int = 0) -> Guild:
        """A guild with its owner alone, and nobody told."""
        guild = Guild(id=self.ids.new(), name=name, owner=owner, tier=tier)
        guild.roles[guild.id] = everybody(guild.id)
        self.guilds[guild.id] = guild
        self.join(guild, owner)
        return guild

    def join(self, guild: Guild, user: User) -> Member:
        """Somebody is in a guild from now on, and nobody is told."""
        return guild.members.setdefault(user.id, Member(user=user, joined=self.clock.now()))

    def add_channel(self, kind: Kind, name: str, guild: Guild, **details: Any) -> Channel:
        """A channel or thread of a guild, and nobody told. `details`: other fields of `Channel`."""
        channel = Channel(id=details.pop("id", None) or self.ids.new(), kind=kind, name=name, guild=guild, **details)
        guild.channels[channel.id] = self.channels[channel.id] = channel
        return channel

    def direct(self, user: User) -> Channel:
        """The one DM of the bot with somebody."""
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        channel = Channel(id=self.ids.new(), kind=Kind.DM, recipient=user)
        self.channels[channel.id] = channel
        return channel

    # -- telling the bot ---------------------------------------------------------------------------

    def tell(self, event: str, data: dict[str, Any], *, guild: Guild | None, channel: Channel | None = None) -> None:
        """Dispatch an event to every session, if the bot may see its channel."""
        if guild is not None and self.bot.id not in guild.members:
            return
        if channel is not None and not channel.seen_by(self.bot):
            return
        for session in self.sessions_for(guild):
            session.tell(event, data, in_guild=guild is not None)
        self.journal.changed()

    def sessions_for(self, guild: Guild | None) -> list[Session]:
        """Those that are told of a guild, or of direct messages: those of its shard, or of the first one.
        https://discord.com/developers/docs/events/gateway#sharding"""
        number = 0 if guild is None else guild.id >> 22
        return [each for each in self.sessions.values() if number % each.shard[1] == each.shard[0]]

    def tell_message(self, event: str, message: Message, **more: Any) -> None:
        """MESSAGE_CREATE or MESSAGE_UPDATE, for each session with what its intents let it see."""
        channel = message.channel
        guild = channel.guild
        if (guild is None or self.bot.id in guild.members) and channel.seen_by(self.bot):
            for session in self.sessions_for(guild):
                blank = not session.intents & Intent.MESSAGE_CONTENT
                data = message_json(self, message, blank=blank, event=True)
                session.tell(event, {**data, **more}, in_guild=guild is not None)
        self.journal.changed()

    def remove(self, *messages: Message) -> None:
        """Delete messages of a channel, and tell."""
        for message in messages:
            message.deleted = True
        channel, ids = messages[0].channel, [str(message.id) for message in messages]
        body: dict[str, Any] = {"channel_id": str(channel.id)} | ({"ids": ids} if ids[1:] else {"id": ids[0]})
        if channel.guild is not None:
            body["guild_id"] = str(channel.guild.id)
        event = "MESSAGE_DELETE_BULK" if ids[1:] else "MESSAGE_DELETE"
        self.tell(event, body, guild=channel.guild, channel=channel)

    def remove_channel(self, channel: Channel) -> None:
        """Delete a channel or thread with all its threads, and tell."""
        guild = channel.guild
        assert guild is not None
        event = "THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE"
        self.tell(event, channel.as_json(), guild=guild, channel=channel)
        for gone in [each for each in guild.channels.values() if each is channel or each.parent is channel]:
            gone.deleted = True
            del guild.channels[gone.id]

    def react(self, message: Message, user: User, emoji: str, *, gone: bool = False) -> None:
        """Put a reaction on a message or take it away, and tell."""
        users = message.reactions.setdefault(emoji, [])
        if (user.id in users) is not gone:
            return
        if gone:
            users.remove(user.id)
        else:
            users.append(user.id)
        if not users:
            del message.reactions[emoji]
        channel, guild = message.channel, message.channel.guild
        body: dict[str, Any] = {
            "user_id": str(user.id),
            "channel_id": str(channel.id),
            "message_id": str(message.id),
            "message_author_id": str(message.author.id),
            "emoji": {"id": None, "name": emoji},
            "burst": False,
            "type": 0,
        }
        if guild is not None:
            body |= {"guild_id": str(guild.id), "member": guild.members[user.id].as_json(with_user=True)}
        event = "MESSAGE_REACTION_REMOVE" if gone else "MESSAGE_REACTION_ADD"
        self.tell(event, body, guild=guild, channel=channel)

    def shown_to_bot(self, message: Message) -> dict[str, Any]:
        """A message as the bot gets it over HTTP, where the portal's switch for content counts."""
        blank = not self.settings.allowed_intents & Intent.MESSAGE_CONTENT
        return message_json(self, message, blank=blank)

    def guilds_of(self, user: User) -> Sequence[Guild]:
        """Return the guilds of a member."""
        return [guild for guild in self.guilds.values() if user.id in guild.members]
