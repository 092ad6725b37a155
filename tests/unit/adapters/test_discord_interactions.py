"""The time in which Discord takes an answer in the place of "wait", by a clock that the test owns."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from discord.errors import HTTPException, NotFound
from discord.http import Route

from adapters.discord.codec import Interaction, snowflake
from adapters.discord.commands import SlashCommands
from adapters.discord.connection import DiscordClient
from adapters.discord.interactions import TOO_LATE, Interactions
from gateway.domain.adapter import Accepted
from gateway.runtime.errors import DeliveryRefused
from tests.support.fakes import ManualClock

LOADING = 1 << 7
ANSWER = {"content": "Done."}


@dataclass
class Calls:
    """Discord, where the first word stands until another takes its place. `made`: methods of the calls; `refused`: the
    errors of some."""

    application_id: int = 7
    made: list[str] = field(default_factory=list)
    refused: dict[str, HTTPException] = field(default_factory=dict)

    @property
    def calls(self) -> Calls:
        return self

    async def request(self, route: Route, **how: Any) -> dict[str, Any]:
        self.made.append(route.method)
        if route.method in self.refused:
            raise self.refused[route.method]
        return {"id": "9", "flags": LOADING, "content": ""}


@dataclass
class Given:
    """A command that was just given and acknowledged."""

    clock: ManualClock
    discord: Calls
    interactions: Interactions
    data: dict[str, Any]

    def each(self, *, private: bool = False) -> Interaction:
        return Interaction(id=self.data["id"], token="t", private=private)


@pytest.fixture
async def given() -> Given:
    clock, discord = ManualClock(), Calls()
    interactions = Interactions(cast(DiscordClient, discord), SlashCommands([]), clock)
    data = {"id": str(snowflake(clock.now())), "token": "t", "type": 2, "data": {"name": "new"}}
    await interactions.acknowledge(data, private=False)
    discord.made.clear()
    return Given(clock, discord, interactions, data)


async def test_an_answer_within_fourteen_minutes_takes_the_place_of_wait(given: Given) -> None:
    await given.clock.advance(14 * 60 - 1)
    assert await given.interactions.show(given.each(), ANSWER, may_be_public=False) == "9"
    assert given.discord.made == ["GET", "PATCH"]


def unknown(code: int) -> NotFound:
    return NotFound(cast(Any, SimpleNamespace(status=404, reason="Not Found")), {"code": code, "message": "Unknown"})


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_an_answer_whose_place_is_gone_comes_behind_it(given: Given, method: str, private: bool) -> None:
    given.discord.refused[method] = unknown(10008)
    told = await given.interactions.show(given.each(private=private), ANSWER, may_be_public=False)
    assert told == ("@9" if private else "9")
    assert given.discord.made[-1] == "POST"


async def test_an_answer_that_finds_no_place_at_all_is_a_message_of_its_own(given: Given) -> None:
    given.discord.refused |= {"GET": unknown(10008), "POST": unknown(10015)}
    assert await given.interactions.show(given.each(), ANSWER, may_be_public=False) is None
    with pytest.raises(DeliveryRefused, match=TOO_LATE):
        await given.interactions.show(given.each(private=True), ANSWER, may_be_public=False)


async def test_a_later_answer_is_a_message_of_its_own(given: Given) -> None:
    await given.clock.advance(14 * 60 + 1)
    assert await given.interactions.show(given.each(), ANSWER, may_be_public=False) is None
    assert given.discord.made == []


async def test_a_later_answer_that_only_one_person_may_see_is_not_shown_to_others(given: Given) -> None:
    await given.clock.advance(14 * 60 + 1)
    with pytest.raises(DeliveryRefused, match=TOO_LATE):
        await given.interactions.show(given.each(private=True), ANSWER, may_be_public=False)
    assert await given.interactions.show(given.each(private=True), ANSWER, may_be_public=True) is None
    assert given.discord.made == []


async def test_wait_is_taken_away_when_no_answer_came_in_time(given: Given) -> None:
    taken = Accepted(event_id="e", status="new")
    concluding = asyncio.create_task(given.interactions.conclude(given.data, taken))
    await given.clock.advance(14 * 60 - 1)
    assert given.discord.made == []
    await given.clock.advance(2)
    await concluding
    assert given.discord.made == ["GET", "DELETE"]
