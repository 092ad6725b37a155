"""What a compaction with notes would cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

from gateway.commands.base import CommandContext
from gateway.commands.compress import _ASKED, _price
from gateway.context.compressor import Compressor
from gateway.domain.message import Message, noted, user
from tests.support.fakes import ManualClock


def said(number: int, tokens: int) -> Message:
    return noted(user("x"), id=str(number), tokens=tokens)


async def test_only_what_the_notes_take_the_place_of_is_read_for_them() -> None:
    models = Mock()
    models.helpers.return_value = [SimpleNamespace(name="small")]
    models.entry.return_value = SimpleNamespace(cost_usd=None)
    store = AsyncMock()
    store.lineage.return_value = []
    conversation = SimpleNamespace(
        engine=SimpleNamespace(engine=Mock(spec=Compressor)),
        spec=SimpleNamespace(name="large"),
        stored=SimpleNamespace(session=SimpleNamespace(id="s1")),
    )
    context = SimpleNamespace(sessions=SimpleNamespace(models=models), store=store, clock=ManualClock())
    folded = [said(1, 100), said(2, 30), said(3, 7)]
    sentence = await _price(cast(CommandContext, context), cast(Any, conversation), folded, [said(2, 30)])
    assert models.entry.call_args.args[3].input_tokens == 107 + _ASKED
    assert "small would write the notes. They would cost an unknown amount. I do not know yet how long" in sentence
