"""A person who was shown out reaches no model any more: neither by waiting messages, nor by those that a crash left
behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app.config.models import Config
from gateway.domain.adapter import Limits
from gateway.domain.chat import Source, session_key
from gateway.domain.pairing import Guest, GuestBook
from gateway.domain.turn import STOPPED, SessionSettings
from gateway.people.access import AccessSettings
from gateway.people.pairing import set_guest_book
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite import SqliteStore
from tests.support.gateway import FakeAdapter, FakeModel, Gate, KillAt, Live, Say, config_in, in_turn, running

CLOCK = ("clock", "{}")
BOB = GuestBook(guests=(Guest(platform="fake", user="bob", chat="c", name="Bob", code="AAAAAAAA", at=0.0),), version=1)
BOB_THERE = Source(platform="fake", chat="g", chat_type="group", user="bob")
GROUP: dict[str, Any] = {"chat": "g", "chat_type": "group"}


def config(folder: Path, busy_mode: Any = "queue") -> Config:
    return config_in(
        folder,
        access=AccessSettings(admins=["fake:anna"]),
        sessions=SessionSettings(busy_mode=busy_mode, groups="shared"),
    )


def adapter() -> FakeAdapter:
    return FakeAdapter(limits=Limits())  # a public platform


class BobIsGone(SqliteStore):
    """A store whose guest book was changed while no gateway ran."""

    async def notes(self, folder: str) -> dict[str, str]:
        return {} if folder == "guest_book" else await super().notes(folder)


async def let_bob_in(folder: Path) -> None:
    async with running(folder, config=config(folder), adapter=adapter()) as live:
        assert await set_guest_book(live.store, BOB)


async def show_bob_out(live: Live) -> None:
    assert (await live.ask("/pair remove fake:bob", user="anna", chat="a")).startswith("I shut")


@pytest.mark.parametrize("said", ["obey bob", "/steer obey bob"])
async def test_their_words_enter_no_running_turn(tmp_path: Path, said: str) -> None:
    await let_bob_in(tmp_path)
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[CLOCK], gate=gate), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path, "steer"), adapter=adapter(), model=model) as live:
        event = await live.tell("how far is it?", user="anna", **GROUP)
        await gate.until_waiting()
        await live.tell(said, user="bob", **GROUP)
        await live.tell("in metric units", user="anna", **GROUP)
        waiting = await live.store.waiting(session_key(BOB_THERE, groups="shared", threads="shared"), 9)
        assert len(waiting) == 2, "Bob was let in"
        await show_bob_out(live)
        gate.open()
        assert (await live.answer(event)).text == "done"
        await live.quiet()
        heard = [text for request in range(len(model.requests)) for _, text in model.spoken(request)]
        assert "[anna] in metric units" in heard
        assert not [text for text in heard if "obey bob" in text]


@pytest.mark.parametrize(("point", "shown"), [("turn.claimed", []), ("turn.step_recorded", [STOPPED])])
async def test_a_crash_does_not_let_them_in_again(tmp_path: Path, point: Any, shown: list[str]) -> None:
    await let_bob_in(tmp_path)
    kill = KillAt(point)
    calling = FakeModel(in_turn(Say(calls=[CLOCK]), Say(text="never")))
    async with running(tmp_path, config=config(tmp_path), adapter=adapter(), model=calling, points=kill) as dying:
        await dying.tell("one", user="bob")
        await kill.passed.wait()
    model = FakeModel()
    store = BobIsGone(tmp_path / "legato.db", clock=SystemClock())
    async with running(tmp_path, config=config(tmp_path), adapter=adapter(), model=model, store=store) as live:
        await live.quiet()
        assert model.requests == []
        assert live.adapter.shown("c", "notice") == shown
