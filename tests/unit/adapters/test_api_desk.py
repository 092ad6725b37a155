"""Answers of the API, piece by piece."""

from typing import Any, cast

from adapters.api.answers import Answer, Answers
from adapters.api.desk import Asked, Desk
from gateway.domain.chat import ChatAddress, Outbound, Returns, SessionKey, Source
from gateway.runtime.clock import SystemClock

TO = ChatAddress(platform="api", chat="anna")
KEY = SessionKey(platform="api", chat="anna")
ROW = Outbound(id="o", key=KEY, to=TO, kind="reply", text="All of it.", answers="e", returns=Returns())


async def test_what_comes_while_a_client_reads_is_given_to_it() -> None:
    """The answer grows and ends in the midst of a write: nothing of it is lost."""
    asked = Asked(source=Source(platform="api", chat="anna", chat_type="direct", user="anna"), name="e", text="x")
    none = cast(Any, None)
    desk = Desk(accept=none, views=none, histories=none, clock=SystemClock(), answers=Answers())
    answer = Answer(event="e", to=TO)
    answer.works = True
    answer.grow("o", "All")
    said: list[str] = []
    async for pieces in desk.pieces(asked, answer):
        said += [each.text for each in pieces]
        answer.show(ROW)
    assert "".join(said) == "All of it."
