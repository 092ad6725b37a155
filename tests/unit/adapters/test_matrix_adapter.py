"""Signs on people's messages, and reactions that stand for buttons."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

from adapters.matrix.adapter import MatrixAdapter
from adapters.matrix.codec import buttons
from gateway.domain.adapter import SIGNS
from gateway.domain.chat import Button, ChatAddress
from gateway.runtime.errors import AdapterError
from gateway.runtime.structs import replace
from tests.support.store_kit import outbound

ROOM = ChatAddress(platform="matrix", chat="!room:example.org")


def matrix() -> Any:
    """What the adapter's methods need: a homeserver that gives out ids."""
    server = Mock(show=AsyncMock(side_effect=["$1", "$2", "$3"]), call=AsyncMock())
    rooms = Mock(alone_with=AsyncMock(return_value="!alone"), present=Mock(return_value="!room"))
    adapter = Mock(_server=server, _rooms=rooms, _taken={})
    adapter._room_of = lambda to: MatrixAdapter._room_of(adapter, to)
    return adapter


async def test_the_last_sign_takes_the_place_of_the_first() -> None:
    adapter = matrix()
    await MatrixAdapter.react(adapter, ROOM, "$asked", "taken")
    adapter._server.call.assert_not_awaited()
    await MatrixAdapter.react(adapter, ROOM, "$asked", "done")
    shown = [call.args for call in adapter._server.show.await_args_list]
    assert [(room, kind, content["m.relates_to"]["key"]) for room, kind, _, content in shown] == [
        ("!room", "m.reaction", SIGNS["taken"]), ("!room", "m.reaction", SIGNS["done"]),
    ]  # fmt: skip
    assert shown[0][2] != shown[1][2], "each has a transaction of its own"
    assert adapter._server.call.await_args.args[:5] == ("PUT", "rooms", "!room", "redact", "$1")
    assert adapter._taken == {}
    await MatrixAdapter.react(adapter, replace(ROOM, chat="@anna:example.org"), "$other", "failed")
    assert adapter._server.show.await_args.args[0] == "!alone"
    assert adapter._server.call.await_count == 1


async def test_each_button_is_offered_and_one_that_fails_holds_up_no_other() -> None:
    adapter = matrix()
    adapter._server.show.side_effect = [AdapterError("no right"), "$2"]
    row = outbound("o1", buttons=((Button(label="Yes", token="y"), Button(label="No", token="n")),))
    await MatrixAdapter._offer(adapter, "!room", "$question", row)
    sent = [call.args for call in adapter._server.show.await_args_list]
    assert [content["m.relates_to"]["key"] for *_, content in sent] == [*cast(Any, buttons(row.buttons))]
    assert len({transaction for _, _, transaction, _ in sent}) == 2
