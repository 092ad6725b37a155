"""When an open page is told what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapters.web.adapter import WebAdapter
from adapters.web.log import Entry, News, State
from adapters.web.markup import Html
from adapters.web.platform import WebSettings
from adapters.web.stream import MOST_OF_PERSON, Bells, Page, Shared, Work, _Chat
from gateway.domain.adapter import Doing
from gateway.domain.chat import ChatAddress
from tests.support.fakes import ManualClock
from tests.support.hosts import host


async def test_a_turn_that_waits_for_somebody_does_not_hold_the_list_back_for_long() -> None:
    clock, sent, lists = ManualClock(), list[bytes](), iter(["no talk", "one talk"])

    async def state() -> State:
        return State(entries=[])

    async def nothing() -> list[Entry]:
        return []

    async def side() -> Html:
        return Html(next(lists))

    async def write(data: bytes) -> None:
        sent.append(data)

    page = Page(
        state=state,
        drafts=nothing,
        writing=lambda: False,
        work=lambda: Work("Waits for you"),
        side=side,
        write=write,
        clock=clock,
    )
    await page.look(stored=True)
    await clock.advance(5.0)
    await page.look(stored=True)
    await clock.advance(1.0)
    await page.look(stored=False)
    assert b"one talk" not in b"".join(sent), "most turns end soon, and then the list is another"
    await clock.advance(1.5)
    await page.look(stored=False)
    assert b"one talk" in b"".join(sent)


def adapter(folder: Path, clock: ManualClock) -> WebAdapter:
    return WebAdapter(WebSettings(), host(clock, home=folder))


async def test_it_says_since_when_a_turn_is_at_what(tmp_path: Path) -> None:
    clock, anna = ManualClock(), ChatAddress(platform="web", chat="anna")
    page, begun = adapter(tmp_path, clock), clock.monotonic()
    await page.typing(anna, True)
    page.working(anna, Doing("thinking", asks=True), 0.0)
    await clock.advance(4.0)
    page.working(anna, Doing("copy: all files"), 0.0)
    await clock.advance(5.0)
    page.working(anna, Doing("copy: 25%"), 0.0)
    assert page._work[anna] == Work("Copy: 25%", begun + 4.0), "it runs since it began"
    page.working(anna, Doing("thinking", asks=True), 20.0)
    assert page._work[anna] == Work("Thinking, again in 20 s", begun + 9.0)


@pytest.mark.parametrize(
    ("doing", "stored"), [(Doing("thinking", asks=True), False), (Doing("looking up the time"), True)]
)
async def test_a_page_looks_into_the_store_after_a_turn_that_did_more_than_ask(
    doing: Doing, stored: bool, tmp_path: Path
) -> None:
    page, anna = adapter(tmp_path, ManualClock()), ChatAddress(platform="web", chat="anna")
    with page._bells.heard(anna) as bell:
        await page.typing(anna, True)
        page.working(anna, doing, 0.0)
        bell.stored.clear()
        await page.typing(anna, False)
        assert (bell.rung.is_set(), bell.stored.is_set()) == (True, stored)


async def test_what_pages_share_is_made_anew_for_the_first_that_opens_and_not_for_the_next() -> None:
    came = list[Sequence[News] | None]()

    async def make(made: int | None, news: Sequence[News] | None) -> int:
        came.append(news)
        return len(came)

    bells, shared = Bells(), Shared(make=make)
    bells._chats["anna"] = _Chat(shared={"log": shared})
    with bells.heard("anna") as first:
        assert (await shared.now(), await shared.now(), bells.hears("anna"), bells.hears("ben")) == (1, 1, True, False)
        first.rung.clear()
        with bells.heard("anna") as second:
            assert (await shared.now(), second.rung.is_set(), second.stored.is_set()) == (1, True, True)
            assert not first.rung.is_set()
        bells._chats["anna"].ticks = 5
    assert (bells.hears("anna"), bells._chats["anna"].ticks) == (False, 0)
    with bells.heard("anna"):
        assert await shared.now() == 2
    assert came == [None, None]


def test_one_person_takes_only_so_many_pages() -> None:
    bells = Bells()
    with ExitStack() as pages:
        for number in range(MOST_OF_PERSON):
            assert bells.has_room("anna"), number
            pages.enter_context(bells.heard(ChatAddress(platform="web", chat="anna", thread=f"~{number}")))
        assert (bells.has_room("anna"), bells.has_room("ben")) == (False, True)
    assert bells.has_room("anna")
