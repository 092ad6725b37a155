"""The counts of a gateway that answers, read as an operator's monitoring reads them."""

from __future__ import annotations

from pathlib import Path

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.errors import DeliveryRefused, ProviderRejected
from gateway.runtime.exposition import exposition
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, Gate, Live, RecordingEngine, Say, echo, in_turn, running


async def counted(live: Live) -> dict[str, float]:
    """Every series by its name and labels."""
    lines = exposition(await live.gateway.metrics.refreshed()).splitlines()
    series = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in series}


async def test_turns_calls_and_sends_are_counted_by_how_they_ended(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="hello"), ProviderRejected("The key is wrong.")))
    async with running(tmp_path, model=model) as live:
        with live.gateway.metrics.counting():  # receipt, too, which runs in this task here
            await live.ask("one")
            await live.ask("two")
        await live.quiet()
        found = await counted(live)
    assert found['legato_turn_seconds_count{outcome="answered",platform="fake"}'] == 1
    assert found['legato_turn_seconds_count{outcome="failed",platform="fake"}'] == 1
    call = 'legato_model_call_seconds_count{{model="fake",outcome="{}",provider="offline",purpose="turn"}}'
    assert found[call.format("answered")] == 1
    assert found[call.format("provider_rejected")] == 1
    assert found['legato_sends_total{outcome="sent",platform="fake"}'] == 2
    assert found['legato_tokens_total{kind="output",model="fake",purpose="turn"}'] == 3
    assert found["legato_pressure_count"] == 1
    for point in ("accept.after", "turn.session_opened", "turn.finished", "outbox.after_send", "outbox.marked"):
        assert found[f'legato_phase_seconds_count{{point="{point}"}}'] == 2
    assert found['legato_phase_seconds_count{point="turn.model_called"}'] == 1


async def test_a_turn_lasts_from_the_acceptance_of_its_message(tmp_path: Path) -> None:
    gate, clock = Gate(), ManualClock()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="late", gate=gate))), clock=clock) as live:
        event = await live.tell("hello")
        await gate.until_waiting()
        await clock.advance(40.0)
        gate.open()
        await live.answer(event)
        await live.quiet()
        found = await counted(live)
    assert found['legato_turn_seconds_sum{outcome="answered",platform="fake"}'] == 40.0
    assert found['legato_phase_seconds_sum{point="turn.model_called"}'] == 40.0


async def test_compactions_are_counted_by_what_asked_for_them(tmp_path: Path) -> None:
    model = FakeModel(lambda spec, request: replace(echo(spec, request), prompt=1_000))
    async with running(tmp_path, model=model, engine=lambda: RecordingEngine([], limit=900)) as live:
        for number in range(3):
            await live.ask(f"{number} " + "words " * 200)
        await live.quiet()
        found = await counted(live)
    assert found['legato_compactions_total{outcome="published",trigger="threshold"}'] >= 1


async def test_sends_are_counted_by_what_the_platform_said(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        live.adapter.failures = [DeliveryRefused("the message is forbidden")]
        await live.ask("hello")
        await live.quiet()
        found = await counted(live)
    assert found['legato_sends_total{outcome="delivery_refused",platform="fake"}'] == 1
    assert found['legato_sends_total{outcome="sent",platform="fake"}'] == 1
    assert 'legato_redeliveries_total{platform="fake"}' not in found
    assert found['legato_outbox_pending{platform="fake",state="pending"}'] == 0


async def test_a_message_held_back_from_another_conversation_is_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        outbox = live.gateway.outbox
        (row,) = outbox.compose(
            SessionKey(platform="fake", chat="c"), ChatAddress(platform="fake", chat="c"), "notice", "secret"
        )
        with live.gateway.metrics.counting():
            await outbox.emit([replace(row, to=ChatAddress(platform="fake", chat="another"))])
        await live.quiet()
        found = await counted(live)
        assert live.adapter.sent == []
    assert found['legato_isolation_aborts_total{platform="fake"}'] == 1


async def test_what_waits_is_asked_of_the_store(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="done", gate=gate)))) as live:
        first = await live.tell("one")
        await gate.until_waiting()
        await live.tell("two")
        busy = await counted(live)
        gate.open()
        await live.answer(first)
        await live.quiet()
        idle = await counted(live)
    assert (busy["legato_messages_waiting"], busy["legato_lanes_running"]) == (2, 1)
    assert (idle["legato_messages_waiting"], idle["legato_lanes_running"]) == (0, 0)
