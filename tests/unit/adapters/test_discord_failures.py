"""The gateway's errors for calls that ended in an error of the library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aiohttp
import discord.errors
import pytest
from discord.errors import DiscordException, DiscordServerError, Forbidden, HTTPException, NotFound, RateLimited

from adapters.discord import failures
from gateway.runtime import errors


def answered(status: int, code: int = 0, *, kind: type[HTTPException] = HTTPException, **headers: str) -> HTTPException:
    response: Any = SimpleNamespace(status=status, reason="", headers=headers)
    return kind(response, {"code": code, "message": f"error {code}"})


def connecting() -> aiohttp.ClientConnectorError:
    key: Any = SimpleNamespace(host="discord.com", port=443, ssl=True, is_ssl=True)
    return aiohttp.ClientConnectorError(key, OSError("no route"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimited(31.0), errors.RateLimited),
        (answered(429), errors.RateLimited),
        (answered(401), errors.AdapterError),
        (answered(403, 50001, kind=Forbidden), errors.ChatGone),
        (answered(403, 50013, kind=Forbidden), errors.ChatGone),
        (answered(403, 50007, kind=Forbidden), errors.ChatGone),
        (answered(404, 10003, kind=NotFound), errors.ChatGone),
        (answered(403, 20026, kind=Forbidden), errors.DeliveryRefused),
        (answered(400, 50035), errors.DeliveryRefused),
        (answered(413, 40005), errors.DeliveryRefused),
        (answered(503, kind=DiscordServerError), errors.Ambiguous),
        (connecting(), errors.Disconnected),
        (TimeoutError(), errors.Ambiguous),
        (aiohttp.ServerDisconnectedError(), errors.Ambiguous),
    ],
)
def test_a_send(error: Exception, kind: type[errors.AdapterError]) -> None:
    assert type(failures.mapped(error)) is kind


def test_an_edit_is_never_in_doubt() -> None:
    assert type(failures.mapped_edit(answered(404, 10008, kind=NotFound))) is errors.MessageGone
    assert type(failures.mapped_edit(TimeoutError())) is errors.AdapterError


def test_a_ban_says_how_long() -> None:
    banned = failures.mapped(answered(429, **{"Retry-After": "90"}))
    assert isinstance(banned, errors.RateLimited)
    assert (banned.retry_after, banned.everywhere) == (90.0, True)
    silent = failures.mapped(answered(429))
    assert isinstance(silent, errors.RateLimited)
    assert silent.retry_after == 600.0


def test_every_error_of_the_library_is_one_that_is_caught() -> None:
    named = [getattr(discord.errors, name) for name in discord.errors.__all__]
    assert [each.__name__ for each in named if not issubclass(each, failures.Foreign)] == []
    assert issubclass(DiscordException, failures.Foreign)
    assert issubclass(aiohttp.ClientError, failures.Foreign)
