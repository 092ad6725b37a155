"""How soon Chromium paints the page, and how soon it paints a key: in an empty chat, and in one of 300 messages.

A paint is the browser's own first-contentful-paint, in milliseconds after the request for the page. A key's time is
that from the moment at which it was pressed to the end of the frame that shows it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.table import Row, Rows, percentile
from tests.bench.world import REPLY, said
from tests.support.browser import browser, person
from tests.support.model import FakeModel, Say
from tests.support.page import LivePage, page

if TYPE_CHECKING:
    from playwright.async_api import Page

TITLE = "The page in Chromium"
_MESSAGES: Final = 300
_AT_ONCE: Final = 30  # messages that wait to be answered
_LOADS: Final = 9
_KEYS: Final = "Could you tell me a little more about that, please? "
_PAINTED: Final = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (each.name === "first-contentful-paint") done(each.startTime);
}).observe({ type: "paint", buffered: true }))"""
_WATCH: Final = """() => {
  const took = window.took = [];
  document.getElementById("text").addEventListener("keydown", (event) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => took.push(performance.now() - event.timeStamp);
    port2.postMessage(0);
  }));
}"""
_TOOK: Final = """(keys) => new Promise((done) => {
  const look = () => window.took.length < keys ? setTimeout(look, 50) : done(window.took);
  look();
})"""


async def measure() -> Rows:
    """Both, of each chat."""
    answer = f"{REPLY}\n\n- **one** thing\n- `another`\n\n```python\nprint('{REPLY}')\n```"
    model = FakeModel(lambda *_: Say(text=answer))
    with TemporaryDirectory() as folder:
        async with page(Path(folder), model=model) as live, browser() as here, person(here, live) as me:
            rows = [*await _looked_at(me, live, "/c/", "an empty chat")]
            await me.goto("about:blank")
            csrf = await live.me.csrf()
            for number in range(_MESSAGES // 2):
                await live.me.post("/say", {"id": f"event{number:04d}", "text": said(number)}, csrf=csrf)
                if number % _AT_ONCE == _AT_ONCE - 1:
                    await live.me.until(said(number))
            rows += await _looked_at(me, live, "/c/", f"{_MESSAGES} messages, of which it shows 80")
            return [*rows, *await _looked_at(me, live, "/c/?n=320", f"{_MESSAGES} messages, all shown")]


async def _looked_at(me: Page, live: LivePage, path: str, what: str) -> Rows:
    paints = []
    for _ in range(_LOADS):
        await me.goto(f"{live.adapter.at}{path}")
        paints.append(float(await me.evaluate(_PAINTED)))
    await me.evaluate(_WATCH)
    await me.locator("#text").press_sequentially(_KEYS, delay=20)
    keys = [float(each) for each in await me.evaluate(_TOOK, len(_KEYS))]
    slow = f"95 % within {percentile(keys, 0.95):.0f} ms"
    return [
        Row(f"{what}: first paint", f"{median(paints):.0f} ms", f"the slowest of {_LOADS} {max(paints):.0f} ms"),
        Row("  a key, until it is seen", f"{median(keys):.0f} ms", slow),
    ]
