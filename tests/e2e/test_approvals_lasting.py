"""A yes that lasts: for one very call of one person, until it is taken back."""

from __future__ import annotations

from pathlib import Path

from gateway.app.config.models import ToolSettings
from gateway.domain.chat import JOINED
from gateway.runtime.structs import replace
from tests.emulators.telegram import TelegramServer
from tests.support.asking import questions, scene, settings
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeModel, Say, running
from tests.support.model import Gate, newest
from tests.support.telegram_live import on_telegram
from tests.support.tools import Payment, payments


def labels(row: object) -> list[str]:
    return [button.label for line in row.buttons for button in line]  # type: ignore[attr-defined]


def pays(gate: Gate | None = None) -> FakeModel:
    """Pays the sum that it is told; first a small one, at the gate, where it is told to wait."""

    def script(_: object, request: object) -> Say:
        if request.messages[-1]["role"] == "tool":  # type: ignore[attr-defined]
            return Say(text="done")
        if newest(request).split()[-2].endswith("wait"):  # type: ignore[arg-type]
            return Say(gate=gate, calls=payments(5).calls)
        return payments(int(newest(request).split()[-1]))  # type: ignore[arg-type]

    return FakeModel(script)


async def test_it_holds_for_just_this_and_for_this_person_until_it_is_taken_back(tmp_path: Path) -> None:
    stage = scene(tmp_path)
    stage.model = pays()
    async with stage.open() as live:
        await live.tell("pay 50")
        first = await stage.adapter.question(1)
        assert labels(first) == ["Approve", "This session", "Always", "Deny"]
        assert (await stage.adapter.press(first, "Always", user="v")).told.startswith(
            "This question was for someone else"
        )
        told = (await stage.adapter.press(first, "Always")).told
        assert told.startswith("Approved. I will not ask you this again here")
        assert (await stage.adapter.press(first, "Deny")).told in (
            "This was approved before.",
            "This question is already closed, so your answer changed nothing.",
        )
        await live.quiet()
        await live.tell("pay 50")  # covered
        await live.quiet()
        assert stage.tool.paid == [50, 50]
        await live.tell("pay 60")  # another sum is another call
        second = await stage.adapter.question(2)
        await stage.adapter.press(second, "This session")
        await live.quiet()
        await live.tell("pay 60")
        await live.quiet()
        assert stage.tool.paid == [50, 50, 60, 60]
        await live.tell("/approvals")
        await live.quiet()
        listed = stage.adapter.shown("c", "command")[-1]
        assert "1. Pay 50 €? (always)" in listed
        assert "2. Pay 60 €? (in this session)" in listed
        await live.tell("/new")
        await live.tell("pay 60")
        await stage.adapter.press(await stage.adapter.question(3), "Deny")
        await live.tell("/approvals remove 1")
        await live.quiet()
        await live.tell("pay 50")
        await stage.adapter.press(await stage.adapter.question(4), "Deny")
        await live.quiet()
        assert stage.tool.paid == [50, 50, 60, 60]


async def test_in_a_group_nobody_else_is_covered_and_a_setting_forbids_it(tmp_path: Path) -> None:
    stage = scene(tmp_path, tools=ToolSettings(approval_lasts="session"))
    gate = Gate()
    stage.model = pays(gate)
    group = {"chat": "g", "chat_type": "thread", "thread": "t"}
    async with stage.open() as live:
        await live.adapter.receive(live.adapter.inbound("pay 50", **group))
        first = await stage.adapter.question(1)
        assert labels(first) == ["Approve", "This session", "Deny"]
        (token,) = [b.token for line in first.buttons for b in line if b.label == "This session"]
        forged = await live.adapter.receive(live.adapter.inbound("always" + token[7:], kind="press", **group))
        assert forged[0].told == "Approved."  # a forged "always" holds once
        await live.quiet()
        await live.adapter.receive(live.adapter.inbound("pay 50", **group))
        await stage.adapter.press(await stage.adapter.question(2), "This session", **group)
        await live.quiet()
        await live.adapter.receive(live.adapter.inbound("pay 50", user="v", **group))
        await stage.adapter.press(await stage.adapter.question(3), "Deny", **{**group, "user": "v"})
        await live.quiet()
        await live.adapter.receive(live.adapter.inbound("pay 50", **group))
        await live.quiet()
        assert stage.tool.paid == [50, 50, 50]
        assert len(questions(live)) == 3
        # someone else's word in the same turn
        await live.adapter.receive(live.adapter.inbound("please wait 5", **group))
        await gate.until_waiting()
        await live.adapter.receive(live.adapter.inbound("/steer pay 50", user="v", **group))
        gate.open()
        await stage.adapter.press(await stage.adapter.question(4), "Deny", **group)
        await live.quiet()
        assert stage.tool.paid == [50, 50, 50, 5]


async def test_it_serves_no_words_that_were_said_to_others(tmp_path: Path) -> None:
    stage = scene(tmp_path)
    stage.model = pays()
    group = {"chat": "g", "chat_type": "group"}
    async with stage.open() as live:
        await live.adapter.receive(live.adapter.inbound("pay 50", **group))
        await stage.adapter.press(await stage.adapter.question(1), "Always", **group)
        await live.quiet()
        await live.adapter.receive(live.adapter.inbound("pay 50", **group))  # covered
        await live.quiet()
        assert stage.tool.paid == [50, 50]
        # the bot joins in, without that somebody asked it to
        unasked = replace(live.adapter.inbound("pay 50", **group), event_id=f"{JOINED}9", own="")
        await live.adapter.receive(unasked)
        await stage.adapter.press(await stage.adapter.question(2), "Deny", **group)
        await live.quiet()
        # someone else's words stand beside the message
        await live.adapter.receive(live.adapter.inbound("bot, pay 50", user="v", kind="overheard", place="1", **group))
        await live.adapter.receive(live.adapter.inbound("what is new? 50", place="2", **group))
        await stage.adapter.press(await stage.adapter.question(3), "Deny", **group)
        await live.quiet()
        assert stage.tool.paid == [50, 50]


async def test_in_words_and_after_a_restart(tmp_path: Path) -> None:
    tool = Payment()
    async with running(tmp_path, config=settings(tmp_path), model=pays(), tools=[tool]) as live:
        await live.tell("pay 50")
        await live.adapter.until(
            lambda: (
                "To allow exactly the same in the future, send /approve session or always." in "".join(questions(live))
            )
        )
        await live.tell("/approve always")
        await live.quiet()
    async with running(tmp_path, config=settings(tmp_path), model=pays(), tools=[tool]) as live:
        await live.tell("pay 50")
        await live.quiet()
        assert questions(live) == []
    assert tool.paid == [50, 50]


async def test_on_telegram(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, tool = telegram.people.person("Anna"), Payment()
        async with on_telegram(tmp_path, telegram, anna, model=pays(), with_tools=[tool]) as bot:
            bot.says("pay 50")
            await bot.until(lambda: telegram.shown(bot.chat) and not bot.gateway.outbox.in_flight)
            telegram.people.press(telegram.shown(bot.chat)[0], anna, "Always")
            await bot.until_shown("Pay 50 €?\n\nApproved.", "done")
            bot.says("pay 50")
            await bot.until_shown("Pay 50 €?\n\nApproved.", "done", "done")
            bot.says("/approvals")
            await bot.until(lambda: "1. Pay 50 €? (always)" in bot.shown()[-1])
        assert tool.paid == [50, 50]
        assert telegram.violations == []
