"""The limits of WhatsApp: https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput and
…/business-phone-numbers/media for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.whatsapp.formatting import LONGEST, fits_caption, plain, shown, split
from gateway.delivery.markdown.showing import staged
from gateway.domain.adapter import REPEATED, Limits, Rate
from gateway.domain.chat import ChatAddress

WINDOW: Final = 86_400.0  # seconds after a person's words in which they can be written to freely
LARGEST_FETCHED: Final = 25 * 1024 * 1024
LARGEST_SENT: Final = 100 * 1024 * 1024
LARGEST: Final = {"image": 5 << 20, "audio": 16 << 20, "video": 16 << 20, "sticker": 1 << 19}

LIMITS: Final = Limits(
    text_units=LONGEST - len(REPEATED),
    unit="utf16",
    split_reply=split,
    file_bytes=LARGEST_SENT,
    fits_caption=fits_caption,
    direct_chat=lambda user: user,
    voice="opus",
)

# One message in six seconds to one person; up to 45 may come at once, and are then paid for by a pause.
_PAIR_BURST: Final = 45
_PAIR_SECONDS: Final = 6.0
_NUMBER_RATE: Final = 70  # a second, of the eighty that count what comes in, too


def rates(to: ChatAddress, number: str) -> Sequence[Rate]:
    """The limits that a message counts against: of the pair, and of the number."""
    pair = Rate(bucket=f"pair {number} {to.chat}", most=_PAIR_BURST, seconds=_PAIR_BURST * _PAIR_SECONDS)
    return [pair, Rate(bucket=f"number {number}", most=_NUMBER_RATE, seconds=1.0)]


STAGE: Final = staged(LIMITS, LONGEST, shown, plain)
