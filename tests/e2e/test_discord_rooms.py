"""The bot in a voice channel of the emulated Discord: what is heard there is what is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.discord import rooms
from adapters.discord.platform import DiscordSettings
from gateway.agent.files.speech import SpeechSettings
from tests.emulators.discord import Channel, DiscordServer, Intent, Kind, User
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.voice import VoiceServer
from tests.emulators.media import MediaServer
from tests.emulators.transcription import opus_of
from tests.support.discord_live import ask, on_discord

pytestmark = pytest.mark.usefixtures("without_tls")
LEFT = "I left the voice channel."
IN_NONE = "I am not in a voice channel for this chat."


def sound(name: str, packets: int) -> list[bytes]:
    """Packets of 20 ms, each of which can be told from all others."""
    return [b"\xf8" + f"{name}{number}".encode() for number in range(packets)]


async def test_it_comes_says_its_answers_whole_is_silenced_and_leaves(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.guild is not None
    room = discord.people.channel(place.guild, "Choir", kind=Kind.VOICE)
    one, two, long, rest, last, moved = (sound(name, 8) for name in ("one", "two", "long", "rest", "last", "moved"))
    long *= 200
    async with MediaServer() as speaker, VoiceServer(discord) as voice:
        how: dict[str, Any] = {
            "rules": {"voice_channels": True, "quoted": 0},
            "speech": SpeechSettings(model="tts-1", base_url=speaker.url, when="asked"),
        }
        async with on_discord(tmp_path, discord, anna, **how) as bot:
            assert await ask(bot, place, "/voice join") == rooms.NOWHERE
            voice.enter(anna, room)
            discord.people.forbid(room, Permission.SPEAK, who=discord.bot)
            assert await ask(bot, place, "/voice join") == rooms.NO_RIGHT.format(name="Choir")
            discord.people.permit(room, Permission.SPEAK, who=discord.bot)
            assert (await ask(bot, place, "/voice join")).startswith("I have joined Choir,")
            assert voice.where(discord.bot) is room

            speaker.answers = [opus_of(one), opus_of(two)]
            assert await ask(bot, place, "one") == "echo: one"
            assert await ask(bot, place, "two") == "echo: two"
            await bot.until(lambda: len(voice.heard) == len(one + two))
            bot.says("in a chat of two it only writes")
            await bot.until_shown("echo: in a chat of two it only writes")

            speaker.answers = [opus_of(long), opus_of(rest), opus_of(last)]
            await ask(bot, place, "One two three. " * 30)
            await bot.until(lambda: long[3] in voice.heard)
            assert await ask(bot, place, "/stop") == "Stopping."
            assert await ask(bot, place, "/stop") == "Nothing is running."
            await ask(bot, place, "last")
            await bot.until(lambda: last[-1] in voice.heard)
            heard = [each for each in voice.heard if each not in long]
            assert heard == one + two + last
            assert len(voice.heard) < len(long)

            other = discord.people.channel(place.guild, "Attic", kind=Kind.VOICE)
            voice.enter(anna, other)
            assert (await ask(bot, place, "/voice join")).startswith("I have joined Attic,")
            speaker.answers = [opus_of(moved)]
            await ask(bot, place, "moved")
            await bot.until(lambda: moved[-1] in voice.heard)
            voice.enter(anna, room)

            assert await ask(bot, place, "/voice leave") == LEFT
            await bot.until(lambda: voice.where(discord.bot) is None and not voice.sockets)
            assert await ask(bot, place, "/voice leave") == IN_NONE
            said = len(speaker.said)
            await ask(bot, place, "/voice join")
            voice.leave(discord.bot, place.guild)  # somebody throws it out
            await bot.until(lambda: not voice.sockets)
            await ask(bot, place, "thrown out")
            await ask(bot, place, "/voice join")

            voice.leave(anna, place.guild)
            voice.enter(anna, room)  # in time
            monkeypatch.setattr(rooms, "ALONE_SECONDS", 0.0)
            voice.leave(anna, place.guild)
            await bot.until(lambda: voice.where(discord.bot) is None)
            voice.enter(anna, room)
            await ask(bot, place, "/voice join")
        await discord.until(lambda: not voice.sockets)
        async with on_discord(tmp_path, discord, anna, **how) as bot:
            assert await ask(bot, place, "/voice leave") == IN_NONE
            await ask(bot, place, "after a restart it only writes")
            await bot.quiet()
        assert len(speaker.said) == said
        assert not any(each.attachments for each in discord.shown(place)), "what is heard is not shown, too"


async def test_what_it_says_is_sealed_from_end_to_end(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    room = discord.people.channel(place.guild, "Choir", kind=Kind.VOICE)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice:
        speech = SpeechSettings(model="tts-1", base_url=speaker.url, when="asked")
        rules = {"voice_channels": True, "quoted": 0}
        async with on_discord(tmp_path, discord, anna, rules=rules, speech=speech) as bot:
            voice.enter(anna, room)
            await ask(bot, place, "/voice join")
            await bot.until(lambda: voice.agreed)
            speaker.answers = [opus_of(sound("one", 8))]
            await ask(bot, place, "one")
            await bot.until(lambda: voice.heard == sound("one", 8))


async def test_without_the_setting_it_asks_for_nothing_and_comes_nowhere(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with MediaServer() as speaker:
        speech = SpeechSettings(model="tts-1", base_url=speaker.url, when="asked")
        async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}, speech=speech) as bot:
            assert (await ask(bot, place, "/voice join")).startswith("I cannot join a voice channel here")
            (session,) = discord.cloud.sessions.values()
            assert not session.intents & Intent.GUILD_VOICE_STATES


async def test_what_cannot_be_heard_there_is_told_or_shown(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.guild is not None
    room = discord.people.channel(place.guild, "Choir", kind=Kind.VOICE)
    async with MediaServer() as speaker, VoiceServer(discord) as voice:
        voice.enter(anna, room)  # before the bot is there
        rules = {"voice_channels": True, "quoted": 0}
        speech = SpeechSettings(model="tts-1", base_url=speaker.url, when="asked")
        async with on_discord(tmp_path, discord, anna, rules=rules, speech=speech) as bot:
            with monkeypatch.context() as hasty:
                hasty.setattr(rooms, "_JOIN_SECONDS", 0.3)
                voice.deaf = True
                assert await ask(bot, place, "/voice join") == rooms.UNREACHED.format(name="Choir")
            voice.deaf = False
            assert (await ask(bot, place, "/voice join")).startswith("I have joined Choir,")
            speaker.answers = [opus_of(sound("slow", 20), samples=2880)]
            await ask(bot, place, "hello")
            await bot.until(lambda: discord.shown(place)[-1].attachments)
            assert voice.heard == []
            bot.says("/voice join")
            await bot.until_shown(rooms.NO_SERVER)


def test_the_setting_names_the_extra_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = DiscordSettings(enabled=True, token=SecretStr("t"), voice_channels=True)
    assert [*settings.contradictions()] == []
    monkeypatch.setattr("adapters.discord.platform.find_spec", lambda name: None)
    ((where, told),) = settings.contradictions()
    assert where == ("voice_channels",)
    assert "pip install 'legato[voice]'" in told
