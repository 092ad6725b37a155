"""When an open page is told what."""

from __future__ import annotations

from adapters.web.log import Entry, State
from adapters.web.markup import Html
from adapters.web.stream import Page
from tests.support.fakes import ManualClock


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
        work=lambda: "waits for you",
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
