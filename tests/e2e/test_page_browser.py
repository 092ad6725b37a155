"""The page in a real browser, as a person uses it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from adapters.web.server import source_of
from gateway.agent.caps import Caps
from gateway.agent.files.speech import TranscriptionSettings
from gateway.agent.models import Models
from gateway.app.config import Config
from gateway.context.policy import CompressionSettings
from gateway.domain.chat import ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.providers.base import ModelSpec, OfferedModel
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.runtime.clock import SystemClock
from gateway.store.records import Arrival
from gateway.store.sqlite import SqliteStore
from tests.support.browser import equals_reload, log_of, person, say, tab
from tests.support.gateway import Gate, Say, config_in, in_turn
from tests.support.model import FakeModel
from tests.support.page import page
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually


async def log_text(me: Any) -> list[str]:
    """The words in the chat, and the numbers of versions."""
    found = await me.locator("#log .body, #log .versions").all_text_contents()  # painted or not
    return [each.strip() for each in found]


PICTURE = Path(__file__).parents[2] / "docs/pictures/page-phone.png"
pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


async def test_it_types_streams_reloads_in_the_middle_and_stops(tmp_path: Path, chromium: Browser) -> None:
    first, second = Gate(), Gate()
    answers = in_turn(Say(first="one ", text="two three", gate=first), Say(first="four ", text="five", gate=second))
    async with page(tmp_path, model=FakeModel(answers)) as live, person(chromium, live) as me:
        await say(me, "count")
        await expect(me.locator("#log")).to_contain_text("one")
        await expect(me.locator("#stop")).to_be_visible()
        await expect(me.locator("#work")).to_be_hidden()  # one sees that it writes
        await me.reload()
        await expect(me.locator("#log")).to_contain_text("one")
        first.open()
        await expect(me.locator("#log li article.reply:not(.draft)")).to_contain_text("one two three")
        await expect(me.locator("#working")).to_be_hidden()
        await equals_reload(me)
        await say(me, "go on")
        await expect(me.locator("#log")).to_contain_text("four")
        await me.click("#stop")
        await expect(me.locator("#log")).to_contain_text("Stopped")
        await expect(me.locator("#working")).to_be_hidden()
        await equals_reload(me)


async def test_what_a_turn_is_at_stands_below_the_last_message(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="done", gate=gate)))
    async with page(tmp_path, model=model) as live, person(chromium, live) as me:
        await say(me, "count")
        await expect(me.locator("#work")).to_have_text("Thinking")
        await expect(me.locator("#seconds")).to_have_text(re.compile("[0-9]+ s"))
        places: Any = [await me.locator(each).bounding_box() for each in (".said", "#working", "#composer")]
        said, line, field = places
        assert line["y"] - said["y"] - said["height"] < 60
        assert field["y"] + field["height"] > 700, "the field stays where it is"
        gate.open()
        await expect(me.locator("#working")).to_be_hidden()


async def test_two_tabs_are_equal_after_a_restart_in_the_middle_of_an_answer(tmp_path: Path, chromium: Browser) -> None:
    wrong: list[str] = []
    context = await chromium.new_context()
    one, other = await tab(context, wrong), await tab(context, wrong)
    async with page(tmp_path, model=FakeModel(in_turn(Say(first="it begins", text="", gate=Gate())))) as live:
        port = int(live.adapter.at.rpartition(":")[2])
        await one.goto(live.adapter.guard.link)
        await other.goto(live.adapter.at)
        await say(one, "tell me")
        await expect(other.locator(".draft")).to_contain_text("it begins")
        live.gateway.stop(grace=0)
    await expect(other.locator("body")).to_have_class("chat away")
    async with page(tmp_path, port=port):
        for each in (one, other):
            await expect(each.locator("#log article.reply:not(.draft)")).to_contain_text("echo: tell me")
            await expect(each.locator("body")).to_have_class("chat")
        await say(one, "and more")
        for each in (one, other):
            await expect(each.locator("#log")).to_contain_text("echo: and more")
            await expect(each.locator(".draft")).to_have_count(0)
        assert await log_of(one) == await log_of(other)
        await equals_reload(other)
    await context.close()
    assert wrong == []


async def test_a_phone_that_slept_shows_what_it_missed_and_sends_what_it_kept(
    tmp_path: Path, chromium: Browser
) -> None:
    phone = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
    async with page(tmp_path) as live, person(chromium, live, **phone) as me:
        await live.me.say("said before")
        await expect(me.locator("#log")).to_contain_text("echo: said before")  # so the stream is open
        await me.context.set_offline(True)
        await live.me.say("said elsewhere")
        await live.me.until("echo: said elsewhere")
        await me.fill("#text", "written under way")
        await me.click(".send")
        await expect(me.locator("#unsent li")).to_have_text("written under way")
        await expect(me.locator("body.away")).to_have_count(1)  # which says so above the field
        await me.context.set_offline(False)
        await expect(me.locator("body.away")).to_have_count(0)
        await expect(me.locator("#log")).to_contain_text("echo: written under way")
        await expect(me.locator("#log")).to_contain_text("echo: said elsewhere")
        await expect(me.locator("#unsent li")).to_have_count(0)
        await equals_reload(me)
        assert (await me.evaluate("document.documentElement.scrollWidth")) <= 390
        await expect(me.locator("#title")).to_have_text("written under way")  # as in the list
        await me.click("#fold summary")
        await me.click(".me summary")
        await expect(me.get_by_role("button", name="Log out everywhere")).to_be_in_viewport(ratio=0.9)
        await expect(me.get_by_role("link", name="Window and memory")).to_be_visible()
        lists = [await me.locator(each).bounding_box() for each in ("#side", ".me")]
        assert lists[0]["y"] + lists[0]["height"] <= lists[1]["y"], "nothing of the menu lies over something else"


async def test_the_end_stays_in_view_while_pictures_and_the_field_grow(tmp_path: Path, chromium: Browser) -> None:
    at_end = "innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
    async with page(tmp_path) as live, person(chromium, live) as me:
        await live.me.say("\n".join(f"line {number}" for number in range(60)))
        await expect(me.locator("article.reply")).to_contain_text("line 59")
        await me.set_input_files(
            "#file", [{"name": "page.png", "mimeType": "image/png", "buffer": PICTURE.read_bytes()}]
        )
        await say(me, "a picture\n\nbelow it\n\nwords")
        await expect(me.locator("article.reply").last).to_contain_text("words")
        await eventually(lambda: me.evaluate("document.querySelector('.file img').naturalHeight"))
        await me.fill("#text", "one\ntwo\nthree\nfour\nfive")
        await eventually(lambda: me.evaluate(at_end))
        await me.evaluate("scrollBy(0, -60)")
        under = "[...document.querySelectorAll('.acts button')].at(-1).getBoundingClientRect()"
        above = f"(({{ x, y }}) => !!document.elementFromPoint(x + 9, y + 9).closest('#composer'))({under})"
        await eventually(
            lambda: me.evaluate(above)
        )  # the field lies over what can be done with a message, not below it
        await me.mouse.wheel(0, -600)
        await expect(me.locator("#to-end")).to_be_visible()
        await live.me.say("said elsewhere")
        await expect(me.locator("#log")).to_contain_text("echo: said elsewhere")
        assert not await me.evaluate(at_end), "who reads further up is left there"


async def test_reminders_are_in_the_zone_of_the_browser_unless_a_person_said_theirs(
    tmp_path: Path, chromium: Browser
) -> None:
    async with page(tmp_path) as live:
        await live.me.say("/remind tomorrow at 8 tea")
        await live.me.until("tea")
        for number, zone in enumerate(("Asia/Tokyo", "Europe/Berlin")):
            async with person(chromium, live, timezone_id=zone) as me:
                await eventually(lambda at=me: at.evaluate("sessionStorage.getItem('legato-zone')"))
                await say(me, f"/remind tomorrow at 9 coffee {number}")
                made = me.locator("#log article", has_text=f"remind you of this: coffee {number}")
                await expect(made).to_contain_text("09:00 (Asia/Tokyo)")
                await me.goto(f"{live.adapter.at}/window")
                listed = me.locator("li", has_text="set by")
                await expect(listed.filter(has_text="coffee 0")).to_contain_text(", 09:00 (Asia/Tokyo) ·")
                await expect(listed.filter(has_text="tea")).to_contain_text(", 17:00 (Asia/Tokyo) ·")  # 8:00 in UTC


async def test_a_tab_that_nobody_sees_takes_no_connection(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await me.evaluate(SEEN.format("true"))
        await eventually(lambda: not live.adapter._bells.hears("owner"))
        await live.me.say("meanwhile")
        await live.me.until("echo: meanwhile")
        await me.evaluate(SEEN.format("false"))
        await expect(me.locator("#log")).to_contain_text("echo: meanwhile")
        await equals_reload(me)


SEEN = """Object.defineProperty(document, "hidden", {{ configurable: true, get: () => {} }});
document.dispatchEvent(new Event("visibilitychange"));"""


async def test_commands_complete_and_a_click_approves(tmp_path: Path, chromium: Browser) -> None:
    tool = Payment()
    model = FakeModel(in_turn(payments(50), Say(text="paid")))
    async with page(tmp_path, model=model, tools=[tool]) as live, person(chromium, live) as me:
        await me.locator("#text").press_sequentially("/who")
        await expect(me.locator("#commands [role=option]:visible")).to_have_count(1)
        await me.keyboard.press("Tab")
        await expect(me.locator("#text")).to_have_value("/whoami ")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log")).to_contain_text("You are web:owner")
        await say(me, "pay it")
        await expect(me.locator(".question .buttons button")).to_have_text(
            ["Allow once", "This session", "Always", "Deny"]
        )
        await me.get_by_role("button", name="Allow once").click()
        await expect(me.locator("#toast")).to_have_text("Approved.")
        await expect(me.locator("#problem")).to_be_hidden()
        await expect(me.locator("#log")).to_contain_text("paid")
        assert tool.paid == [50]
        await expect(me.locator(".question button")).to_have_count(0)
        await equals_reload(me)


async def test_a_message_is_said_anew_with_all_that_followed_taken_back(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await say(me, "two apples")
        await expect(me.locator("#log")).to_contain_text("echo: two apples")
        await me.get_by_role("button", name="Edit").click()
        await expect(me.locator("#text")).to_have_value("two apples")
        await me.keyboard.press("Escape")
        await expect(me.locator("#text")).to_have_value("")
        await me.keyboard.press("ArrowUp")
        await me.fill("#text", "two pears")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log")).to_contain_text("echo: two pears")
        assert "two apples" not in str(live.model.requests[-1].messages)
        await say(me, "and three plums")
        await expect(me.locator("#log")).to_contain_text("echo: and three plums")
        (plums,) = [id_ for id_, (_, html) in (await live.me.shown()).entries.items() if ">and three plums</p>" in html]
        await me.locator("#log > li", has=me.locator(".said", has_text="two pears")).hover()
        await me.locator(".said", has_text="two pears").get_by_role("button", name="Edit").click()
        await me.fill("#text", "two figs")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log")).to_contain_text("echo: two figs")
        assert not re.search("pears|plums", str(live.model.requests[-1].messages))
        fields = {"text": "three kiwis", "id": "kiwis-12345", "instead": plums}
        for _ in range(2):
            answer = await live.me.post("/say", fields)
            assert (answer.status, "undone or compressed" in await answer.text()) == (409, True)
        await equals_reload(me)
        assert await log_text(me) == ["two figs", "3/3", "echo: two figs"]
        await me.get_by_label("Version before").click()
        await expect(me.locator("#log")).to_contain_text("echo: and three plums")
        await equals_reload(me)
        assert await log_text(me) == ["two pears", "2/3", "echo: two pears", "and three plums", "echo: and three plums"]
        await say(me, "and a pear")
        await expect(me.locator("#log")).to_contain_text("echo: and a pear")
        assert re.search("pears.*plums.*a pear", str(live.model.requests[-1].messages))
        await me.locator("article.reply").last.hover()
        await me.locator("[data-do=again]:visible").last.click()
        await expect(me.locator("#log")).to_contain_text("2/2")
        await expect(me.locator("#log > li").last).to_contain_text("echo: and a pear")
        await equals_reload(me)
        assert (await log_text(me))[-3:] == ["and a pear", "echo: and a pear", "2/2"]  # it was answered anew
        await expect(me.locator(".sessions [data-at]")).to_have_count(1)  # versions are one conversation


async def test_conversations_are_renamed_pinned_and_deleted_in_the_list(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        for number, words in enumerate(("about apples", "about pears", "about plums")):
            await say(me, words)
            await expect(me.locator("#log")).to_contain_text(f"echo: {words}")
            if number < 2:
                await say(me, "/new")
                await expect(me.locator("#log li", has_text="Started a fresh session")).to_have_count(number + 1)
        lines = me.locator(".sessions [data-at]")
        await expect(lines).to_have_count(3)
        await more(me, "about apples")
        await me.get_by_role("textbox", name="Name", exact=True).fill("Fruit & <more>")
        await me.keyboard.press("Enter")
        await expect(lines.last).to_contain_text("Fruit & <more>")
        await more(me, "Fruit & <more>")
        await me.get_by_role("button", name="Pin", exact=True).click()
        await expect(lines.first).to_contain_text("Fruit & <more>")
        await expect(me.locator(".sessions .day").first).to_have_text("Pinned")
        assert not (await Axe().run(me)).response["violations"]
        await more(me, "about pears")
        await me.get_by_role("combobox", name="Project").fill("2027 & <plans>")
        await me.keyboard.press("Enter")
        await expect(me.locator(".named-project")).to_have_text("2027 & <plans>")
        await me.locator(".named-project").click()
        await expect(me.locator(".project [data-at]")).to_contain_text("about pears")
        await me.get_by_role("searchbox").press_sequentially("PEAR")
        await expect(me.locator(".sessions [data-at]:visible")).to_have_count(1)
        await me.get_by_role("searchbox").fill("")
        await expect(me.locator(".sessions [data-at]:visible")).to_have_count(3)
        await more(me, "about pears")
        assert await me.locator("#projects option").evaluate_all("all => all.map(e => e.value)") == ["2027 & <plans>"]
        await me.get_by_role("combobox", name="Project").fill("")
        await me.keyboard.press("Enter")
        await expect(me.locator(".sessions .day")).to_have_count(2)
        await more(me, "about pears")
        await me.get_by_role("button", name="Delete").click()
        await me.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(lines).to_have_count(2)
        await equals_reload(me)
        assert "pears" not in await me.content()
        await more(me, "about plums")
        await me.get_by_role("textbox", name="Name", exact=True).fill("Plums")
        await me.get_by_role("button", name="Rename").click()
        await expect(lines.last).to_contain_text("Plums")
        await say(me, "/title")  # the present one is named as by that
        await expect(me.locator("#log li").last).to_contain_text("This session is “Plums”")
        await equals_reload(me)
        assert (await live.me.post("/session", {"order": "pin s_of_somebody_else"})).status == 404


async def test_a_conversation_is_dragged_into_a_project_and_out_of_it(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        for words in ("about apples", "about pears", "about plums"):
            await live.me.say(words)
            await live.me.until(f"echo: {words}")
            await live.me.say("/new")
            await live.me.until("Started a fresh session")
        days, lines = me.locator(".sessions .day"), me.locator(".sessions [data-at]")
        await me.goto(live.adapter.at)
        pears = me.locator(".sessions a", has_text="pears")
        await pears.hover()
        await me.mouse.down()
        await lines.first.hover()
        await days.filter(has_text="New project").hover()
        await me.mouse.up()
        named = me.get_by_role("combobox", name="Project")
        await expect(named).to_be_focused()
        await named.fill("Fruit")
        await me.keyboard.press("Enter")
        fruit, within = me.locator(".named-project"), me.locator(".project [data-at]")
        await expect(fruit).to_have_text("Fruit")
        await fruit.click()
        await me.locator(".sessions a", has_text="apples").drag_to(fruit)  # upon its name
        await expect(within).to_have_count(2)
        await me.locator(".sessions a", has_text="plums").drag_to(pears)  # and upon what is in it
        await expect(days).to_have_count(0)
        await pears.drag_to(lines.last)  # where it is
        await more(me, "about apples")
        await me.get_by_role("button", name="Pin", exact=True).click()
        await expect(days).to_have_text(["Pinned"])
        await me.goto(f"{live.adapter.at}/skills")
        await me.locator(".sessions a", has_text="apples").drag_to(fruit)
        await expect(me.locator(".sessions .day")).to_have_count(0)
        await fruit.click()
        await expect(days).to_have_count(0)
        await pears.drag_to(me.locator("main"))  # nowhere
        await expect(within).to_have_count(3)
        assert not (await Axe().run(me)).response["violations"]


async def test_the_list_is_hidden_and_stays_so(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        search, wide = me.get_by_role("searchbox"), "document.querySelector('main').getBoundingClientRect().left"
        shown = await me.evaluate(wide)
        await me.get_by_role("button", name="Hide the list").click()
        await expect(search).to_be_hidden()
        await me.goto(f"{live.adapter.at}/window")
        await expect(search).to_be_hidden()
        assert await me.evaluate(wide) < shown
        assert not (await Axe().run(me)).response["violations"]
        await me.locator("#fold summary").click()
        await expect(search).to_be_visible()
        await me.goto(live.adapter.at)
        await me.keyboard.press("Control+Shift+S")
        await expect(search).to_be_hidden()
        await me.keyboard.press("Control+k")  # needs it
        await expect(search).to_be_focused()


async def test_what_people_do_with_a_chat_is_said_in_words(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await say(me, "hello")
        await expect(me.locator("#log")).to_contain_text("echo: hello")
        menu = me.locator(".below summary", has_text="This chat")
        for words, answered in (
            ("My rules", "No rules are pinned"),
            ("My reminders", "/remind"),
            ("Undo my last message", "hello"),
        ):
            await menu.click()
            await me.locator(".below").get_by_role("button", name=words).click()
            await expect(me.locator("dialog, #toast:not([hidden])").last).to_contain_text(answered)
            await me.evaluate("document.querySelector('dialog')?.close()")
        await menu.click()
        assert not (await Axe().run(me)).response["violations"]
        for width in (1440, 390):
            await me.set_viewport_size({"width": width, "height": 844})
            assert await me.evaluate("document.documentElement.scrollWidth <= innerWidth")
        async with person(chromium, live, java_script_enabled=False) as other:
            await other.locator(".below summary", has_text="This chat").click()
            await other.locator(".below").get_by_role("button", name="What this chat has cost").click()
            assert "/usage" not in (await live.me.until("Last 24 hours")).text  # the answer stands alone


async def test_light_and_dark_are_chosen_and_kept(tmp_path: Path, chromium: Browser) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    async with page(tmp_path) as live, person(chromium, live, color_scheme="light") as me:
        light = await me.evaluate(ground)
        await me.click(".me summary")
        await me.get_by_role("button", name="Dark").click()
        await expect(me.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
        dark = await me.evaluate(ground)
        assert dark != light
        await me.goto(f"{live.adapter.at}/window")
        assert await me.evaluate(ground) == dark
        await me.click(".me summary")
        assert not (await Axe().run(me)).response["violations"]
        await me.emulate_media(color_scheme="dark")
        await me.get_by_role("button", name="Light").click()
        await eventually(lambda: me.evaluate(f"{ground} === '{light}'"))
        async with person(chromium, live, color_scheme="light", java_script_enabled=False) as other:
            await other.goto(f"{live.adapter.at}/skills?a=b")
            await other.click(".me summary")
            await other.get_by_role("button", name="Dark").click()
            assert other.url == f"{live.adapter.at}/skills?a=b"
            await expect(other.locator("html")).to_have_attribute("data-look", "dark")


async def more(me: Any, title: str) -> None:
    """Open the menu of a conversation."""
    await me.locator(".sessions [data-at]", has_text=title).hover()
    await me.get_by_label(f"More about {title}").click()


async def test_tools_sources_costs_models_and_a_recording_stand_in_the_chat(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate()
    found = (
        "Founded in 753 BC [1].\n\nSources: [1. Rome, a city, history.example.org](https://history.example.org/rome)"
    )
    written = '{"path": "list.md", "content": "tent <b>"}'
    script = in_turn(
        Say(text="I will write it.", calls=[("write_file", written)], thoughts="Rome needs a <tent>."),
        Say(first="Fou", text=found, gate=gate),
        Say(text="heard"),
    )
    config = config_in(tmp_path, transcription=TranscriptionSettings(command=("true",)))
    async with page(tmp_path, model=FakeModel(script), config=config) as live, person(chromium, live) as me:
        await say(me, "write it, and say when Rome began")
        fold = me.locator(".deeds")
        await expect(fold).to_contain_text("Wrote ")  # while the answer is being written
        await fold.locator("summary").first.click()
        gate.open()
        await expect(me.locator(".sources a")).to_have_attribute("href", "https://history.example.org/rome")
        await expect(me.locator(".sources")).to_contain_text("1 · history.example.org")
        await expect(fold.locator("p")).to_have_text(["Rome needs a <tent>.", "I will write it."])
        assert await fold.locator("pre").all_inner_texts() == [
            "path: list.md\ncontent: tent <b>",
            "Wrote list.md (8 bytes).",
        ]
        await me.get_by_label("What this answer took").click()
        await expect(me.locator(".spent")).to_contain_text("Calls of a model")
        assert not (await Axe().run(me)).response["violations"]
        await me.reload()
        await equals_reload(me)
        (present,) = [each.id for each in await live.adapter.views.sessions(source_of("owner"))]
        await me.goto(f"{live.adapter.at}/s/{present}")  # which shows it alike
        await expect(me.locator(".log .sources")).to_contain_text("1 · history.example.org")
        await me.locator(".deeds summary").click()
        await expect(me.locator(".deeds pre").last).to_have_text("Wrote list.md (8 bytes).")
        await expect(me.get_by_text("I will write it.")).to_have_count(1)
        assert "Result of a tool" not in await me.locator("main").inner_text()
        assert "→" not in await me.locator("main").inner_text()
        await me.get_by_label("What this answer took").click()
        await expect(me.locator(".spent")).to_contain_text("Calls of a model")
        assert not (await Axe().run(me)).response["violations"]
        await me.goto(live.adapter.at)
        await me.locator("#models summary").click()
        await me.locator("#models .menu").get_by_role("button", name="fake ✓").first.click()
        await expect(me.locator("#toast")).to_contain_text("fake")
        await me.get_by_role("button", name="Record", exact=True).click()
        await expect(me.get_by_role("timer")).to_have_text(re.compile("0:0[1-9]"))
        assert not (await Axe().run(me)).response["violations"]
        await me.locator("#recording").get_by_role("button", name="Cancel").click()
        await expect(me.locator("#recording")).to_be_hidden()
        await expect(me.locator("#chosen li")).to_have_count(0)
        await me.get_by_role("button", name="Record", exact=True).click()
        await me.get_by_role("button", name="End the recording").click()
        await me.get_by_role("button", name="Remove recording.webm").wait_for()
        await say(me, "listen")
        await expect(me.locator(".said audio")).to_have_count(1)
        await equals_reload(me)
        status, html = await live.me.get("/models")
        assert (status, 'value="/model fake"' in html) == (200, True)  # without the script, too


async def test_a_model_is_found_by_its_name_and_says_its_window_and_price(
    tmp_path: Path, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = OfferedModel(name="big", window=200_000, read_usd=3.0, write_usd=15.0)

    async def offered(models: Models, home: ModelSpec) -> list[OfferedModel]:
        models._offered |= {(home.provider, home.base_url, big.name): 200_000}
        return [big, *(OfferedModel(name=f"small-{number}", read_usd=0.0, write_usd=0.0) for number in range(9))]

    monkeypatch.setattr(Models, "offered", offered)
    async with page(tmp_path) as live, person(chromium, live) as me:
        await me.locator("#models summary").click()
        menu, field = [await me.locator(each).bounding_box() for each in ("#models .menu", "#text")]
        assert menu["y"] + menu["height"] <= field["y"], "what is being written is seen beside the menu"
        await expect(me.locator("#models li:visible").last).to_have_text("small-8free")
        await me.get_by_role("searchbox", name="Find a model").fill("BIG")
        (choice,) = await me.locator("#models li:visible").all()
        await expect(choice).to_have_text("big200K tokens · $3 in, $15 out per million")
        room = "(each) => [each.scrollWidth - each.clientWidth, each.parentElement.clientWidth - each.offsetWidth]"
        assert await choice.locator("button").evaluate(room) == [0, 0], "nothing is cut off"
        assert not (await Axe().run(me)).response["violations"]
        await choice.click()
        await expect(me.locator("#models summary")).to_have_text("big ▾")
        await say(me, "/model small-7")
        await expect(me.locator("#log .command").last).to_contain_text("small-7")
        await say(me, "hello")
        await expect(me.locator("#log .reply")).to_have_count(1)
        await me.reload()
        await me.locator("#models summary").click()
        await expect(me.locator("#models li").first).to_have_text("small-7 ✓free")  # what answered last


async def test_a_new_chat_offers_beginnings_and_messages_what_can_be_done_with_them(
    tmp_path: Path, chromium: Browser
) -> None:
    model = FakeModel(in_turn(Say(text="```python\nx = 1\n```\nthat is $x^2$"), Say(text="another answer")))
    async with page(tmp_path, model=model) as live:
        context = await chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        me = await tab(context, wrong := [])
        await me.goto(live.adapter.guard.link)
        await expect(me.locator(".below")).to_contain_text("fake")
        await expect(me.locator("#record")).to_have_count(0)  # nobody would hear it
        await me.get_by_role("button", name="Add buy milk to my to-do list").click()
        await expect(me.locator("#log .reply")).to_contain_text("that is")
        await expect(me.locator("#empty")).to_be_hidden()
        assert "Add buy milk" in str(live.model.requests[-1].messages)
        await me.locator(".code").get_by_role("button", name="Copy").click()
        await expect(me.locator("#toast")).to_have_text("Copied")
        assert await me.evaluate("navigator.clipboard.readText()") == "x = 1\n"
        await expect(me.locator(".code header")).to_contain_text("python")
        await me.evaluate("navigator.clipboard.writeText('')")
        await me.keyboard.press("Control+Shift+:")
        await eventually(lambda: me.evaluate("navigator.clipboard.readText().then((words) => words === 'x = 1\\n')"))
        await expect(me.locator("#log math msup")).to_have_count(1)
        await me.get_by_role("button", name="Answer again").click()
        await expect(me.locator("#log")).to_contain_text("another answer")
        await expect(me.get_by_role("button", name="Answer again")).to_have_count(1)  # the last one alone
        await equals_reload(me)
        await me.keyboard.press("Control+k")
        assert await me.evaluate("document.activeElement.name") == "q"
        await me.keyboard.type("in no title")
        await expect(me.get_by_text("Press Enter to search everything that was said.")).to_be_visible()
        await me.locator("nav [type=search]").fill("")
        await expect(me.get_by_text("Press Enter to search everything that was said.")).to_be_hidden()
        await me.get_by_role("button", name="Shortcuts").click()
        await expect(me.locator("dialog")).to_contain_text("searches all chats")
        await me.keyboard.press("Escape")
        await me.locator("#show-keys").focus()
        await me.keyboard.press("c")  # means nothing here: it would overwrite what one has copied
        await me.keyboard.press("Control+Shift+C")
        await eventually(
            lambda: me.evaluate("navigator.clipboard.readText().then((words) => words === 'another answer')")
        )
        await me.keyboard.press("Shift+Escape")
        assert await me.evaluate("document.activeElement.id") == "text"
        await me.keyboard.press("Control+/")
        await expect(me.locator("dialog")).to_be_visible()
        await me.keyboard.press("Escape")
        await me.keyboard.press("Control+Shift+O")
        await expect(me.locator("#empty")).to_be_visible()
        await context.close()
        assert wrong == []


MARKDOWN = """# A title

~~wrong~~ `words`, see [^1] [a page](https://example.org/a).

1) one
   - [x] done

````markdown
```python
if x:
```
````

| Train | Price \\| €|
|:--|--:|
| RJ | \\(x^2\\) |

<details><summary>More</summary>

inside

</details>

[^1]: A note."""


CARETS = """[...document.querySelectorAll(".draft .body, .draft .body *")].filter((each) =>
getComputedStyle(each, "::after").content.includes("▍")).map((each) => each.localName)"""


async def test_what_is_being_written_has_one_caret_and_it_is_at_the_end(tmp_path: Path, chromium: Browser) -> None:
    wanted = {
        "1. one\n\n   more\n2. two\n   - three\n\n> said": ["p"],
        "| a | b |\n|---|---|\n| c | d |": ["td"],
        "- one\n\n```python\nx = 1": ["code"],
        "# Title\n\n$$\\frac{1}": ["h3"],
    }
    gates = [Gate() for _ in wanted]
    says = (Say(first=written, text="", gate=gate) for written, gate in zip(wanted, gates, strict=True))
    async with page(tmp_path, model=FakeModel(in_turn(*says))) as live, person(chromium, live) as me:
        for gate, carets in zip(gates, wanted.values(), strict=True):
            await say(me, "tell me")
            await expect(me.locator(".draft .body > *").first).to_be_visible()
            assert await me.evaluate(CARETS) == carets
            gate.open()
            await expect(me.locator(".draft")).to_have_count(0)


async def test_an_answer_is_copied_as_markdown_and_read_aloud(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(in_turn(Say(text=MARKDOWN)))) as live:
        context = await chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        await context.add_init_script("window.said = []; speechSynthesis.speak = (each) => window.said.push(each.text)")
        me = await tab(context, wrong := [])
        await me.goto(live.adapter.guard.link)
        await say(me, "a <b>\n\n\n*question*")
        reply = me.locator("#log .reply")
        await reply.get_by_role("button", name="Read aloud").click()
        assert "wrong words" in (await me.evaluate("said"))[0]
        await reply.locator(".acts").get_by_role("button", name="Copy").click()
        await expect(me.locator("#toast")).to_have_text("Copied")
        assert await me.evaluate("navigator.clipboard.readText()") == MARKDOWN
        (present,) = [each.id for each in await live.adapter.views.sessions(source_of("owner"))]
        await me.goto(f"{live.adapter.at}/s/{present}")
        await me.evaluate("navigator.clipboard.writeText('')")
        await me.locator(".reply .acts").get_by_role("button", name="Copy").click()
        await eventually(lambda: me.evaluate("navigator.clipboard.readText().then((all) => all.endsWith('note.'))"))
        assert await me.evaluate("navigator.clipboard.readText()") == MARKDOWN
        await context.set_offline(True)
        await me.locator(".reply .acts").get_by_role("button", name="Copy").click()
        await eventually(lambda: me.evaluate("navigator.clipboard.readText().then((all) => all.startsWith('A title'))"))
        await context.set_offline(False)
        await me.locator(".said").get_by_role("button", name="Copy").click()
        await eventually(lambda: me.evaluate("navigator.clipboard.readText().then((all) => all.endsWith('question*'))"))
        assert await me.evaluate("navigator.clipboard.readText()") == "a <b>\n\n\n*question*"
        await context.close()
        assert wrong == []


async def test_what_a_model_thought_stands_folded_above_its_answer(tmp_path: Path, chromium: Browser) -> None:
    answers = FakeModel(in_turn(Say(text="plain"), Say(text="thought over", thoughts="Is <it> so?")))
    async with page(tmp_path, model=answers) as live, person(chromium, live) as me:
        await say(me, "one")
        await expect(me.locator("#log .reply")).to_contain_text("plain")
        await say(me, "two")
        fold = me.locator(".deeds summary", has_text="Thoughts")
        await fold.click()
        await expect(me.locator(".deeds p")).to_have_text("Is <it> so?")
        await fold.click()
        await expect(me.locator("#log .reply")).to_have_count(2)
        assert [await each.get_attribute("class") for each in await me.locator("#log article").all()] == [
            "said",
            "reply",
            "said",
            "deeds",
            "reply",
        ]
        await equals_reload(me)


async def test_an_earlier_answer_is_made_again_and_nothing_is_lost(tmp_path: Path, chromium: Browser) -> None:
    answers = FakeModel(in_turn(*(Say(text=text) for text in ("first", "second", "another first"))))
    async with page(tmp_path, model=answers) as live, person(chromium, live) as me:
        for words, answer in (("one", "first"), ("two", "second")):
            await say(me, words)
            await expect(me.locator("#log .reply").last).to_contain_text(answer)
        await me.locator("#log .reply").first.get_by_role("button", name="Answer again").click()
        await expect(me.locator("#log .reply")).to_have_count(1)
        await expect(me.locator("#log .reply")).to_contain_text("another first")
        assert "two" not in str(live.model.requests[-1].messages)
        await expect(me.locator(".reply .versions")).to_contain_text("2/2")
        await expect(me.locator(".versions")).to_have_count(1)
        await me.get_by_role("button", name="Version before").click()
        await expect(me.locator("#log .reply").last).to_contain_text("second")
        await equals_reload(me)


async def test_what_is_being_written_is_kept_while_one_looks_elsewhere(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await me.fill("#text", "half a")
        await me.goto(f"{live.adapter.at}/window")
        await me.goto(live.adapter.at)
        await expect(me.locator("#text")).to_have_value("half a")
        await say(me, "half a thought")
        await expect(me.locator("#log")).to_contain_text("echo: half a thought")
        await expect(me).to_have_title("half a thought · Legato")
        await me.reload()
        await expect(me.locator("#text")).to_have_value("")


async def test_a_picture_is_sent_and_shown(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        shot = await me.screenshot()
        await me.set_input_files("#file", {"name": "shot.png", "mimeType": "image/png", "buffer": shot})
        await expect(me.locator("#chosen li")).to_contain_text("shot.png")
        await say(me, "look")
        picture = me.locator("#log .said img")
        await expect(picture).to_be_visible()
        await picture.evaluate("(image) => image.decode()")
        assert await picture.evaluate("(image) => image.naturalWidth") > 100
        await expect(me.locator("#log article.reply:not(.draft)")).to_contain_text("echo: look")
        await equals_reload(me)


def small(folder: Path) -> Config:
    """A configuration whose window is soon full."""
    return config_in(
        folder,
        model=ModelSettings(provider="offline", name="fake", context_length=32_000),
        compression=CompressionSettings(protect_last_n=1, background=False),
    )


async def test_a_compaction_is_seen_put_back_and_undone(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, config=small(tmp_path)) as live, person(chromium, live) as me:
        for number in range(8):
            await live.me.say(f"remember the number {number}: " + "words and more words " * 400)
            await live.me.until(f"echo: remember the number {number}")
        await say(me, "/compress")
        await expect(me.locator("#log")).to_contain_text("Compressed:")
        await me.click(".me summary")
        await me.get_by_role("link", name="Window and memory").click()
        await me.locator(".pass summary").first.click()
        await expect(me.locator(".pass[open]")).to_contain_text("The notes, as the model reads them")
        await expect(me.locator(".pass[open]")).to_contain_text("remember the number 6")
        await me.get_by_role("button", name="Put this back").first.click()
        await me.goto(f"{live.adapter.at}/window")
        await expect(me.locator(".facts li").first).to_contain_text("remember the number")
        await me.locator(".pass summary").first.click()
        await me.get_by_role("button", name="Undo").click()
        await expect(me.locator("#log")).to_contain_text("I undid the compression")


async def test_sessions_are_found_named_and_gone_on_from(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        await say(me, "the train to Vienna leaves at nine")
        await expect(me.locator("#log")).to_contain_text("echo: the train")
        await say(me, "and so on\n" * 80)
        await expect(me.locator("#log > li")).to_have_count(4)
        await say(me, "/title Vienna trip")
        await expect(me.locator(".sessions .present")).to_contain_text("Vienna trip")
        await say(me, "/new")
        await expect(me.locator("#log")).to_contain_text("Started a fresh session")
        await expect(me.locator("#empty")).to_be_visible()  # what was said before is out of the way
        await expect(me.locator("#log .said").first).to_be_hidden()
        await expect(me.get_by_role("link", name="Show earlier messages")).to_have_count(0)  # which is of other chats
        await me.goto(f"{live.adapter.at}/c/?n=160")
        await expect(me.locator("#log .said").first).to_be_visible()
        await me.goto(live.adapter.at)
        await say(me, "something else entirely")
        await expect(me.locator(".sessions [data-at]")).to_have_count(2)
        await expect(me.locator("#log")).to_contain_text("echo: something else entirely")
        (other,) = [each.id for each in await live.adapter.views.sessions(source_of("owner")) if not each.present]
        await live.me.post("/session", {"order": f"rename {other}", f"title {other}": "Vienna by train"})
        await live.me.say("/sessions")  # a name of the list is known everywhere
        await live.me.until("Vienna by train")
        await me.get_by_role("searchbox").fill("Vienna train")
        await me.keyboard.press("Enter")
        await expect(me.locator(".found")).to_contain_text("leaves at nine")
        await expect(me.locator(".found b").first).to_have_text("Vienna by train")
        await me.locator(".found a").first.click()
        await expect(me.locator("h1")).to_have_text("Vienna by train")
        assert await me.locator("main mark").all_text_contents() == ["train", "Vienna"]
        await expect(me.locator("main mark").first).to_be_in_viewport()  # far above the end
        assert not (await Axe().run(me)).response["violations"]
        await me.set_input_files("#file", [{"name": "plan.txt", "mimeType": "text/plain", "buffer": b"by the sea"}])
        await expect(me.locator("#chosen li")).to_contain_text("plan.txt")
        await me.get_by_placeholder("Go on from here").fill("and the way back?")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log")).to_contain_text("I went back to “Vienna by train”")
        await expect(me.locator("#log")).to_contain_text("echo: and the way back?")
        await expect(me.locator("#log .said .file").last).to_contain_text("plan.txt")
        asked = str(live.model.requests[-1].messages)
        assert "leaves at nine" in asked
        assert "something else" not in asked
        await expect(me.locator(".sessions .present")).to_contain_text("Vienna by train")
        await expect(me.locator("#before")).to_contain_text("leaves at nine")  # it stands above, as it was
        assert "something else" not in await me.locator("main").inner_text()
        await equals_reload(me)
        await say(me, "/forget leaves")  # and what is forgotten does not
        await say(me, "/forget 1")
        await me.get_by_role("button", name="Forget", exact=True).click()
        await expect(me.locator("#before")).not_to_contain_text("leaves at nine")


async def test_a_message_of_an_earlier_session_is_said_anew(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live) as me:
        for words in ("pears", "plums", "/new", "apples"):
            await say(me, words)
            await expect(me.locator("#log > li").last).to_contain_text("fresh" if words == "/new" else f"echo: {words}")
        await me.locator(".sessions a", has_text="pears").click()
        said = me.locator(".log .said", has_text="plums")
        await said.hover()
        await said.get_by_role("button", name="Edit").click()
        await expect(me.locator("#text")).to_have_value("plums")
        await me.locator("#text").fill("quinces")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log")).to_contain_text("echo: quinces")
        asked = str(live.model.requests[-1].messages)
        assert "pears" in asked
        assert "plums" not in asked
        assert "apples" not in asked
        await equals_reload(me)
        await expect(me.locator("#before")).to_contain_text("echo: pears")
        await expect(me.locator("#before")).not_to_contain_text("plums")


async def test_facts_reminders_and_the_title_are_corrected(tmp_path: Path, chromium: Browser) -> None:
    remembers = Say(calls=[("memory", '{"action": "add", "about": "person", "text": "Lives in Rome"}')])
    model = FakeModel(in_turn(remembers, Say(text="noted")))
    async with page(tmp_path, model=model) as live, person(chromium, live) as me:
        for words, answer in (
            ("remember: I live in Rome", "noted"),
            ("/remind tomorrow at 9 tea", "I will remind you of this"),
        ):
            await say(me, words)
            await expect(me.locator("#log")).to_contain_text(answer)
        for opens, words, answer in (
            ("Correct", "Lives in Graz", "I corrected the fact. It now says: Lives in Graz"),
            ("Change", "coffee", "1. coffee"),
            ("Rename", "A trip", "“A trip”"),
            ("Add a rule", "be brief", "Pinned as number 1"),
        ):
            await me.goto(f"{live.adapter.at}/window")
            await me.locator(".worded summary", has_text=opens).click()
            await me.locator(".worded[open] input[type=text]").fill(words)
            await me.keyboard.press("Enter")
            await expect(me.get_by_role("status").filter(has_text=answer)).to_be_visible()
        await me.locator(".worded summary", has_text="Add a reminder").click()
        await me.locator(".worded[open] input[type=text]").fill("call Bo whenever you like")
        await me.keyboard.press("Enter")
        await expect(me.locator(".worded[open] .reason")).to_contain_text("I found no time in your message.")
        field = me.locator(".worded[open] input[type=text]")  # what was refused is kept
        await expect(field).to_have_value("call Bo whenever you like")
        await expect(field).to_be_focused()
        await expect(field).to_have_attribute("aria-invalid", "true")
        assert not (await Axe().run(me)).response["violations"]
        await me.goto(live.adapter.at)
        await expect(me.locator("#log > li")).to_have_count(5)  # none of it stands in the chat
        await me.goto(f"{live.adapter.at}/window")
        await me.get_by_role("button", name="Export as Markdown").click()
        await expect(me.locator("#log .reply .file").last).to_contain_text(".md")
        assert [each.text for each in await live.adapter.views.memory(source_of("owner"))] == ["Lives in Graz"]


async def with_stuck(folder: Path) -> None:
    """A store with a message that was given up, and a row that nobody shows."""
    key, to = SessionKey(platform="web", chat="owner"), ChatAddress(platform="telegram", chat="7")
    store = SqliteStore(folder / "legato.db", clock=SystemClock())
    await store.open()
    source = Source(platform="web", chat="owner", chat_type="direct", user="owner")
    inbound = Inbound(event_id="owner:lost", source=source, text="the lost one")
    await store.accept([Arrival(inbound=inbound, key=key, at=1.0)], cap=10)
    claim = await store.claim_next("w")
    await store.finish_turn(claim.lease, None, claim.item, None, "dead", [])
    row = Outbound(
        id="o_lost", key=SessionKey(platform="telegram", chat="7"), to=to, kind="notice", text="nobody sees me"
    )
    await store.emit([row])
    await store.mark_retry(row.id, 3_600.0, ambiguous=False)
    await store.aclose()


async def test_the_operator_sees_costs_and_for_how_long_a_turn_runs(tmp_path: Path, chromium: Browser) -> None:
    prices = ModelPrices(input=1, output=1)
    priced = ModelSettings(provider="openai", name="fake", api_key="k", context_length=32_000, prices=prices)
    gate, config = Gate(), config_in(tmp_path, model=priced, budgets=Caps(daily_usd=5))
    model = FakeModel(in_turn(Say(text="one"), Say(first="two", gate=gate)))
    async with page(tmp_path, config=config, model=model) as live, person(chromium, live) as me:
        for words in ("one", "two"):
            await say(me, words)
            await expect(me.locator("#log .reply").last).to_contain_text(words)
        await me.goto(f"{live.adapter.at}/inside")
        costs = me.locator("section", has_text="What it costs")
        await expect(costs).to_contain_text("of the $5.00 that everybody together can spend in a day")
        await expect(costs.locator("table").last).to_contain_text("This page")
        (since,) = await me.locator("section", has_text="In progress").locator("td:last-child").all_inner_texts()
        assert 0 <= int(since.removesuffix(" s")) < 600
        gate.open()


async def test_the_operator_replays_and_drops(tmp_path: Path, chromium: Browser) -> None:
    config = config_in(tmp_path)
    await with_stuck(tmp_path)
    async with page(tmp_path, config=config) as live, person(chromium, live) as me:
        await me.goto(f"{live.adapter.at}/inside")
        await expect(me.locator(".stuck > li")).to_have_count(2)
        await me.locator(".stuck > li", has_text="nobody sees me").get_by_role("button", name="Drop").click()
        await expect(me.locator(".notice")).to_have_text("Done.")
        await me.get_by_role("button", name="Replay").click()
        await expect(me.locator(".stuck > li")).to_have_count(1)
        await expect(me.locator(".stuck > li")).to_contain_text("refused")
        await me.goto(live.adapter.at)
        await expect(me.locator("#log")).to_contain_text("echo: the lost one")


async def test_without_a_script_people_read_and_write(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path) as live, person(chromium, live, java_script_enabled=False) as me:
        await me.fill("#text", "no script here")
        await me.click(".send")
        await live.me.until("echo: no script here")
        await me.goto(live.adapter.at)
        await expect(me.locator("#log")).to_contain_text("echo: no script here")
        await live.me.say("\n".join(f"line {number}" for number in range(100)))
        await live.me.until("echo: line 0")
        for size in ({"width": 1000, "height": 700}, {"width": 390, "height": 700}):
            await me.set_viewport_size(size)
            await me.goto(live.adapter.at)  # a long chat begins at its end
            await expect(me.locator("#log > li").last.get_by_text("line 99")).to_be_in_viewport()
            await expect(me.locator("#text")).to_be_in_viewport(ratio=1)
        await me.set_viewport_size({"width": 1000, "height": 700})
        await me.get_by_role("link", name="New chat").click()
        await expect(me.locator("#empty")).to_be_visible()
        await expect(me.locator(".sessions")).to_contain_text("no script here")


CODE = """A `word` and a [link](https://example.org).

```python
def answer(number=42):  # a comment
    return "text", number, None
```
"""
PHONE: Any = {
    "viewport": {"width": 390, "height": 760},
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}


async def test_axe_finds_nothing(tmp_path: Path, chromium: Browser) -> None:
    """axe-core: rules of WCAG 2 for those who hear a page, or see little of it: names, roles, contrast. What is dark or
    narrow differs in colours and places alone, so the pages of most colours are looked at so as well."""
    await with_stuck(tmp_path)
    async with page(tmp_path) as live, person(chromium, live) as me, person(chromium, live, **PHONE) as phone:
        await say(me, "/remind tomorrow at 9 tea")
        for each in (CODE, "/nothing", "/context"):
            await live.me.say(each)
        await live.me.until("of my window")
        (present,) = re.findall(r'name="session" value="([^"]+)">Share this', (await live.me.get("/window"))[1])
        await live.me.post("/share", {"session": present, "sure": "1"})
        (shared,) = re.findall(r'href="(/shared/[^"]+)"', (await live.me.get("/window"))[1])
        paths = ("/", "/window", "/inside", "/search?q=code", "/workspace", "/skills", "/as/telegram")
        paths += (f"/s/{present}", shared)
        for tab, path in [*((me, path) for path in paths), *((phone, path) for path in paths[:4])]:
            await tab.goto(f"{live.adapter.at}{path}")
            found = (await Axe().run(tab)).response["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == [], path
        await me.context.clear_cookies()
        await me.goto(live.adapter.at)
        assert (await Axe().run(me)).response["violations"] == []


async def test_what_holds_words_turns_with_them(tmp_path: Path, chromium: Browser) -> None:
    answer = "1. واحد\n2. two\n\n> اقتباس\n\n| مدينة | سعر |\n|-|-|\n| فيينا | 240 |"
    async with page(tmp_path, model=FakeModel(in_turn(Say(text=answer)))) as live, person(chromium, live) as me:
        await say(me, "count")
        for each in ("ol", "blockquote", "table"):
            await expect(me.locator(f"#log .reply {each}")).to_have_css("direction", "rtl")
        await say(me, "שלום")
        await expect(me.locator(".said .plain", has_text="שלום")).to_have_css("direction", "rtl")
        await me.goto(f"{live.adapter.at}/window")
        await me.keyboard.press("Tab")
        assert await me.evaluate("document.activeElement.className") == "skip"
