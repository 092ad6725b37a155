"""The limits of Discord. discord.py keeps the rates: it knows Discord's buckets, and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.discord.codec import LONGEST
from adapters.discord.formatting import fits_caption, plain, shown, split
from gateway.delivery.markdown.showing import staged
from gateway.domain.adapter import Limits, Rate
from gateway.domain.chat import ChatAddress
from gateway.domain.reading import WITH

LARGEST_SENT: Final = 10 * 1024 * 1024  # https://discord.com/developers/docs/reference#uploading-files
LARGEST_FETCHED: Final = 25 * 1024 * 1024
LONGEST_TOKEN: Final = 100  # of a `custom_id`, in characters

LIMITS: Final = Limits(
    text_units=LONGEST - 100,  # the rest is for the signs that keep plain text plain
    unit="utf16",
    ambiguous_retries=10,  # a repeated send is looked for first, so none is shown twice
    split_reply=split,
    file_bytes=LARGEST_SENT,
    album=10,  # https://discord.com/developers/docs/resources/message#create-message
    fits_caption=fits_caption,
    voice="opus",
    direct_chat=lambda user: f"{WITH}{user}",
)

_DRAFT_SECONDS: Final = 1.5  # between two looks at an unfinished reply: Discord takes five edits in five seconds
_ALL_DRAFTS: Final = 10  # a second, of the fifty calls that a bot has: the rest is for messages that count


def draft_rates(to: ChatAddress) -> Sequence[Rate]:
    """The share of unfinished replies."""
    return [
        Rate(bucket=f"drafts {to.chat}", most=1, seconds=_DRAFT_SECONDS),
        Rate(bucket="drafts", most=_ALL_DRAFTS, seconds=1.0),
    ]


STAGE: Final = staged(LIMITS, LONGEST, shown, plain, as_markdown=True)
