"""What the page's own buttons say for a person leaves no command behind in the chat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from gateway.agent.models import Models
from gateway.providers.base import ModelSpec, OfferedModel
from gateway.runtime.errors import ProviderError
from tests.support.browser import equals_reload, person, say
from tests.support.gateway import Gate, Say, in_turn
from tests.support.model import FakeModel
from tests.support.page import page

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


async def shown(me: Page) -> list[str]:
    """The words of the chat, as they stand."""
    return [each.strip() for each in await me.locator("#log .body").all_inner_texts()]


async def chosen(me: Page, name: str) -> None:
    """Choose a model in the menu."""
    await me.locator("#models summary").click()
    await me.locator("#models .menu").get_by_role("button", name=name).click()


async def test_a_model_is_chosen_without_a_word_in_the_chat(
    tmp_path: Path, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def offered(models: Models, home: ModelSpec) -> list[OfferedModel]:
        models._offered |= {(home.provider, home.base_url, each): 200_000 for each in ("small", "large")}
        return [OfferedModel(name="small"), OfferedModel(name="large")]

    monkeypatch.setattr(Models, "offered", offered)
    async with page(tmp_path) as live, person(chromium, live) as me:
        label = me.locator("#models summary")
        await chosen(me, "small")
        await expect(label).to_have_text("small ▾")
        await expect(me.locator("#toast")).to_contain_text("small")
        await expect(me.locator("#empty")).to_be_visible()
        assert await shown(me) == []
        await say(me, "hello")
        await expect(me.locator("#log .reply")).to_contain_text("echo: hello")
        await chosen(me, "large")
        await expect(label).to_have_text("large ▾")
        await label.click()
        await expect(me.locator("#models li").filter(has_text="✓")).to_contain_text("large")
        await me.keyboard.press("Escape")
        assert await shown(me) == ["hello", "echo: hello"]
        await equals_reload(me)
        await expect(label).to_have_text("large ▾")
        await say(me, "/model small")  # what is typed stands there, and the label is true
        await expect(label).to_have_text("small ▾")
        assert "/model small" in await shown(me)


async def test_stop_leaves_what_was_written_and_a_note(tmp_path: Path, chromium: Browser) -> None:
    gates = [Gate(), Gate(), Gate()]
    script = in_turn(
        Say(first="one ", gate=gates[0]),
        Say(first="two ", gate=gates[1]),
        Say(text="three"),
        Say(text="never", gate=gates[2]),
        Say(text="four"),
    )
    stopped = "Stopped before the answer was finished."
    async with page(tmp_path, model=FakeModel(script)) as live, person(chromium, live) as me:
        await say(me, "count")
        await expect(me.locator("#log")).to_contain_text("one")
        await me.click("#stop")
        assert await me.locator(".sessions .present").count() == 1  # it is still listed
        await expect(me.locator("#log .notice")).to_contain_text(stopped)
        await expect(me.locator("#working")).to_be_hidden()
        assert await shown(me) == ["count", "one", stopped]
        await expect(me.get_by_role("button", name="Go on", exact=True)).to_be_visible()
        await me.mouse.move(1, 1)
        await expect(me.locator(".reply .acts")).to_have_css("opacity", "1")
        await equals_reload(me)
        top: Any = await me.locator(".said header").first.bounding_box()
        assert top["y"] >= 0, "its time is cut off"
        await say(me, "again")
        await expect(me.locator("#log")).to_contain_text("two")
        await say(me, "and then")
        await expect(me.locator("#log .said").last).to_contain_text("and then")
        await me.keyboard.press("Escape")
        await expect(me.locator("#log")).to_contain_text("three")
        await expect(me.locator("#working")).to_be_hidden()
        assert await shown(me) == ["count", "one", stopped, "again", "two", stopped, "and then", "three"]
        await equals_reload(me)
        retry = me.get_by_role("button", name="Try again")
        await expect(retry).to_have_count(0)  # an answer that has begun goes on
        await say(me, "and now")
        await expect(me.locator("#working")).to_be_visible()
        await me.click("#stop")
        await retry.click()
        await expect(me.locator("#log .reply").last).to_contain_text("four")
        await expect(retry).to_have_count(0)
        await equals_reload(me)


async def test_a_command_of_a_menu_is_seen_by_its_answer_alone(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await say(me, "hello")
        await expect(me.locator("#log .reply")).to_contain_text("echo: hello")
        await me.locator(".below summary", has_text="This chat").click()
        await me.get_by_role("button", name="What this chat has cost").click()
        await expect(me.get_by_role("dialog")).to_contain_text("Last 24 hours, in this chat")
        assert not (await Axe().run(me)).response["violations"]
        await me.get_by_role("button", name="Close").click()
        await me.locator(".below summary", has_text="This chat").click()
        async with me.expect_download() as file:
            await me.get_by_role("button", name="Save as Markdown").click()
        assert "echo: hello" in (await (await file.value).path()).read_text()
        assert await shown(me) == ["hello", "echo: hello"]
        await equals_reload(me)
        await me.locator(".below summary", has_text="This chat").click()
        await me.get_by_role("button", name="Undo my last message").click()
        await expect(me.locator("#log .said")).to_have_count(0)
        await expect(me.locator("#text")).to_have_value("hello")
        assert await shown(me) == []


async def test_the_buttons_stay_at_the_last_answer_and_what_commands_say_is_quiet(
    tmp_path: Path, chromium: Browser
) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await say(me, "hello")
        await expect(me.locator("#log .reply")).to_contain_text("echo: hello")
        for command in ("/whoami", "/export"):
            await say(me, command)
        await expect(me.locator("#log .file")).to_have_count(1)
        await me.mouse.move(1, 1)
        acts = me.locator("#log li", has_text="echo: hello").locator(".acts").first
        await expect(acts).to_have_css("opacity", "1")
        await expect(acts.get_by_role("button", name="Answer again")).to_be_visible()
        await expect(me.locator("#log .command").first).to_have_css("background-color", "rgba(0, 0, 0, 0)")


async def test_an_error_can_be_tried_again_and_a_new_chat_is_listed_at_once(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate()
    script = in_turn(Say(error=ProviderError("no"), gate=gate), Say(text="better"), Say(text="more"))
    async with page(tmp_path, model=FakeModel(script)) as live, person(chromium, live) as me:
        await expect(me.locator("body.away")).to_have_count(0)
        top = "document.querySelector('.sessions').getBoundingClientRect().top"
        empty = await me.evaluate(top)
        await me.route("**/say", lambda route: None)  # which is not even taken yet
        await say(me, "try it")
        await expect(me.locator(".sessions .present")).to_have_text("try it")
        await expect(me.locator(".sessions .day")).to_have_text("Today")
        await me.unroute("**/say")
        await me.reload()
        gate.open()
        retry = me.get_by_role("button", name="Try again")
        await retry.click()
        await expect(me.locator("#log .reply")).to_contain_text("better")
        await expect(me.locator("#log .error")).to_have_count(0)
        await equals_reload(me)
        await expect(me.locator(".window")).to_contain_text("full")
        assert await me.evaluate(top) == empty, "the list stays where it was"
        await say(me, "/resume 99")
        await expect(me.locator("#log")).to_contain_text("/sessions lists your sessions")
        await expect(retry).to_be_hidden()


DRAWN = """A page and a picture:

```python
print("hi")
```

```html
<style>body { background: rgb(1, 2, 3); }</style><h1>Vienna</h1><script>document.title = "ran"</script>
<link rel="preconnect" href="http://ELSEWHERE"><img src="http://ELSEWHERE/p.png">
<meta http-equiv="refresh" content="0;url=http://ELSEWHERE/"><a href="http://ELSEWHERE/">away</a>
```

```svg
<svg viewBox="0 0 9 9"><circle r="4"/></svg>
```
"""


async def test_a_page_or_picture_that_was_written_is_seen_and_runs_and_loads_nothing(
    tmp_path: Path, chromium: Browser
) -> None:
    calls: list[object] = []
    elsewhere = await asyncio.start_server(lambda *call: calls.append(call), "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    answers = FakeModel(in_turn(Say(text=DRAWN.replace("ELSEWHERE", f"127.0.0.1:{port}"))))
    async with page(tmp_path, model=answers) as live, elsewhere:
        me = await chromium.new_page()  # whose console says what was forbidden
        await me.goto(live.adapter.guard.link)
        await say(me, "draw")
        shows = me.get_by_role("button", name="Preview")
        await expect(shows).to_have_count(2)  # nothing is to be seen of Python
        await shows.first.click()
        frame = me.frame_locator("iframe").first
        await expect(frame.locator("h1")).to_have_text("Vienna")
        assert await frame.locator("body").evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(1, 2, 3)"
        assert await frame.locator("link, script[src]").count() == 0
        await expect(me.locator(".previewed pre")).to_be_hidden()
        assert not (await Axe().run(me)).response["violations"]
        await frame.locator("a").click()
        await expect(frame.locator("h1")).to_be_visible()  # it leads nowhere
        await shows.last.click()
        await expect(me.frame_locator("iframe").last.locator("circle")).to_be_attached()
        assert calls == []
        assert "ran" not in [await each.title() for each in me.frames]
        address = await me.locator("iframe").last.get_attribute("src")
        async with live.me.http.get(f"{live.adapter.at}{address}") as answer:
            assert "sandbox" in answer.headers["Content-Security-Policy"]
            assert "script-src" not in answer.headers["Content-Security-Policy"]
        assert (await live.me.get(f"{address}9"))[0] == 404
        assert (await live.me.get(str(address), headers={"Sec-Fetch-Dest": "document"}))[0] == 404
        await shows.first.click()
        await expect(me.locator("iframe")).to_have_count(1)
        await me.close()


async def test_a_question_says_what_was_chosen_and_proposes_none(tmp_path: Path, chromium: Browser) -> None:
    asks = '{"question": "Which colour?", "options": ["red", "green"]}'
    script = in_turn(Say(calls=[("ask_person", asks)]), Say(text="it is green"))
    async with page(tmp_path, model=FakeModel(script)) as live, person(chromium, live) as me:
        await say(me, "paint it")
        options = me.locator(".question .buttons button")
        await expect(options).to_have_text(["red", "green", "Refuse"])
        await expect(me.locator(".question .plain")).to_have_text("Which colour?")
        colours = await options.evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundColor)")
        assert colours[0] == colours[1]
        await options.nth(1).click()
        await expect(me.locator(".question .below")).to_have_text("Answered: green")
        await expect(me.locator("#log .reply")).to_contain_text("it is green")
        await equals_reload(me)


async def test_a_stopped_answer_goes_on(tmp_path: Path, chromium: Browser) -> None:
    script = in_turn(Say(first="one ", gate=Gate()), Say(text="two three"))
    async with page(tmp_path, model=FakeModel(script)) as live, person(chromium, live) as me:
        await say(me, "count")
        await expect(me.locator("#log")).to_contain_text("one")
        await me.click("#stop")
        await me.get_by_role("button", name="Go on", exact=True).click()
        await expect(me.locator("#log .reply").last).to_contain_text("two three")
        await expect(me.get_by_role("button", name="Go on", exact=True)).to_have_count(0)
        await expect(me.locator("#log .said")).to_have_count(1)
