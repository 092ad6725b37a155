"""Troubles with Discord: each ends in a line, a pause and a recovery."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.discord.permissions import LOCKED, TOLD
from gateway.runtime.clock import SystemClock
from tests.emulators.discord import (
    Channel,
    Disconnect,
    DiscordServer,
    Intent,
    LoseAnswer,
    Permission,
    RateLimit,
    Refuse,
    Settings,
    User,
)
from tests.support.discord_live import careless, on_discord
from tests.support.fast_clock import FastClock
from tests.support.model import PATIENCE, FakeModel, Gate, Say, in_turn
from tests.support.waiting import eventually

POST = "POST /channels/{channel}/messages"
CALLBACK = "POST /interactions/{interaction}/{token}/callback"
TYPING = "POST /channels/{channel}/typing"


class Hasty(SystemClock):
    """Pauses take a hundredth of their time."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


@pytest.fixture
async def discord(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    monkeypatch.setattr("adapters.discord.interactions._FIRST_WORD", PATIENCE)
    async with DiscordServer(Settings(identify_every=0, acknowledge=PATIENCE), limits=None) as running:
        yield running
        assert list(careless(running)) == []


def live(folder: Path, discord: DiscordServer, anna: User, **options: Any) -> Any:
    return on_discord(folder, discord, anna, **{"clock": Hasty(), "rules": {"quoted": 0}, **options})


# -- the socket -----------------------------------------------------------------------------


async def test_the_first_handshake_may_fail(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    discord.faults.add(Refuse(status=502), method="GET /gateway/", times=3)
    async with live(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")


async def test_discord_may_be_away_at_the_start(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    discord.faults.add(Disconnect(done=False), method="GET /users/@me", times=4)
    discord.faults.add(Refuse(status=503), method="GET /gateway/bot", times=2)
    async with live(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")


@pytest.mark.parametrize("code", [0, 1000, 1001, 4000, 4003, 4007, 4009])
async def test_a_connection_that_ends_is_made_again(
    tmp_path: Path, discord: DiscordServer, anna: User, code: int
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        discord.close(code)
        bot.says("There?")
        await bot.until_shown("echo: Hello", "echo: There?")


async def test_a_zombie_is_replaced(tmp_path: Path) -> None:
    async with DiscordServer(Settings(identify_every=0, heartbeat=0.5), limits=None) as discord:
        anna = discord.people.person("Anna")
        async with live(tmp_path, discord, anna, silence=1.2) as bot:
            bot.says("Hello")
            await bot.until_shown("echo: Hello")
            discord.silence()
            bot.says("There?")
            await bot.until_shown("echo: Hello", "echo: There?")


async def test_discord_may_ask_to_come_again(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with live(tmp_path, discord, anna) as bot:
        discord.reconnect()
        bot.says("There?")
        await bot.until_shown("echo: There?")
        assert not [each for each in discord.violations if "GET" not in str(each)]


async def test_an_intent_that_is_off_costs_nothing_but_what_it_brings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(identify_every=0, allowed_intents=Settings().allowed_intents & ~Intent.MESSAGE_CONTENT)
    async with DiscordServer(settings, limits=None) as discord:
        anna = discord.people.person("Anna")
        place = discord.people.general(discord.people.guild("Choir", anna))
        async with live(tmp_path, discord, anna, rules={"free": (str(place.id),), "quoted": 0}) as bot:
            bot.says("nobody can read this", place)
            bot.says("@Legato this is for you", place)
            await bot.until_shown("echo: this is for you", chat=place)
            bot.says("Hello")
            await bot.until_shown("echo: Hello")
        assert not discord.violations
    told = capsys.readouterr().out
    assert "message_content_missing" in told
    assert "discord.com/developers/applications, page Bot" in told


async def test_after_each_resumption_the_next_pause_is_short_again(
    tmp_path: Path, discord: DiscordServer, anna: User, capsys: pytest.CaptureFixture[str]
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        for number in range(6):
            bot.says(str(number))
            await bot.until_shown(*(f"echo: {each}" for each in range(number + 1)))
            discord.reconnect()
            await eventually(lambda most=number: len(list(discord.journal.of("receive RESUME"))) > most)
            await eventually(lambda: discord.connected)
    pauses = re.findall(r"discord_reconnects +again_in=([\d.]+)", capsys.readouterr().out)
    assert pauses == ["1.0"] * 6


async def test_no_more_sessions_are_begun_than_discord_allows(tmp_path: Path) -> None:
    settings = Settings(identify_every=0, sessions_a_day=1, sessions_reset=60.0)
    async with DiscordServer(settings, limits=None) as discord:
        anna = discord.people.person("Anna")
        async with live(tmp_path, discord, anna) as bot:
            bot.says("Hello")
            await bot.until_shown("echo: Hello")
            with capture_logs() as logs:
                discord.invalidate()
                bot.says("There?")
                await eventually(lambda: [each for each in logs if each["event"] == "discord_sessions_used_up"])
            discord.cloud.starts.begin_day()
            await bot.until_shown("echo: Hello", "echo: There?")
        assert not discord.violations


async def test_an_intent_that_is_switched_on_again_is_used_without_a_restart(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.discord.connection._LOOK_EVERY", 0.0)
    everything = discord.settings.allowed_intents
    async with live(tmp_path, discord, anna, rules={"free": (str(place.id),), "quoted": 0}) as bot:
        bot.says("one", place)
        await bot.until_shown("echo: one", chat=place)
        bot.says("Hi")
        await bot.until_shown("echo: Hi")
        discord.allow(everything & ~Intent.MESSAGE_CONTENT)
        discord.close(4014)
        await eventually(lambda: not discord.connected)
        await eventually(lambda: discord.connected)
        bot.says("nobody can read this", place)
        discord.allow(everything)
        bot.says("Hello")
        await bot.until_shown("echo: Hi", "echo: Hello")
        await eventually(lambda: len(list(discord.journal.of("receive IDENTIFY"))) > 2)
        bot.says("two", place)
        await bot.until(lambda: bot.shown(place)[-1] == "echo: two")


@pytest.mark.parametrize(("code", "line"), [(4014, "discord_intent_missing"), (4004, "discord_token_unknown")])
async def test_a_refusal_is_told_and_tried_again(
    tmp_path: Path, discord: DiscordServer, anna: User, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        discord.close(code)
        await eventually(lambda: not discord.connected)
        bot.says("There?")
        await bot.until_shown("echo: Hello", "echo: There?")
    assert line in capsys.readouterr().out


async def test_a_wrong_token_ends_the_program_with_a_sentence(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    async with live(tmp_path, discord, anna, connected=False, token=f"{discord.token}x") as bot:
        await bot.until_ended()
        assert bot.gateway.readers.failure is not None
        assert bot.gateway.readers.failure.startswith(
            "Discord does not know this bot's token. Reset the token at https://"
        )


# -- sending --------------------------------------------------------------------------------


async def test_a_lost_answer_is_no_second_message(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with live(tmp_path, discord, anna, patience=1.2) as bot:
        discord.faults.add(LoseAnswer(), method=POST)
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        await bot.quiet()
        assert bot.shown() == ["echo: Hello"]


async def test_a_lost_answer_is_found_when_its_nonce_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.discord.adapter._NONCE_SECONDS", 0.0)
    async with DiscordServer(Settings(identify_every=0, nonces=0.0), limits=None) as discord:
        anna = discord.people.person("Anna")
        async with live(tmp_path, discord, anna, patience=1.2) as bot:
            discord.faults.add(LoseAnswer(), method=POST)
            bot.says("Hello")
            await bot.until_shown("echo: Hello")
            await bot.quiet()
            assert bot.shown() == ["echo: Hello"]
            discord.faults.add(LoseAnswer(), method=POST)
            bot.says("Hello")  # another message that says the same is not taken for the first
            await bot.until_shown("echo: Hello", "echo: Hello")
            await bot.quiet()
            assert bot.shown() == ["echo: Hello", "echo: Hello"]


@pytest.mark.parametrize("via", [True, False])
async def test_a_pause_that_discord_asks_for_is_kept(
    tmp_path: Path, discord: DiscordServer, anna: User, via: bool
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        discord.faults.add(RateLimit(seconds=0.05, via=via), method=POST)
        bot.says("Hello")
        await bot.until_shown("echo: Hello")


@pytest.mark.parametrize("seconds", [15.0, 35.0])  # waited for, and put off
async def test_a_pause_for_all_is_kept_by_all_but_interactions(tmp_path: Path, seconds: float) -> None:
    gate, clock = Gate(), FastClock(pace=20.0)
    async with DiscordServer(Settings(identify_every=0), limits=None, clock=clock) as discord:
        anna = discord.people.person("Anna")
        guild = discord.people.guild("Choir", anna)
        places = [discord.people.channel(guild, f"room-{number}") for number in range(5)]
        said = in_turn(Say(text="Here.", gate=gate), *[Say(text=f"In {place.name}.") for place in places])
        async with live(tmp_path, discord, anna, model=FakeModel(said), clock=clock) as bot:
            await bot.until(lambda: "status" in discord.people.commands(bot.chat))
            discord.faults.add(RateLimit(seconds=seconds, scope="global"), method=TYPING)
            bot.says("Hello")
            await gate.until_waiting()
            await bot.until(lambda: refused(discord))
            gate.open()  # the answer ends "typing…", whose call was told of the pause
            for place in places:
                bot.says("@Legato Hello", place)
            discord.people.command(bot.chat, anna, "status")
            await bot.until(lambda: all(discord.shown(place) for place in places) and "Here." in bot.shown())
            posted = [call.number for call in discord.journal.of(POST)]
            (answered,) = (call.number for call in discord.journal.of(CALLBACK))
            assert answered < min(posted), "interactions are exempt"
            assert len(refused(discord)) == 1, "what is not waits"


def refused(discord: DiscordServer) -> list[Any]:
    return [call for call in discord.journal.calls if call.status == 429]


async def test_a_channel_where_it_may_not_write_is_left_alone(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        discord.people.forbid(place, Permission.SEND_MESSAGES)
        bot.says("@Legato Hello", place)
        await eventually(lambda: "may not write in this channel" in capsys.readouterr().out)
        await bot.until_shown(TOLD.format(channel=place.id))  # in a direct message
        await bot.quiet()
        discord.people.permit(place, Permission.SEND_MESSAGES)
        bot.says("@Legato again", place)
        await bot.until_shown("echo: again", chat=place)


async def test_who_asks_in_a_locked_thread_is_told_and_gets_the_answer_when_it_is_open(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        thread = discord.people.thread(place, anna, "Songs")
        thread.locked = True
        bot.says("@Legato Hello", thread)
        await bot.until_shown(LOCKED.format(channel=thread.id))  # in a direct message
        await bot.quiet()
        thread.locked = False
        bot.says("@Legato again", thread)
        told = "I could not show 1 answer here. /last shows them."
        await bot.until(lambda: set(bot.shown(thread)) == {told, "echo: [Anna] again"})


async def test_a_channel_that_is_deleted_ends_nothing_else(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with live(tmp_path, discord, anna) as bot:
        bot.says("@Legato Hello", place)
        discord.people.delete_channel(place)
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        await bot.quiet()


async def test_a_person_who_blocks_the_bot_is_left_alone(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with live(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        discord.people.block(anna)
        await bot.quiet()
        discord.people.block(anna, blocked=False)
        bot.says("Again")
        await bot.until(lambda: bot.shown()[-1:] == ["echo: Again"])
