"""Files that the model writes, on their way to people on Telegram."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import Disconnect, Flood, Refuse
from tests.telegram_files import World

pytest_plugins = ["tests.telegram_files"]


def writing(name: str, content: str) -> Any:
    """A model that sends a file and then says so."""

    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return Reply(text=body["messages"][-1]["content"].partition(";")[0])
        return Reply(tool_calls=[("send_file", {"name": name, "content": content})])

    return reply


def documents(world: World) -> list[tuple[str, bytes]]:
    """The files in Anna's chat: names and contents."""
    files = world.telegram.cloud.files
    shown = [message.content for message in world.telegram.shown(world.telegram.people.private(world.anna))]
    ids = [(each["document"]["file_name"], each["document"]["file_id"]) for each in shown if "document" in each]
    return [(name, files.take("document", file_id).content) for name, file_id in ids]


async def test_a_file_that_the_model_writes_is_a_document_before_its_answer(world: World) -> None:
    world.model.reply = writing("../../etc/plan \u202e.md", "# Plan\n你好\n")
    async with world.bot() as bot:
        bot.says("write me a plan")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        await bot.quiet()
        assert documents(world) == [("plan _.md", "# Plan\n你好\n".encode())]
        assert "document" in world.telegram.shown(bot.chat)[0].content
    assert world.model.violations == []


@pytest.mark.parametrize("fault", [Flood(seconds=1), Disconnect(), Refuse(status=502)], ids=repr)
async def test_a_file_that_was_not_taken_is_sent_again(world: World, fault: Any) -> None:
    world.model.reply = writing("a.txt", "text")
    world.telegram.faults.add(fault, method="sendDocument")
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        await bot.quiet()
        assert documents(world) == [("a.txt", b"text")]
