"""Whether a platform answers, and when that is asked again."""

from __future__ import annotations

import pytest

from gateway.delivery.contact import Contact
from gateway.runtime.errors import AdapterError
from gateway.runtime.tasks import Background
from tests.support.fakes import ManualClock


class Platform:
    """Refuses so many pings, then answers."""

    def __init__(self, silent: int) -> None:
        self.silent, self.pings = silent, 0

    async def ping(self) -> None:
        self.pings += 1
        if self.pings <= self.silent:
            raise AdapterError("no answer")


@pytest.mark.parametrize(("after", "wait"), [(9.9, 0.0), (10.0, 0.0), (10.1, 0.5)])
async def test_an_answer_holds_for_ten_seconds(after: float, wait: float) -> None:
    clock, background, platform = ManualClock(), Background(), Platform(silent=0)
    contact = Contact(name="fake", adapter=platform, clock=clock, background=background)
    assert contact.wait() == 0.5, "it is asked first"
    await clock.advance(0.0)
    assert (contact.wait(), platform.pings) == (0.0, 1)
    await clock.advance(after)
    assert contact.wait() == wait
    await background.aclose()


async def test_a_silent_platform_is_asked_later_and_later_and_a_doubt_asks_at_once() -> None:
    clock, background, platform = ManualClock(), Background(), Platform(silent=2)
    contact = Contact(name="fake", adapter=platform, clock=clock, background=background)
    contact.doubt()
    contact.doubt()
    await clock.advance(0.0)
    assert platform.pings == 1
    for pings, pause in ((2, 0.5), (3, 1.0)):
        assert contact.wait() == pause + 0.5, "the pause, and the moment at which the answer is looked for"
        await clock.advance(pause)
        assert platform.pings == pings
    assert (platform.pings, contact.wait()) == (3, 0.0)
    contact.doubt()
    assert contact.wait() > 0.0
    await background.aclose()
