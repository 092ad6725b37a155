"""Every page and state of the page with much in it, photographed wide and narrow, in light and dark: for eyes that did
not make it. `python -m tests.docs.gallery FOLDER [NAME …]`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, expect

from gateway.app.config import set_up
from gateway.app.config.models import Config
from gateway.app.gateway import Gateway
from gateway.app.reload import Reloader
from gateway.cli.desk import Desk
from tests.support.browser import browser, person, say
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.page import LivePage, page

SIZES: Final[dict[str, dict[str, Any]]] = {
    "wide": {"viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
SETTINGS: Final = """# the settings of the pictures
adapters:
  web: {enabled: true, port: 0}
  telegram: {enabled: true, token: "${TELEGRAM_BOT_TOKEN}", base_url: "http://127.0.0.1:9"}
tools:
  shell: {enabled: true, sandbox: never}
  mcp:
    office: {url: "https://mcp.example.org/v1", headers: {Authorization: "${OFFICE_AUTHORIZATION}"}}
access: {allow: ["telegram:4711"]}
budgets: {}
"""
TABLE: Final = """Here is what I found for a weekend in **Vienna**, by train from Munich:

| Train | Leaves | Arrives | Price |
|-------|-------:|--------:|------:|
| RJ 61 | 07:30 | 11:30 | €49.90 |
| RJ 63 | 09:30 | 13:30 | €39.90 |
| NJ 469 | 23:18 | 06:12 | €129.00 |

The cheapest leaves at **09:30**. A few things to know:

1. Seats are free of charge in *second class*, but not reserved.
2. Bikes need a ticket of their own:
   - €10 on the Railjet
   - not possible on the night train
3. Take your `Klimaticket` along.

> Tickets can be returned until one day before you travel.

Sources: [1. Trains from Munich to Vienna, example.org](https://www.example.org/trains) · [2. Bikes on \
board, rail.example.com](https://rail.example.com/bikes)"""
CODE: Final = '''The shortest way is a **running sum**. In Python:

```python
from collections.abc import Iterable, Iterator


def running_mean(values: Iterable[float]) -> Iterator[float]:
    """Yield the mean of all values so far."""
    total = 0.0
    for count, value in enumerate(values, start=1):
        total += value
        yield total / count  # a very long comment that does not fit into the width of any telephone, so that it scrolls
```

It follows from

$$\\bar{x}_n = \\frac{1}{n}\\sum_{i=1}^{n} x_i = \\bar{x}_{n-1} + \\frac{x_n - \\bar{x}_{n-1}}{n}$$

so each step needs $O(1)$ time, and $\\int_0^1 x^2\\,dx = \\frac{1}{3}$ has nothing to do with it. Nor have

$$\\begin{pmatrix} \\cos\\theta & -\\sin\\theta \\\\ \\sin\\theta & \\cos\\theta \\end{pmatrix}
\\begin{bmatrix} x \\\\ y \\end{bmatrix}, \\qquad
\\begin{aligned} (a+b)^2 &= a^2 + 2ab + b^2 \\\\
\\sqrt{1 + \\sqrt{x}} &\\le \\left(\\frac{a}{b}\\right)^{2} \\end{aligned}$$

$$f(x) = \\begin{cases} \\hat{x} & \\text{if } x \\ge 0 \\\\ \\lim_{n\\to\\infty} a_n & \\text{otherwise} \\end{cases}
\\qquad \\iint_D \\nabla\\cdot\\mathbf{F}\\,dA = \\oint_{\\partial D} \\mathbf{F}\\cdot\\mathbf{n}\\,ds$$'''
WORLD: Final = """我可以用中文回答：明天上午九点有一趟去维也纳的火车，票价为 39.90 欧元。

ويمكنني الإجابة بالعربية أيضًا: يغادر القطار في الساعة 9:30 ويصل في الساعة 13:30.

| مدينة | سعر |
|-|-|
| فيينا | 240 |"""
SAID: Final = (
    ("Find me a train from Munich to Vienna on Friday", TABLE),
    ("How do I compute a running mean? Show the formula, too.", CODE),
    ("你能说中文吗？ وهل تتكلم العربية؟", WORLD),
)
EARLIER: Final = (
    "Plan the garden for spring",
    "Why is my sourdough flat?",
    "Draft a letter to the landlord about heating",
    "Compare three heat pumps for a small house",
    "Explain monads to a cook",
    "Birthday ideas for a ten-year-old",
    "Which bike lock is worth its price?",
    "Translate the lease into French",
    "Fix the flaky test in the payment service",
    "A reading list on the Hanseatic League",
    "Stretching for people who sit all day",
    "Pack a first-aid kit for the mountains",
    "What does this error in nginx mean?",
    "Soup for six, without onions",
    "Rewrite my application in plain words",
    "Plan a week in Lisbon by train",
    "How do tides work?",
)


def _now() -> Config:
    return set_up(None, os.environ).config


_SCROLLED: Final = (
    "at => [...document.querySelectorAll('#log .said')].filter(e => e.checkVisibility())[at].scrollIntoView()"
)


async def _nothing(_: Config) -> None:
    """Take nothing up."""


@asynccontextmanager
async def full(folder: Path) -> AsyncIterator[tuple[LivePage, Gate]]:
    """A page with several sessions, one of them long; its last answer waits at the gate."""
    os.environ["LEGATO_HOME"] = str(folder)
    (folder / "config.yaml").write_text(SETTINGS)
    (folder / ".env").write_text("TELEGRAM_BOT_TOKEN=123456789:AAF-not-a-real-token\nOFFICE_AUTHORIZATION=Bearer x\n")
    config = set_up(None, os.environ).config
    gate = Gate()
    answers = [Say(text="Gladly. Tell me more.") for _ in EARLIER]
    answers += [Say(text=answer) for _, answer in SAID]
    answers += [
        Say(calls=[("shell", '{"command": "ls -l && echo done"}')]),
        Say(text="The folder is empty so far."),
        Say(first="Let me think about", gate=gate),
        Say(text="Then ask him in **writing**, and keep a copy."),
    ]
    reloader = Reloader(config=config, read=_now, reconfigure=_nothing, relog=lambda _: None)

    def desk(gateway: Gateway) -> Desk:
        return Desk(path=None, reloader=reloader, store=gateway.store, again=lambda: None)

    async with page(folder, config=config, model=FakeModel(in_turn(*answers)), desk=desk) as live:
        for words in EARLIER:
            await live.me.say(words)
            await live.me.until("Gladly")
            await live.me.say("/new")
            await live.me.until("Started a fresh session")
        yield live, gate


async def photograph(folder: Path, names: list[str]) -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as made:
        os.environ["HOME"] = made  # pictures show paths below it as a person's own
        async with full(Path(made)) as (live, gate), browser() as here:
            async with person(here, live, **SIZES["wide"]) as me:
                await _take(folder, names, me, "empty", "/", live)
                for words, answer in SAID:
                    await live.me.say(words)
                    await live.me.until(answer.split()[0])
                await live.me.say("/remind tomorrow at 9 Call the landlord")
                await live.me.say("/pin Answer in short sentences")
                await live.me.until("Call the landlord")
                await live.me.say("What is in the folder?")
                await me.goto(live.adapter.at)
                await expect(me.locator("#log .question")).to_be_visible()
                await _take(folder, names, me, "approval", "/", live)
                await me.locator(".question .buttons button").first.click()
                await live.me.until("empty so far")
            for size, how in SIZES.items():
                for scheme in ("light", "dark"):
                    async with person(here, live, color_scheme=scheme, **how) as me:
                        await _rounds(folder, names, me, live, f"{size}-{scheme}")
            async with person(here, live, **SIZES["wide"]) as me:
                await say(me, "And what do you think of it?")
                await expect(me.locator("#log .draft")).to_contain_text("Let me think")
                await _take(folder, names, me, "writing", "", live)
                gate.open()
                await expect(me.locator("#log .draft")).to_have_count(0)
                await me.locator(".sessions a", has_text="landlord").click()
                await say(me, "He does not answer the telephone.")
                await expect(me.locator("#log")).to_contain_text("in writing")
                await _take(folder, names, me, "resumed", "", live)


async def _rounds(folder: Path, names: list[str], me: Page, live: LivePage, suffix: str) -> None:
    await _take(folder, names, me, f"chat-{suffix}", "/#end", live)
    for at, name in enumerate(("table", "code")):
        if not names or name in names:
            await me.goto(f"{live.adapter.at}/")
            await me.evaluate(_SCROLLED, at)
            await me.wait_for_timeout(300)
            await me.screenshot(path=folder / f"{name}-{suffix}.png")
    earlier = next(each.id for each in await live.adapter.views.sessions(_source()) if not each.present)
    paths = {
        "window": "/window",
        "files": "/workspace",
        "skills": "/skills",
        "settings": "/settings",
        "settings-tools": "/settings?at=tools",
        "settings-mcp": "/settings?at=tools.mcp",
        "settings-office": "/settings?at=tools.mcp&name=office",
        "settings-keys": "/settings?at=keys",
        "settings-hooks": "/settings?at=adapters.api.hooks",
        "operator": "/inside",
        "rehearsal": "/as/telegram",
        "search": "/search?q=garden",
        "session": f"/s/{earlier}",
        "models": "/models",
        "model": "/settings?provider=ollama",
        "earlier": "/c/?n=160",
    }
    for name, path in paths.items():
        await _take(folder, names, me, f"{name}-{suffix}", path, live, whole=True)
    if not names or "menu" in names:
        await me.goto(f"{live.adapter.at}/")
        if "phone" in suffix:
            await me.locator("#fold summary").click()
        await me.locator(".me summary").click()
        await me.wait_for_timeout(300)
        await me.screenshot(path=folder / f"menu-{suffix}.png")


def _source() -> Any:
    from adapters.web.server import source_of

    return source_of("owner")


async def _take(
    folder: Path, names: list[str], me: Page, name: str, path: str, live: LivePage, *, whole: bool = False
) -> None:
    if names and name not in names and name.partition("-")[0] not in names and name.rsplit("-", 2)[0] not in names:
        return
    if path:
        await me.goto(f"{live.adapter.at}{path}")
    await me.wait_for_timeout(300)
    await me.screenshot(path=folder / f"{name}.png", full_page=whole)
    wide = await me.evaluate("document.documentElement.scrollWidth - innerWidth")
    if wide > 0:
        sys.stderr.write(f"{name}: {wide} px too wide\n")


if __name__ == "__main__":
    asyncio.run(photograph(Path(sys.argv[1]), sys.argv[2:]))
