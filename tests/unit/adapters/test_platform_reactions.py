"""Signs of the bot's, and people's reactions, as Telegram and Discord tell of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from adapters.discord import codec
from adapters.discord.reactions import reaction_inbound, show
from adapters.telegram.codec import _changes


def emoji(*signs: str) -> list[dict[str, str]]:
    return [{"type": sign} if sign in ("custom_emoji", "paid") else {"type": "emoji", "emoji": sign} for sign in signs]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([], ["👍"], "+👍"),
        (["👍"], [], "-👍"),
        (["👍", "🔥"], ["🔥", "👎"], "-👍 +👎"),
        (["🔥"], ["🔥"], ""),
        (["paid"], ["custom_emoji"], "-⭐ +❔"),
    ],
)
def test_on_telegram_what_changed_is_told(old: list[str], new: list[str], told: str) -> None:
    reacted: Any = SimpleNamespace(old_reaction=emoji(*old), new_reaction=emoji(*new))
    assert _changes(reacted) == told


@pytest.mark.parametrize("sign", ["taken", "done", "failed"])
async def test_on_discord_the_last_sign_takes_the_place_of_the_first(sign: Any) -> None:
    calls = SimpleNamespace(request=AsyncMock())
    await show(calls, "1", "2", sign)  # type: ignore[arg-type]
    routes = [call.args[0] for call in calls.request.await_args_list]
    assert all("/channels/1/messages/2/reactions/" in each.url for each in routes)
    assert [each.method for each in routes] == (["PUT"] if sign == "taken" else ["PUT", "DELETE"])
    assert len({each.url for each in routes}) == len(routes), "another emoji"


@pytest.mark.parametrize(
    ("data", "sign", "name"),
    [
        ({"emoji": {"name": "👍"}, "came": True, "member": {"user": {"id": "5", "username": "anna"}}}, "+👍", "anna"),
        ({"emoji": {"name": "party", "id": "9"}, "came": False}, "-:party:", "5"),
        ({"emoji": {"name": None, "id": "9"}, "came": True}, "+:❔:", "5"),
    ],
)
def test_on_discord_a_reaction_is_one_of_its_person_on_one_message(data: Any, sign: str, name: str) -> None:
    place, me = codec.Place(channel="1"), codec.Me(id="7", name="bot")
    inbound = reaction_inbound({"message_id": "2", "user_id": "5", **data}, place, me)
    assert (inbound.kind, inbound.text, inbound.reply_to) == ("reaction", sign, "2")
    assert (inbound.source.user, inbound.source.user_name) == ("5", name)
    assert inbound.event_id == f"7:reaction:2:5:{sign[1:]}"
