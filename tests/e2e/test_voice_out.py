"""Answers said aloud by a strict server: on Telegram, on Discord, on the page, and through crashes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.caps import Caps
from gateway.agent.files.speech import NO_BUDGET, SpeechSettings, TranscriptionSettings
from gateway.providers.plugin import ModelPrices
from gateway.runtime.points import Point
from gateway.store.port import Store
from gateway.turns.voice import NOT_SAID
from tests.e2e.test_forget import forget
from tests.emulators.discord import Channel, DiscordServer, User
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.posting import VOICE
from tests.emulators.llm_replies import Reply
from tests.emulators.media import ENDLESS, MP3, MediaServer, sound_of
from tests.emulators.telegram import Refuse
from tests.emulators.transcription import Refusal, TranscriptionServer, opus
from tests.support.discord_live import on_discord
from tests.support.gateway import Fetching, KillAt, config_in, running
from tests.support.model import PATIENCE
from tests.support.page import page
from tests.support.telegram_files import World
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server", "tests.support.telegram_files"]


@pytest.fixture
async def speaker() -> AsyncIterator[MediaServer]:
    async with MediaServer() as server:
        yield server
        assert server.violations == []


def by(speaker: MediaServer, **more: Any) -> SpeechSettings:
    return SpeechSettings(**{"model": "tts-1", "base_url": speaker.url, **more})


def voices(world: World) -> list[bytes]:
    """The voice messages in Anna's chat."""
    shown = [each.content for each in world.telegram.shown(world.telegram.people.private(world.anna))]
    ids = [each["voice"]["file_id"] for each in shown if "voice" in each]
    return [world.telegram.cloud.files.take("voice", each).content for each in ids]


async def test_who_speaks_is_answered_aloud_behind_the_text(world: World, speaker: MediaServer) -> None:
    async with TranscriptionServer("Hello there.") as scribe:
        hears = TranscriptionSettings(model="whisper-1", base_url=scribe.url)
        async with world.bot(transcription=hears, speech=by(speaker)) as bot:
            world.sends("voice", opus(1))
            await bot.until(lambda: voices(world))
            assert bot.shown()[:2] == ["🎙 “Hello there.”", "seen"]
            assert speaker.said == [("seen.", "alloy", "opus")]
            bot.says("and in writing?")
            await bot.until(lambda: bot.shown().count("seen") == 2)
            await bot.quiet()
            assert len(voices(world)) == 1


LONG = "One two three. " * 30 + "\n\n```python\nprint('unheard')\n```\nSee [the page](https://example.org/a/b?c=d)."


async def test_voice_messages_of_a_long_answer_begin_with_a_short_one_and_stand_behind_it_in_order(
    world: World, speaker: MediaServer
) -> None:
    world.model.reply = lambda body: Reply(text=LONG)
    async with world.bot(speech=by(speaker, when="always", max_chars=600)) as bot:
        bot.says("tell me")
        await bot.until(lambda: len(voices(world)) == 2)
        first, second = (text for text, *_ in speaker.said)
        assert len(first) < 200 < len(second)
        assert len(first) + len(second) <= 600
        assert voices(world) == [sound_of(text) for text in (first, second)]
        shown = world.telegram.shown(bot.chat)
        assert ["voice" in each.content for each in shown] == [False, True, True]
        assert shown[1].content["voice"]["duration"] == round(len(first) / 15)


async def test_a_chat_chooses_with_voice_on_and_off(world: World, speaker: MediaServer) -> None:
    async with world.bot(speech=by(speaker, when="asked")) as bot:
        bot.says("/voice on")
        await bot.until_shown("From now on, I will speak my answers here.")
        bot.says("hello")
        await bot.until(lambda: voices(world))
        bot.says("/voice off")
        await bot.until(lambda: "From now on, I will only write here." in bot.shown())
        bot.says("/voice")
        await bot.until(lambda: "My voice is switched off here." in bot.shown()[-1])
        bot.says("hello")
        await bot.until(lambda: bot.shown()[-1] == "seen")
        await bot.quiet()
        assert len(voices(world)) == 1


async def test_without_a_server_the_command_says_so(world: World) -> None:
    async with world.bot() as bot:
        bot.says("/voice on")
        await bot.until_shown("I cannot speak here yet. The operator can set `speech` in config.yaml.")


async def test_a_voice_message_that_a_person_forbids_is_a_document(world: World, speaker: MediaServer) -> None:
    refusal = '{"ok":false,"error_code":400,"description":"Bad Request: VOICE_MESSAGES_FORBIDDEN"}'
    world.telegram.faults.add(Refuse(status=400, body=refusal), method="sendVoice")
    async with world.bot(speech=by(speaker, when="always")) as bot:
        bot.says("hello")
        await bot.until(lambda: len(bot.shown()) == 2)
        assert "document" in world.telegram.shown(bot.chat)[1].content


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ENDLESS, "the server that says it aloud does not stop"),
        (b"<html>no sound</html>", "the server that says it aloud sent no sound"),
        (Refusal(hangs=True), "it took longer than 0.3 seconds"),
        (Refusal(status=401), "the server that says it aloud refused its key (speech.api_key)"),
    ],
    ids=["endless", "wrong", "slow", "key"],
)
async def test_a_hostile_server_is_told_of_once_and_the_text_is_there(
    world: World, speaker: MediaServer, answer: Any, reason: str
) -> None:
    speaker.answers = [answer, answer]
    limits = {"timeout": 0.3} if isinstance(answer, Refusal) and answer.hangs else {}
    async with world.bot(speech=by(speaker, when="always", **limits)) as bot:
        bot.says("hello")
        await bot.until_shown("seen", NOT_SAID.format(reason=reason))
        bot.says("hello")
        await bot.until(lambda: len(bot.shown()) == 3)
        await bot.quiet()
        assert (bot.shown()[-1], voices(world)) == ("seen", [])


async def test_what_is_said_is_paid_within_the_caps_and_a_capped_person_has_the_text(
    world: World, speaker: MediaServer
) -> None:
    caps, prices = Caps(daily_usd=0.00011), ModelPrices(input=0.0, output=0.0)
    settings = by(speaker, when="always", usd_per_million_chars=15.0)
    async with world.bot(entry={"prices": prices}, speech=settings, budgets=caps) as bot:
        bot.says("hello")
        await bot.until(lambda: voices(world))
        bot.says("hello")
        await bot.until_shown("seen", "", "seen", NOT_SAID.format(reason=NO_BUDGET))
        (spent,) = [each for each in await bot.gateway.store.usage(0.0, "purpose") if each.label == "speech"]
        assert (spent.calls, spent.cost_usd) == (1, pytest.approx(0.000075))


async def test_the_next_answer_waits_for_no_voice(world: World, speaker: MediaServer) -> None:
    gate = asyncio.Event()
    speaker.before = gate.wait
    async with world.bot(speech=by(speaker, when="always")) as bot:
        bot.says("one")
        await eventually(lambda: speaker.said)
        bot.says("two")
        await bot.until_shown("seen", "seen")
        gate.set()
        await bot.until(lambda: len(voices(world)) == 2)


@pytest.mark.parametrize("asked", ["1", "everything"])
async def test_what_is_forgotten_while_it_is_said_leaves_no_sound(
    tmp_path: Path, speaker: MediaServer, asked: str, reopened: Callable[[], Store]
) -> None:
    gate = asyncio.Event()
    speaker.before = gate.wait
    config, adapter = config_in(tmp_path, speech=by(speaker, when="always")), Fetching(b"")
    async with running(tmp_path, config=config, adapter=adapter, store=reopened()) as live:
        await live.ask("hello")
        await eventually(lambda: speaker.said)
        await live.ask("/forget hello")
        assert "Forgot" in await forget(live, asked)
        gate.set()
        await live.quiet()
        key = live.gateway.readers.reception.arrival(adapter.inbound("x")).key
        assert [row.file for row in adapter.sent if row.file] == await live.store.kept_files(key, 10) == []


@pytest.mark.parametrize(
    "point", ["voice.asked", "turn.finished", "voice.bought", "voice.emitted", "outbox.before_send", "outbox.marked"]
)
async def test_whatever_is_killed_the_answer_is_shown_and_said_once(
    tmp_path: Path, speaker: MediaServer, point: Point
) -> None:
    config, kill = config_in(tmp_path, speech=by(speaker, when="always")), KillAt(point)
    first, second = Fetching(b""), Fetching(b"")
    async with running(tmp_path, config=config, adapter=first, points=kill) as live:
        await live.tell("hello", event="e1")
        async with asyncio.timeout(PATIENCE):
            await kill.passed.wait()
    async with running(tmp_path, config=config, adapter=second) as live:
        await live.quiet()
    sent = {row.id: row for row in [*first.sent, *second.sent]}.values()
    assert [(row.text.lstrip("↻ "), row.file is not None) for row in sent] == [("echo: hello", False), ("", True)]
    assert len(speaker.said) <= (1 if point == "voice.emitted" else 2)  # what was kept is not paid again


async def test_discord_shows_a_voice_message_with_its_waveform(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, speaker: MediaServer
) -> None:
    async with on_discord(tmp_path, discord, anna, speech=by(speaker, when="always")) as bot:
        bot.says("hello")
        await bot.until(lambda: len(discord.shown(bot.chat)) == 2)
        text, voice = discord.shown(bot.chat)
        assert (text.content, voice.content, voice.flags) == ("echo: hello", "", VOICE)
        (file,) = voice.attachments
        assert (file.name, file.is_voice) == ("voice-message.ogg", True)
        discord.people.forbid(place, Permission.SEND_VOICE_MESSAGES)
        bot.says("@Legato hello", place)
        await bot.until(lambda: len(discord.shown(place)) == 2)
        assert [each.is_voice for each in discord.shown(place)[1].attachments] == [False]


async def test_the_page_has_a_player_for_mp3(tmp_path: Path, speaker: MediaServer) -> None:
    async with page(tmp_path, config=config_in(tmp_path, speech=by(speaker, when="always"))) as live:
        await live.me.say("hello")
        async with asyncio.timeout(PATIENCE):
            address = None
            while address is None:
                async with live.me.http.get(live.adapter.at) as answer:
                    address = re.search(r'<audio src="([^"]+)" controls', await answer.text())
        answer = await live.me.http.get(f"{live.adapter.at}{address[1]}")
        assert (answer.headers["Content-Type"], await answer.read()) == ("audio/mpeg", MP3)
    assert speaker.said == [("echo: hello.", "alloy", "mp3")]
