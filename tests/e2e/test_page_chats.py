"""Several chats of one person on the page: each works by itself, and the list says what goes on in the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from adapters.web.server import source_of
from gateway.agent.files.quota import FileSettings
from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.domain.turn import TurnSettings
from gateway.providers.base import ModelRequest, ModelSpec
from tests.support.browser import equals_reload, person, say
from tests.support.gateway import Gate, Say, config_in
from tests.support.model import FakeModel, Script, newest
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

WAITS = "Waiting until one of your other chats is done"

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
    within = me.locator(".sessions [data-at]", has_text=title)
    return within.locator(f".mark.{mark}") if mark else within


MENU = "getComputedStyle(document.querySelector('.fold summary > .icon'))"


async def test_the_operator_sees_chats_by_their_titles_and_who_is_asked(tmp_path: Path, chromium: Browser) -> None:
    async with (
        page(tmp_path, model=FakeModel(held(Gate())), tools=[Payment()]) as live,
        person(chromium, live) as me,
    ):
        await me.goto(f"{live.adapter.at}/new")
        await say(me, "hello / number one")
        await expect(me.locator("#log .reply")).to_contain_text("echo: hello")
        await say(me, "pay")
        await expect(me.get_by_role("button", name="Allow once")).to_be_visible()
        await me.goto(f"{live.adapter.at}/inside")
        await expect(me.locator(".well").first).to_have_text("All is well: 1 message waiting for a person's answer.")
        for heading in ("In progress", "Fullest windows"):
            table = me.locator("section", has=me.get_by_role("heading", name=heading))
            await expect(table).to_contain_text("This page · owner · hello / number one")


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
        ring = "({ backgroundColor, animationName }) => [backgroundColor, animationName]"
        mark = f"({ring})(getComputedStyle(document.querySelector('.sessions .mark')))"
        assert await me.evaluate(mark) == ["rgba(0, 0, 0, 0)", "turn"]
        await me.emulate_media(reduced_motion="reduce")
        assert await me.evaluate(mark) == ["rgba(0, 0, 0, 0)", "none"]
        await me.emulate_media(reduced_motion="no-preference")
        assert not (await Axe().run(me)).response["violations"]
        await say(me, "quick number two")
        await expect(me.locator("#log .reply")).to_contain_text("echo: quick number two (1)")
        assert gate.waiting == 1, "the first chat was stopped"
        second = me.url.partition("#")[0]
        gate.open()
        await expect(line(me, "slow number one", "unread")).to_be_visible()
        async with live.me.http.head(f"{live.adapter.at}/c/") as answer:  # a page that asks whether its login holds
            assert answer.status == 200
        await equals_reload(me)
        await expect(line(me, "slow number one", "unread")).to_be_visible()
        assert (await me.evaluate(mark))[0] != "rgba(0, 0, 0, 0)"
        unmarked = await me.evaluate(f"{MENU}.color")
        await me.set_viewport_size({"width": 390, "height": 780})
        assert await me.evaluate(f"{MENU}.color") == unmarked, "an answer can wait"
        await me.set_viewport_size({"width": 1280, "height": 720})
        await me.get_by_role("searchbox").fill("number")
        await me.keyboard.press("Enter")
        await expect(me.locator(".present")).to_contain_text("quick number two")  # one came from there
        await me.goto(f"{live.adapter.at}/search")
        await expect(me.locator("h1")).to_be_visible()
        await expect(me.locator(".present, .window")).to_have_count(0)
        await me.goto(second)
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


async def test_a_chat_says_that_it_waits_for_the_others_of_its_person(tmp_path: Path, chromium: Browser) -> None:
    gate, config = Gate(), config_in(tmp_path, turns=TurnSettings(concurrent=8))
    async with page(tmp_path, model=FakeModel(held(gate)), config=config) as live, person(chromium, live) as me:
        for number in range(3):
            await me.locator(".fresh").click()
            await say(me, f"slow {number}")
            await expect(me.locator("#work")).to_have_text("Thinking" if number < 2 else WAITS)
        gate.open()
        await expect(me.locator("#log .reply")).to_contain_text("echo: slow 2")
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
        async with me.expect_navigation():  # what is reloaded in the middle of one is no page
            await me.locator(".send").first.click()
        await live.me.until("quick number two (1)", path=me.url.removeprefix(live.adapter.at).partition("#")[0])
        await me.reload()
        await expect(me.locator("#log .reply")).to_have_text(re.compile("quick number two"))
        await expect(line(me, "slow number one", "works")).to_be_visible()
        gate.open()
        await live.me.until("slow number one (1)")


async def test_a_chat_is_deleted_and_shared_without_the_others(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        await say(me, "about apples")
        await expect(me.locator("#log .reply")).to_contain_text("echo: about apples")
        await me.locator(".fresh").click()
        await say(me, "about pears")
        await expect(me.locator("#log .reply")).to_contain_text("echo: about pears")
        pears = me.url
        await more(me, "about pears")
        await me.get_by_role("combobox", name="Project").fill("Orchard")
        await me.keyboard.press("Enter")
        await expect(me.locator(".named-project")).to_have_text("Orchard")
        await more(me, "about pears")
        await me.locator(".sessions").get_by_role("button", name="Share").click()
        await me.get_by_role("dialog").get_by_role("button", name="Make a link").click()
        link = await me.get_by_role("textbox", name="Link").input_value()
        await me.get_by_role("dialog").get_by_role("button", name="Close").click()
        async with live.visitor() as stranger:
            shown = (await stranger.get(link.removeprefix(live.adapter.at)))[1]
            assert "about pears" in shown
            assert "apples" not in shown
            assert (await stranger.get(pears.removeprefix(live.adapter.at)))[0] == 200  # the way to log in
            assert "pears" not in (await stranger.get(pears.removeprefix(live.adapter.at)))[1]
        await more(me, "about pears")
        await me.locator(".sessions").get_by_role("button", name="Delete").click()
        await me.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(me.locator("#empty")).to_be_visible()
        assert me.url != pears
        await expect(line(me, "about pears")).to_have_count(0)
        await expect(me.locator(".project [data-at]")).to_have_count(0)
        await me.goto(pears)  # nothing is left at its address
        await expect(me.locator("#log > li")).to_have_count(0)
        await me.get_by_role("link", name="about apples").click()
        await expect(me.locator("#log .reply")).to_contain_text("echo: about apples")
        await equals_reload(me)
        assert await sessions(live) == ["about apples"]


async def test_files_edits_and_versions_stay_in_their_chat(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        await say(me, "about apples")
        await expect(me.locator("#log .reply")).to_contain_text("echo: about apples")
        await me.locator(".fresh").click()
        await me.set_input_files("#file", [{"name": "plan.txt", "mimeType": "text/plain", "buffer": b"by the sea"}])
        await say(me, "number one")
        await expect(me.locator("#log .reply")).to_contain_text("echo: number one")
        address = await me.locator("#log .file a").get_attribute("href")
        assert (await live.me.get(address or ""))[1] == "by the sea"
        await say(me, "number two")
        await expect(me.locator("#log .reply").last).to_contain_text("echo: number two (2)")
        await me.locator("#text").press("ArrowUp")
        await me.fill("#text", "number three")
        await me.keyboard.press("Enter")
        await expect(me.locator("#log .reply").last).to_contain_text("echo: number three (2)")
        await me.get_by_role("button", name="Version before").click()
        await expect(me.locator("#log .said").last).to_contain_text("number two")
        await equals_reload(me)
        await me.get_by_role("link", name="about apples").click()
        await expect(me.locator("#log .reply")).to_contain_text("echo: about apples")
        assert "number" not in await me.locator("#log").inner_text()


async def test_a_copy_is_a_chat_beside_the_old_one_and_each_stays_as_it_is(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        await me.set_input_files("#file", [{"name": "plan.txt", "mimeType": "text/plain", "buffer": b"by the sea"}])
        await say(me, "number one")
        await expect(me.locator("#log .reply")).to_contain_text("echo: number one")
        old = me.url.partition("#")[0]
        await me.locator(".below summary", has_text="This chat").click()
        await me.get_by_role("button", name="Go on in a copy").click()
        await me.wait_for_url(re.compile(r"/c/c-[0-9a-f]+"))
        await expect(me.locator("#log .command")).to_contain_text(
            "This is a copy of “number one plan.txt” (2 messages)"
        )
        await expect(me.locator("#before .reply")).to_contain_text("echo: number one")
        await expect(line(me, "number one plan.txt (copy)")).to_be_visible()
        await say(me, "number two")
        await expect(me.locator("#log .reply")).to_contain_text("echo: number two (2)")
        assert "by the sea" in str(live.model.requests[-1].messages)
        copy = me.url.partition("#")[0]
        await equals_reload(me)
        await me.goto(old)
        assert await me.locator("#log .said .plain").all_text_contents() == ["number one"]
        await say(me, "number three")
        await expect(me.locator("#log .reply").last).to_contain_text("echo: number three (2)")
        await me.goto(copy)
        await say(me, "/branch a third")
        await me.wait_for_url(lambda url: "/c/c-" in url and not url.startswith(copy))
        await expect(line(me, "a third")).to_be_visible()
        await me.goto(copy)
        await more(me, "number one plan.txt (copy)")
        await me.locator(".sessions").get_by_role("button", name="Delete").click()
        await me.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(line(me, "number one plan.txt (copy)")).to_have_count(0)
        await me.goto(old)
        await say(me, "number four")
        await expect(me.locator("#log .reply").last).to_contain_text("echo: number four (3)")
        assert "by the sea" in str(live.model.requests[-1].messages)
        assert sorted(await sessions(live)) == ["a third", "number one plan.txt"]


async def test_a_copy_goes_on_behind_any_answer(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        for number in ("one", "two", "three"):
            await say(me, f"number {number}")
            await expect(me.locator("#log .reply").last).to_contain_text(f"echo: number {number}")
        second = me.locator("#log .reply").nth(1)
        await second.hover()
        await second.get_by_role("button", name="Go on from here in another chat").click()
        await me.wait_for_url(re.compile(r"/c/c-[0-9a-f]+"))
        await expect(me.locator("#before .reply").last).to_contain_text("echo: number two (2)")
        await expect(me.locator("#before .reply")).to_have_count(2)
        await say(me, "number four")
        await expect(me.locator("#log .reply")).to_contain_text("echo: number four (3)")
        await expect(me.locator(".versions")).to_have_count(0)
        first = me.locator("#before .reply").first
        await first.hover()
        await first.get_by_role("button", name="Go on from here in another chat").click()  # a copy of the copy
        await expect(me.locator("#before .reply")).to_have_count(1)
        fields = {"id": "gone-00001", "text": "/branch", "upto": "owner:nothing", "chat": ""}
        answer = await live.me.post("/say", fields)
        assert (answer.status, "nothing was copied" in await answer.text()) == (409, True)
        assert len(await sessions(live)) == 3


async def test_without_a_script_a_copy_is_a_chat_of_its_own_and_the_same_when_sent_again(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live:
        await live.me.say("number one")
        await live.me.until("echo: number one (1)")
        form = {"id": "copy-00001", "text": "/branch", "menu": "1", "chat": ""}
        sent = [await live.me.post("/say", form, headers={}) for _ in range(2)]
        (opened,) = {answer.headers["Location"].partition("#")[0] for answer in sent}
        assert opened.startswith("/c/c-")
        await live.me.until("This is a copy of", path=opened)
        assert "copy" not in (await live.me.shown()).text
        assert sorted(await sessions(live)) == ["number one", "number one (copy)"]


async def test_a_copy_takes_room_for_its_files_and_without_enough_room_nothing_is_copied(tmp_path: Path) -> None:
    config = config_in(tmp_path, files=FileSettings(per_person_mb=0.004, per_chat_mb=None))
    async with page(tmp_path, model=FakeModel(held(Gate())), config=config) as live:
        await live.me.say("number one", files=[(f"{n}.txt", n.encode() * 700, "text/plain") for n in "ab"])
        await live.me.until("echo: number one")
        assert live.adapter.views is not None
        store, account = live.adapter.views.store, f"files of {SessionKey(platform='web', chat='owner')}"
        assert await store.spent([account]) == [1_400]
        opened = await copied(live, "copy-00001")
        await live.me.until("This is a copy of", path=opened)
        assert await store.spent([account]) == [2_800], "one more file would fit, but not two"
        for _ in range(2):
            answer = await live.me.post("/say", {"id": "copy-00002", "text": "/branch my copy", "chat": ""})
            told = await answer.json()
            assert (answer.status, told["to"], "opened" in told) == (409, "/c/#end", False)
            assert told["problem"].startswith("I did not copy the session, because the room for files of one person")
        assert await store.spent([account]) == [2_800]
        assert len(await sessions(live)) == 2


async def test_a_copy_waits_until_the_answer_is_written(tmp_path: Path) -> None:
    gates = {"one": Gate(), "two": Gate()}

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        return Say(text=f"echo: {newest(request)}", gate=gates[newest(request)])

    async with page(tmp_path, model=FakeModel(script)) as live:
        assert live.adapter.views is not None
        for number, (words, gate) in enumerate(gates.items()):
            await live.me.say(words)
            await gate.until_waiting()
            said = [each.event_id for each in await live.adapter.views.said(source_of("owner"), 2)]
            for upto in ("", said[0]):
                fields = {"id": f"copy-{number}{len(upto):03}", "text": "/branch", "upto": upto, "chat": ""}
                answer = await live.me.post("/say", fields)
                assert (answer.status, "still answering" in await answer.text()) == (409, True)
            if number:  # an answer that is there can be copied meanwhile
                opened = await copied(live, "copy-00001", upto=said[1])
                await live.me.until("This is a copy of", path=opened)
            gate.open()
            await live.me.until(f"echo: {words}")
        await live.me.until("This is a copy of", path=await copied(live, "copy-00002"))
        assert len(await sessions(live)) == 3


async def test_a_copy_of_an_earlier_conversation_is_made_where_that_is_read(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live:
        await live.me.say("about apples")
        await live.me.until("echo: about apples")
        await live.me.say("/new")
        await live.me.say("about pears")
        await live.me.until("echo: about pears")
        assert live.adapter.views is not None
        lines = {each.title: each.id for each in await live.adapter.views.sessions(source_of("owner"))}
        opened = await copied(live, "copy-00001", back=lines["about apples"])
        await live.me.until("This is a copy of “about apples”", path=opened)
        assert sorted(await sessions(live)) == ["about apples", "about apples (copy)", "about pears"]


async def test_what_is_forgotten_in_a_copy_stays_in_the_old_chat(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live:
        await live.me.say("my tangerine")
        await live.me.until("echo: my tangerine")
        opened = await copied(live, "copy-00001")
        await live.me.until("This is a copy of", path=opened)
        for number, (words, told) in enumerate(
            [("/forget last", "This cannot be undone"), ("/approve", "Forgot 2 messages")]
        ):
            fields = {"id": f"forget-{number}", "text": words, "chat": opened.removeprefix("/c/")}
            assert (await live.me.post("/say", fields)).status == 200
            await live.me.until(told, path=opened)
        assert live.adapter.views is not None
        store, key = live.adapter.views.store, live.adapter.views.rules.key(source_of("owner"))
        tip = await store.tip(key)
        assert tip is not None
        assert [text_of(each) for each in await store.transcript(tip)] == ["my tangerine", "echo: my tangerine (0)"]
        assert await store.search("tangerine", key, 5)


async def test_a_reminder_of_another_chat_is_seen_in_the_list(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        await say(me, "number one")
        await expect(me.locator("#log .reply")).to_contain_text("echo: number one")
        await say(me, "/remind in 3 seconds tea")
        await expect(me.locator("#log .command")).to_be_visible()
        await me.locator(".fresh").click()
        await expect(line(me, "number one", "unread")).to_be_visible()
        await me.get_by_role("link", name="number one").click()
        await expect(me.locator("#log .reminder")).to_contain_text("tea")
        await expect(me.locator(".sessions .mark")).to_have_count(0)


async def test_what_could_not_be_sent_goes_to_its_own_chat(tmp_path: Path, chromium: Browser) -> None:
    async with page(tmp_path, model=FakeModel(held(Gate()))) as live, person(chromium, live) as me:
        await me.route("**/say", lambda route: route.abort())
        await say(me, "number one")
        await expect(me.locator("#unsent li")).to_have_text("number one")
        await me.goto(f"{live.adapter.at}/new")
        await expect(me.locator("#empty")).to_be_visible()
        await expect(me.locator("#unsent li")).to_have_count(0)
        await me.unroute("**/say")
        await expect(line(me, "number one", "unread")).to_have_count(0)
        await live.me.until("echo: number one (1)")
        await expect(line(me, "number one")).to_be_visible()
        await expect(me.locator("#log > li")).to_have_count(0)
        await equals_reload(me)


async def more(me: Page, title: str) -> None:
    """Open the menu of a chat."""
    await me.locator(".sessions [data-at]", has_text=title).hover()
    await me.locator(".sessions [data-at]", has_text=title).locator("summary").click()


async def sessions(live: LivePage) -> list[str]:
    """The titles in the list."""
    assert live.adapter.views is not None
    return [each.title for each in await live.adapter.views.sessions(source_of("owner"))]


async def copied(live: LivePage, id_: str, **more: str) -> str:
    """Copy the first chat; the path of the copy."""
    answer = await live.me.post("/say", {"id": id_, "text": "/branch", "chat": "", **more})
    path: str = (await answer.json())["opened"]
    return path.partition("#")[0]
