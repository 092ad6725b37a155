"""The page while something waits or runs: nothing of that is hidden, and nobody ends it without being asked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from adapters.web.server import source_of
from tests.support.browser import equals_reload, person, say, tab
from tests.support.gateway import Say, in_turn
from tests.support.model import FakeModel
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


@asynccontextmanager
async def asked(folder: Path, chromium: Browser, **how: Any) -> AsyncIterator[tuple[LivePage, Page, str]]:
    """A chat in which a question waits, and the id of an earlier conversation."""
    script = in_turn(
        Say(text="Tides come twice a day."), payments(50), Say(text="It is paid."), Say(text="At night, too.")
    )
    async with page(folder, model=FakeModel(script), tools=[Payment()]) as live, person(chromium, live, **how) as me:
        for words, answer in (("How do tides work?", "twice"), ("/new", "fresh session"), ("pay it", "Pay 50")):
            await live.me.say(words)
            await live.me.until(answer, quiet=False)
        assert live.adapter.views is not None
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


async def test_a_link_is_shown_where_it_is_made(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live:
        context = await chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        wrong: list[str] = []
        me = await tab(context, wrong)
        await me.goto(live.adapter.guard.link)
        await say(me, "\n\n".join(f"line {number}" for number in range(80)))
        await more(me, "line 0")
        await me.get_by_role("button", name="Share").click()
        await me.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert not live.adapter.guard.shares.of("owner"), "it was only asked"
        await more(me, "line 0")
        await me.get_by_role("button", name="Share").click()
        await me.get_by_role("dialog").get_by_role("button", name="Make a link").click()
        link = await me.get_by_role("textbox", name="Link").input_value()
        assert not (await Axe().run(me)).response["violations"]
        await me.get_by_role("dialog").get_by_role("button", name="Copy").click()
        await expect(me.locator("#toast")).to_have_text("Copied")
        assert await me.evaluate("navigator.clipboard.readText()") == link
        async with live.visitor() as stranger:
            assert "line 79" in (await stranger.get(link.removeprefix(live.adapter.at)))[1]
        await context.close()
        assert wrong == []
        async with person(chromium, live, java_script_enabled=False) as other:
            await more(other, "line 0")
            await other.get_by_role("button", name="Share").click()
            await expect(other.get_by_text(link)).to_be_in_viewport()


async def test_a_conversation_is_deleted_by_its_title_and_leaves_nothing_in_the_chat(
    tmp_path: Path, chromium: Browser
) -> None:
    async with (
        page(tmp_path) as live,
        person(chromium, live) as me,
        person(chromium, live, java_script_enabled=False) as other,
    ):
        for words in ("about apples", "/new", "about <b>pears", "/new", "about plums"):
            await live.me.say(words)
            await live.me.until("fresh session" if words == "/new" else f"echo: {escape(words)}")
        await expect(me.locator(".sessions [data-at]")).to_have_count(3)
        await expect(me.locator("#before")).to_be_empty()
        for answer in ("Cancel", "Delete"):
            await more(me, "about apples")
            await me.locator(".sessions").get_by_role("button", name="Delete").click()
            await expect(me.get_by_role("dialog")).to_contain_text("Delete “about apples”? This cannot be undone.")
            assert not (await Axe().run(me)).response["violations"]
            await me.get_by_role("dialog").get_by_role("button", name=answer).click()
        await expect(me.locator("#toast")).to_have_text("Deleted")
        await expect(me.locator(".sessions [data-at]")).to_have_count(2)
        await other.goto(live.adapter.at)
        await more(other, "pears")
        await other.get_by_role("button", name="Delete").click()
        await expect(other.locator("main")).to_contain_text("Delete “about <b>pears”? This cannot be undone.")
        await other.get_by_role("button", name="Delete").click()
        await expect(me.locator(".sessions [data-at]")).to_have_count(1)
        for _ in range(2):  # the present one is there, also after a reload
            await expect(me.locator("main")).to_contain_text("echo: about plums")
            await me.reload()
        assert "/forget session" not in await me.content()
        assert not re.search("apples|pears", await me.content())
        await equals_reload(me)


async def more(me: Page, title: str) -> None:
    """Open the menu of a conversation."""
    await me.locator(".sessions [data-at]", has_text=title).hover()
    await me.locator(".sessions [data-at]", has_text=title).locator("summary").click()
