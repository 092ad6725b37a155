"""The limits of Telegram: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.telegram.characters import LONGEST
from adapters.telegram.files import LARGEST_SENT
from adapters.telegram.formatting import fits_caption, marks, plain, split
from gateway.delivery.markdown.showing import staged
from gateway.domain.adapter import REPEATED, Limits, Rate
from gateway.domain.chat import ChatAddress

LIMITS: Final = Limits(
    text_units=LONGEST - len(REPEATED),
    unit="utf16",
    split_reply=split,
    file_bytes=LARGEST_SENT,
    album=10,  # https://core.telegram.org/bots/api#sendmediagroup
    fits_caption=fits_caption,
    voice="opus",
    direct_chat=str,  # a private chat has the number of its person
)

_CHAT_SECONDS: Final = 1.0  # "avoid sending more than one message per second" in one chat
_GROUP_SECONDS: Final = 61.0  # a minute, and what a message may be late
_GROUP_MOST: Final = 20  # "not be able to send more than 20 messages per minute" to one group
# "no more than about 30 messages per second" in bulk. Thirty at one instant are late by as much as the last of them
# takes, and meet the next thirty in one second; so each has an instant of its own.
_ALL_SECONDS: Final = 1.0 / 28
_DRAFT_SECONDS: Final = 1.5  # between two looks at an unfinished reply
_GROUP_DRAFT_SECONDS: Final = 8.0
_ALL_DRAFTS: Final = 10  # a second: the rest is for messages that count


def in_group(to: ChatAddress) -> bool:
    """Whether a chat is a group or a channel: their ids are negative."""
    return to.chat.startswith("-")


def rates(to: ChatAddress) -> Sequence[Rate]:
    """The limits that a message to this chat counts against, narrowest first."""
    chat = f"chat {to.chat}"
    limits = [Rate(bucket=chat, most=1, seconds=_CHAT_SECONDS)]
    if in_group(to):
        limits.append(Rate(bucket=f"{chat} minute", most=_GROUP_MOST, seconds=_GROUP_SECONDS))
    return [*limits, Rate(bucket="all", most=1, seconds=_ALL_SECONDS)]


def draft_rates(to: ChatAddress, *, paced: bool) -> Sequence[Rate]:
    """Limits for what is shown of a reply before it is finished; with `paced`, Telegram's are among them."""
    own = preview_rates(to)
    if not paced:
        return own
    chat, *others = rates(to)
    return [chat, *own, *others]


def preview_rates(to: ChatAddress) -> Sequence[Rate]:
    """The share of unfinished replies. Of a draft, Telegram counts no message: to it, writing is a kind of typing."""
    seconds = _GROUP_DRAFT_SECONDS if in_group(to) else _DRAFT_SECONDS
    return [
        Rate(bucket=f"drafts {to.chat}", most=1, seconds=seconds),
        Rate(bucket="drafts", most=_ALL_DRAFTS, seconds=1.0),
    ]


def _plain(text: str) -> str:
    return plain(text).text


STAGE: Final = staged(LIMITS, LONGEST, marks, _plain)
