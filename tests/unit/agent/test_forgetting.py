"""The words by which somebody looks whether words are gone go, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

from gateway.agent.forgetting import Forgetter, deed_of
from gateway.store.port import Store
from tests.support.fakes import ManualClock
from tests.support.store_kit import in_session, key


async def test_a_line_that_finds_nothing_is_kept_nowhere_and_offered_by_no_terminal(
    store: Store, clock: ManualClock
) -> None:
    claim, session = await in_session(store)
    gone: list[str] = []

    class Terminal:
        name = "test"

        def forget_typed(self, goes: Any) -> None:
            gone.extend(each for each in ("hello", " hello ", "other") if goes(each))

    elsewhere = Mock(name="other")
    keeps = SimpleNamespace(store=Mock(forget=AsyncMock()), clock=clock, adapters=[Terminal(), elsewhere])
    keeps._forget_typed = lambda *given: Forgetter._forget_typed(keeps, *given)  # type: ignore[arg-type]
    contents: Any = SimpleNamespace(tip=session)
    await Forgetter.forget_line(keeps, claim.lease, contents, claim.item)  # type: ignore[arg-type]
    lease, deed = keeps.store.forget.await_args.args
    assert (lease, deed.key, deed.item, deed.tip, deed.removed) == (claim.lease, key(), claim.item.id, session.ref, ())
    assert deed.id != deed_of(claim.item), "the deed of the item itself is still to come"
    assert gone == ["hello", " hello "]
    elsewhere.forget_typed.assert_not_called()
