"""Drafts, by which Telegram shows a message that is still being written.

https://core.telegram.org/bots/api#sendmessagedraft and https://core.telegram.org/api/bots/ai: in private chats only; a
client drops a draft when the next message comes, or thirty seconds after it was shown last. Older servers do not know
them, or have them for some bots only, and some chats are refused without a word why.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Final

import structlog
from telegram.error import BadRequest, EndPointNotFound, InvalidToken, TelegramError

from adapters.telegram import failures
from adapters.telegram.limits import in_group
from adapters.telegram.platform import Streaming
from gateway.domain.chat import ChatAddress

log = structlog.get_logger(__name__)

SECONDS: Final = 30.0  # that a draft is shown


class Drafts:
    """The chats where a bot may show drafts, as far as this run knows."""

    def __init__(self, streaming: Streaming) -> None:
        self._offered = streaming == "drafts"
        self._refused: set[str] = set()  # chats

    def may_be_shown(self, to: ChatAddress) -> bool:
        """Whether a draft is worth a try in a chat."""
        return self._offered and not in_group(to) and to.chat not in self._refused

    def note(self, to: ChatAddress, error: TelegramError) -> None:
        """Remember what a refused draft says of others. A server without the method says what it says of a wrong
        token, which edits will find out."""
        if isinstance(error, InvalidToken | EndPointNotFound):
            log.warning("drafts_unknown", error=error.message)
            self._offered = False
        elif isinstance(error, BadRequest) and not failures.is_chat_gone(error):
            log.warning("drafts_refused", chat=to.chat, error=error.message)
            self._refused.add(to.chat)


def number_of(outbound_id: str) -> int:
    """The number of a reply's draft, the same after a crash: 31 bits, and never zero, which means no draft."""
    return 1 + int.from_bytes(blake2s(outbound_id.encode()).digest()) % (2**31 - 1)
