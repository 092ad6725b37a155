"""The library's errors as the gateway's: what is certain, what is not, and what is final.

Discord's numbers: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
from discord.errors import DiscordException, DiscordServerError, HTTPException, LoginFailure, RateLimited

from gateway.domain.reading import UNREADABLE
from gateway.runtime import errors
from gateway.runtime.connections import NEVER_LEFT
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, Disconnected, MessageGone

Foreign = (DiscordException, aiohttp.ClientError, OSError)  # TimeoutError is one

Unreadable = (*UNREADABLE, DiscordException)
"""The errors of a reader, the library's or ours, that is given something of another shape than Discord documents."""

PORTAL: Final = "https://discord.com/developers/applications"
UNKNOWN_TOKEN: Final = (
    f"Discord does not know this bot's token. Reset the token at {PORTAL} (page Bot), and put the new token into "
    "config.yaml."
)
UNKNOWN_CHANNEL: Final = 10003
UNKNOWN_MESSAGE: Final = 10008
UNKNOWN_INTERACTION: Final = 10062
UNKNOWN_WEBHOOK: Final = 10015  # a token of an interaction that is over
MISSING_ACCESS: Final = 50001
CANNOT_WRITE_TO: Final = 50007
MISSING_PERMISSIONS: Final = 50013
INVALID_FORM: Final = 50035
THREAD_ARCHIVED: Final = 50083  # and locked: else a message opens it again
INVALID_TOKEN: Final = 50027  # of an interaction
MOST_FOLLOWUPS: Final = 40094  # five of an interaction, where only its person installed the bot
NO_HISTORY: Final = 160002  # "Cannot reply without permission to read message history"
THREAD_EXISTS: Final = 160004
# No voice message: something else is in it, it is no single recording, it tells too little of itself, or none may be
# sent in this channel.
NO_VOICE: Final = (50159, 50160, 50161, 50173, MISSING_PERMISSIONS, INVALID_FORM)

_GONE: Final = (UNKNOWN_CHANNEL, 10004, MISSING_ACCESS, MISSING_PERMISSIONS, CANNOT_WRITE_TO, THREAD_ARCHIVED)
_BAN_SECONDS: Final = 600.0  # of an address that Cloudflare shuts out, where it does not say how long


def mapped(error: BaseException) -> AdapterError:
    """Return the gateway's error for a call that ended with `error`."""
    match error:
        case RateLimited():
            text = f"Discord asks to wait {error.retry_after:.0f} s"
            return errors.RateLimited(text, retry_after=error.retry_after)
        case HTTPException(status=429):
            seconds = _seconds_asked(error)
            text = f"Discord blocks the address of this machine for {seconds:.0f} s"
            return errors.RateLimited(text, retry_after=seconds, everywhere=True)
        case LoginFailure() | HTTPException(status=401):
            return AdapterError(UNKNOWN_TOKEN)
        case HTTPException(code=code) if code in _GONE:
            return ChatGone(_why_gone(error))
        case HTTPException(status=413) | HTTPException(code=40005):
            return DeliveryRefused("it is too large")
        case DiscordServerError():
            return Ambiguous(f"Discord did not say whether the request worked ({error.status}).")
        case HTTPException():
            return DeliveryRefused(error.text or f"Discord says {error.status}")
    if isinstance(error, NEVER_LEFT):
        return Disconnected(f"Discord cannot be reached ({_named(error)}). Check the network.")
    return Ambiguous(f"Discord's answer was lost ({_named(error)}).")


def mapped_edit(error: BaseException) -> AdapterError:
    """The same of an edit, which may be repeated whatever became of it."""
    if isinstance(error, HTTPException) and error.code == UNKNOWN_MESSAGE:
        return MessageGone(error.text)
    return errors.repeatable(mapped(error))


@contextmanager
def told(how: Callable[[BaseException], AdapterError] = mapped) -> Iterator[None]:
    """What the library raises in the block, raised as the gateway's error."""
    try:
        yield
    except Foreign as error:
        raise how(error) from error


def is_over(error: BaseException) -> bool:
    """Whether an interaction takes no answer any more."""
    codes = (UNKNOWN_INTERACTION, UNKNOWN_WEBHOOK, INVALID_TOKEN, MOST_FOLLOWUPS)
    return isinstance(error, HTTPException) and error.code in codes


def _why_gone(error: HTTPException) -> str:
    if error.code == UNKNOWN_CHANNEL:
        return "the channel was deleted"
    if error.code == THREAD_ARCHIVED:
        return "the thread is locked: give the bot Manage Threads there, or unlock it"
    if error.code == CANNOT_WRITE_TO:
        return "the person does not accept messages from this bot"
    return f"the bot may not write in this channel ({error.text}): give it View Channel and Send Messages there"


def _seconds_asked(error: HTTPException) -> float:
    asked = error.response.headers.get("Retry-After", "")
    try:
        return max(1.0, float(asked))
    except ValueError:
        return _BAN_SECONDS


def _named(error: BaseException) -> str:
    return str(error) or type(error).__name__
