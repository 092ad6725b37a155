"""Commands with hostile arguments, in shared chats, and in other scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.config.models import Sessions
from gateway.commands.runner import BROKEN
from tests.support.gateway import FakeModel, config_in, running


async def test_a_retry_in_a_shared_session_names_the_speaker_once(tmp_path: Path) -> None:
    model = FakeModel()
    config = config_in(tmp_path, sessions=Sessions(groups="shared"))
    async with running(tmp_path, config=config, model=model) as live:
        where = {"chat_type": "group", "user_name": "Ada"}
        await live.ask("what is it?", **where)
        await live.ask("/retry", **where)
        assert model.spoken() == [("user", "[Ada] what is it?")]


@pytest.mark.parametrize("command", ["/resume {n}", "/undo {n}"])
async def test_a_number_too_long_to_be_one_is_answered_with_a_sentence(tmp_path: Path, command: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        answer = await live.ask(command.format(n="9" * 6_000))
        assert answer != BROKEN
        assert len(answer) < 200


@pytest.mark.parametrize("space", ["\t", "\u3000", "\u00a0", "\n"])
async def test_a_command_ends_at_any_white_space(tmp_path: Path, space: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        assert await live.ask(f"/title{space}会议") == "This session is now “会议”."
