"""Sessions whose time is over get a request to end in their own lane."""

from __future__ import annotations

from unittest.mock import AsyncMock, Mock

from gateway.domain.session import Session
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Store
from gateway.turns.expiry import Expiry
from tests.support.fakes import ManualClock
from tests.support.store_kit import FULL_SESSION, in_session


async def test_a_request_is_made_once_an_hour_and_says_whose_session_is_meant(clock: ManualClock) -> None:
    store = Mock(claim_due_sessions=AsyncMock(return_value=[FULL_SESSION]), accept=AsyncMock())
    expiry = Expiry(store=store, clock=clock)
    for pause in (0.0, 60.0, 3_600.0):
        await clock.advance(pause)
        await expiry.sweep()
    requests = [call.args[0][0] for call in store.accept.await_args_list]
    assert len({each.inbound.event_id for each in requests}) == 2
    inbound, source = requests[0].inbound, requests[0].inbound.source
    assert (inbound.kind, inbound.text, requests[0].key) == ("expiry", "s1", FULL_SESSION.key)
    assert (source.chat, source.thread, source.user, source.chat_type) == ("1/2", "t", "ü", "thread")
    assert store.accept.await_args.kwargs["cap"] > 100_000  # a lane that is full takes it, too


async def test_only_sessions_whose_time_is_over_are_ended(store: Store, clock: ManualClock) -> None:
    claim, session = await in_session(store)
    await store.finish_turn(claim.lease, None, claim.item, None, "answered", ())
    await Expiry(store=store, clock=clock).sweep()
    assert isinstance(session, Session)
    assert await store.waiting(session.key, 5) == []


async def test_a_store_that_is_away_is_asked_the_next_time(clock: ManualClock) -> None:
    store = Mock(claim_due_sessions=AsyncMock(side_effect=StoreUnavailable("away")), accept=AsyncMock())
    await Expiry(store=store, clock=clock).sweep()
    store.accept.assert_not_awaited()
