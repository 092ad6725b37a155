"""The page of the real program, photographed in Chromium: a person at a desk, the same on a dark telephone, and how the
chat fills, as a moving picture."""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, expect

from tests.docs.svg import Scene, moving, picture
from tests.support.browser import browser
from tests.support.program import legato_run
from tests.support.waiting import eventually

SAID: Final = (  # what the owner says, and what is shown then
    ("Add buy milk to my to-do list", "[ ] buy milk"),
    ("Write a file shopping.txt: milk, eggs, bread", "Here is"),
    ("run echo $((6 * 7))", "Allow once"),
)
_WAIT, _READ = 1.0, 2.5  # seconds before an answer, and to read it
_PACKED: Final = """async address => {
    const image = new Image()
    image.src = address
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height)
    canvas.getContext("2d").drawImage(image, 0, 0)
    const packed = await canvas.convertToBlob({type: "image/webp", quality: 0.8})
    const bytes = new Uint8Array(await packed.arrayBuffer())
    return "data:image/webp;base64," + btoa(Array.from(bytes, each => String.fromCharCode(each)).join(""))
}"""
_SIZES: Final[dict[str, dict[str, Any]]] = {
    "film": {"viewport": {"width": 960, "height": 640}},
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
    """Talk to the page as `SAID` says, and take a picture (PNG)."""
    async with opened(folder, size) as page:
        for line, end in SAID:
            await _say(page, line, end)
        await expect(page.locator("#side li")).not_to_have_count(0, timeout=20_000)
        await _rest(page)
        return await page.screenshot()


async def filmed(folder: Path) -> bytes:
    """The same as a moving picture (SVG): the empty chat, each message as it is typed, and each answer."""
    shots: list[tuple[float, str]] = []
    at = 0.0
    async with opened(folder, "film") as page:
        await _rest(page)
        shots.append((at, await _webp(page)))
        for line, end in SAID:
            await page.fill("#text", line)
            shots.append((at := at + _READ, await _webp(page)))
            await _say(page, line, end)
            await _rest(page)
            shots.append((at := at + _WAIT, await _webp(page)))
    width, height = _SIZES["film"]["viewport"].values()
    image = '<image width="{}" height="{}" href="{}"/>'
    scenes = [Scene(parts=[image.format(width, height, shot)], since=since) for since, shot in shots]
    return picture(width, height, "A chat on Legato's page", moving(scenes, at + 2 * _READ)).encode()


async def _webp(page: Page) -> str:
    """What is seen now, as an address that holds the picture. An empty page packs it: Legato's own forbids that."""
    shot = b64encode(await page.screenshot()).decode()
    packing = await page.context.new_page()
    address: str = await packing.evaluate(_PACKED, f"data:image/png;base64,{shot}")
    await packing.close()
    return address


@asynccontextmanager
async def opened(folder: Path, size: str) -> AsyncIterator[Page]:
    """Start `legato run` with the page, and open that."""
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
        await page.goto(f"http://127.0.0.1:{port}/")  # a newcomer is led to the settings first
        yield page


async def _say(page: Page, line: str, end: str) -> None:
    await page.fill("#text", line)
    await page.click(".send")
    await expect(page.locator("#log > li").last).to_contain_text(end, timeout=20_000)
    await expect(page.locator("#side .window")).to_be_attached(timeout=20_000)


async def _rest(page: Page) -> None:
    await page.evaluate("document.activeElement.blur()")
    await page.wait_for_timeout(500)
