"""Telegram behind a proxy: by the environment, by the configuration, and what proxies say in its place."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.platform import TelegramSettings
from adapters.telegram.requests import way
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, ConfigError, DeliveryRefused, Disconnected
from tests.emulators.telegram import Refuse, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.hosts import host
from tests.support.loopback_proxy import LoopbackProxy, loopback_proxy
from tests.support.telegram_live import on_telegram, settings_on

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tester's own are not used."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def proxy() -> AsyncIterator[LoopbackProxy]:
    """A proxy."""
    async with loopback_proxy() as made:
        yield made


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.mark.parametrize("by", ["ALL_PROXY", "configuration"])
async def test_all_that_is_asked_of_telegram_goes_through_the_proxy(
    tmp_path: Path, telegram: TelegramServer, proxy: LoopbackProxy, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = telegram.people.person("Anna")
    if by == "ALL_PROXY":
        monkeypatch.setenv(by, proxy.url)
    async with on_telegram(tmp_path, telegram, anna, proxy=proxy.url if by == "configuration" else None) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        telegram.people.file(bot.chat, anna, "document", b"some text", name="a.txt", mime_type="text/plain")
        await bot.until(lambda: list(telegram.journal.of("(download)")))
        await bot.quiet()
    seen = {line.split()[1].rpartition("/")[2] for line in proxy.asked}
    assert {"getMe", "getUpdates", "sendMessage", "getFile"} <= seen, (
        "servers that stand in for Telegram's know no other"
    )
    assert len(proxy.asked) >= len(telegram.journal.calls), "nothing went past it"


@pytest.mark.parametrize(
    ("variables", "through"),
    [
        ({"HTTPS_PROXY": "http://127.0.0.1:1"}, True),
        ({"HTTPS_PROXY": "127.0.0.1:1"}, True),
        ({"HTTP_PROXY": "http://127.0.0.1:1"}, False),
        ({"ALL_PROXY": "http://127.0.0.1:1", "NO_PROXY": "example.org,api.telegram.org"}, False),
        ({"ALL_PROXY": "http://127.0.0.1:1", "NO_PROXY": "example.org"}, True),
        ({}, False),
    ],
)  # fmt: skip
def test_which_proxy_the_environment_names(
    variables: dict[str, str], through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = way("https://api.telegram.org", None, most=1)["transport"].proxy
    assert (proxy is not None) is through
    assert proxy is None or str(proxy.url) == "http://127.0.0.1:1"


def bot_through(proxy: str | None) -> TelegramAdapter:
    """A bot on the real Telegram, which no test reaches, through a proxy that nobody has checked."""
    settings = TelegramSettings(token=SecretStr("1:test")).model_copy(update={"proxy": proxy})
    return TelegramAdapter(settings, host())


ROW = Outbound(
    id="o", key=SessionKey(platform="telegram", chat="1"), to=ChatAddress(platform="telegram", chat="1"),
    kind="notice", text="hello",
)  # fmt: skip


async def test_the_real_telegram_is_asked_for_by_a_tunnel(proxy: LoopbackProxy) -> None:
    proxy.page = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
    bot = bot_through(proxy.url)
    ((finding),) = await bot.probe()
    with pytest.raises(Disconnected):
        await bot.send(ROW)
    await bot.aclose()
    assert finding.ok is False
    assert set(proxy.asked) == {"CONNECT api.telegram.org:443 HTTP/1.1"}


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:1", "socks5h://127.0.0.1:1", "ftp://127.0.0.1:1", "http://me:pass/word@127.0.0.1:1"]
)
@pytest.mark.parametrize("by", ["ALL_PROXY", "configuration"])
def test_a_proxy_that_cannot_be_used_is_said_with_what_to_do(
    proxy: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "ALL_PROXY":
        monkeypatch.setenv(by, proxy)
    with pytest.raises(ConfigError, match=r"adapters\.telegram\.proxy, HTTPS_PROXY or ALL_PROXY") as raised:
        bot_through(proxy if by == "configuration" else None)
    assert ("httpx[socks]" in str(raised.value)) is proxy.startswith("socks")
    assert "pass/" not in str(raised.value)


PAGE = "<html><title>no</title>Gateway time, bot was blocked by the user</html>"


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AdapterError), (403, AdapterError), (404, AdapterError), (502, AdapterError),
                         (504, Ambiguous), (200, Ambiguous)]
)  # fmt: skip
async def test_a_page_in_telegrams_place_is_one_line_and_says_nothing_of_the_chat(
    telegram: TelegramServer, status: int, kind: type[AdapterError], caplog: pytest.LogCaptureFixture
) -> None:
    anna = telegram.people.person("Anna")
    telegram.people.say(telegram.people.private(anna), anna, "hello")
    bot = TelegramAdapter(settings_on(telegram), host(), paced=False)
    telegram.faults.add(Refuse(status=status, body=PAGE), method="sendMessage")
    to = ChatAddress(platform="telegram", chat=str(anna.id))
    row = Outbound(id="o", key=SessionKey(platform="telegram", chat=to.chat), to=to, kind="notice", text="hello")
    with capture_logs() as logs, caplog.at_level(logging.WARNING), pytest.raises(kind) as raised:
        await bot.send(row)
    await bot.aclose()
    assert type(raised.value) is kind
    assert not isinstance(raised.value, ChatGone | DeliveryRefused)
    assert len(logs) == 1
    assert caplog.records == []
    assert "html" not in str(logs) + str(raised.value)
