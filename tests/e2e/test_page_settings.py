"""A newcomer connects a model, and then a platform, in the page of the real program."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from gateway.app.config import Config, set_up
from gateway.app.gateway import Gateway
from gateway.app.reload import Reloader
from gateway.cli.desk import Desk
from tests.emulators.llm import LlmServer
from tests.emulators.search import SearchServer
from tests.emulators.telegram import TelegramServer
from tests.support.browser import person, say, tab
from tests.support.console_terminal import chatting
from tests.support.gateway import FakeModel, Say, in_turn
from tests.support.page import Visitor, page
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's


async def test_a_newcomer_reaches_a_model_and_telegram_without_leaving_the_browser(
    tmp_path: Path, chromium: Browser
) -> None:
    """From `make run` in an empty folder to the first message on Telegram: no file is edited."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    context = await chromium.new_context()
    me = await tab(context, wrong := [])
    async with (
        LlmServer(api_key="sk-the-right-key") as server,
        TelegramServer() as telegram,
        chatting(
            tmp_path,
            "--page",
            columns=200,
            LEGATO__ADAPTERS__WEB__PORT=port,
            LEGATO__ADAPTERS__TELEGRAM__BASE_URL=telegram.base_url,
        ) as terminal,
    ):
        await terminal.sees("key=")
        await eventually(lambda: re.search(r"http://\S+key=\S+\s", terminal.text))
        link = re.search(r"http://\S+key=\S+", terminal.text)
        assert link is not None
        await me.goto(link[0])
        await expect(me.get_by_role("heading", name="Settings", exact=True)).to_be_visible()  # there is no model yet
        await me.select_option("#provider", "litellm")
        model = me.locator("#model")
        await model.get_by_label("Address").fill(server.url)
        await model.get_by_label("Key").fill("sk-a-wrong-key-of-mine")
        await model.get_by_label("Model", exact=True).fill("any-model")
        await model.get_by_role("button", name="Test").click()
        await expect(model.get_by_role("alert")).to_contain_text("refused the API key")
        assert "sk-a-wrong" not in await me.content()
        await model.get_by_label("Key").fill("sk-the-right-key")
        await model.get_by_role("button", name="Test").click()
        await expect(model.get_by_role("status")).to_contain_text("answers")
        await model.get_by_role("button", name="Save").click()  # the key that was tried need not be typed again
        await expect(model.get_by_role("status")).to_contain_text("These settings apply from now on: model")
        assert not (await Axe().run(me)).response["violations"]
        before = (tmp_path / "config.yaml").read_text()
        for cap, problem in (("-3", "budgets.daily_usd"), ("2", "no price is known for any-model")):
            await me.locator("[name='set budgets.daily_usd']").fill(cap)
            await me.locator("#people").get_by_role("button", name="Save").click()
            await expect(me.locator("#people [role=alert]")).to_contain_text(problem)
            assert (tmp_path / "config.yaml").read_text() == before
        await me.goto(f"http://127.0.0.1:{port}/")
        await say(me, "are you there?")
        await expect(me.locator("article.reply:not(.draft)")).to_have_count(1)
        assert server.calls >= 2
        await me.click(".me summary")
        await me.get_by_role("link", name="Settings").click()
        await me.locator("#telegram summary").click()
        await me.locator("#telegram input[type=password]").fill(telegram.token)
        await me.locator("#telegram").get_by_role("button", name="Save and switch on").click()
        said = me.locator("#telegram [role=status]")
        await expect(said.first).to_contain_text("These settings apply from the next start: adapters.telegram")
        await expect(said.nth(1)).to_contain_text("@legato_bot")  # a token is tried as soon as it is saved
        await me.locator("#telegram").get_by_role("button", name="Start again now").click()
        await expect(me.locator("#telegram .step")).to_contain_text("Write to the bot on Telegram now")
        anna = telegram.people.person("Anna")
        chat = telegram.people.private(anna)
        telegram.people.say(chat, anna, "hello")
        await expect(me.locator("#telegram .step")).to_contain_text("Messages come in")  # the page notices by itself
        await telegram.until(lambda: telegram.shown(chat))
        code = re.search(r"/pair (\S+)", telegram.shown(chat)[0].text)
        assert code is not None
        await me.locator("#telegram .worded summary").click()
        await me.locator("#telegram .worded input[type=text]").fill(code[1])
        await me.keyboard.press("Enter")
        await expect(me.get_by_role("status").filter(has_text="I let telegram:")).to_be_visible()
        telegram.people.say(chat, anna, "hello again")
        await telegram.until(lambda: telegram.shown(chat)[-1].text == "echo: hello again")
        assert "It serves Telegram and the page" in terminal.text
        for path in ("?at=tools.mcp", "?at=keys", "?at=chats&name=x"):
            await me.goto(f"http://127.0.0.1:{port}/settings{path}")
            assert not (await Axe().run(me)).response["violations"], path
    await context.close()
    assert wrong == []
    secrets = tmp_path / ".env"
    assert secrets.read_text() == f"LITELLM_API_KEY=sk-the-right-key\nTELEGRAM_BOT_TOKEN={telegram.token}\n"
    assert secrets.stat().st_mode & 0o077 == 0
    assert telegram.token not in (tmp_path / "config.yaml").read_text()


async def test_settings_are_an_admins_and_a_form_of_the_page(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        assert (await live.me.get("/settings"))[0] == 404  # nothing changes settings here
        answer = await live.me.post("/settings", {"where": "model", "verb": "save"})
        assert answer.status == 404


def now() -> Config:
    return set_up(None, os.environ).config


def desk(gateway: Gateway) -> Desk:
    take_up = gateway.settings.take_up
    reloader = Reloader(config=now(), read=now, reconfigure=take_up, relog=lambda _: None)
    return Desk(path=None, reloader=reloader, store=gateway.store)


async def test_a_search_is_set_up_and_switched_in_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: Browser
) -> None:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    model = FakeModel(in_turn(Say(text="no"), Say(calls=[("web_search", '{"query": "rye"}')]), Say(text="A week [1].")))
    async with (
        SearchServer("searxng") as server,
        page(tmp_path, desk=desk, model=model) as live,
        person(chromium, live) as me,
    ):
        await expect(me.locator("#web")).to_have_count(0)
        await me.goto(f"{live.adapter.at}/settings")
        card = me.locator("#search")
        await card.get_by_label("Search with").select_option("searxng")
        await card.get_by_label("Address").fill(server.url)
        await card.get_by_role("button", name="Test").click()
        await expect(card.locator("li a")).to_have_text(["Sourdough & rye", "How ovens work"])
        await card.get_by_role("button", name="Save").click()
        await expect(card).to_contain_text("apply from now on")
        assert not (await Axe().run(me)).response["violations"]
        await me.goto(f"{live.adapter.at}/")
        switch = me.locator("#web summary")
        await expect(switch).to_have_text("Web search: auto ▾")
        await switch.click()
        await me.get_by_role("button", name="Off").click()
        await expect(switch).to_have_text("Web search: off ▾")
        await say(me, "How is rye made?")
        await expect(me.locator(".reply .body")).to_have_text("no")
        assert "web_search" not in str(model.requests[-1].tools)
        await switch.click()
        await me.get_by_role("button", name="On Look").click()
        await expect(switch).to_have_text("Web search: on ▾")
        await say(me, "And now?")
        await expect(me.locator(".sources")).to_contain_text("Sourdough & rye")
        await expect(me.locator(".deeds summary")).to_have_text("Searched the web for “rye”")
        await expect(me.locator("#log")).not_to_contain_text("From now on")
        await me.reload()
        await expect(switch).to_have_text("Web search: on ▾")
        assert not (await Axe().run(me)).response["violations"]


async def test_the_form_of_a_search_leaves_that_of_the_model_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text("model: {provider: anthropic, name: claude, api_key: '${A_KEY}'}\n")
    monkeypatch.setenv("A_KEY", "k")
    async with page(tmp_path, desk=desk) as live:
        form = {"where": "search", "verb": "try", "provider": "none"}
        before, after = (await live.me.get("/settings"))[1], await (await live.me.post("/settings", form)).text()
        assert "Choose a search first." in after
        chosen = re.compile(r"<option[^>]*selected[^>]*>[^<]*")
        assert chosen.findall(after)[0] == chosen.findall(before)[0]
        assert "anthropic" in chosen.findall(after)[0]


async def test_one_form_lets_a_person_in_who_writes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    async with page(tmp_path, desk=desk) as live, ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
        form = {"where": "part", "at": "adapters.web.people", "name": "bob", "set password": "a password of Bob"}
        for ticked in ({"writes": "true"}, {}):
            refused = await (await live.me.post("/settings", {**form, "set password": "short", **ticked})).text()
            (named,) = re.findall(r'<input[^>]* name="name"[^>]*>', refused.partition('value="adapters.web.people"')[2])
            assert ('"hidden"' in named, 'value="bob"' in named) == (False, True), "it can be corrected"
            assert ('value="remove"' in refused, "checked" in refused) == (False, bool(ticked))
        await live.me.post("/settings", {**form, "writes": "true"})
        assert "from the next start" not in (await live.me.get("/settings"))[1]
        login = {"name": "bob", "password": "a password of Bob"}
        async with http.post(f"{live.me.at}/login", data=login, allow_redirects=False) as answer:
            assert answer.status == 303
        bob = Visitor(at=live.me.at, http=http)
        await bob.say("hello")
        await bob.until("echo: hello")
        await live.me.post("/settings", {"where": "part", "at": form["at"], "name": "bob", "verb": "remove"})
        async with http.get(f"{live.me.at}/") as answer:
            assert "X-Login" in answer.headers
    assert now().access.allow == ()
