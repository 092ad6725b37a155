"""What Slack is told of what it hands over: commands and presses in time, and pages of the bot's own."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from adapters.slack.adapter import LATER, SlackAdapter
from gateway.domain.adapter import Accepted
from gateway.runtime.errors import AdapterError
from tests.support.fakes import ManualClock


class Slack:
    """An adapter whose receiver's answer the test gives."""

    def __init__(self, clock: ManualClock, admits: bool = True) -> None:
        self.adapter: Any = Mock(_clock=clock, _calls=AsyncMock(), _tell=AsyncMock())
        self.adapter._host = Mock(model_of=AsyncMock(return_value="gpt-9"), turns_running=Mock(return_value=3))
        self.adapter.admits = AsyncMock(return_value=admits)
        for name in ("_guest", "_show_home", "_show_prompts"):
            method = getattr(SlackAdapter, name)
            setattr(self.adapter, name, lambda *given, method=method: method(self.adapter, *given))
        self.taken: asyncio.Future[Accepted | None] = asyncio.get_running_loop().create_future()

    def answered(self, kind: str, payload: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(SlackAdapter._answered(self.adapter, kind, payload, self.taken))

    @property
    def calls(self) -> list[Any]:
        return [(call.args[0], call.kwargs) for call in self.adapter._calls.await_args_list]


@pytest.mark.parametrize(("kind", "told"), [("slash_commands", {"text": LATER}), ("interactive", None)])
async def test_what_takes_longer_than_slack_waits_is_answered_later(clock: ManualClock, kind: str, told: Any) -> None:
    slack = Slack(clock)
    answer = slack.answered(kind, {})
    await clock.advance(10.0)
    assert await answer == told
    assert not slack.taken.cancelled()


@pytest.mark.parametrize(
    ("kind", "status", "said", "answer", "told"),
    [
        ("slash_commands", "refused", "Too much at once.", {"text": "Too much at once."}, False),
        ("slash_commands", "new", "Welcome.", None, False),
        ("interactive", "new", "Approved.", None, True),
        ("interactive", "new", "", None, False),
    ],
)
async def test_a_refused_command_is_answered_and_who_pressed_is_told(
    clock: ManualClock, kind: str, status: Any, said: str, answer: Any, told: bool
) -> None:
    slack = Slack(clock)
    slack.taken.set_result(Accepted(event_id="e", status=status, told=said))
    assert await slack.answered(kind, {"p": 1}) == answer
    assert [call.args for call in slack.adapter._tell.await_args_list] == ([({"p": 1}, said)] if told else [])


async def test_what_nobody_could_read_is_answered_with_nothing(clock: ManualClock) -> None:
    slack = Slack(clock)
    slack.taken.set_result(None)
    assert await slack.answered("interactive", {}) is None
    slack.adapter._tell.assert_not_awaited()


@pytest.mark.parametrize("admits", [True, False])
@pytest.mark.parametrize(("tab", "shown"), [("home", True), ("messages", False)])
async def test_the_home_tab_shows_how_the_bot_is_to_who_may_talk(
    clock: ManualClock, admits: bool, tab: str, shown: bool
) -> None:
    slack = Slack(clock, admits)
    slack.taken.set_result(None)
    event = {"type": "app_home_opened", "tab": tab, "channel": "D1", "user": "U1"}
    assert await slack.answered("events_api", {"event": event}) is None
    assert [name for name, _ in slack.calls] == (["views.publish"] if admits and shown else [])
    if slack.calls:
        (_, given) = slack.calls[0]
        assert (given["user_id"], given["view"]["type"]) == ("U1", "home")
        assert "gpt-9" in str(given["view"]["blocks"])


async def test_an_assistant_thread_begins_with_proposals_and_a_refusal_stops_nothing(clock: ManualClock) -> None:
    slack = Slack(clock)
    slack.taken.set_result(None)
    slack.adapter._calls.side_effect = AdapterError("missing_scope")
    thread = {"channel_id": "D1", "thread_ts": "1.5", "user_id": "U1"}
    event = {"type": "assistant_thread_started", "assistant_thread": thread}
    assert await slack.answered("events_api", {"event": event}) is None
    ((name, given),) = slack.calls
    assert name == "assistant.threads.setSuggestedPrompts"
    assert (given["channel_id"], given["thread_ts"]) == ("D1", "1.5")
    assert given["prompts"]
    assert await slack.answered("events_api", {"event": {"type": "other"}}) is None
    assert len(slack.calls) == 1
