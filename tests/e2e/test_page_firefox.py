"""The page in Firefox: what people do most, and that nothing of it is forbidden or fails there."""

from __future__ import annotations

from pathlib import Path

from tests.support.firefox import ENTER, UP, Firefox
from tests.support.gateway import Gate, Say
from tests.support.model import FakeModel, Script, newest
from tests.support.page import page

RICH = """You said **{}**

```html
<h1>drawn</h1>
```

| a | b |
|---|--:|
| 1 | 2 |

$$\\int_0^1 x\\,dx$$"""
ENTRIES = "return [...document.querySelectorAll('#log > li')].map((each) => each.outerHTML)"


def slow(gate: Gate) -> Script:
    """Answers at once, but waits at the gate for what is slow."""
    return lambda _, request: Say(text=RICH.format(newest(request)), gate=gate if newest(request) == "slow" else None)


def last(selector: str, words: str) -> str:
    """Whether the last of these elements holds these words."""
    return f"[...document.querySelectorAll('{selector}')].at(-1)?.textContent.includes('{words}')"


async def test_people_write_stop_edit_and_reload(tmp_path: Path, firefox: Firefox) -> None:
    gate, me = Gate(), firefox
    async with page(tmp_path, model=FakeModel(slow(gate))) as live:
        await me.open(live.adapter.guard.link)
        await me.type("#text", f"two plums{ENTER}")
        await me.until(last("#log .reply:not(.draft) math", "x") + " && document.querySelector('#log td.right')")
        await me.type("#text", f"slow{ENTER}")
        await gate.until_waiting()
        await me.until("document.querySelector('#stop').checkVisibility()")
        await me.click("#stop")
        await me.until(last("#log > li", "Stopped") + " && document.querySelector('#working').hidden")
        gate.open()
        await me.type("#text", f"pears{ENTER}")
        await me.until(last("#log .reply:not(.draft)", "pears"))
        await me.type("#text", UP)
        await me.until("document.querySelector('#text').value === 'pears'")
        await me.type("#text", f" or figs{ENTER}")
        await me.until(last("#log .reply:not(.draft)", "pears or figs") + " && " + last(".said .versions", "2/2"))
        await me.until("document.querySelector('#working').hidden")
        before = await me.run(ENTRIES)
        assert await me.run("return wrong") == []
        await me.open(f"{live.adapter.at}/")
        await me.until("document.querySelectorAll('#log .reply > .acts').length === 2")
        assert await me.run(ENTRIES) == before
        await me.click("#log > li:last-child [data-do=preview]")
        await me.until("document.querySelector('iframe').checkVisibility()")
        assert await me.run("return wrong") == []
        await me.click(".below details:not(#models) summary")
        await me.click("button[value='/branch']")
        await me.until(last("#log .command", "This is a copy of"))
        await me.click("#models summary")
        await me.until("document.querySelector('#choices li')")
        assert await me.run("return document.documentElement.scrollWidth <= innerWidth")
