"""No words of a person are lost, sent twice or sent as someone else's, in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.e2e.test_page_attacks import PASSWORDS, with_people
from tests.support.browser import equals_reload, person, say, tab
from tests.support.gateway import Say, in_turn
from tests.support.model import FakeModel
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


@asynccontextmanager
async def refused(chromium: Browser, live: LivePage) -> AsyncIterator[Page]:
    """The owner, whose forms are refused: the console tells of that."""
    context = await chromium.new_context()
    me = await tab(context, [])
    await me.goto(live.adapter.guard.link)
    await me.evaluate("document.querySelectorAll('[name=csrf]').forEach((each) => { each.value = 'old'; })")
    yield me
    await context.close()


async def log_in(me: Page, name: str) -> None:
    await me.get_by_label("Name").fill(name)
    await me.get_by_label("Password").fill(PASSWORDS[name])
    await me.get_by_role("button", name="Log in").click()
    await expect(me.locator("#composer")).to_be_visible()


async def test_what_waits_is_not_sent_by_who_logs_in_next(tmp_path: Path, chromium: Browser) -> None:
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live:
        context = await chromium.new_context()
        me = await tab(context, [])
        await me.goto(live.adapter.at)
        await log_in(me, "anna")
        await me.route("**/say", lambda route: route.abort())
        await say(me, "a secret of Anna's")
        await expect(me.locator("#unsent li")).to_have_text("a secret of Anna's")
        cookies = await context.cookies()
        await context.clear_cookies()
        await me.unroute("**/say")
        await me.goto(live.adapter.at)
        await log_in(me, "boris")
        await say(me, "hello of Boris")
        await expect(me.locator("#log")).to_contain_text("echo: hello of Boris")
        assert "secret" not in str([request.messages for request in live.model.requests])
        await context.add_cookies(cookies)
        await me.goto(live.adapter.at)
        await expect(me.locator("#log")).to_contain_text("echo: a secret of Anna's")
        await context.close()


async def test_an_edit_puts_what_was_being_written_aside_and_says_what_it_changes(
    tmp_path: Path, chromium: Browser
) -> None:
    async with page(tmp_path) as live, person(chromium, live, viewport={"width": 390, "height": 780}) as me:
        for words in ("two apples", "\n\n".join(f"line {number}" for number in range(40))):
            await say(me, words)
            await expect(me.locator("#log .reply").last).to_contain_text(f"echo: {words[:6]}")
            await expect(me.locator(".draft")).to_have_count(0)  # as long as it grows, the page stays at the end
        field, first = me.locator("#text"), me.locator(".said").first
        await field.fill("half a thought")
        await first.get_by_role("button", name="Edit").dispatch_event("click")
        await expect(field).to_have_value("two apples")
        await expect(me.locator("[data-edited] .said")).to_contain_text("two apples")
        await expect(first).to_be_in_viewport(ratio=1)
        await me.keyboard.press("Escape")
        await expect(field).to_have_value("half a thought")
        await first.get_by_role("button", name="Edit").dispatch_event("click")
        await me.locator(".said").last.get_by_role("button", name="Edit").dispatch_event("click")
        await expect(me.locator("[data-edited] .said")).to_contain_text("line 39")
        await me.get_by_role("button", name="Cancel").click()
        await expect(field).to_have_value("half a thought")
        await expect(me.locator("[data-edited]")).to_have_count(0)
        await first.get_by_role("button", name="Edit").dispatch_event("click")
        await field.fill("two pears")
        await me.locator("button.send:visible").click()
        await expect(me.locator("#log")).to_contain_text("echo: two pears")
        await expect(field).to_have_value("half a thought")
        await equals_reload(me)
        await expect(field).to_have_value("half a thought")


async def test_a_file_that_is_too_large_is_told_before_it_is_sent_and_a_long_text_becomes_one(
    tmp_path: Path, chromium: Browser
) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as stream:
        stream.truncate(60_000_000)
    async with page(tmp_path) as live, person(chromium, live) as me:
        await me.set_input_files("#file", large)
        await say(me, "look")
        await expect(me.locator("#problem")).to_have_text("The files of one message may have 50 MB together.")
        await me.get_by_role("button", name="Remove large.bin").click()
        await me.keyboard.press("Enter")
        await say(me, "look")
        await expect(me.locator("#log")).to_contain_text("echo: look")
        await me.evaluate(
            """() => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", "word ".repeat(30_000));
                const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
                document.getElementById("text").dispatchEvent(paste);
            }"""
        )
        await expect(me.locator("#chosen li")).to_contain_text("pasted.txt")
        await say(me, "read this")
        await expect(me.locator("#log .said .file")).to_contain_text("pasted.txt (150 kB)")


async def test_all_of_a_long_message_and_its_files_are_edited_and_copied(tmp_path: Path, chromium: Browser) -> None:
    long, note = "word " * 2_000 + "end", {"name": "note.txt", "mimeType": "text/plain", "buffer": b"a note"}
    async with page(tmp_path) as live, person(chromium, live) as me:
        await me.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await me.set_input_files("#file", note)
        await say(me, long)
        await expect(me.locator("#log article.reply:not(.draft)")).to_have_count(1)
        await me.locator(".said").get_by_role("button", name="Copy").click()
        await expect(me.locator("#toast")).to_have_text("Copied")
        assert await me.evaluate("navigator.clipboard.readText()") == long
        await me.fill("#text", "meanwhile")
        await me.set_input_files("#file", {**note, "name": "other.txt"})
        await me.get_by_role("button", name="Edit").click()
        await expect(me.locator("#text")).to_have_value(long)
        await expect(me.locator("#chosen li")).to_have_text(["note.txt×"])
        await me.fill("#text", f"{long} of it")
        await me.get_by_role("button", name="Send", exact=True).click()
        await expect(me.locator(".versions span")).to_have_text("2/2")
        await expect(me.locator("#text")).to_have_value("meanwhile")
        await expect(me.locator("#chosen li")).to_have_text(["other.txt×"])
        await expect(me.locator("#log .said .file")).to_have_text("note.txt (1 kB)")
        asked = str(live.model.requests[-1].messages)
        assert (f"{long} of it" in asked, "a note" in asked) == (True, True)
        await me.route("**/files/*", lambda route: route.abort())
        await me.get_by_role("button", name="Edit").click()
        await expect(me.locator("#problem")).to_contain_text("I cannot load all of this message")
        await expect(me.locator("#text")).to_have_value("meanwhile")


async def test_a_refused_message_comes_back_before_what_was_typed_since(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, refused(chromium, live) as me:
        typed = asyncio.Event()

        async def late(route: Route) -> None:
            await typed.wait()
            await route.continue_()

        await me.route("**/say", late)
        await say(me, "one")
        await me.fill("#text", "two")
        typed.set()
        await expect(me.locator("#problem")).to_have_text("This form is too old. Load the page again.")
        await expect(me.locator("#text")).to_have_value("one\ntwo")


async def test_a_button_that_did_nothing_says_so_and_can_be_pressed_again(tmp_path: Path, chromium: Browser) -> None:
    model = FakeModel(in_turn(payments(50), Say(text="paid")))
    async with page(tmp_path, model=model, tools=[Payment()]) as live, refused(chromium, live) as me:
        await live.me.say("pay")
        approve = me.get_by_role("button", name="Allow once")
        await expect(approve).to_be_enabled()
        await approve.click()
        await expect(me.locator("#problem")).to_have_text("This form is too old. Load the page again.")
        await expect(approve).to_be_enabled()
