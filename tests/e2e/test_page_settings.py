"""A newcomer connects a model, and then a platform, in the page of the real program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from tests.emulators.llm import LlmServer
from tests.support.browser import say, tab
from tests.support.page import page
from tests.support.program import legato_run

pytestmark = pytest.mark.asyncio(loop_scope="module")  # as the browser's

CONFIG = """# what I wrote myself
adapters:
  web: {enabled: true, port: 0}  # any port
  telegram: {base_url: "http://127.0.0.1:9"}
"""
TOKEN = "123456789:AAF-not-a-real-token-but-long-enough12"


async def test_a_newcomer_reaches_a_model_without_leaving_the_browser(tmp_path: Path, chromium: Browser) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    context = await chromium.new_context()
    me = await tab(context, wrong := [])
    async with (
        LlmServer(api_key="sk-the-right-key") as server,
        legato_run(tmp_path, LEGATO_HOME=str(tmp_path)) as program,
    ):
        assert program.stderr is not None
        while not (link := re.search(rb"http://\S+key=\S+", await program.stderr.readline())):
            pass
        await me.goto(link[0].decode())
        await expect(me.get_by_role("heading", name="Settings")).to_be_visible()  # there is no model yet
        await me.select_option("#provider", "litellm")
        await me.get_by_role("button", name="Choose").click()
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
        await expect(model.get_by_role("status")).to_contain_text("In force now: model")
        assert not (await Axe().run(me)).response["violations"]
        assert "sk-the-right-key" not in await me.content()
        before = (tmp_path / "config.yaml").read_text()
        for cap, problem in (("-3", "budgets.daily_usd"), ("2", "no price is known for any-model")):
            await me.get_by_label("What all may spend in a day").fill(cap)
            await me.locator("#people").get_by_role("button", name="Save").click()
            await expect(me.locator("#people [role=alert]")).to_contain_text(problem)
            assert (tmp_path / "config.yaml").read_text() == before
        await me.get_by_label("Who may talk").fill("telegram:12, telegram:34")
        await me.locator("#people").get_by_role("button", name="Save").click()
        await expect(me.locator("#people [role=status]")).to_contain_text("In force now: access.allow")
        await me.locator("#telegram summary").click()
        await me.locator("#telegram input[type=password]").fill(TOKEN)
        await me.locator("#telegram").get_by_role("button", name="Save and switch on").click()
        await expect(me.locator("#telegram [role=status]")).to_contain_text("From the next start on: adapters.telegram")
        await me.locator("#telegram").get_by_role("button", name="Check").click()
        await expect(me.locator("#telegram [role=alert]")).to_contain_text("telegram")  # nothing is at that address
        assert TOKEN not in await me.content()
        await me.goto(link[0].decode().partition("/login")[0])
        await say(me, "are you there?")
        await expect(me.locator("article.reply:not(.draft)")).to_have_count(1)
        assert server.calls >= 2
    await context.close()
    assert wrong == []
    written, secrets = (tmp_path / "config.yaml").read_text(), tmp_path / ".env"
    assert written.startswith("# what I wrote myself\nadapters:\n  web: {enabled: true, port: 0}  # any port\n")
    assert "telegram:34" in written
    assert not re.search("sk-|AAF", written)
    assert secrets.read_text() == f"LITELLM_API_KEY=sk-the-right-key\nTELEGRAM_BOT_TOKEN={TOKEN}\n"
    assert secrets.stat().st_mode & 0o077 == 0


async def test_settings_are_an_admins_and_a_form_of_the_page(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        assert (await live.me.get("/settings"))[0] == 404  # nothing changes settings here
        answer = await live.me.post("/settings", {"where": "model", "verb": "save"})
        assert answer.status == 404
