"""The same conversations as on our own Discord, on one that nobody here wrote."""

from __future__ import annotations

from pathlib import Path

from tests.support.discord_simcord import on_simcord
from tests.support.model import FakeModel, Gate, Say, in_turn


async def test_a_person_writes_and_is_answered(tmp_path: Path) -> None:
    async with on_simcord(tmp_path) as bot:
        await bot.anna.send_dm("Hello")
        await bot.until_shown(bot.direct, "echo: Hello")


async def test_in_a_channel_it_answers_who_names_it_or_answers_it(tmp_path: Path) -> None:
    async with on_simcord(tmp_path, quoted=0) as bot:
        place = bot.guild.create_text_channel("general")
        await bot.anna.send(place, "nobody asks")
        asked = await bot.anna.send(place, f"{bot.mention} what is it?")
        await bot.until_shown(place, "echo: what is it?")
        answer = place.last_message
        assert answer.reference.message_id == asked.id
        await bot.anna.send(place, "and now?", reply_to=answer)
        await bot.until(lambda: len(bot.shown(place)) == 2)
        assert "and now?" in bot.shown(place)[1]


async def test_a_command_is_offered_acknowledged_and_answered(tmp_path: Path) -> None:
    async with on_simcord(tmp_path) as bot:
        place = bot.guild.create_text_channel("general")
        await bot.until(lambda: "PUT /applications/{application_id}/commands" in bot.calls.asked)
        used = await bot.anna.slash(place, "whoami")
        await bot.until(lambda: used.response is not None and used.response.content)
        assert used.acknowledged
        assert used.ephemeral
        assert str(bot.anna.id) in used.response.content


async def test_a_long_answer_is_cut(tmp_path: Path) -> None:
    words = "All birds are there already. " * 120
    async with on_simcord(tmp_path, model=FakeModel(in_turn(Say(text=words)))) as bot:
        await bot.anna.send_dm("Sing")
        await bot.until(lambda: sum(map(len, bot.shown(bot.direct))) >= len(words.strip()) - 5)
        assert max(map(len, bot.shown(bot.direct))) <= 2000


async def test_it_answers_in_a_new_thread_and_goes_on_there(tmp_path: Path) -> None:
    async with on_simcord(tmp_path, listen="thread") as bot:
        place = bot.guild.create_text_channel("general")
        asked = await bot.anna.send(place, f"{bot.mention} A long story")
        await bot.until(lambda: place.threads)
        (thread,) = place.threads
        assert thread.id == asked.id
        told = ["echo: [anna] A long story", "echo: [anna] And then?"]
        await bot.until_shown(thread, told[0])
        await bot.anna.send(thread, f"{bot.mention} And then?")
        await bot.until_shown(thread, *told)


async def test_a_reply_grows_by_edits_of_one_message(tmp_path: Path) -> None:
    gate = Gate()
    async with on_simcord(
        tmp_path, model=FakeModel(in_turn(Say(first="All birds ", text="are there.", gate=gate)))
    ) as bot:
        await bot.anna.send_dm("Sing")
        await bot.until(lambda: bot.shown(bot.direct))
        assert bot.shown(bot.direct) == ["All birds …"]
        gate.open()
        await bot.until_shown(bot.direct, "All birds are there.")
