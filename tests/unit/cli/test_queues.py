"""`legato outbox` and `legato dead`: which messages are meant, and what is done with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from typer.testing import CliRunner, Result

from gateway.app.orders import Order
from gateway.cli import program as program_of_store
from gateway.cli import queues
from gateway.cli.main import program
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreLocked

NOW = 1_700_007_200.0


def row(name: str, chat: str = "1", hour: int = 22, **more: Any) -> dict[str, Any]:
    """A message that was made so many hours into the day; it is 0:13:20."""
    facts = {"id": name, "platform": "telegram", "chat": chat, "created_at": f"2023-11-14T{hour}:13:20+00:00"}
    return {**facts, "state": "pending", "kind": "message", **more}


ROWS = {
    "_outbox": [
        row("p1"),
        row("p2", "2", 23),
        row("r1", state="refused"),
        row("w1", state="withheld"),
        row("s1", state="sent"),
    ],
    "_dead": [row("m1"), row("m2", "2"), row("q1", kind="schedule")],
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """The orders that were given."""
    orders: list[Order] = []

    def give(_: object, wanted: list[Order]) -> str:
        orders.extend(wanted)
        return "Done."

    monkeypatch.setattr(queues, "give", give)
    monkeypatch.setattr(SystemClock, "now", lambda _: NOW)
    monkeypatch.setattr(queues, "ask_store", lambda *_: ROWS["_outbox"])
    return orders


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(program(arguments), arguments)


@pytest.mark.parametrize(
    ("arguments", "verb", "ids"),
    [
        (("outbox", "retry", "r1", "p1"), "retry", ["r1"]),
        (("outbox", "retry", "--chat", "telegram:1"), "retry", ["r1", "w1"]),
        (("outbox", "drop", "--older-than", "1"), "drop", ["p1", "p2"]),
        (("outbox", "drop", "--older-than", "1.5"), "drop", ["p1"]),
        (("outbox", "drop", "--older-than", "2"), "drop", ["p1"]),
        (("outbox", "drop", "--older-than", "2.1"), "drop", []),
        (("outbox", "drop", "--chat", "telegram:2", "--older-than", "0"), "drop", ["p2"]),
        (("dead", "replay", "--older-than", "0"), "replay", ["m1", "m2"]),
        (("dead", "drop", "--older-than", "0"), "bury", ["m1", "m2", "q1"]),
        (("dead", "drop", "m1", "--chat", "telegram:2"), "bury", []),
    ],
)
def test_a_verb_is_carried_out_on_what_is_meant_and_fits_it(
    given: list[Order], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], verb: str, ids: list[str]
) -> None:
    monkeypatch.setattr(queues, "ask_store", lambda *_: ROWS["_outbox" if arguments[0] == "outbox" else "_dead"])
    done = legato(*arguments)
    assert [(each.verb, each.id) for each in given] == [(verb, name) for name in ids]
    assert done.stdout.splitlines() == (ids or ["There is no such message."])
    assert ("Done." in done.stderr) is bool(ids)
    given.clear()
    tried = legato(*arguments, "--dry-run", "--json")
    assert [each["id"] for each in json.loads(tried.stdout)] == ids
    assert given == []


def test_what_names_nothing_or_something_unknown_changes_nothing(given: list[Order]) -> None:
    nothing = legato("outbox", "drop")
    assert (nothing.exit_code, nothing.stderr) == (2, "legato: say which messages: give ids, --chat or --older-than\n")
    unknown = legato("outbox", "drop", "p1", "x2", "x1")
    assert (unknown.exit_code, unknown.stderr) == (
        1, "legato: there is no message with the id x1, x2; `list` shows the ids\n",
    )  # fmt: skip
    assert given == []


def test_they_are_listed_and_shown_whole(given: list[Order], monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each["id"] for each in json.loads(legato("outbox", "list", "--json").stdout)] == [
        each["id"] for each in ROWS["_outbox"]
    ]
    assert json.loads(legato("outbox", "show", "r1").stdout) == [ROWS["_outbox"][2]]
    monkeypatch.setattr(queues, "ask_store", lambda *_: ROWS["_dead"])
    assert json.loads(legato("dead", "show", "m2").stdout) == [ROWS["_dead"][1]]
    assert len(json.loads(legato("dead", "list", "--limit", "2", "--json").stdout)) == 2


@pytest.mark.parametrize("runs", [True, False])
def test_an_order_is_carried_out_at_once_or_left_to_the_gateway_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: bool
) -> None:
    (tmp_path / "config.yaml").write_text(f"store: {{url: 'sqlite:///{tmp_path}/legato.db'}}\n")
    held, done, left = list[dict[str, Any]](), list[Any](), list[Any]()
    store: Any = Mock(open=AsyncMock(), aclose=AsyncMock())

    def configured(_: object, **how: Any) -> Any:
        held.append(how)
        store.open.side_effect = StoreLocked("it runs") if runs and not how.get("read_only") else None
        return store

    monkeypatch.setattr("gateway.app.store.configured_store", configured)
    monkeypatch.setattr("gateway.app.orders.carry_out", AsyncMock(side_effect=lambda _, order, *__: done.append(order)))
    monkeypatch.setattr("gateway.app.orders.dead_of", AsyncMock())
    monkeypatch.setattr("gateway.app.orders.leave", AsyncMock(side_effect=lambda _, orders: left.extend(orders)))
    order = Order(verb="drop", id="o1", platform="telegram", chat="1")
    told = program_of_store.give(tmp_path / "config.yaml", [order])
    assert held[0] == {"waits": False}, "who runs keeps the store"
    assert (done, left) == (([], [order]) if runs else ([order], []))
    assert told.startswith("The running gateway makes the change" if runs else "Done: the change takes effect")
    store.serve.assert_called_once_with(runs=(), sends=())
    assert store.aclose.await_count == len(held), "each store is closed"
