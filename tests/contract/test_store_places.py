"""Places in a past of many sessions, on every store."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.agent.sessions import exchange_of
from gateway.app.histories import StoreHistories
from gateway.domain.chat import Source
from gateway.domain.message import answer_mark, assistant, text_of, user
from gateway.domain.session import Session
from gateway.domain.turn import SessionSettings, TurnRules, TurnSettings
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Opening
from tests.support.store_kit import START, Bench, arrival, finish, key, new_session

pytest_plugins = ["tests.support.stores"]

SESSIONS = 40


async def test_a_place_far_back_is_found_in_the_sessions_of_its_time(
    store: Store, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings: list[Opening] = []
    for number in range(SESSIONS):
        at = bench.clock.now()
        await store.accept([replace(arrival(f"e{number}"), at=at)], cap=100)
        await finish(store, await store.claim_next("w"))
        said = [user("q", event=f"e{number}", at=at), assistant(f"answer {number}", at=at)]
        facts = {"started_at": at, "ended_at": at + 90, "end_reason": "reset", "hook": "done"}
        openings.append(Opening(session=new_session(f"s{number}", **facts), transcript=said))
        await bench.clock.advance(100)
    await store.import_sessions(openings[::-1])
    read, transcript = list[str](), store.transcript

    async def counted(session: Session) -> Any:
        read.append(session.id)
        return await transcript(session)

    monkeypatch.setattr(store, "transcript", counted)
    found = await exchange_of(store, key(), "e5", answer_mark("answer 5"))
    assert found is not None
    assert (found[0].id, [text_of(each) for each in found[1]], read) == ("s5", ["q", "answer 5"], ["s5"])

    # What a client edited behind the newest place leads through no other session, either.
    none = cast(Any, None)
    histories = StoreHistories(
        store=store, rules=TurnRules(sessions=SessionSettings(), turns=TurnSettings()), counter=none, clock=none
    )
    source = Source(platform="test", chat="1", chat_type="direct", user="u1")
    read.clear()
    assert await histories.known(source, ["e39", "edited", "more"]) == 1
    assert read == ["s39"]

    # A caller who names requests leaves no message under the name of its place: all sessions are looked through.
    for number, events in enumerate((["a", "x-0c1f"], ["a", "b-0c1d", "c-0c1e"])):
        ended = {"started_at": START - 9, "ended_at": START - number, "end_reason": "reset", "hook": "done"}
        session = new_session(f"named{number}", "2", **ended)
        await store.import_sessions([Opening(session=session, transcript=[user("q", event=each) for each in events])])
    assert await histories.known(replace(source, chat="2"), ["a", "b", "c", "edited"]) == 3
