"""The page while something waits or runs: nothing of that is hidden, and nobody ends it without being asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from adapters.web.server import source_of
from tests.support.browser import equals_reload, person, say
from tests.support.gateway import Say, in_turn
from tests.support.model import FakeModel
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


@asynccontextmanager
async def asked(folder: Path, chromium: Browser, **how: bool) -> AsyncIterator[tuple[LivePage, Page, str]]:
    """A chat in which a question waits, and the id of an earlier conversation."""
    script = in_turn(
        Say(text="Tides come twice a day."), payments(50), Say(text="It is paid."), Say(text="At night, too.")
    )
    async with page(folder, model=FakeModel(script), tools=[Payment()]) as live, person(chromium, live, **how) as me:
        for words, answer in (("How do tides work?", "twice"), ("/new", "fresh session"), ("pay it", "Pay 50")):
            await live.me.say(words)
            await live.me.until(answer, quiet=False)
        (other,) = [each.id for each in await live.adapter.views.sessions(source_of("owner")) if not each.present]
        await me.goto(live.adapter.at)
        yield live, me, other


async def test_a_question_that_waits_is_seen_whatever_is_said_meanwhile(tmp_path: Path, chromium: Browser) -> None:
    async with asked(tmp_path, chromium) as (live, me, other):
        await live.me.post("/say", {"text": "And at night?", "back": other, "id": "t_elsewhere"})
        await expect(me.locator("#log")).to_contain_text("And at night?")
        for _ in range(2):
            await expect(me.locator(".question")).to_be_in_viewport()
            await expect(me.locator(".question .buttons button").first).to_be_visible()
            for each in await me.locator("#log .notice .body").all():
                await expect(each).to_be_visible()
            await expect(me.locator("#log .said", has_text="pay it")).to_be_visible()
            await me.reload()
        await me.get_by_role("button", name="Allow once").click()
        await expect(me.locator("#log .reply").last).to_contain_text("At night, too.")
        await expect(me.locator("#log .reply", has_text="It is paid.").locator(".body")).to_be_visible()
        await expect(me.locator("#before")).to_contain_text("twice a day")
        await equals_reload(me)
