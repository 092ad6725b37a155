"""Every exception class below HTTP has a meaning, and requests are JSON that any server reads."""

import errno
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.http import FOREIGN_ERRORS, http_client, json_bytes, posted, transport_error
from gateway.runtime.errors import ProviderError, ProviderRejected, ProviderUnavailable


def family(root: type[BaseException]) -> Iterator[type[BaseException]]:
    yield root
    for child in root.__subclasses__():
        yield from family(child)


def bare(kind: type[BaseException]) -> BaseException:
    """An instance without running constructors that want real requests."""
    error = kind.__new__(kind)
    Exception.__init__(error, "detail")
    return error


HTTPX = sorted(
    {kind for kind in vars(httpx).values() if isinstance(kind, type) and issubclass(kind, Exception)},
    key=lambda kind: kind.__name__,
)
AIOHTTP = sorted(
    {*family(aiohttp.ClientError), *family(aiohttp.http_exceptions.HttpProcessingError)}, key=lambda kind: kind.__name__
)


def test_every_foreign_exception_is_caught_and_mapped() -> None:
    assert [kind for kind in (*HTTPX, *AIOHTTP) if not issubclass(kind, FOREIGN_ERRORS)] == []
    told = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict)
    mapped = [transport_error(bare(kind)) for kind in HTTPX if issubclass(kind, told)]
    assert len(mapped) > 20
    assert all(isinstance(error, ProviderError) for error in mapped)


@pytest.mark.parametrize("kind", [httpx.ConnectTimeout, httpx.ReadTimeout, httpx.PoolTimeout, httpx.TimeoutException])
def test_timeouts_say_so(kind: type[httpx.TimeoutException]) -> None:
    error = transport_error(kind("slow"))
    assert isinstance(error, ProviderUnavailable)
    assert error.timed_out
    assert error.billable is (kind in (httpx.ReadTimeout, httpx.TimeoutException))  # the others asked nobody


def test_a_dropped_connection_is_not_a_timeout_whatever_the_transport_calls_it() -> None:
    dropped = httpx.ConnectTimeout("gone")
    dropped.__cause__ = aiohttp.ServerDisconnectedError()
    error = transport_error(dropped)
    assert isinstance(error, ProviderUnavailable)
    assert not error.timed_out


@pytest.mark.parametrize("error", [httpx.UnsupportedProtocol("x"), httpx.InvalidURL("x"), aiohttp.InvalidURL("x")])
def test_a_wrong_address_is_not_worth_retrying(error: BaseException) -> None:
    mapped = transport_error(error)
    assert isinstance(mapped, ProviderRejected)
    assert "base_url" in str(mapped)


def test_unreadable_answers_are_malformed() -> None:
    error = transport_error(httpx.RemoteProtocolError("x"))
    assert isinstance(error, ProviderUnavailable)
    assert error.malformed


def test_an_answer_that_breaks_off_is_told_in_plain_words() -> None:
    broken = httpx.ReadError("Response payload is not completed: <TransferEncodingError: 400, message='Not enough'>")
    broken.__cause__ = aiohttp.ClientPayloadError("Response payload is not completed")
    error = transport_error(broken)
    assert isinstance(error, ProviderUnavailable)
    assert str(error) == "The connection to the model broke in the middle of its answer. Try again later."


def test_an_address_where_nobody_listens_is_named_in_plain_words() -> None:
    refused = httpx.ConnectError(
        "Cannot connect to host 127.0.0.1:9 ssl:default [Connect call failed ('127.0.0.1', 9)]"
    )
    key = aiohttp.client_reqrep.ConnectionKey("127.0.0.1", 9, False, True, None, None, None)
    refused.__cause__ = aiohttp.ClientConnectorError(key, ConnectionRefusedError(errno.ECONNREFUSED, "Connect call"))
    text = str(transport_error(refused))
    assert text == (
        "The model cannot be reached (127.0.0.1:9: connection refused). "
        "Try again later, or check that the model's server runs at model.base_url."
    )


def test_texts_are_redacted() -> None:
    assert "secret" not in str(
        transport_error(httpx.ConnectError("my secret"), lambda text: text.replace("secret", "*"))
    )


def test_lone_surrogates_become_replacement_characters_and_pairs_are_joined() -> None:
    assert json.loads(json_bytes({"text": "a\ud83d b\ud83d\ude00 \udc00"})) == {"text": "a\ufffd b\U0001f600 \ufffd"}


def test_nul_is_left_out_but_its_spelling_is_kept() -> None:
    assert json.loads(json_bytes(["a\x00b", {"k\x00": "\\u0000"}])) == ["ab", {"k": "\\u0000"}]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(ProviderRejected):
        json_bytes({"value": value})


@given(text=st.text(st.characters(codec=None)))
def test_any_text_makes_valid_utf8_json(text: str) -> None:
    assert isinstance(json.loads(json_bytes(text).decode()), str)


async def test_no_server_is_asked_to_pack_its_answers() -> None:
    client = http_client()
    assert client.build_request("POST", "http://localhost/").headers["Accept-Encoding"] == "identity"
    await client.aclose()


async def test_a_post_carries_the_clients_headers_its_own_before_them_and_no_cookies() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(307, headers={"Set-Cookie": "a=b", "Location": "http://elsewhere/"}, content=b"no")

    usual = {"Accept-Encoding": "identity", "User-Agent": "usual", "Cookie": ""}
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), headers=usual) as client:
        for pieces in ((b"{", b"}"), (b"x" * 300_000, b"", b"y")):
            response = await posted(client, httpx.URL("http://model/v1"), {"user-agent": "own"}, pieces, 7.0)
            assert (response.status_code, await response.aread(), str(response.url)) == (307, b"no", "http://model/v1")
            assert await seen[-1].aread() == (body := b"".join(pieces))
            assert seen[-1].headers.get_list("User-Agent") == ["own"]
            assert seen[-1].headers["Content-Length"] == str(len(body))
            assert seen[-1].headers["Accept-Encoding"] == "identity"
            assert not seen[-1].headers["Cookie"]
            assert (seen[-1].extensions["timeout"]["read"], seen[-1].extensions["timeout"]["connect"]) == (7.0, 5.0)
    assert len(seen) == 2
