"""The limits of Slack: https://docs.slack.dev/apis/web-api/rate-limits"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.slack.formatting import LONGEST, marks, plain, split
from gateway.delivery.markdown.characters import length
from gateway.delivery.markdown.showing import staged
from gateway.domain.adapter import REPEATED, Limits, Rate
from gateway.domain.chat import ChatAddress
from gateway.domain.reading import WITH

LARGEST_SENT: Final = 50 * 1024 * 1024
LARGEST_FETCHED: Final = 25 * 1024 * 1024


def fits_caption(text: str) -> bool:
    """Whether a text can stand with a file."""
    return length(text, "utf16") <= LONGEST


LIMITS: Final = Limits(
    text_units=LONGEST - len(REPEATED),
    unit="utf16",
    ambiguous_retries=10,  # a repeated send is looked for first, so none is shown twice
    split_reply=split,
    file_bytes=LARGEST_SENT,
    fits_caption=fits_caption,
    direct_chat=lambda user: f"{WITH}{user}",
)

_CHAT_SECONDS: Final = 1.0  # "chat.postMessage generally allows posting one message per second per channel"
_DRAFT_SECONDS: Final = 3.0  # between two looks at an unfinished reply
_ALL_DRAFTS: Final = 30  # a minute, of the fifty edits that Slack takes: the rest is for messages that count


def rates(to: ChatAddress) -> Sequence[Rate]:
    """The limits that a message to this chat counts against."""
    return [Rate(bucket=f"chat {to.chat}", most=1, seconds=_CHAT_SECONDS)]


def draft_rates(to: ChatAddress) -> Sequence[Rate]:
    """The share of unfinished replies."""
    return [
        Rate(bucket=f"drafts {to.chat} {to.thread or ''}", most=1, seconds=_DRAFT_SECONDS),
        Rate(bucket="drafts", most=_ALL_DRAFTS, seconds=60.0),
    ]


def _plain(text: str) -> str:
    return plain(text).text


STAGE: Final = staged(LIMITS, LONGEST, marks, _plain)
