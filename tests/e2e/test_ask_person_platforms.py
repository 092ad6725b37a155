"""Questions with several answers and in words, as each platform has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway.people.approvals import ANSWERED, GONE, NOT_CHOSEN, NOT_YOURS, NOTHING_CHOSEN
from tests.emulators.discord import Channel, DiscordServer
from tests.emulators.discord import User as Member
from tests.emulators.telegram import TelegramServer
from tests.support.asking import asked, results
from tests.support.discord_live import on_discord
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeModel, Say, in_turn, running
from tests.support.telegram_live import on_telegram


def asks(question: str, *options: str, **more: Any) -> Say:
    return Say(calls=[("ask_person", json.dumps({"question": question, "options": options, **more}))])


def three() -> FakeModel:
    return FakeModel(
        in_turn(
            asks("Sizes?", "S", "M", "L", multiple=True),
            asks("Colour?", "red", "blue", free_text=False),
            asks("For whom?", "me", "you"),
            Say(text="ordered"),
        )
    )


async def test_on_telegram_options_are_ticked_and_a_restart_keeps_the_ticks(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, ben, model = telegram.people.person("Anna"), telegram.people.person("Ben"), three()

        async def question(bot: Any, number: int) -> Any:
            shown = lambda: [each for each in telegram.shown(bot.chat) if each.buttons]  # noqa: E731
            await bot.until(lambda: len(shown()) == 1 and len(bot.shown()) == number)
            await bot.until(lambda: not bot.gateway.outbox.in_flight)
            return shown()[0]

        async def told(bot: Any, press: Any) -> str:
            await bot.until(lambda: press.answer is not None)
            return str(press.answer["text"])

        async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
            bot.says("order a shirt")
            message = await question(bot, 1)
            labels = lambda: [each["text"] for each in message.buttons]  # noqa: E731
            assert labels() == ["S", "M", "L", "Done", "Refuse"]
            assert await told(bot, telegram.people.press(message, anna, "Done")) == NOTHING_CHOSEN
            telegram.people.press(message, anna, "S")
            await bot.until(lambda: labels()[:3] == ["✓ S", "M", "L"])
            telegram.people.press(message, anna, "L")
            await bot.until(lambda: labels()[:3] == ["✓ S", "M", "✓ L"])
            assert await told(bot, telegram.people.forge_press(message, ben, message.buttons[1]["callback_data"])) in (
                NOT_YOURS,
                "",
            )
            bot.gateway.stop(grace=0)
        async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
            assert labels()[:3] == ["✓ S", "M", "✓ L"]
            telegram.people.press(message, anna, "✓ S")
            await bot.until(lambda: labels()[:3] == ["S", "M", "✓ L"])
            done = message.buttons[3]["callback_data"]
            telegram.people.press(message, anna, "M")
            await bot.until(lambda: labels()[1] == "✓ M")
            first, second = (telegram.people.forge_press(message, anna, done) for _ in range(2))
            assert await told(bot, first) == ANSWERED
            assert await told(bot, second) == ANSWERED
            message = await question(bot, 2)
            assert labels() == ["red", "blue", "Refuse"]
            late = telegram.people.forge_press(message, anna, done)  # the turn goes on, so it is remembered
            assert await told(bot, late) == ANSWERED
            bot.answers("green")
            await bot.until(lambda: NOT_CHOSEN in bot.shown())
            press = telegram.people.press(message, anna, "blue")
            assert await told(bot, press) == ANSWERED
            await bot.until(lambda: any("For whom?" in each for each in bot.shown()))
            await bot.until(lambda: not bot.gateway.outbox.in_flight)
            for_whom = next(each for each in telegram.shown(bot.chat) if "For whom?" in each.text)
            bot.says("my brother", reply_to=for_whom)  # at once: who replies to a question has read it
            await bot.until(lambda: "ordered" in bot.shown())
            await bot.quiet()
            assert await told(bot, telegram.people.forge_press(message, anna, done)) == GONE
        assert results(model)[:3] == [
            "The person answered: M; L",
            "The person answered: blue",
            "The person answered: my brother",
        ]
        assert telegram.violations == []


async def test_on_discord_there_are_a_menu_and_a_form(
    tmp_path: Path, discord: DiscordServer, anna: Member, place: Channel
) -> None:
    model, ben = three(), discord.people.person("Ben")
    discord.people.join(place.guild, ben)  # type: ignore[arg-type]
    async with on_discord(
        tmp_path, discord, anna, model=model, rules={"quoted": 0}, allow=(f"discord:{ben.id}",)
    ) as bot:

        async def question(text: str) -> Any:
            found = lambda: [m for m in discord.shown(place) if m.content.startswith(text) and m.buttons]  # noqa: E731
            await bot.until(lambda: found() and not bot.gateway.outbox.in_flight)
            return found()[0]

        async def told(press: Any) -> str:
            await bot.until(lambda: press.followups)
            return str(press.followups[0].content)

        bot.says("@Legato order a shirt", place)
        message = await question("Sizes?")
        assert "Your reply to this is the answer" in message.content
        menu, *others = message.buttons
        assert [each["label"] for each in menu["options"]] == ["S", "M", "L"]
        assert (menu["type"], menu["max_values"]) == (3, 3)
        assert [each["label"] for each in others] == ["In other words …", "Refuse"]
        values = [each["value"] for each in menu["options"]]
        forged = discord.people.press(message, ben, menu["custom_id"], values=values[:1])
        assert await told(forged) == NOT_YOURS
        discord.people.press(message, anna, menu["custom_id"], values=values[1:])
        message = await question("Colour?")
        assert [each["label"] for each in message.buttons] == ["red", "blue", "Refuse"]
        discord.people.press(message, anna, "red")
        message = await question("For whom?")
        opened = discord.people.press(message, ben, "In other words …")
        await bot.until(lambda: opened.modal is not None)
        assert await told(discord.people.fill_in(opened, ben, "for Ben")) == NOT_YOURS
        opened = discord.people.press(message, anna, "In other words …")
        await bot.until(lambda: opened.modal is not None)
        assert await told(discord.people.fill_in(opened, anna, "my brother,\nhe is tall")) == ANSWERED
        await bot.until(lambda: "ordered" in bot.shown(place))
    assert results(model)[:3] == [
        "The person answered: M; L",
        "The person answered: red",
        "The person answered: my brother,\nhe is tall",
    ]


async def test_elsewhere_numbers_and_words_are_sent(tmp_path: Path) -> None:
    model = three()
    async with running(tmp_path, model=model) as live:
        event = await live.tell("order a shirt")
        for number, said in enumerate(("3, 1", "2", "2"), 1):
            await asked(live, number)
            await live.tell(said)
        assert (await live.answer(event)).text == "ordered"
    assert results(model) == [f"The person answered: {each}" for each in ("L; S", "blue", "you")]
