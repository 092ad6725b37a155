"""The page plays Telegram and Discord: their own packages say what would be sent, and no token is needed."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from adapters.discord import limits as discord
from adapters.telegram import limits as telegram
from adapters.web.rehearsal import marked
from gateway.app.views import StoreViews
from gateway.domain.chat import KeptFile
from gateway.domain.platform import Mark
from gateway.domain.views import Views
from gateway.runtime.errors import TookTooLong
from gateway.runtime.structs import replace
from tests.support.gateway import Say
from tests.support.model import FakeModel, in_turn
from tests.support.page import LivePage, page
from tests.support.tools import Payment, payments

LONG = "\n\n".join(f"Paragraph {number}: " + "the ferry leaves at seven. " * 8 for number in range(30))


def bubbles(shown: str) -> list[str]:
    """The words of each bubble of a page."""
    found = re.findall(r'<div class="bubble" dir="auto">(.*?)</div>', shown, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


def views_of(live: LivePage) -> Views:
    assert live.adapter.views is not None
    return live.adapter.views


async def tried(live: LivePage, name: str, text: str) -> str:
    answer = await live.me.post(f"/as/{name}", {"text": text}, headers={"Accept": "text/html"})
    assert answer.status == 200
    return await answer.text()


def test_telegrams_places_are_counted_in_code_points() -> None:
    bubble = telegram.STAGE.bubble("🎻🎻 **bold** and [a link](https://example.org/) 🎻", "reply")
    assert [(bubble.text[each.start : each.end], each.kind, each.target) for each in bubble.marks] == [
        ("bold", "bold", ""),
        ("a link", "text_link", "https://example.org/"),
    ]
    assert bubble.units == len(bubble.text) + 3, "Telegram counts UTF-16"


@pytest.mark.parametrize(("name", "most"), [("telegram", 4_096), ("discord", 2_000)])
async def test_a_long_reply_is_as_many_messages_as_there(tmp_path: Path, name: str, most: int) -> None:
    async with page(tmp_path) as live:
        found = await views_of(live).rehearsed(name, LONG)
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
        assert "message 1 of" not in await tried(live, "discord", "short")
        assert "2*3*4" in bubbles(await tried(live, "telegram", "2*3*4 and **x**"))[0]
        assert bubbles(await tried(live, "telegram", "")) == []
        for name in ("web", "nothing", ""):
            assert (await live.me.get(f"/as/{name}"))[0] in (404, 303), name


async def test_ones_own_conversation_is_played_with_its_buttons(tmp_path: Path) -> None:
    model = FakeModel(in_turn(payments(50), Say(text="**done**")))
    async with page(tmp_path, model=model, tools=[Payment()]) as live:
        await live.me.say("pay <b>me</b> & them")
        await live.me.until("Allow once")
        shown = (await live.me.get("/as/telegram"))[1]
        assert "pay <b>me</b> & them" in bubbles(shown)
        assert re.search(r'<div class="buttons"><span>[^<]*Approve', shown)
        assert "<b>me</b>" not in shown


def test_what_is_no_reply_is_no_markdown() -> None:
    there = telegram.STAGE.bubble("Stopped at **3 of 4**.", "notice")
    assert (there.text, there.marks) == ("Stopped at **3 of 4**.", ())
    there = discord.STAGE.bubble("Stopped at **3 of 4**.", "notice")
    assert there.text == r"Stopped at \*\*3 of 4\*\*."


async def test_a_decided_question_stands_once_as_it_is_now(tmp_path: Path) -> None:
    model = FakeModel(in_turn(payments(50), Say(text="**done**")))
    async with page(tmp_path, model=model, tools=[Payment()]) as live:
        await live.me.say("pay them")
        await live.me.until("Allow once")
        before = (await live.me.get("/as/telegram"))[1]
        assert 'class="buttons"' in before
        await live.me.say("/approve")
        await live.me.until("done")
        after = (await live.me.get("/as/telegram"))[1]
        assert 'class="buttons"' not in after, "the platform takes the buttons from the question"
        said = [html for _, _, html in (await live.me.shown()).log if 'class="deeds"' not in html]
        assert len(bubbles(after)) == len(said) + 1, "the trial is the one more"


@pytest.mark.parametrize(("name", "most"), [("telegram", 1_024), ("discord", 2_000)])
async def test_a_file_is_shown_with_the_caption_that_fits(tmp_path: Path, name: str, most: int) -> None:
    file = KeptFile(ref="f", digest="d", name="<b>map</b>.pdf", mime="application/pdf", size=12_000, at=0.0)
    async with page(tmp_path) as live:
        views = views_of(live)
        (alone,) = await views.rehearsed(name, "", "notice", file)
        assert (alone.text, alone.file) == ("", "<b>map</b>.pdf (12 kB)")
        (both,) = await views.rehearsed(name, "**the** map", "notice", file)
        assert both.file
        assert both.text == ("the map" if name == "telegram" else "**the** map")
        first, second = (await views.rehearsed(name, "x" * (most + 1), "notice", file))[:2]
        assert (bool(first.file), first.text, bool(second.text)) == (True, "", True)
        (large,) = await views.rehearsed(name, "", "notice", replace(file, size=10**9))
        assert "too large" in large.file


async def test_a_text_that_takes_too_long_is_cut_and_shown_as_it_was_written(tmp_path: Path) -> None:
    async def slow(function: object, text: object) -> Any:
        raise TookTooLong

    async with page(tmp_path) as live:
        views = views_of(live)
        assert isinstance(views, StoreViews)
        views = replace(views, aside=slow)
        found = await views.rehearsed("telegram", "**x** " * 2_000)
    assert len(found) > 1
    assert all(each.text.startswith("**x**") and 0 < each.units <= each.most for each in found)


async def test_nothing_of_a_text_becomes_markup(tmp_path: Path) -> None:
    hostile = '<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)> ||"><svg onload=1>||'
    async with page(tmp_path) as live, live.visitor() as stranger:
        for name in ("telegram", "discord"):
            shown = await tried(live, name, hostile)
            assert "<script>alert" not in shown
            assert 'href="javascript' not in shown
            assert "<img src=x" not in shown
            assert "<svg onload" not in shown
            assert (await live.me.post(f"/as/{name}", {"text": "x"}, csrf="0" * 40)).status == 403
            assert (await stranger.http.post(f"{live.adapter.at}/as/{name}", data={"text": "x"})).status in (401, 403)
