"""/insights: what the last days cost, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from gateway.domain.chat import SessionKey
from gateway.domain.usage import CanonicalUsage, UsageTotal
from tests.support.store_kit import key, new_session

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling

DAY = 86_400.0


def used(label: str, dollars: float, tokens: int = 10, **more: Any) -> UsageTotal:
    return UsageTotal(
        **{"label": label, "calls": 1, "usage": CanonicalUsage(input_tokens=tokens), "cost_usd": dollars, **more}
    )


def ledger(call: Calling, **totals: list[UsageTotal]) -> AsyncMock:
    """The store adds calls up like this, by what is asked for."""
    call.store.usage = AsyncMock(side_effect=lambda since, by, key=None: totals.get(by, []))  # type: ignore[method-assign]
    return call.store.usage  # type: ignore[return-value]


async def test_a_person_sees_their_own_conversation(call: Calling) -> None:
    asked = ledger(call, model=[used("large", 3.0), used("small", 1.0)], purpose=[used("title", 4.0)])
    lines = (await call("/insights 30")).splitlines()
    assert lines[0].startswith("Last 30 days, this conversation: 2 calls, 20 tokens in")
    assert lines[1:] == [
        "By model:",
        "  [████████░░] 75%  large: $3.00, 10 tokens",
        "  [██░░░░░░░░] 25%  small: $1.00, 10 tokens",
        "By purpose:",
        "  [██████████] 100%  title: $4.00, 10 tokens",
    ]
    assert {(each.args[0], each.kwargs["key"]) for each in asked.await_args_list} == {
        (call.clock.now() - 30 * DAY, key())
    }


async def test_an_admin_sees_everybody_by_person_and_platform(call: Calling) -> None:
    ben, shared = SessionKey(platform="test", chat="2", user="ben"), SessionKey(platform="test", chat="g")
    tips = {key(): new_session("s1"), shared: new_session("s2", chat_type="group")}
    call.store.tip = AsyncMock(side_effect=tips.get)  # type: ignore[method-assign]
    by_key = [used(f"{each}", 1.0) for each in (ben, shared, key())] + [used(f"{ben}", 0.5), used("damaged", 0.1)]
    asked = ledger(call, model=[used("m", 3.6)], key=by_key, platform=[used("test", 3.6)])
    told = await call("/insights", "boss")
    assert told.startswith("Last 7 days, everybody: 1 call")
    people = told[told.index("By person:") : told.index("By platform:")]
    assert [line.split("  ")[-1] for line in people.splitlines()[1:]] == [
        "test:ben: $1.50, 20 tokens",
        "test:g (shared): $1.00, 10 tokens",
        "test:1: $1.00, 10 tokens",
        "unknown: $0.10, 10 tokens",
    ]
    assert {each.kwargs["key"] for each in asked.await_args_list} == {None}
    assert "this conversation" in await call("/insights", "boss", "group"), "not where others read it"


async def test_where_nothing_has_a_price_tokens_count(call: Calling) -> None:
    ledger(call, model=[used("a", 0.0, 30, unpriced_calls=1), used("b" * 30, 0.0, 10, unpriced_calls=1)])
    lines = (await call("/insights")).splitlines()
    assert lines[2] == "  [████████░░] 75%  a: no price known, 30 tokens"
    assert lines[3].endswith(f"  {'b' * 23}…: no price known, 10 tokens")


async def test_a_table_has_six_rows(call: Calling) -> None:
    ledger(call, model=[used(f"m{number}", 1.0 + number) for number in range(8)])
    lines = (await call("/insights")).splitlines()
    assert [line.partition("%  ")[2][:2] for line in lines[2:8]] == ["m7", "m6", "m5", "m4", "m3", "m2"]
    assert lines[8] == "  and 2 more"


@pytest.mark.parametrize("days", ["0", "366", "x", "-1", "1.5", "0365"])
async def test_other_spans_are_refused(call: Calling, days: str) -> None:
    assert (await call(f"/insights {days}")).startswith("Say how many days I should look back, from 1 to 365")


@pytest.mark.parametrize(("days", "said"), [("1", "1 day"), ("365", "365 days")])
async def test_nothing_was_used(call: Calling, days: str, said: str) -> None:
    ledger(call)
    assert await call(f"/insights {days}") == f"I used no model in the last {said}."
