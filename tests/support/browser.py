"""A real Chromium, Debian's: see `tests/programs.txt`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.support.model import PATIENCE
from tests.support.programs import path_of

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

    from tests.support.page import LivePage


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A running Chromium, which may be as slow as everything else."""
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=1_000 * PATIENCE)
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=path_of("chromium"),
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
            ],
        )
        try:
            yield running
        finally:
            await running.close()


@asynccontextmanager
async def person(here: Browser, live: LivePage, **how: Any) -> AsyncIterator[Page]:
    """Somebody with a fresh profile who opened the owner's link. No script may fail, and nothing may be blocked."""
    context = await here.new_context(**how)
    context.set_default_timeout(1_000 * PATIENCE)
    wrong: list[str] = []
    page = await tab(context, wrong)
    await page.goto(live.adapter.guard.link)
    try:
        yield page
    finally:
        await context.close()
    assert wrong == [], wrong


async def tab(context: BrowserContext, wrong: list[str]) -> Page:
    """A page whose errors are noted."""
    page = await context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda told: wrong.append(told.text) if told.type == "error" and "net::" not in told.text else None
    )
    return page


async def say(page: Page, text: str) -> None:
    """Type a message and send it by the keyboard."""
    await page.fill("#text", text)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Enter")


async def log_of(page: Page) -> list[str]:
    """The entries as they stand in the page."""
    entries: list[str] = await page.evaluate(
        "[...document.querySelectorAll('#log > li')].map((each) => each.outerHTML)"
    )
    return entries


async def equals_reload(page: Page) -> None:
    """What an open page shows, once nothing is being written, is what it shows after a reload."""
    from playwright.async_api import expect

    await expect(page.locator(".draft")).to_have_count(0)
    await expect(page.locator("#working")).to_be_hidden()
    before = await log_of(page)
    await page.reload()
    assert before == await log_of(page)
