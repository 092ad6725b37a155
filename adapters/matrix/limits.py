"""The limits of Matrix. A server says itself how long to wait for its rates."""

from __future__ import annotations

from typing import Final

from adapters.matrix.formatting import LONGEST, fits_caption, split
from gateway.domain.adapter import Limits
from gateway.domain.chat import OutboundKind
from gateway.domain.platform import Bubble, Stage

LARGEST_SENT: Final = 50 * 1024 * 1024  # what most servers take
LARGEST_FETCHED: Final = 25 * 1024 * 1024
LONGEST_TOKEN: Final = 1_000

LIMITS: Final = Limits(
    text_units=LONGEST,
    ambiguous_retries=None,  # a server shows one message for one transaction id, however often it is sent
    split_reply=split,
    file_bytes=LARGEST_SENT,
    fits_caption=fits_caption,
    direct_chat=lambda user: user,
)


def bubble(part: str, kind: OutboundKind) -> Bubble:
    """One message. What is no reply and no remark is no Markdown."""
    return Bubble(text=part, as_markdown=kind in ("reply", "remark"), units=len(part), most=LONGEST)


STAGE: Final = Stage(limits=LIMITS, bubble=bubble)
