"""Buttons on Telegram: the real client library, a server with Telegram's rules, the whole gateway."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config.models import ToolSettings
from gateway.domain.turn import SessionSettings
from gateway.people.approvals import GONE, NOT_YOURS
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite.backend import SqliteStore
from tests.emulators.telegram import Chat, Disconnect, LoseAnswer, Message, Refuse, Slow, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.forks import Process
from tests.support.model import PATIENCE, FakeModel, Gate, Say, in_turn
from tests.support.program import legato_run
from tests.support.telegram_live import Bot, on_telegram
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually, written

ASKS = "Pay 50 €?"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


class Till:
    """A tool, the model that wants it, and the question that follows."""

    def __init__(self, *sums: int) -> None:
        self.tool = Payment()
        self.model = FakeModel(in_turn(payments(*sums), Say(text="done")))

    def on(self, folder: Path, telegram: TelegramServer, anna: Any, **more: Any) -> Any:
        return on_telegram(folder, telegram, anna, model=self.model, with_tools=[self.tool], **more)


def asked(telegram: TelegramServer, chat: Chat, number: int = 1) -> Message | None:
    """The chat's `number`th message that has buttons."""
    found = [message for message in telegram.shown(chat) if message.buttons]
    return found[number - 1] if len(found) >= number else None


async def question(bot: Bot, chat: Chat | None = None, number: int = 1) -> Message:
    """The question, once it is shown and the bot knows which message it is: no person is quicker."""
    where = chat or bot.chat
    await bot.until(lambda: asked(bot.telegram, where, number) is not None and not bot.gateway.outbox.in_flight)
    found = asked(bot.telegram, where, number)
    assert found is not None
    return found


async def told(bot: Bot, message: Message, who: Any, button: str) -> str:
    """Press a button, also one that is gone, and return Telegram's answer to the press."""
    press = bot.telegram.people.forge_press(message, who, button)
    await bot.until(lambda: press.answer is not None)
    assert press.answer is not None
    return str(press.answer["text"])


def token(message: Message, label: str) -> str:
    return str(next(button["callback_data"] for button in message.buttons if button["text"] == label))


async def test_a_press_is_answered_done_and_shown(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        message = await question(bot)
        assert [button["text"] for button in message.buttons] == ["Approve", "This session", "Always", "Deny"]
        assert message.text.startswith(f"{ASKS}\n\nWithout an answer within 5 minutes")
        assert till.tool.paid == []
        assert await told(bot, message, anna, token(message, "Approve")) == "Approved."
        await bot.until_shown(f"{ASKS}\n\nApproved.", "done")
        assert message.buttons == []
        assert till.tool.paid == [50]
        await bot.quiet()
    assert telegram.violations == []


async def test_a_plain_yes(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        said = bot.says("pay")
        await question(bot)
        bot.answers("y", at=said.date)
        await bot.until(lambda: "Your message came before you could see my question" in bot.shown()[-1])
        assert till.tool.paid == []
        bot.answers("y")
        await bot.until(lambda: bot.shown()[-1] == "done")
        assert till.tool.paid == [50]


async def test_a_yes_in_reply_to_the_question_is_its_answer(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50, 60)
    async with till.on(tmp_path, telegram, anna) as bot:
        said = bot.says("pay")
        first, second = await question(bot), await question(bot, number=2)
        bot.answers("yes", reply_to=said)  # to something else: it decides nothing
        bot.answers("yes", reply_to=second)
        await bot.until(lambda: second.text.endswith("Approved."))
        bot.answers("No.", reply_to=first)
        await bot.until(lambda: "done" in bot.shown())
        assert till.tool.paid == [60]


async def test_a_no_and_a_command(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50, 60)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        first, second = await question(bot), await question(bot, number=2)
        assert await told(bot, second, anna, token(second, "Deny")) == "Denied."
        bot.answers("/approve")
        await bot.until_shown(f"{ASKS}\n\nApproved.", "Pay 60 €?\n\nDenied.", "Approved.", "done")
        assert till.tool.paid == [50]
        assert first.buttons == second.buttons == []


async def test_nobody_else_may_press_and_nothing_may_be_forged_or_replayed(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob, eve = (telegram.people.person(name) for name in ("Anna", "Bob", "Eve"))
    group = telegram.people.group("Team", anna, bob, eve)
    other = telegram.people.group("Other", anna)
    till = Till(50)
    shared = SessionSettings(groups="shared")
    async with till.on(tmp_path, telegram, anna, allow=(f"telegram:{bob.id}",), sessions=shared) as bot:
        bot.says(f"@{telegram.bot.username} pay", group)
        message = await question(bot, group)
        yes = token(message, "Approve")
        assert await told(bot, message, bob, yes) == NOT_YOURS
        assert await told(bot, message, eve, yes) == NOT_YOURS  # a stranger
        for forged in ("approve a_0000000000000000", "approve", "/stop", "x" * 64, yes.replace("approve", "pay")):
            assert await told(bot, message, anna, forged) == GONE
        elsewhere = telegram.people.say(other, anna, "here")
        assert await told(bot, elsewhere, anna, yes) == GONE
        assert till.tool.paid == []
        assert await told(bot, message, anna, token(message, "Deny")) == "Denied."
        await bot.until_shown(f"{ASKS}\n\nDenied.", "done", chat=group)
        assert await told(bot, message, anna, yes) == GONE
        assert till.tool.paid == []
        await bot.quiet()
        # None of the presses was a message: nobody was answered but by the button.
        assert bot.shown(group) == [f"{ASKS}\n\nDenied.", "done"]
    assert telegram.violations == []


async def test_in_a_topic_the_question_stays_there(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    forum = telegram.people.group("Forum", anna, forum=True)
    topic = telegram.people.topic(forum, anna, "Money")
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says(f"@{telegram.bot.username} pay", forum, topic=topic)
        message = await question(bot, forum)
        assert message.topic == topic
        assert await told(bot, message, anna, token(message, "Approve")) == "Approved."
        await bot.until_shown(f"{ASKS}\n\nApproved.", "done", chat=forum)


async def test_a_press_under_a_message_that_is_gone_counts(tmp_path: Path, telegram: TelegramServer) -> None:
    """Telegram says only where such a message was."""
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        message = await question(bot)
        yes = token(message, "Approve")
        telegram.people.delete(message)
        assert await told(bot, message, anna, yes) == "Approved."
        await bot.until(lambda: till.tool.paid == [50])


async def test_a_press_waits_for_the_bot_and_counts_after_a_restart(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        message = await question(bot)
        bot.gateway.stop(grace=0)
    press = telegram.people.press(message, anna, "Approve")
    async with till.on(tmp_path, telegram, anna) as bot:
        await bot.until_shown(f"{ASKS}\n\nApproved.", "done")
        await bot.until(lambda: press.answer is not None)
    assert press.answer == {"text": "Approved.", "show_alert": False}
    assert till.tool.paid == [50]


@pytest.mark.parametrize("fault", [LoseAnswer(), Refuse(status=502), Slow(seconds=0.5)], ids=str)
async def test_what_telegram_does_to_the_answer_of_a_press_stops_nothing(
    tmp_path: Path, telegram: TelegramServer, fault: Any
) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        message = await question(bot)
        telegram.faults.add(fault, method="answerCallbackQuery")
        telegram.people.press(message, anna, "Approve")
        await bot.until_shown(f"{ASKS}\n\nApproved.", "done")
        bot.says("more")
        await bot.until(lambda: bot.shown()[-1] == "echo: more")


async def test_an_edit_that_fails_is_made_again(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("pay")
        message = await question(bot)
        telegram.faults.add(Disconnect(done=True), method="editMessageText")
        telegram.people.press(message, anna, "Approve")
        await bot.until_shown(f"{ASKS}\n\nApproved.", "done")
        await bot.quiet()
        assert message.buttons == []
        assert len(bot.shown()) == 2


async def test_what_was_said_before_stays_above_and_the_answer_comes_below(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, till, gate = telegram.people.person("Anna"), Till(), Gate()
    first = Say(first="I need **50 €** for the tickets, ", text="if you agree.", gate=gate, calls=payments(50).calls)
    till.model.script = in_turn(first, Say(text="done"))
    async with till.on(tmp_path, telegram, anna) as bot:
        bot.says("buy them")
        await bot.until(lambda: bot.shown())  # it has begun to grow
        gate.open()
        message = await question(bot)
        words = "I need 50 € for the tickets, if you agree."
        await bot.until(lambda: bot.shown()[0] == words)
        telegram.people.press(message, anna, "Approve")
        await bot.until_shown(words, f"{ASKS}\n\nApproved.", "done")
        await bot.quiet()
        assert [row.kind for row in reversed(await bot.gateway.store.outbox(None, 9))][:2] == ["remark", "question"]
    assert telegram.violations == []


async def test_a_question_that_nobody_answers_is_over(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, till = telegram.people.person("Anna"), Till(50)
    async with till.on(tmp_path, telegram, anna, tools=ToolSettings(approval_deadline=0.5)) as bot:
        bot.says("pay")
        await bot.until(lambda: bot.shown()[-1:] == ["done"])
        question_shown, _ = telegram.shown(bot.chat)
        assert "Nobody answered in time" in question_shown.text
        assert question_shown.buttons == []
        assert till.tool.paid == []


async def test_a_press_of_something_else_is_answered_too(tmp_path: Path, telegram: TelegramServer) -> None:
    """Another program showed it with the same bot; without an answer it would be shown as under way."""
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        (message,) = telegram.shown(bot.chat)
        assert await told(bot, message, anna, "of another program") == GONE
        assert bot.shown() == ["echo: hello"]


# -- the real program ------------------------------------------------------------------------------


CONFIG = """\
store: {{url: "sqlite:///{folder}/legato.db"}}
access: {{admins: ["telegram:{anna}"], pairing: false}}
tools: {{shell: {{enabled: true, sandbox: never}}}}
adapters: {{telegram: {{enabled: true, token: "${{TOKEN}}", base_url: "{base_url}"}}}}
"""


class Killable:
    """`legato run` with the embedded model and the shell tool, started as often as it is killed."""

    def __init__(self, folder: Path, telegram: TelegramServer) -> None:
        self.folder = folder
        self.telegram = telegram
        self.anna = telegram.people.person("Anna")
        self.chat = telegram.people.private(self.anna)
        text = CONFIG.format(folder=folder, anna=self.anna.id, base_url=telegram.base_url)
        (folder / "config.yaml").write_text(text, encoding="utf-8")

    def running(self) -> AbstractAsyncContextManager[Process]:
        """Started; at the end it is killed."""
        return legato_run(self.folder, TOKEN=self.telegram.token)

    async def asks(self, command: str) -> Message:
        """Say it, and return the question once it is shown and on record."""
        self.telegram.people.say(self.chat, self.anna, f"run {command}")
        await self.until(lambda: asked(self.telegram, self.chat) is not None)
        message = asked(self.telegram, self.chat)
        assert message is not None
        await eventually(self._is_marked)
        return message

    async def _is_marked(self) -> bool:
        """Say whether the question is known to have been shown: else it may be shown again."""
        store = SqliteStore(self.folder / "legato.db", clock=SystemClock(), read_only=True)
        await store.open()
        try:
            rows = await store.outbox(None, 9)
        finally:
            await store.aclose()
        return [row.state for row in rows if row.kind == "question"] == ["sent"]

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.telegram.until(condition)

    def shown(self) -> list[str]:
        return [message.text for message in self.telegram.shown(self.chat)]


async def test_killed_while_it_waits_it_asks_once_and_takes_the_press(tmp_path: Path, telegram: TelegramServer) -> None:
    program = Killable(tmp_path, telegram)
    async with program.running() as process:
        message = await program.asks("echo said > it; cat it")
        process.kill()
        await process.wait()
    press = telegram.people.press(message, program.anna, "Approve")
    async with program.running():
        await program.until(lambda: any("exit code 0\nsaid" in text for text in program.shown()))
        await program.until(lambda: press.answer is not None)
        await program.until(lambda: "Approved." in message.text and not message.buttons)
    assert sum("Run this command?" in text for text in program.shown()) == 1
    assert telegram.violations == []


async def test_killed_while_the_command_runs_it_is_not_run_again(tmp_path: Path, telegram: TelegramServer) -> None:
    program, started = Killable(tmp_path, telegram), tmp_path / "started"
    async with program.running() as process:
        message = await program.asks(f"echo $$ >> '{tmp_path}/runs'; echo $$ > new; mv new '{started}'; sleep 300")
        telegram.people.press(message, program.anna, "Approve")
        pid = int(await written(started))
        process.kill()
        await process.wait()
    os.killpg(pid, signal.SIGKILL)
    async with program.running():
        await program.until(lambda: any("outcome is unknown" in text for text in program.shown()))
        await program.until(lambda: "Approved." in message.text)
    assert await written(tmp_path / "runs") == f"{pid}\n"
