"""The gateway's error for each of the library's: certain, unknown or final."""

from __future__ import annotations

import inspect
import warnings
from functools import partial

import aiohttp
import httpx
import pytest
import telegram.error
from aiohttp.client_reqrep import ConnectionKey
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.warnings import PTBDeprecationWarning

from adapters.telegram import failures, requests
from gateway.runtime.connections import POOL_TIMEOUT
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, Disconnected, RateLimited

ROUTE = ConnectionKey("api.telegram.org", 443, True, True, None, None, None)


def caused(error: TelegramError, cause: Exception) -> TelegramError:
    """As the library raises it."""
    error.__cause__ = cause
    return error


@pytest.fixture
def too_many() -> RetryAfter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PTBDeprecationWarning)
        return RetryAfter(7)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (caused(TimedOut(), httpx.ConnectTimeout("")), Disconnected),
        (caused(TimedOut("Pool timeout"), httpx.PoolTimeout("")), Disconnected),
        (caused(NetworkError("httpx.ConnectError"), httpx.ConnectError("")), Disconnected),
        (caused(NetworkError("httpx.ProxyError"), httpx.ProxyError("")), Disconnected),
        (caused(TimedOut(), httpx.ReadTimeout("")), Ambiguous),
        (caused(TimedOut(), httpx.WriteTimeout("")), Ambiguous),
        (caused(NetworkError("httpx.ReadError"), httpx.ReadError("")), Ambiguous),
        (caused(NetworkError("httpx.RemoteProtocolError"), httpx.RemoteProtocolError("")), Ambiguous),
        (caused(NetworkError("refused"), aiohttp.ClientProxyConnectionError(ROUTE, OSError())), Disconnected),
        (caused(NetworkError("late"), aiohttp.ConnectionTimeoutError()), Disconnected),
        (caused(NetworkError("hung up"), aiohttp.ServerDisconnectedError()), Ambiguous),
        (caused(NetworkError("silent"), aiohttp.SocketTimeoutError()), Ambiguous),
        (caused(NetworkError("Unknown error in HTTP implementation"), RuntimeError()), Ambiguous),
        (NetworkError("Gateway Timeout (504)"), Ambiguous),
        (TelegramError("Invalid server response"), Ambiguous),
        (NetworkError("Bad Gateway"), AdapterError),
        (caused(NetworkError("Bad Gateway (502). Parsing failed"), TelegramError("Invalid response")), AdapterError),
        (caused(NetworkError("Gateway Timeout (504). Parsing failed"), TelegramError("Invalid response")), Ambiguous),
        (NetworkError("Internal Server Error"), AdapterError),
        (NetworkError("Request Entity Too Large"), DeliveryRefused),
        (caused(NetworkError("Content Too Large (413). Parsing failed"), TelegramError("Invalid")), DeliveryRefused),
        (BadRequest("Message thread not found"), DeliveryRefused),
        (BadRequest("Not enough rights to send text messages to the chat"), ChatGone),
        (BadRequest("Chat not found"), ChatGone),
        (Forbidden("Forbidden: bot was blocked by the user"), ChatGone),
        (Forbidden("Forbidden: the group chat was deleted"), ChatGone),
        (ChatMigrated(-1001), DeliveryRefused),
        (InvalidToken("Unauthorized"), AdapterError),
    ],
)
def test_every_failure_is_what_it_certainly_is(error: TelegramError, kind: type[AdapterError]) -> None:
    assert type(failures.mapped(error)) is kind


def test_a_method_that_a_server_does_not_know_is_no_wrong_token() -> None:
    refused = caused(EndPointNotFound("Endpoint 'sendMessage' not found in Bot API"), InvalidToken("Unauthorized"))
    assert "token" in str(failures.mapped(refused))
    unknown = EndPointNotFound("The server of Telegram's Bot API does not know the method sendMessage")
    assert "token" not in str(failures.mapped(unknown))
    assert "sendMessage. The server at adapters.telegram.base_url must" in str(failures.mapped(unknown))


def test_the_wait_is_the_platforms_own(too_many: RetryAfter) -> None:
    mapped = failures.mapped(too_many)
    assert isinstance(mapped, RateLimited)
    assert mapped.retry_after == 7


def test_no_error_of_the_library_gets_through() -> None:
    """Also none of those that it may add."""
    made = {
        RetryAfter: None,
        ChatMigrated: ChatMigrated(-1001),
        InvalidToken: InvalidToken("x"),
        Conflict: Conflict("x"),
    }
    kinds = [each for _, each in inspect.getmembers(telegram.error, inspect.isclass) if issubclass(each, TelegramError)]
    assert len(kinds) > 8
    for kind in kinds:
        error = made[kind] if kind in made else kind("x") if kind is not TimedOut else TimedOut()
        if error is not None:
            assert isinstance(failures.mapped(error), AdapterError)


def test_an_edit_may_be_repeated_whatever_became_of_it() -> None:
    lost = caused(TimedOut(), httpx.ReadTimeout(""))
    assert type(failures.mapped(lost)) is Ambiguous
    assert type(failures.mapped_edit(lost)) is AdapterError
    assert type(failures.mapped_edit(BadRequest("Chat not found"))) is ChatGone


def test_what_an_edit_is_told() -> None:
    same = BadRequest("Message is not modified: specified new message content and reply markup are exactly the same")
    assert failures.is_unchanged(same)
    assert failures.is_gone(BadRequest("Message to edit not found"))
    assert not failures.is_gone(same)
    assert failures.is_about_format(BadRequest("Can't parse entities: can't find end of the entity"))
    assert not failures.is_about_format(NetworkError("entities"))


@pytest.mark.parametrize("words", ["Can't parse entities: x", "Wrong HTTP URL", "Unsupported URL protocol"])
def test_a_refused_link_is_about_the_format(words: str) -> None:
    assert failures.is_about_format(BadRequest(words))
    assert not failures.is_about_format(BadRequest("Chat not found"))


async def test_a_call_waits_for_a_connection_longer_than_the_library_would() -> None:
    way = partial(requests.way, "https://api.telegram.org", None)
    timeout = requests.TelegramRequest(way(most=1), patience=7.0)._client.timeout
    assert (timeout.read, timeout.pool) == (7.0, POOL_TIMEOUT)
