"""The page of the real program, photographed in Chromium: a person at a desk, and the same on a dark telephone."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, expect

from tests.support.browser import browser
from tests.support.program import legato_run
from tests.support.waiting import eventually

SAID: Final = (  # what the owner says, and what is shown then
    ("Add buy milk to my to-do list", "[ ] buy milk"),
    ("Write a file shopping.txt: milk, eggs, bread", "Here is"),
    ("run echo $((6 * 7))", "Approve"),
)
_SIZES: Final[dict[str, dict[str, Any]]] = {
    "desk": {"viewport": {"width": 1100, "height": 760}},
    "phone": {
        "viewport": {"width": 390, "height": 760},
        "color_scheme": "dark",
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 2,
    },
}


async def photographed(folder: Path, size: str) -> bytes:
    """Start `legato run` with the page, talk to it as `SAID` says, and take a picture (PNG)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "adapters": {"web": {"enabled": True, "port": port}},
        "tools": {"shell": {"enabled": True, "sandbox": "never"}},
    }
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    link = folder / "legato-home" / "page-link"
    async with legato_run(folder), browser() as here:
        await eventually(link.exists)
        page = await (await here.new_context(locale="en-GB", **_SIZES[size])).new_page()
        await page.goto(link.read_text(encoding="utf-8").strip())
        await _talk(page)
        return await page.screenshot()


async def _talk(page: Page) -> None:
    for line, end in SAID:
        await page.fill("#text", line)
        await page.click(".send")
        await expect(page.locator("#log > li").last).to_contain_text(end, timeout=20_000)
    await page.evaluate("document.activeElement.blur()")
    await page.wait_for_timeout(500)
