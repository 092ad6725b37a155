"""/status, /stop and /usage: what goes on, what is stopped, and what it cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.caps import Standing
from gateway.agent.running import RunningTurn
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, UsageTotal
from gateway.store.records import Cap
from tests.support import store_kit
from tests.support.store_kit import key, new_session
from tests.unit.commands.test_approval import asked

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling


def turn(call: Calling, **more: Any) -> RunningTurn:
    """A turn runs here since the test began."""
    source = call.context("x").inbound.source
    facts: dict[str, Any] = {"key": key(), "source": source, "started_at": 0.0, "alive_at": 0.0, "end": print}
    running = RunningTurn(**facts | more)
    call.running.enter(running)
    return running


async def test_without_anything_there_is_nothing(call: Calling) -> None:
    assert await call("/status") == (
        "Nothing is running.\nThere is no session yet. Your next message starts a session."
    )


async def test_a_turn_says_what_it_does_and_for_how_long(call: Calling) -> None:
    running = turn(call, phase="running tools", tools=("running `make`",))
    await call.clock.advance(90.0)
    assert (await call("/status")).splitlines()[0] == (
        "I have been working for 90 s: running `make`, step 1. /stop ends my work."
    )
    running.phase, running.step, running.again_at = "thinking", 3, 94.5
    assert "thinking, step 3. The model did not answer, so I try again in 5 s. /stop" in await call("/status")


async def test_a_turn_of_another_process_and_what_waits_is_told(call: Calling) -> None:
    await store_kit.claimed(call.store)
    await store_kit.put(call.store, "e2", "e3")
    await call.clock.advance(120.0)
    lines = (await call("/status")).splitlines()
    assert lines[0] == "I am working on a message that came 2 min ago. /stop ends my work."
    assert lines[1] == "Messages that are waiting for an answer: 2."


async def test_the_session_its_helpers_and_open_questions_are_told(call: Calling) -> None:
    session = new_session("s1", message_count=1, compaction_count=2)
    call.store.tip = AsyncMock(return_value=session)  # type: ignore[method-assign]
    call.sessions.models.of.return_value = SimpleNamespace(name="large")
    elsewhere = asked(2, key=key("2"))
    call.people.approvals.answerable.return_value = [asked(1), elsewhere]
    now = call.clock.now()
    call.sessions.helpers.of.return_value = [SimpleNamespace(since=now - 60.0, brief="look it up")]
    call.background.running.return_value = [SimpleNamespace(name="build", at=now - 5.0)]
    call.agents.mcp.troubled.return_value = [("mail", "away")]
    assert (await call("/status")).splitlines()[1:] == [
        "I am waiting for your /approve or /deny:",
        "1. Do 1?",
        "A helper has been working for 60 s: look it up",
        "Running in the background: build, for 5 s. /stop all ends them.",
        "This session has 1 message and uses the model large. Its id is s1.",
        "I compressed this session 2 times, and still keep every word.",
    ]
    assert (await call("/status", "boss")).endswith("\nThe MCP server mail is away.")
    call.store.tip.return_value = new_session("s1", compaction_count=1)
    assert "I compressed this session once" in await call("/status")


@pytest.mark.parametrize(
    ("turns", "helpers", "background", "argument", "told"),
    [
        (False, [], [], "", "Nothing is running."),
        (True, [], [], "", "Stopping."),
        (False, ["h"], [], "", "Stopping."),
        (True, [], ["build"], "", "Stopping. This goes on in the background: build. /stop all ends it, too."),
        (
            False, [], ["build", "test"], "",
            "I am not writing an answer. This runs in the background: build, test. /stop all ends it, too.",
        ),
        (False, [], ["build"], " all", "I ended what ran in the background: build."),
        (True, [], ["build"], " ALL", "Stopping. I also ended what ran in the background: build."),
    ],
)  # fmt: skip
async def test_a_stop_ends_what_runs(
    call: Calling, turns: bool, helpers: list[str], background: list[str], argument: str, told: str
) -> None:
    call.store.signal = AsyncMock(return_value=turns)  # type: ignore[method-assign]
    call.sessions.helpers.stop.return_value = helpers
    call.background.running.return_value = [SimpleNamespace(name=each) for each in background]
    assert await call(f"/stop{argument}") == told
    call.store.signal.assert_awaited_once_with(key(), "stop", call.clock.now())
    call.sessions.helpers.stop.assert_awaited_once_with(key(), background=True)
    assert call.background.end_all.await_count == bool(argument)


async def test_a_stop_makes_the_bot_be_silent_in_a_room(call: Calling) -> None:
    call.program.rooms = {"test": Mock(hush=Mock(return_value=True))}
    assert await call("/stop") == "Stopping."


def used(label: str, calls: int = 1) -> UsageTotal:
    return UsageTotal(label=label, calls=calls, usage=CanonicalUsage(input_tokens=5), cost_usd=0.5)


async def test_usage_adds_up_a_session_with_what_it_continues_and_the_last_day(call: Calling) -> None:
    call.store.tip = AsyncMock(return_value=new_session("s2"))  # type: ignore[method-assign]
    call.store.lineage = AsyncMock(return_value=[new_session("s1"), new_session("s2")])  # type: ignore[method-assign]
    totals = {
        "session": [used("s1"), used("s2", 2), used("s9", 100)],
        "model": [used("large", 3), used("small")],
        "purpose": [used("turn"), used(BROKEN_OFF)],
    }
    call.store.usage = AsyncMock(side_effect=lambda since, by, key: totals[by])  # type: ignore[method-assign]
    cap = Cap(name="person", account="a", limit=2_000_000, resets_at=call.clock.now() + 3_600.0)
    metering = Mock(standings=AsyncMock(return_value=[Standing(cap=cap, spent=500_000)]))
    call.agents.metering.answering.return_value = metering
    lines = (await call("/usage")).splitlines()
    assert lines[0].startswith("This session: 3 calls, 10 tokens in")
    assert lines[1].startswith("Last 24 hours, in this chat: 4 calls")
    assert [line.partition(":")[0] for line in lines[2:4]] == ["  large", "  small"]
    assert lines[4].startswith("  This includes an estimate for answers that broke off: 1 call")
    assert lines[5].endswith("leaves $1.50 of $2.00 for the next 60 minutes")
    assert call.store.usage.await_args_list[1].args[0] == call.clock.now() - 86_400.0
    totals["model"] = [used("large")]
    call.store.tip.return_value = None
    lines = (await call("/usage")).splitlines()
    assert lines[0].startswith("Last 24 hours")
    assert not any(line.startswith("  large") for line in lines)
