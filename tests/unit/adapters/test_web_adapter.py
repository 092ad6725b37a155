"""What an open page is rung for: rows, drafts, and what a turn is at."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from adapters.web.adapter import WebAdapter
from adapters.web.platform import WebSettings
from gateway.domain.adapter import Doing
from gateway.domain.chat import Button, ChatAddress
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.store_kit import outbound

HERE = ChatAddress(platform="web", chat="owner", thread="~1")
ROW = replace(outbound("o1"), to=HERE)


@pytest.fixture
def page(clock: ManualClock, tmp_path: Path) -> Any:
    """The page, with bells that a test hears."""
    adapter: Any = WebAdapter(WebSettings(), Mock(clock=clock, home=tmp_path))
    adapter._bells = Mock()
    return adapter


THINKING = Doing(words="thinking", asks=True)


def running(tool: str) -> Doing:
    return Doing(words=f"running {tool}")


def rung(page: Any) -> tuple[ChatAddress, dict[str, Any]]:
    call = page._bells.ring.call_args
    return call.args[0], call.kwargs


@pytest.mark.parametrize(
    ("row", "alone"),
    [
        (ROW, True),
        (replace(ROW, kind="notice"), True),
        (replace(ROW, kind="question"), False),
        (replace(ROW, edits="o0"), False),
        (replace(ROW, buttons=((Button(label="a", token="b"),),)), False),
    ],
)
async def test_the_answer_of_a_turn_that_only_asked_a_model_is_all_that_is_new(
    page: Any, row: Any, alone: bool
) -> None:
    await page.typing(HERE, True)
    page.working(HERE, THINKING, 0.0)
    assert await page.send(row) == "o1"
    assert rung(page) == (HERE, {"news": row if alone else None})
    await page.send(row)
    assert rung(page) == (HERE, {"news": None}), "the next may have changed more"


async def test_what_a_tool_did_lies_in_the_store(page: Any) -> None:
    await page.typing(HERE, True)
    page.working(HERE, running("clock"), 0.0)
    assert rung(page) == (HERE, {"stored": True})
    await page.send(ROW)
    assert rung(page) == (HERE, {"news": None})


async def test_a_line_says_what_a_turn_is_at_and_since_when(page: Any, clock: ManualClock) -> None:
    page.working(HERE, THINKING, 0.0)
    assert HERE not in page._work
    await page.typing(HERE, True)
    page._bells.ring_side.assert_called_once_with("owner", besides=HERE)
    assert (page._work[HERE].words, page._work[HERE].since) == ("Working", 0.0)
    await clock.advance(5.0)
    page.working(HERE, running("shell: make"), 0.0)
    assert (page._work[HERE].words, page._work[HERE].since) == ("Running shell: make", 5.0)
    await clock.advance(5.0)
    page.working(HERE, running("shell: make test"), 0.0)
    assert (page._work[HERE].words, page._work[HERE].since) == ("Running shell: make test", 5.0)
    page.working(HERE, THINKING, 12.4)
    assert (page._work[HERE].words, page._work[HERE].since) == ("Thinking, again in 12 s", 10.0)
    await page.typing(HERE, True)
    assert page._work[HERE].since == 10.0
    assert page._bells.ring_side.call_count == 1
    await page.typing(HERE, False)
    assert HERE not in page._work
    assert page._bells.ring_side.call_count == 2


async def test_a_draft_is_shown_until_its_row_is(page: Any) -> None:
    await page.show_partial(ROW)
    assert rung(page) == (HERE, {"stored": False})
    await page.send(replace(ROW, id="o2"))
    assert page._drafts == {HERE: ROW}
    await page.send_file(ROW, b"")
    assert page._drafts == {}


@pytest.mark.parametrize("people", [{}, {"anna": {"password": "correct-horse-battery"}}])
async def test_a_check_says_where_the_page_is_and_for_whom(clock: ManualClock, tmp_path: Path, people: Any) -> None:
    url = {"url": "https://bot.example"} if people else {}
    page = WebAdapter(WebSettings(people=people, **url), Mock(clock=clock, home=tmp_path))
    (found,) = await page.probe()
    assert found.ok
    where = "https://bot.example, for 1 people" if people else "http://127.0.0.1:8765, for whoever opens the link in "
    assert found.detail.startswith(where.partition("8765")[0])
    await page.aclose()
    await page.aclose()
