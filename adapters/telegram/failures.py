"""The library's errors as errors of the gateway: certain, ambiguous or final ones."""

from __future__ import annotations

from typing import Final

import aiohttp
import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from gateway.runtime.errors import (
    AdapterError,
    Ambiguous,
    ChatGone,
    DeliveryRefused,
    Disconnected,
    MessageGone,
    RateLimited,
    repeatable,
)

_NEVER_LEFT: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    httpx.ConnectError,  # by a SOCKS proxy
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
)
_NO_RIGHT: Final = (
    "not enough rights to send text messages",
    "have no rights to send a message",
    "need administrator rights in the channel chat",
    "chat_write_forbidden",
    "chat_send_plain_forbidden",
    "chat_restricted",
)
_UNCHANGEABLE: Final = "message can't be edited"  # it is too old, for one
_LOST_ON_THE_WAY: Final = "gateway time"  # 504: a proxy gave up, whatever the server behind it did
_TOO_LARGE: Final = ("request entity too large", "(413)")  # Telegram's words, and the library's for a proxy's page


def mapped(error: TelegramError) -> AdapterError:
    """Return the gateway's error for a call that ended with `error`."""
    if isinstance(error, RetryAfter):
        seconds = seconds_asked(error)
        return RateLimited(f"Telegram asks to wait {seconds:.0f} s", retry_after=seconds)
    if isinstance(error, Forbidden) or is_chat_gone(error):
        return ChatGone(error.message)
    if isinstance(error, ChatMigrated):
        return DeliveryRefused(error.message)
    if is_unknown_method(error):
        return AdapterError(f"{error.message}. The server at adapters.telegram.base_url must have the whole Bot API.")
    if isinstance(error, InvalidToken | EndPointNotFound):
        return AdapterError("Telegram does not know this bot's token. Copy the token from @BotFather into config.yaml.")
    if isinstance(error, BadRequest):  # which the library counts as a NetworkError
        return DeliveryRefused(error.message)
    if isinstance(error, NetworkError):
        return _of_network(error)
    return Ambiguous(f"Telegram's answer could not be read: {error.message}")


def is_unknown_method(error: TelegramError) -> bool:
    """Whether a server does not know a method that it was asked for. The library calls a token that is refused an
    unknown method, too."""
    return isinstance(error, EndPointNotFound) and not isinstance(error.__cause__, InvalidToken)


def seconds_asked(error: RetryAfter) -> float:
    """Return the seconds that Telegram asks to wait."""
    return error._retry_after.total_seconds()  # the public one warns of its own future


def mapped_edit(error: TelegramError) -> AdapterError:
    """Return the gateway's error for an edit. An edit may always be repeated."""
    if is_gone(error):
        return MessageGone(error.message, stays=isinstance(error, ChatMigrated) or _says(error, _UNCHANGEABLE))
    return repeatable(mapped(error))


def _of_network(error: NetworkError) -> AdapterError:
    if any(each in error.message.lower() for each in _TOO_LARGE):  # tried again, it would hold up its chat for ever
        return DeliveryRefused("it is too large")
    cause = error.__cause__
    if isinstance(cause, _NEVER_LEFT):
        return Disconnected(
            f"Telegram cannot be reached ({error.message}). Check the network, and the settings proxy "
            "and base_url in adapters.telegram."
        )
    if isinstance(cause, TelegramError):  # of reading the answer: a proxy's page, whose status says what it is
        cause = None
    if cause is not None or _LOST_ON_THE_WAY in error.message.lower():
        return Ambiguous(f"Telegram's answer was lost ({error.message}).")
    return AdapterError(f"Telegram refused the request ({error.message}).")  # an answer that says so


def is_chat_gone(error: TelegramError) -> bool:
    """Whether the chat does not exist (any more), or the bot may not write there. A chat that blocked or
    removed the bot is Forbidden."""
    return _says(error, "chat not found", "chat was deleted", "chat was deactivated", "peer_id_invalid", *_NO_RIGHT)


def is_unchanged(error: TelegramError) -> bool:
    """Whether an edit was refused because the message reads so already."""
    return _says(error, "message is not modified")


def is_about_format(error: TelegramError) -> bool:
    """Whether the same text without its formatting may be taken. Links are formatting: Telegram has several words
    for one that it will not have ("Wrong HTTP URL", "Unsupported URL protocol", …)."""
    return _says(error, "entit", "url")


def may_be_of_picture(error: TelegramError) -> bool:
    """Whether a photo was refused for what it is, so that it may be taken as a document: Telegram has many words
    for that (PHOTO_INVALID_DIMENSIONS, IMAGE_PROCESS_FAILED, …), and few for what it is not."""
    other = is_chat_gone(error) or is_about_format(error) or _says(error, "thread not found")
    return isinstance(error, BadRequest) and not other


def is_gone(error: TelegramError) -> bool:
    """Whether there is no such message: what a group said before it became a supergroup stays as it is."""
    gone = ("message to edit not found", _UNCHANGEABLE, "message_id_invalid")
    return isinstance(error, ChatMigrated) or _says(error, *gone)


def _says(error: TelegramError, *words: str) -> bool:
    return isinstance(error, BadRequest) and any(each in error.message.lower() for each in words)
