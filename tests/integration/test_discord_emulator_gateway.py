"""The emulator's gateway with discord.py: intents, sessions that break and go on, and everything that can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from unittest.mock import patch

import discord
import pytest
from discord.backoff import ExponentialBackoff

from tests.emulators.discord import (
    Channel,
    Disconnect,
    DiscordServer,
    Drop,
    Intent,
    InvalidSession,
    Kind,
    Reconnect,
    Refuse,
    Settings,
    Silence,
    User,
)
from tests.emulators.discord.disturbing import Mishap
from tests.support.discord_client import client_of, connected
from tests.support.fakes import ManualClock

WITHOUT_CONTENT = ~int(Intent.MESSAGE_CONTENT) & ((1 << 17) - 1)


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_backoff() -> Iterator[None]:
    """discord.py tries again at once."""
    with patch.object(ExponentialBackoff, "delay", lambda self: 0.0):
        yield


def _count(server: DiscordServer, name: str) -> int:
    return len(list(server.journal.of(name)))


async def test_without_the_intent_only_what_is_meant_for_the_bot_can_be_read(anna: User) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with DiscordServer(Settings(identify_every=0, allowed_intents=WITHOUT_CONTENT), limits=None) as server:
        person = server.people.person("Bert")
        place = server.people.general(server.people.guild("Band", person))
        async with connected(server, client_of(heard, content=False)) as client:
            for channel, text in ((place, "hidden"), (place, "@Legato seen"), (server.people.direct(person), "seen")):
                server.people.say(channel, person, text)
            read = [(await heard.get()).content for _ in range(3)]
            assert read == ["", f"<@{server.bot.id}> seen", "seen"]
            past = [message.content async for message in client.get_partial_messageable(place.id).history()]
            assert past == [f"<@{server.bot.id}> seen", ""]


async def test_an_intent_that_the_portal_does_not_allow_ends_the_client() -> None:
    async with DiscordServer(Settings(allowed_intents=WITHOUT_CONTENT), limits=None) as server:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with connected(server, client_of()):
                pass


async def test_a_wrong_token_is_refused(server: DiscordServer) -> None:
    with pytest.raises(discord.LoginFailure):
        async with connected(server, client_of(), token="wrong"):
            pass


@pytest.mark.parametrize(
    ("fault", "where", "resumed"),
    [
        (Drop(), "send MESSAGE_CREATE", True),
        (Drop(after=True), "send MESSAGE_CREATE", True),
        (Drop(code=4000), "send MESSAGE_CREATE", True),
        (Drop(code=4009), "send MESSAGE_CREATE", True),
        (Reconnect(), "send MESSAGE_CREATE", True),
        (InvalidSession(resumable=True), "send MESSAGE_CREATE", True),
        (InvalidSession(), "send MESSAGE_CREATE", False),
    ],
)
async def test_a_session_that_breaks_goes_on_with_what_was_missed(
    server: DiscordServer, anna: User, place: Channel, fault: Mishap, where: str, resumed: bool
) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)):
        server.frames.add(fault, method=where, nth=2)
        for number in range(4):
            server.people.say(place, anna, str(number))
        if resumed:
            assert [(await heard.get()).content for _ in range(4)] == ["0", "1", "2", "3"]
            await server.until(lambda: _count(server, "send RESUMED"))
            assert _count(server, "receive IDENTIFY") == 1
        else:
            await server.until(lambda: _count(server, "receive IDENTIFY") == 2 and server.connected)
            server.people.say(place, anna, "new")
            seen = [""]
            while seen[-1] != "new":
                seen.append((await heard.get()).content)
            assert "3" not in seen, "a session that is gone is not replayed"


@pytest.mark.parametrize(
    "fault", [(Refuse(status=502), "GET /gateway/"), (Disconnect(), "GET /gateway/"), (Drop(), "send HELLO")]
)
async def test_a_first_handshake_that_fails_ends_discord_py(
    server: DiscordServer, place: Channel, fault: tuple[Mishap, str]
) -> None:
    """https://github.com/Rapptz/discord.py/issues/10520: whoever uses discord.py starts it again."""
    trouble, where = fault
    (server.frames if where.startswith("send") else server.faults).add(trouble, method=where, times=2)
    with pytest.raises(AttributeError):
        async with connected(server, client_of()):
            pass


@pytest.mark.parametrize(
    "where",
    [
        "GET /gateway/",
        "send HELLO",
        "receive HEARTBEAT",
        "receive RESUME",
        "send RESUMED",
        "receive IDENTIFY",
        "send READY",
    ],
)
async def test_a_connection_that_breaks_at_its_beginning_is_made_again(
    server: DiscordServer, anna: User, place: Channel, where: str
) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)):
        if where.startswith("GET"):
            server.faults.add(Refuse(status=502), method=where)
        else:
            server.frames.add(Drop(), method=where)
        if where in ("receive IDENTIFY", "send READY"):
            server.invalidate()
        else:
            server.close(0)
        await server.until(lambda: _recovered(server))
        server.people.say(place, anna, "Here?")
        assert (await heard.get()).content == "Here?"


def _recovered(server: DiscordServer) -> bool:
    """Something broke, and a session began or went on afterwards."""
    broken = [call.number for call in server.journal.calls if call.fault]
    begun = [
        call.number for call in server.journal.calls if call.method in ("send READY", "send RESUMED") and call.done
    ]
    return bool(broken) and begun[-1] > broken[-1]


async def test_a_zombie_is_noticed_by_its_silence(server: DiscordServer, anna: User, place: Channel) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    client = client_of(heard, silence=0.05)
    async with connected(server, client):
        server.frames.add(Silence(), method="send MESSAGE_CREATE")
        server.people.say(place, anna, "Anybody there?")
        assert (await heard.get()).content == "Anybody there?", "replayed after the resume"
        assert _count(server, "receive RESUME")


async def test_sessions_that_begin_too_fast_are_refused(clock: ManualClock) -> None:
    async with DiscordServer(clock=clock, limits=None) as server, connected(server, client_of()):
        server.invalidate()
        await server.until(lambda: server.violations)
        assert {each.text for each in server.violations} == {"Sessions begin too fast."}
        clock._elapsed += 5.0  # nothing else waits for it, and a client that comes again and again never rests
        await server.until(lambda: server.connected)


async def test_a_guild_of_ten_thousand_channels_is_seen(server: DiscordServer, anna: User) -> None:
    guild = server.people.guild("Crowd", anna)
    for number in range(10_000):
        server.cloud.add_channel(Kind.TEXT, f"c{number}", guild)
    async with connected(server, client_of()) as client:
        (seen,) = client.guilds
        assert len(seen.channels) == 10_001


async def test_a_lost_guild_is_told(server: DiscordServer, anna: User, place: Channel) -> None:
    assert place.guild is not None
    told: asyncio.Queue[str] = asyncio.Queue()
    client = client_of()
    for name in ("guild_remove", "guild_unavailable", "guild_available", "guild_channel_delete"):
        client.event(_teller(name, told))
    async with connected(server, client):
        while not told.empty():
            told.get_nowait()
        server.people.outage(place.guild)
        assert await told.get() == "guild_unavailable"
        server.people.outage(place.guild, over=True)
        assert await told.get() == "guild_available"
        server.people.delete_channel(server.people.channel(place.guild, "short"))
        assert await told.get() == "guild_channel_delete"
        server.people.kick_bot(place.guild)
        assert await told.get() == "guild_remove"


def _teller(name: str, told: asyncio.Queue[str]):  # type: ignore[no-untyped-def]  # what discord.py asks for
    async def tell(_: object) -> None:
        told.put_nowait(name)

    tell.__name__ = f"on_{name}"
    return tell
