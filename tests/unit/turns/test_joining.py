"""When a group whose people talk among themselves is looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from gateway.domain.chat import Inbound, Source
from gateway.turns.joining import Joining
from tests.support.fakes import ManualClock


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
    joining = Joining(clock=clock, background=background, rules=cast(Any, rules), **facts)
    joining.consider(said())
    joining.consider(said("quiet"))
    await clock.advance(pause)
    joining.consider(said(own=""))
    assert background.start_once.call_count == 1
    joining.consider(said())
    assert background.start_once.call_count == looks
