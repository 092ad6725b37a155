"""The page plays Telegram and Discord: their own packages say what would be sent, and no token is needed."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from adapters.discord import rehearsal as discord
from adapters.telegram import rehearsal as telegram
from adapters.web.rehearsal import marked
from gateway.domain.platform import Bubble, Mark
from tests.support.gateway import Say
from tests.support.model import FakeModel, in_turn
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

LONG = "\n\n".join(f"Paragraph {number}: " + "the ferry leaves at seven. " * 8 for number in range(30))


def bubbles(shown: str) -> list[str]:
    """The words of each bubble of a page."""
    found = re.findall(r'<div class="bubble" dir="auto">(.*?)</div>', shown, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


async def tried(live: LivePage, name: str, text: str) -> str:
    answer = await live.me.post(f"/as/{name}", {"text": text}, headers={"Accept": "text/html"})
    assert answer.status == 200
    return await answer.text()


def test_telegrams_places_are_counted_in_code_points() -> None:
    (bubble,) = telegram.bubbles("🎻🎻 **bold** and [a link](https://example.org/) 🎻")
    assert [(bubble.text[each.start : each.end], each.kind, each.target) for each in bubble.marks] == [
        ("bold", "bold", ""),
        ("a link", "text_link", "https://example.org/"),
    ]
    assert bubble.units == len(bubble.text) + 3, "Telegram counts UTF-16"


@pytest.mark.parametrize(("platform", "most"), [(telegram, 4_096), (discord, 2_000)])
def test_a_long_reply_is_as_many_messages_as_there(platform: object, most: int) -> None:
    found: list[Bubble] = platform.bubbles(LONG)  # type: ignore[attr-defined]
    assert len(found) > 1
    assert all(0 < each.units <= each.most == most for each in found)
    assert sum(each.text.count("Paragraph ") for each in found) == 30


def test_marks_that_overlap_are_cut_where_another_one_begins() -> None:
    marks = (Mark(start=0, end=4, kind="bold"), Mark(start=2, end=6, kind="italic"))
    assert marked("abcdef", marks) == (
        "<span><strong>ab</strong></span><span><strong><em>cd</em></strong></span><span><em>ef</em></span>"
    )


async def test_a_text_is_tried_on_both_stages(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        status, shown = await live.me.get("/as/telegram")
        assert status == 200
        assert "The harbour" in bubbles(shown)[0]
        shown = await tried(live, "discord", LONG)
        assert "message 2 of" in shown
        assert "of 2,000 characters" in shown
        assert "2*3*4" in bubbles(await tried(live, "telegram", "2*3*4 and **x**"))[0]
        assert bubbles(await tried(live, "telegram", "")) == []
        for name in ("web", "nothing", ""):
            assert (await live.me.get(f"/as/{name}"))[0] in (404, 303), name


async def test_ones_own_conversation_is_played_with_its_buttons(tmp_path: Path) -> None:
    model = FakeModel(in_turn(payments(50), Say(text="**done**")))
    async with page(tmp_path, model=model, tools=[Payment()]) as live:
        await live.me.say("pay <b>me</b> & them")
        await live.me.until("Approve")
        shown = (await live.me.get("/as/telegram"))[1]
        assert "pay <b>me</b> & them" in bubbles(shown)
        assert re.search(r'<div class="buttons"><span>[^<]*Approve', shown)
        assert "<b>me</b>" not in shown


async def test_nothing_of_a_text_becomes_markup(tmp_path: Path) -> None:
    hostile = '<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)> ||"><svg onload=1>||'
    async with page(tmp_path) as live, live.visitor() as stranger:
        for name in ("telegram", "discord"):
            shown = await tried(live, name, hostile)
            assert "<script>alert" not in shown
            assert 'href="javascript' not in shown
            assert "<img" not in shown
            assert "<svg onload" not in shown
            assert (await live.me.post(f"/as/{name}", {"text": "x"}, csrf="0" * 40)).status == 403
            assert (await stranger.http.post(f"{live.adapter.at}/as/{name}", data={"text": "x"})).status in (401, 403)
