"""People talk to the bot in a voice channel of the emulated Discord, encrypted from end to end, through the real
library."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from discord import VoiceClient
from discord.backoff import ExponentialBackoff
from discord.voice_state import VoiceConnectionState

from adapters.discord import hearing, rooms
from adapters.discord.hearing import SHORTEST, Ears
from adapters.discord.voice import packets_of
from gateway.agent.files.quota import FileSettings
from gateway.agent.files.speech import SpeechSettings, TranscriptionSettings
from gateway.domain.chat import SessionKey
from gateway.providers.plugin import ModelSettings
from tests.emulators.discord import Channel, DiscordServer, Kind, User
from tests.emulators.discord.voice import MODE, VoiceServer
from tests.emulators.media import MediaServer
from tests.emulators.transcription import Refusal, TranscriptionServer, opus_of
from tests.support.discord_live import Bot, ask, on_discord
from tests.support.fast_clock import FastClock
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("without_tls")
Begin = Callable[..., AbstractAsyncContextManager[Bot]]


def sound(name: str, packets: int = 30) -> list[bytes]:
    """Packets of 20 ms, each of which can be told from all others."""
    return [b"\xf8" + f"{name} {number}".encode() for number in range(packets)]


def words(recording: bytes) -> str:
    """What the scribe hears: the names of the sounds, in their order; of noise nothing."""
    names = [each[1:].decode("ascii", "replace").split()[0] for each in [*packets_of(recording)][2:]]
    return " ".join(each for each in dict.fromkeys(names) if each != "noise")


@pytest.fixture
async def scribe() -> AsyncIterator[TranscriptionServer]:
    async with TranscriptionServer(words) as server:
        yield server
        assert server.violations == []


@pytest.fixture
def choir(discord: DiscordServer, place: Channel) -> Channel:
    assert place.guild is not None
    return discord.people.channel(place.guild, "Choir", kind=Kind.VOICE)


@pytest.fixture
def ben(discord: DiscordServer, place: Channel) -> User:
    """Another one in Anna's server."""
    found = discord.people.person("Ben")
    assert place.guild is not None
    discord.cloud.join(place.guild, found)
    return found


@pytest.fixture
def begin(tmp_path: Path, discord: DiscordServer, anna: User, scribe: TranscriptionServer) -> Begin:
    def beginning(speaker: MediaServer, *others: User) -> AbstractAsyncContextManager[Bot]:
        return on_discord(
            tmp_path,
            discord,
            anna,
            rules={"voice_channels": True, "quoted": 0},
            speech=SpeechSettings(model="tts-1", base_url=speaker.url, when="asked"),
            transcription=TranscriptionSettings(model="whisper-1", base_url=scribe.url),
            allow=tuple(f"discord:{each.id}" for each in others),
            clock=FastClock(),
            silence=480.0,
        )

    return beginning


async def ears_of(bot: Bot, voice: VoiceServer, choir: Channel, *people: User) -> Ears:
    """Let the bot listen; returns its ears once it knows whom of these people it may hear."""
    assert (await ask(bot, choir, "/voice listen")).startswith("🎙 I am listening in Choir now.")
    await bot.until(lambda: voice.agreed)
    assert bot.adapter.rooms is not None
    (room,) = bot.adapter.rooms._rooms.values()
    ears = room.ears
    assert ears is not None
    for each in people:
        await voice.introduce(each)
    await eventually(lambda: len(ears._sources) == len(people) and not ears._tasks._jobs)
    return ears


async def settled(ears: Ears, handled: int) -> None:
    """Return once the bot has seen so many packets, and nobody speaks any more."""

    def is_quiet() -> bool:
        speaking = any(each.packets for each in ears._speakers.values()) or ears._tasks._jobs
        return ears.dropped + ears.odd + ears.taken >= handled and not speaking

    await eventually(is_quiet)


async def test_two_people_talk_with_it_and_a_stranger_is_not_heard(
    discord: DiscordServer, anna: User, ben: User, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    assert choir.guild is not None
    eve = discord.people.person("Eve")
    discord.cloud.join(choir.guild, eve)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker, ben) as bot:
        for each in (anna, ben, eve):
            voice.enter(each, choir)
        ears = await ears_of(bot, voice, choir, anna, ben, eve)
        speaker.answers = [opus_of(sound("yes")), opus_of(sound("well"))]
        voice.says(eve, sound("secret"))
        voice.says(anna, [*sound("hello"), b"\xf8\xff\xfe", *sound("noise", 3)])
        await bot.until(lambda: len(voice.heard) == 30)
        voice.says(ben, sound("goodbye"))
        await bot.until(lambda: len(voice.heard) == 60)
        await bot.quiet()
        assert voice.heard == sound("yes") + sound("well")
        shown = bot.shown(choir)[1:]
        assert [each for each in shown if each.startswith("🎙")] == ["🎙 “hello”", "🎙 “goodbye”"]
        assert [each.splitlines()[-1] for each in shown if each.startswith("echo")] == ["“hello”", "“goodbye”"]
        assert [words(each.content) for each in scribe.calls] == ["hello", "goodbye"]
        assert [*packets_of(scribe.calls[1].content)][2:] == sound("goodbye")
        assert (ears.dropped, ears.odd) == (30, 0)


async def test_it_does_not_listen_where_nobody_writes_down_what_it_hears(
    tmp_path: Path, discord: DiscordServer, anna: User, choir: Channel
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord) as voice:
        speech = SpeechSettings(model="tts-1", base_url=speaker.url)
        async with on_discord(tmp_path, discord, anna, rules={"voice_channels": True}, speech=speech) as bot:
            voice.enter(anna, choir)
            told = await ask(bot, choir, "/voice listen")
            assert told.startswith("I cannot listen, because speech-to-text is not set up here. The operator can set")
            assert voice.where(discord.bot) is None


async def test_noise_is_no_message(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        voice.says(anna, sound("click", SHORTEST - 1))
        await settled(ears, SHORTEST - 1)
        voice.says(anna, sound("noise"))
        await discord.until(lambda: bool(scribe.calls))
        await bot.quiet()
        speaker.answers = [opus_of(sound("yes"))]
        voice.says(anna, sound("hello"))
        await bot.until(lambda: len(voice.heard) == 30)
        assert [words(each.content) for each in scribe.calls] == ["", "hello"]
        assert bot.shown(choir)[1:] == ["🎙 “hello”", bot.shown(choir)[2]]
        assert "hello" in bot.shown(choir)[2]


async def test_of_what_is_said_only_the_words_are_kept(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        await ears_of(bot, voice, choir, anna)
        speaker.answers = [opus_of(sound("yes"))]
        voice.says(anna, sound("hello"))
        await bot.until(lambda: len(voice.heard) == 30)
        store = bot.gateway.store
        (session,) = await store.sessions(None, 9)
        kept = await store.kept_files(session.key, 9)
        assert [each.mime for each in kept if each.mime != "audio/ogg" or "voice1" not in each.ref] == ["text/plain"]
        room = [f"files of {SessionKey(platform='discord', chat=str(anna.id))}"]
        assert list(await store.spent(room)) == [0]
        bot.says("@Legato /forget last", choir)
        await bot.until(lambda: discord.shown(choir)[-1].buttons and not bot.gateway.outbox.in_flight)
        discord.people.press(discord.shown(choir)[-1], anna, "Forget")
        await bot.until(lambda: bot.shown(choir)[-1].startswith("Forgot 2 messages"))
        assert not [each for each in await store.kept_files(session.key, 9) if each.mime == "text/plain"]


async def test_what_cannot_be_written_down_begins_no_turn_and_is_told_once(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        scribe.refusals = [Refusal(status=401) for _ in range(3)]
        for number in range(1, 4):
            voice.says(anna, sound("hello"))
            await bot.until(lambda number=number: scribe.asked == number)  # type: ignore[misc]
            await bot.quiet()
        (told,) = bot.shown(choir)[1:]
        assert told.startswith("🎙 I could not write down what was said: the server that writes")
        assert bot.model.requests == []
        speaker.answers = [opus_of(sound("yes"))] * 2
        voice.says(anna, sound("again"))
        await bot.until(lambda: len(voice.heard) == 30)
        assert bot.shown(choir)[2] == "🎙 “again”"
        assert "hello" not in str(bot.model.requests)
        scribe.refusals = [Refusal(status=401)]
        voice.says(anna, sound("hello"))
        await bot.until(lambda: bot.shown(choir)[-1] == told)  # a new complaint
        assert ears.odd == 0


async def test_what_there_is_no_room_for_begins_no_turn_and_is_told_once(
    tmp_path: Path, discord: DiscordServer, anna: User, choir: Channel
) -> None:
    async with (
        MediaServer() as speaker,
        VoiceServer(discord, sealed=True) as voice,
        on_discord(
            tmp_path,
            discord,
            anna,
            rules={"voice_channels": True, "quoted": 0},
            speech=SpeechSettings(model="tts-1", base_url=speaker.url, when="asked"),
            transcription=TranscriptionSettings(model="whisper-1", base_url=speaker.url),
            entry=ModelSettings(provider="offline", name="fake", sounds=("ogg",)),
            files=FileSettings(per_person_mb=0.000001),
            clock=FastClock(),
            silence=480.0,
        ) as bot,
    ):
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        for number in range(1, 4):
            voice.says(anna, sound("hello"))
            await settled(ears, 30 * number)
            await bot.quiet()
        assert len(bot.shown(choir)[1:]) == 1
        assert bot.model.requests == []


async def test_hostile_packets_are_counted_and_nobody_is_held_up(
    discord: DiscordServer, anna: User, ben: User, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker, ben) as bot:
        for each in (anna, ben):
            voice.enter(each, choir)
        ears = await ears_of(bot, voice, choir, anna, ben)
        strange: tuple[tuple[int, Any], ...] = ((5, None), (5, {"user_id": "x", "ssrc": "y"}), (11, {}))
        for op, data in strange:
            await voice.tell(op, data)
        await voice.tell(13, {"user_id": []})
        whole = voice.packet(anna, sound("hello")[0])
        bad = [
            voice.packet(anna, b"\xf8forged", by=ben),  # Ben speaks with Anna's number
            voice.packet(anna, b"\xfb\x3f" + bytes(90)),  # 63 frames of 20 ms
            voice.packet(anna, b"\xf8" + bytes(1_300)),  # larger than any Opus
            whole[:-9] + bytes(9),
            whole[:12] + b"\xbe\xde\xff\xff" + whole[16:],
        ]
        garbage = [b"", b"\x90\x78", b"\x90\x78" + bytes(30), os.urandom(60)]
        for packet in (*bad, *garbage, *[voice.packet(anna, b"\xf8x", source=9) for _ in range(40)]):
            voice.send(packet)
        await settled(ears, 49)
        assert ears.odd == 3 + len(bad)
        assert ears.dropped >= 41
        speaker.answers = [opus_of(sound("yes"))]
        voice.says(ben, sound("hello"))
        await bot.until(lambda: len(voice.heard) == 30)
        assert [words(each.content) for each in scribe.calls] == ["hello"]


async def test_who_never_stops_is_cut_and_who_sends_too_much_is_slowed(
    discord: DiscordServer,
    anna: User,
    choir: Channel,
    begin: Begin,
    scribe: TranscriptionServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hearing, "LONGEST_SECONDS", 0.0)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        monkeypatch.setattr(hearing, "_MOST_BYTES", sum(map(len, sound("much", 40))))
        for packets in range(50, 401, 50):  # more at once overflow what the kernel keeps for a socket
            voice.says(anna, sound("much", 50))
            await settled(ears, packets)
        assert ears.dropped >= 100
        await bot.until(lambda: bool(scribe.calls))
        assert [words(each.content) for each in scribe.calls][:1] == ["much"]


async def test_where_it_was_moved_it_does_not_listen(
    discord: DiscordServer, anna: User, place: Channel, choir: Channel, begin: Begin, scribe: TranscriptionServer
) -> None:
    assert place.guild is not None
    attic = discord.people.channel(place.guild, "Attic", kind=Kind.VOICE)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        assert await ask(bot, place, "/voice listen") == rooms.ELSEWHERE.format(name="Choir")
        assert voice.where(discord.bot) is None
        ears = await ears_of(bot, voice, choir, anna)
        voice.says(anna, sound("cut off"))
        voice.enter(discord.bot, attic)  # a moderator moves it
        await bot.until(lambda: voice.where(discord.bot) is None and not voice.sockets)
        assert not ears._open
        await ears_of(bot, voice, choir, anna)
        voice.leave(discord.bot, place.guild)  # and throws it out
        await bot.until(lambda: not voice.sockets)
        ears = await ears_of(bot, voice, choir, anna)
        assert (await ask(bot, choir, "/voice join")).startswith("I have joined Choir, and will read")
        assert not ears._open
        assert await ask(bot, choir, "/voice leave") == "I left the voice channel."
        assert scribe.calls == []


async def test_after_a_new_session_it_still_notices_where_it_is(
    discord: DiscordServer, anna: User, place: Channel, choir: Channel, begin: Begin
) -> None:
    assert place.guild is not None
    attic = discord.people.channel(place.guild, "Attic", kind=Kind.VOICE)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        discord.invalidate()
        await bot.until(lambda: not discord.connected)
        await bot.until(lambda: discord.connected)
        assert (await ask(bot, choir, "Are you there?")).startswith("echo")
        voice.enter(discord.bot, attic)
        await bot.until(lambda: voice.where(discord.bot) is None and not voice.sockets)
        assert not ears._open


async def test_it_leaves_if_everybody_left_while_it_was_away(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choir.guild is not None
    monkeypatch.setattr(rooms, "ALONE_SECONDS", 5.0)
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        discord.invalidate()
        await bot.until(lambda: not discord.connected)
        voice.leave(anna, choir.guild)
        await bot.until(lambda: voice.where(discord.bot) is None and not voice.sockets)
        assert not ears._open


async def test_it_hears_again_after_the_connection_broke(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExponentialBackoff, "delay", lambda _: 0.0)
    monkeypatch.setattr(rooms, "ALONE_SECONDS", 1e6)  # this clock would pass them before the bot is there again
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        ears = await ears_of(bot, voice, choir, anna)
        await voice.hang_up(4006)
        await bot.until(lambda: not voice.sockets)
        await bot.until(lambda: voice.sockets and voice.agreed)
        await voice.introduce(anna)
        await eventually(lambda: getattr(ears.state.dave_session, "ready", False))  # or packets come before the key
        speaker.answers = [opus_of(sound("yes"))]
        voice.says(anna, sound("hello"))
        await bot.until(lambda: len(voice.heard) == 30)


async def test_a_socket_keeps_its_number_until_the_librarys_thread_has_left_it(
    discord: DiscordServer, anna: User, choir: Channel, begin: Begin
) -> None:
    async with MediaServer() as speaker, VoiceServer(discord, sealed=True) as voice, begin(speaker) as bot:
        voice.enter(anna, choir)
        state = (await ears_of(bot, voice, choir, anna)).state
        sockets = [state.socket]
        for _ in range(3):
            state.socket.close()
            state._create_socket()
            assert state.socket.fileno() != sockets[-1].fileno() != -1
            sockets.append(state.socket)
        assert [each.fileno() == -1 for each in sockets] == [True, True, False, False]
    assert [each.fileno() for each in sockets] == [-1] * 4


def test_the_library_hands_on_packets_as_before() -> None:
    """What `hearing` needs of discord.py and has no public name there."""
    state = VoiceConnectionState
    assert [*signature(state.__init__).parameters] == ["self", "voice_client", "hook"]
    assert [*signature(state.add_socket_listener).parameters] == ["self", "callback"]
    assert [*signature(state.remove_socket_listener).parameters] == ["self", "callback"]
    assert [*signature(state._create_socket).parameters] == ["self"]
    assert [*signature(state.disconnect).parameters] == ["self", "force", "cleanup", "wait"]
    assert [*signature(VoiceClient.create_connection_state).parameters] == ["self"]
    used = set(state.__init__.__code__.co_names)
    assert used >= {"hook", "secret_key", "socket", "dave_session", "dave_protocol_version", "_socket_reader"}
    assert VoiceClient.supported_modes[0] == MODE
