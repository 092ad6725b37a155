"""When a group whose people talk among themselves is looked at, and when the bot speaks there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.domain.chat import JOINED, Inbound, Source
from gateway.domain.message import text_of
from gateway.domain.quoting import UNASKED
from gateway.domain.turn import SessionSettings, TurnRules, TurnSettings
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Arrival, Opening
from gateway.turns import joining
from gateway.turns.joining import Joining
from tests.support.fakes import ManualClock
from tests.support.store_kit import new_session


def said(chat: str = "g", **more: Any) -> Inbound:
    """Something that Anna says."""
    source = Source(platform="fake", chat=chat, chat_type="group", user="anna")
    return Inbound(event_id="e", source=source, text="Hm.", **more)


@pytest.mark.parametrize(("pause", "looks"), [(599.0, 1), (600.0, 2)])
async def test_a_group_is_looked_at_as_often_as_its_settings_allow(pause: float, looks: int) -> None:
    clock, background = ManualClock(), Mock()
    background.start_once.side_effect = lambda work, name: work.close()
    rules = SimpleNamespace(looks=lambda source: 6 if source.chat == "g" else 0)
    facts: dict[str, Any] = dict.fromkeys(("store", "metering", "overheard", "redact", "lets_in"))
    quiet = Joining(clock=clock, background=background, rules=cast(Any, rules), **facts)
    quiet.consider(said())
    quiet.consider(said("quiet"))
    await clock.advance(pause)
    quiet.consider(said(own=""))
    assert background.start_once.call_count == 1
    quiet.consider(said())
    assert background.start_once.call_count == looks


class Group:
    """A group in which the bot listens quietly and a model says `opinion`."""

    def __init__(
        self, store: Store, patch: pytest.MonkeyPatch, opinion: Any = " *Speak*.\n", own: bool = False
    ) -> None:
        self.clock, self.model, self.let_in = ManualClock(), AsyncMock(side_effect=[opinion]), True
        patch.setattr(joining, "asked_aside", self.model)
        self.store, background = store, Mock()
        background.start_once.side_effect = lambda work, name: self.looks.append(work)
        self.looks: list[Any] = []
        models = Mock(plugins={"m": Mock(only_model=own)})
        models.helpers.return_value = [SimpleNamespace(provider="m")]
        overheard = Mock()
        overheard.lines.return_value = ["[Anna] When?", "[Ben] Hm, s3cret."]
        rules = TurnRules(sessions=SessionSettings(), turns=TurnSettings(), joins={"fake:g": 6})
        self.joining = Joining(
            store=store,
            metering=cast(Any, Mock(models=models)),
            overheard=overheard,
            rules=rules,
            background=background,
            clock=self.clock,
            redact=lambda text: text.replace("s3cret", "…"),
            lets_in=self._lets_in,
        )
        self.key = rules.key(said("g").source)

    async def _lets_in(self, _: Source) -> bool:
        return self.let_in

    async def open(self) -> None:
        """Somebody has spoken to the bot here before."""
        arrival = Arrival(inbound=replace(said("g"), event_id="first"), key=self.key, at=0.0)
        await self.store.accept([arrival], cap=9)
        claim = await self.store.claim_next("w")
        session = new_session("s1", key=self.key, system_prompt="You are s3cret." + "x" * 900)
        await self.store.open_session(claim.lease, Opening(session=session, transcript=()))
        await self.store.finish_turn(claim.lease, None, claim.item, None, "answered", ())

    async def hear(self) -> list[Inbound]:
        """What is in the group's lane after somebody has spoken."""
        self.joining.consider(said("g", part_of="cut", only_as_part=True))
        for look in self.looks:
            await look
        self.looks.clear()
        item = await self.store.running(self.key)
        return [item.inbound] if item else []


async def test_who_decides_to_speak_is_given_the_last_words_as_if_they_were_to_the_bot(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(store, monkeypatch)
    await group.open()
    (unasked,) = await group.hear()
    assert (unasked.event_id, unasked.kind, unasked.own) == (f"{JOINED}e", "message", "")
    assert (unasked.part_of, unasked.only_as_part) == (None, False)
    assert unasked.text == f"{UNASKED}Hm."
    request, purpose = group.model.await_args.args[3:]  # type: ignore[union-attr]
    system, asked = (text_of(each) for each in request.messages)
    assert "You are …." in system
    assert "x" * 500 in system
    assert "x" * 600 not in system
    assert asked == "<conversation>\n[Anna] When?\n[Ben] Hm, s3cret.\n</conversation>\nOne word now."
    assert purpose == "listening"


@pytest.mark.parametrize("opinion", ["silent", "", "I would speak", StoreUnavailable("away")])
async def test_in_doubt_it_stays_silent(store: Store, monkeypatch: pytest.MonkeyPatch, opinion: Any) -> None:
    group = Group(store, monkeypatch, opinion)
    await group.open()
    assert await group.hear() == []


async def test_whom_nobody_let_in_and_a_group_where_nobody_spoke_to_it_are_looked_at_again_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(store, monkeypatch)
    assert await group.hear() == []
    await group.open()
    group.let_in = False
    assert await group.hear() == []
    group.model.assert_not_awaited()
    group.let_in = True
    assert len(await group.hear()) == 1


async def test_a_model_that_can_only_repeat_is_not_asked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(store, monkeypatch, own=True)
    await group.open()
    assert await group.hear() == []
    group.model.assert_not_awaited()
