"""Files on Discord, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.files.speech import TranscriptionSettings
from gateway.domain.chat import ChatAddress, KeptFile, Outbound, SessionKey
from gateway.domain.message import said_in
from gateway.domain.quoting import CALLED
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.errors import DeliveryRefused
from gateway.runtime.structs import replace
from gateway.turns.turn import EMPTY
from tests.emulators.discord import Channel, DiscordServer, Refuse, User
from tests.emulators.discord.asked import Upload
from tests.emulators.discord.people import PIXEL
from tests.emulators.transcription import TranscriptionServer, opus
from tests.support.discord_live import on_discord
from tests.support.model import FakeModel, Say, in_turn


def wants(tool: str, **arguments: Any) -> Say:
    return Say(calls=[(tool, json.dumps(arguments))])


async def test_a_document_is_read(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        note = Upload(name="note.txt", content=b"The choir meets on Monday.", content_type="text/plain")
        bot.says("When?", files=[note])
        await bot.until(lambda: discord.shown(bot.chat))
        assert "The choir meets on Monday." in bot.model.spoken(0)[-1][1]


async def test_who_answers_a_strangers_file_with_the_bots_name_shows_it(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    eve = discord.people.person("Eve")
    assert place.guild is not None
    discord.people.join(place.guild, eve)
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        note = Upload(name="note.txt", content=b"The choir meets on Monday.", content_type="text/plain")
        shown = discord.people.say(place, eve, "", files=[note])
        bot.says("@Legato", place, reply_to=shown)
        await bot.until(lambda: discord.shown(place))
        _, heard = bot.model.spoken(0)[-1]
        assert heard.startswith(f'[in reply to Eve: "(document note.txt)"]\n{CALLED}')
        assert "The choir meets on Monday." in heard
        bot.says("@Legato", place)
        await bot.until_shown(bot.shown(place)[0], EMPTY, chat=place)


async def test_a_file_that_cannot_be_had_is_named(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        discord.faults.add(Refuse(status=404), method="(download)", times=9)
        bot.says("When?", files=[Upload(name="note.txt", content=b"x", content_type="text/plain")])
        await bot.until(lambda: discord.shown(bot.chat))
        assert "note.txt" in bot.model.spoken(0)[-1][1]


async def test_a_picture_of_a_hundred_megabytes_is_not_fetched(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    sees = ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
    async with on_discord(tmp_path, discord, anna, entry=sees) as bot:
        large = Upload(name="a.png", content=PIXEL + bytes(100 * 1024**2), content_type="image/png")
        bot.says("Look", files=[large])
        told = "I could not fetch your picture: it is larger than the 25 MB that I fetch."
        await bot.until(lambda: len(bot.shown()) == 2)
        assert bot.shown()[0] == told
        assert not [each for each in discord.journal.calls if each.method == "(download)"]


async def test_a_video_is_shown_by_the_frame_that_discord_makes_of_it(
    tmp_path: Path, discord: DiscordServer, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no decoder
    sees = ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
    async with on_discord(tmp_path, discord, anna, entry=sees) as bot:
        bot.says("What is it?", files=[Upload(name="a.mp4", content=b"moving", content_type="video/mp4")])
        await bot.until(lambda: discord.shown(bot.chat))
        assert "of which you see the preview frame alone" in bot.model.spoken(0)[-1][1]
        key = (await bot.gateway.store.sessions(None, 1))[0].key
        (kept,) = await bot.gateway.store.kept_files(key, 9)
        assert await bot.gateway.store.file_content(key, kept.digest) == PIXEL


async def test_a_sticker_is_seen_and_told_by_its_name(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    discord.cloud.stickers = {"71.png": PIXEL}
    sees = ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
    async with on_discord(tmp_path, discord, anna, entry=sees) as bot:
        kinds = [{"id": "71", "name": "Wave 猫", "format_type": 1}, {"id": "72", "name": "Lottie", "format_type": 3}]
        bot.says("", stickers=kinds)
        await bot.until(lambda: discord.shown(bot.chat))
        heard = bot.model.spoken(0)[-1][1]
        assert heard.startswith("[sticker Wave 猫]\n[sticker Lottie]\n[sent with this message: a picture")
        key = (await bot.gateway.store.sessions(None, 1))[0].key
        (kept,) = await bot.gateway.store.kept_files(key, 9)
        assert await bot.gateway.store.file_content(key, kept.digest) == PIXEL


async def test_a_voice_message_is_written_down_and_stored_as_what_was_said(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    voice = opus(3)
    async with TranscriptionServer("Buy milk and call Ann.") as scribe:
        settings = TranscriptionSettings(model="whisper-1", base_url=scribe.url)
        async with on_discord(tmp_path, discord, anna, transcription=settings) as bot:
            bot.says("", voice=Upload(name="voice-message.ogg", content=voice, content_type="audio/ogg"))
            await bot.until(lambda: len(bot.shown()) == 2)
            assert bot.shown()[0] == "🎙 “Buy milk and call Ann.”"
            assert bot.model.spoken(0)[-1][1].endswith("\n“Buy milk and call Ann.”")
            session = (await bot.gateway.store.sessions(None, 1))[0]
            (hit,) = [each.hit for each in await bot.gateway.store.search("milk", session.key, 9)]
            assert said_in(hit.message) == "Buy milk and call Ann."
        (call,) = scribe.calls
        assert (call.content, call.mime) == (voice, "audio/ogg")
        assert scribe.violations == []


async def test_the_model_sends_a_file(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    sent = wants("send_file", name="list.txt", content="1. Alto\n", caption="The **list**")
    async with on_discord(tmp_path, discord, anna, model=FakeModel(in_turn(sent, Say(text="There.")))) as bot:
        bot.says("Send me the list")
        await bot.until(lambda: bot.shown()[-1:] == ["There."])
        (file, _) = discord.shown(bot.chat)
        assert file.content == "The **list**"
        assert [each.name for each in file.attachments] == ["list.txt"]


async def test_what_calls_of_one_answer_send_is_one_message(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    files = [{"name": f"{number}.txt", "content": "text", "caption": f"**{number}**"} for number in range(11)]
    sent = Say(calls=[("send_file", json.dumps(each)) for each in files])
    async with on_discord(tmp_path, discord, anna, model=FakeModel(in_turn(sent, Say(text="There.")))) as bot:
        bot.says("Send me all")
        await bot.until_shown("\n\n".join(f"**{number}**" for number in range(10)), "**10**", "There.")
        assert [len(each.attachments) for each in discord.shown(bot.chat)] == [10, 1, 0]


async def test_several_files_are_one_message(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    both = wants("send_file", file="a.txt", more=["b.txt"], caption="**Both** 看")
    model = FakeModel(in_turn(Say(text="Thanks."), both, Say(text="There.")))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        files = [Upload(name=name, content=name.encode(), content_type="text/plain") for name in ("a.txt", "b.txt")]
        bot.says("keep them", files=files)
        await bot.until_shown("Thanks.")
        bot.says("send them back")
        await bot.until_shown("Thanks.", "**Both** 看", "There.")
        assert [each.name for each in discord.shown(bot.chat)[1].attachments] == ["a.txt", "b.txt"]


async def test_a_file_may_be_as_large_as_its_server_takes(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    small = discord.people.general(discord.people.guild("Small", anna))
    large = discord.people.general(discord.people.guild("Large", anna, tier=2))
    content = bytes((10 << 20) + 1)
    file = KeptFile(ref="f", digest="", name="tape.raw", mime="application/octet-stream", size=len(content), at=0.0)
    async with on_discord(tmp_path, discord, anna) as bot:
        for place in (small, large):  # its server is known by then
            bot.says("@Legato hello", place)
            await bot.until(lambda place=place: discord.shown(place))

        async def send(place: Channel) -> str:
            to = ChatAddress(platform="discord", chat=str(place.id))
            key = SessionKey(platform="discord", chat=to.chat)
            row = Outbound(id=f"o_{place.id}", key=key, to=to, kind="file", text="", file=file, created_at=0.0)
            return await bot.adapter.send_file(row, content)

        posts = [call.method for call in discord.journal.calls].count("POST /channels/{channel}/messages")
        assert posts
        with pytest.raises(DeliveryRefused, match="10 MB"):
            await send(small)
        made = [call.method for call in discord.journal.calls]
        assert made.count("POST /channels/{channel}/messages") == posts
        await send(large)
        assert discord.shown(large)[-1].attachments[0].name == "tape.raw"


async def test_what_is_sent_to_a_person_by_their_number_reaches_them(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        to = ChatAddress(platform="discord", chat=f"@{anna.id}")
        key, now = SessionKey(platform="discord", chat=to.chat), discord.cloud.clock.now()
        row = Outbound(id="o_1", key=key, to=to, kind="notice", text="Look", created_at=now)
        await bot.adapter.typing(to, True)
        shown = await bot.adapter.send(row)
        await bot.adapter.edit(replace(row, text="Look here"), shown)
        file = KeptFile(ref="r", digest="d", name="a.txt", mime="text/plain", size=2, at=now)
        await bot.adapter.send_file(replace(row, id="o_2", text="", file=file), b"ab")
        await bot.until(lambda: any("typing" in call.method for call in discord.journal.calls))
        await bot.adapter.typing(to, False)
        assert bot.shown() == ["Look here", ""]
        assert [call.chat_id for call in discord.journal.calls if call.status in (400, 404)] == []
