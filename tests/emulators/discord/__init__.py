"""A loopback Discord: its REST API, gateway and CDN, with guilds, channels, people, limits and moods behind them.

    async with DiscordServer(limits=Limits()) as discord:
        anna = discord.people.person("Anna")
        guild = discord.people.guild("Choir", anna)
        place = discord.people.general(guild)
        ...  # a bot connects: Route.BASE = discord.api_url, DiscordWebSocket.DEFAULT_GATEWAY = discord.gateway_url
        discord.people.say(place, anna, "@Legato Hello")
        await discord.until(lambda: discord.shown(place))
        assert not discord.violations

It was written from Discord's documentation, not from what any bot sends.
To try a bot by hand: `python -m tests.emulators discord`.

`server` takes requests; `routes` are those of the API, on the state in `cloud`; `access`, `posting`, `components` and
`mentions` are what Discord checks; `buckets` and `disturbing` say no for other reasons; `gateway` and `sessions` tell
the bot what happened; `people` makes it happen.
"""

from tests.emulators.discord.buckets import Limits
from tests.emulators.discord.cloud import Settings
from tests.emulators.discord.disturbing import Drop, InvalidSession, RateLimit, Reconnect, Silence
from tests.emulators.discord.intents import Intent
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.world import Channel, Guild, Kind, Message, User
from tests.emulators.faults import Disconnect, Flood, LoseAnswer, Refuse, Seeded, Slow

__all__ = [
    "Channel",
    "Disconnect",
    "DiscordServer",
    "Drop",
    "Flood",
    "Guild",
    "Intent",
    "InvalidSession",
    "Kind",
    "Limits",
    "LoseAnswer",
    "Message",
    "Permission",
    "RateLimit",
    "Reconnect",
    "Refuse",
    "Seeded",
    "Settings",
    "Silence",
    "Slow",
    "User",
]
