"""Reactions: the bot's signs on messages, and what people put on the bot's messages.

Slack has names for emoji: those of https://github.com/iamcal/emoji-data, of which the usual ones are known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from adapters.slack import codec
from adapters.slack.calls import SlackCalls
from gateway.domain.adapter import Sign
from gateway.domain.chat import Inbound
from gateway.runtime.errors import DeliveryRefused

SIGNS: Final[Mapping[Sign, str]] = {"taken": "eyes", "done": "white_check_mark", "failed": "warning"}
_NAMES: Final = (
    "+1=👍 thumbsup=👍 -1=👎 thumbsdown=👎 heart=❤️ tada=🎉 fire=🔥 eyes=👀 pray=🙏 clap=👏 joy=😂 smile=😄 cry=😢 "
    "white_check_mark=✅ x=❌ warning=⚠️ question=❓ thinking_face=🤔"
)
_EMOJI: Final = dict(each.split("=") for each in _NAMES.split())


async def show(calls: SlackCalls, channel: str, message: str, sign: Sign) -> None:
    """Show a reaction in place of the one before. Raises AdapterError."""
    where = {"channel": channel, "timestamp": message}
    with suppress(DeliveryRefused):  # it is there already
        await calls("reactions.add", name=SIGNS[sign], **where)
    if sign != "taken":
        with suppress(DeliveryRefused):  # there was none
            await calls("reactions.remove", name=SIGNS["taken"], **where)


def reaction_inbound(event: Mapping[str, Any], place: codec.Place, me: codec.Me) -> Inbound:
    """Somebody put an emoji on a message of the bot's, or took it away."""
    name = str(event["reaction"]).partition("::")[0]  # the colour of a skin stands behind
    sign, came = _EMOJI.get(name, f":{name}:"), event["type"] == "reaction_added"
    return Inbound(
        event_id=codec.event_id(me, place, event["user"], f"r{event['event_ts']}"),
        source=codec.source(place, me, event["user"], {}),
        kind="reaction",
        text=f"{'+' if came else '-'}{sign}",
        reply_to=event["item"]["ts"],
    )
