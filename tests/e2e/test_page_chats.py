"""Several chats of one person on the page: each works by itself, and the list says what goes on in the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from adapters.web.server import source_of
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from tests.support.browser import equals_reload, person, say
from tests.support.gateway import Gate, Say
from tests.support.model import FakeModel, Script, newest
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


def held(gate: Gate) -> Script:
    """Echoes; what is slow waits at the gate, and what asks for a payment asks the person first."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        words, asked = newest(request), request.messages[-1]["role"] == "user"
        if words.startswith("pay") and asked:
            return payments(50)
        said = " ".join(text_of(each) for each in request.messages if each["role"] == "user")
        return Say(text=f"echo: {words} ({said.count('number')})", gate=gate if words.startswith("slow") else None)

    return script


def line(me: Page, title: str, mark: str = "") -> object:
    """A chat in the list, with a mark."""
    within = me.locator(".sessions li:not(.day)", has_text=title)
    return within.locator(f".mark.{mark}") if mark else within


async def test_two_chats_answer_at_the_same_time(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate()
    async with page(tmp_path, model=FakeModel(held(gate))) as live, person(chromium, live) as me:
        await say(me, "slow number one")
        await gate.until_waiting()
        await me.locator(".fresh").click()
        await me.wait_for_url(re.compile(r"/c/[A-Za-z0-9-]+$"))
        await expect(me.locator("#empty")).to_be_visible()
        await expect(me.locator("#working")).to_be_hidden()
        await expect(line(me, "slow number one", "works")).to_be_visible()
        assert not (await Axe().run(me)).response["violations"]
        await say(me, "quick number two")
        await expect(me.locator("#log .reply")).to_contain_text("echo: quick number two (1)")
        assert gate.waiting == 1, "the first chat was stopped"
        second = me.url.partition("#")[0]
        gate.open()
        await expect(line(me, "slow number one", "unread")).to_be_visible()
        await equals_reload(me)
        await expect(line(me, "slow number one", "unread")).to_be_visible()
        await me.get_by_role("link", name="slow number one").click()
        await expect(me.locator("#log .reply")).to_contain_text("echo: slow number one (1)")
        await expect(me.locator(".sessions .mark")).to_have_count(0)
        await equals_reload(me)
        await me.goto(second)
        await expect(me.locator("#log .reply")).to_contain_text("echo: quick number two (1)")
        await expect(me.locator(".sessions .mark")).to_have_count(0)
        assert len(await sessions(live)) == 2


async def test_a_question_of_another_chat_is_seen_in_the_list(tmp_path: Path, chromium: Browser) -> None:
    tool = Payment()
    model = FakeModel(held(Gate()))
    async with page(tmp_path, model=model, tools=[tool]) as live, person(chromium, live) as me:
        await say(me, "pay number one")
        await expect(me.locator(".question .buttons button").first).to_be_visible()
        await me.locator(".fresh").click()
        await expect(line(me, "pay number one", "waits")).to_be_visible()
        await say(me, "y")  # no answer to the other chat's question
        await expect(me.locator("#log .reply")).to_contain_text("echo: y")
        assert tool.paid == []
        await say(me, "/stop")
        await expect(me.locator("#log .command")).to_be_visible()
        await expect(line(me, "pay number one", "waits")).to_be_visible()
        await me.get_by_role("link", name="pay number one").click()
        await me.get_by_role("button", name="Allow once").click()
        await expect(me.locator("#log .reply").last).to_contain_text("echo: pay number one")
        assert tool.paid == [50]
        await equals_reload(me)


async def test_without_a_script_chats_are_apart(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate()
    how = {"java_script_enabled": False}
    async with page(tmp_path, model=FakeModel(held(gate))) as live, person(chromium, live, **how) as me:
        await me.locator("#text").fill("slow number one")
        await me.locator(".send").first.click()
        await gate.until_waiting()
        await me.get_by_role("link", name="New chat").first.click()
        await me.locator("#text").fill("quick number two")
        await me.locator(".send").first.click()
        await live.me.until("quick number two (1)", path=me.url.removeprefix(live.adapter.at).partition("#")[0])
        await me.reload()
        await expect(me.locator("#log .reply")).to_have_text(re.compile("quick number two"))
        await expect(line(me, "slow number one", "works")).to_be_visible()
        gate.open()
        await live.me.until("slow number one (1)")


async def sessions(live: LivePage) -> list[str]:
    """The titles in the list."""
    assert live.adapter.views is not None
    return [each.title for each in await live.adapter.views.sessions(source_of("owner"))]
