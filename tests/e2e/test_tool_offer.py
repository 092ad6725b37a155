"""The model is shown the tools that are on offer where it is asked, and can call no others."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.tools import find_tools
from gateway.agent.tools.runtime import UNKNOWN_OUTCOME
from gateway.app.config.models import ToolSettings
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.providers.base import ModelRequest
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.tokens import TokenCounter
from tests.support.gateway import FakeModel, KillAt, Say, config_in, in_turn, running
from tests.support.tools import Payment


def names(request: ModelRequest) -> list[str]:
    return [schema["function"]["name"] for schema in request.tools]


async def test_a_tool_that_is_not_on_offer_is_neither_shown_nor_run(tmp_path: Path) -> None:
    tools = ToolSettings(offered={"fake:anna": ("-pay", "-search_history"), "fake": ("pay",)}, admins_only=())
    pay, model = Payment(), FakeModel(in_turn(Say(calls=[("pay", '{"sum": 1}')]), Say(text="no"), Say(text="yes")))
    async with running(tmp_path, config=config_in(tmp_path, tools=tools), model=model, tools=[pay]) as live:
        assert await live.ask("pay", user="anna") == "no"
        assert not pay.paid
        assert "There is no tool named 'pay'" in text_of(model.requests[1].messages[-1])
        assert "pay" not in names(model.requests[0])
        assert "search_history" not in text_of(model.requests[0].messages[0])
        await live.ask("pay", user="otto", chat="d")
        assert names(model.requests[2]) == ["pay"]


async def test_the_order_outlives_a_restart_and_what_comes_later_stands_behind(tmp_path: Path) -> None:
    model = FakeModel()
    tools = ToolSettings(offered={"*": ("clock", "todo", "pay")})
    config = config_in(tmp_path, tools=tools)
    async with running(tmp_path, config=config, model=model) as live:
        await live.ask("one")
        assert names(model.requests[-1]) == ["clock", "todo"]
        live.gateway.agents.sessions.toolbox.register("later", [Payment()])
        await live.ask("two")
        assert names(model.requests[-1]) == ["clock", "todo", "pay"]
        live.gateway.agents.sessions.toolbox.register("later", [])
        await live.ask("three")
        assert names(model.requests[-1]) == ["clock", "todo", "pay"], "the prompt stays as it is"
    async with running(tmp_path, config=config, model=model) as live:
        await live.ask("four")
        assert names(model.requests[-1]) == ["clock", "todo"]
        live.gateway.agents.sessions.toolbox.register("legato", [])
        live.gateway.agents.sessions.toolbox.register("first", [Payment()])
        await live.ask("five")
        assert names(model.requests[-1]) == ["clock", "todo", "pay"]
        tip = await live.tip()
        assert tip is not None
        assert tip.tools == ("clock", "todo", "pay")


async def test_in_a_shared_session_each_person_has_their_own(tmp_path: Path) -> None:
    model = FakeModel()
    tools = ToolSettings(offered={"*": ("clock", "todo"), "fake:anna": ("clock", "pay")})
    config = config_in(tmp_path, tools=tools, sessions=SessionSettings(groups="shared"))
    async with running(tmp_path, config=config, model=model, tools=[Payment()]) as live:
        for user, seen in (("anna", ["clock", "pay"]), ("otto", ["clock", "todo"]), ("anna", ["clock", "pay"])):
            await live.ask("hello", user=user, chat_type="group")
            assert names(model.requests[-1]) == seen


async def test_a_call_that_had_begun_is_of_unknown_outcome_even_if_its_tool_is_gone(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(calls=[("pay", '{"sum": 1}'), ("clock", "{}")]), Say(text="I see.")))
    kill = KillAt("turn.tools_begun")
    async with running(tmp_path, model=model, tools=[Payment()], points=kill) as live:
        await live.tell("pay")
        await kill.passed.wait()
    async with running(tmp_path, model=model) as live:
        await live.adapter.until(lambda: live.adapter.shown("c", "reply"))
        paid, told = (text_of(message) for message in model.requests[-1].messages[-2:])
        assert paid == UNKNOWN_OUTCOME
        assert "UTC" in told


async def test_what_was_called_is_shown_first(tmp_path: Path) -> None:
    class Mail(Payment):
        name = "send_letter"
        description = "Posts a letter. " * 30

    class Fax(Mail):
        name = "a_fax"

    calls = in_turn(Say(calls=[("send_letter", '{"sum": 1}')]), Say(text="sent"), Say(text="small"))
    model = FakeModel(calls)
    config = config_in(tmp_path, model=ModelEntry(provider="offline", name="fake", context_length=6_000))
    async with running(tmp_path, config=config, model=model, tools=[Fax(), Mail()]) as live:
        await live.ask("hello")
        await live.ask("/new")
        await live.ask("hello")
    shown = names(model.requests[-1])
    assert "find_tools" in shown, "others have no room"
    assert "send_letter" in shown
    assert "a_fax" not in shown


async def test_long_calls_and_many_descriptions_are_read_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[int]] = {"count": set(), "find": set()}
    count, find = TokenCounter.message, find_tools.best

    def counted(self: TokenCounter, message: Mapping[str, Any]) -> int:
        if message.get("tool_calls"):
            threads["count"].add(threading.get_ident())
        return count(self, message)

    def found(words: str, tools: Mapping[str, str]) -> list[str]:
        threads["find"].add(threading.get_ident())
        return find(words, tools)

    monkeypatch.setattr(TokenCounter, "message", counted)
    monkeypatch.setattr(find_tools, "best", found)
    model = FakeModel(in_turn(Say(calls=[("find_tools", json.dumps({"words": "字" * 9_000}))]), Say(text="none")))
    config = config_in(tmp_path, model=ModelEntry(provider="offline", name="fake", context_length=50_000))
    many = [Payment() for _ in range(40)]
    for number, tool in enumerate(many):
        tool.name, tool.description = f"pay_{number}", "Pays someone else. " * 300
    async with running(tmp_path, config=config, model=model, tools=many) as live:
        assert await live.ask("find one") == "none"
    assert all(seen and threading.get_ident() not in seen for seen in threads.values())


async def test_hidden_tools_are_found_and_stay(tmp_path: Path) -> None:
    class Mail(Payment):
        name = "send_letter"
        description = "Posts a letter. " * 100

    model = FakeModel(
        in_turn(
            Say(calls=[("find_tools", '{"words": "post letters"}')]),
            Say(calls=[("send_letter", '{"sum": 1}')]),
            Say(text="sent"),
            Say(text="again"),
        )
    )
    mail = Mail()
    config = config_in(tmp_path, model=ModelEntry(provider="offline", name="fake", context_length=6_000))
    async with running(tmp_path, config=config, model=model, tools=[mail]) as live:
        assert await live.ask("post it") == "sent"
        assert mail.paid == [1]
        first, second, *_ = map(names, model.requests)
        assert "send_letter" not in first
        assert first[-1] == "find_tools"
        assert second == [*first, "send_letter"]
    async with running(tmp_path, config=config, model=model, tools=[mail]) as live:
        assert await live.ask("and now?") == "again"
        assert names(model.requests[-1]) == second, "what was found stays found"
