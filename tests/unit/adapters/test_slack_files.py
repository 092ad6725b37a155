"""A file of a message is fetched from Slack alone, and a refusal says what to do."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from adapters.slack.files import GONE, NO_SCOPE, fetch, upload
from gateway.domain.chat import Attachment, KeptFile
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused

FILE = Attachment(kind="document", ref="F1", name="a.txt", mime="text/plain", size=3)


class Slack:
    """Slack, whose file lies at `address`, and is answered with this status and type."""

    def __init__(self, address: str = "https://files.slack.com/a", status: int = 200, mime: str = "text/plain") -> None:
        self.client = SimpleNamespace(token="xoxb", base_url="https://slack.com/api/")
        self.http, self.asked = SimpleNamespace(get=self._get), list[Any]()
        self.found: Any = {"url_private_download": address}
        self._status, self._mime = status, mime

    async def __call__(self, method: str, **parameters: Any) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return {"file": self.found} if (method, parameters) == ("files.info", {"file": "F1"}) else {}

    @asynccontextmanager
    async def _get(self, address: str, **how: Any) -> Any:
        self.asked.append((address, how))

        async def chunks(_: int) -> Any:
            for piece in (b"a", b"bc"):
                yield piece

        yield SimpleNamespace(
            status=self._status,
            headers={},
            content_type=self._mime,
            content=SimpleNamespace(iter_chunked=chunks),
            raise_for_status=lambda: None,
        )


async def test_a_file_is_fetched_with_the_bots_token() -> None:
    slack = Slack()
    assert await fetch(slack, FILE) == b"abc"  # type: ignore[arg-type]
    headers = {"Authorization": "Bearer xoxb"}
    assert slack.asked == [("https://files.slack.com/a", {"headers": headers, "allow_redirects": False})]


@pytest.mark.parametrize(
    ("slack", "error", "why"),
    [
        (Slack("https://evil.example/a"), FileRefused, GONE),
        (Slack(""), FileRefused, GONE),
        (Slack(status=302), FileRefused, NO_SCOPE),
        (Slack(status=404), FileRefused, GONE),
        (Slack(mime="text/html"), FileRefused, NO_SCOPE),
    ],
)
async def test_nobody_else_sees_the_token_and_each_refusal_says_why(slack: Slack, error: Any, why: str) -> None:
    with pytest.raises(error) as raised:
        await fetch(slack, FILE)  # type: ignore[arg-type]
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("trouble", "error", "why"),
    [
        (DeliveryRefused("missing_scope: files:read"), FileRefused, "missing_scope: files:read"),
        (DeliveryRefused("file_not_found"), FileRefused, GONE),
        (AdapterError("away"), AdapterError, "away"),
    ],
)
async def test_what_slack_does_not_tell_of_is_gone_or_tried_again(trouble: Exception, error: Any, why: str) -> None:
    slack = Slack()
    slack.found = trouble
    with pytest.raises(error, match=why):
        await fetch(slack, FILE)  # type: ignore[arg-type]
    assert slack.asked == []


@pytest.mark.parametrize("trouble", [None, aiohttp.ClientError("reset"), OSError("reset")])
async def test_a_file_is_shown_once_it_is_with_slack(trouble: Exception | None) -> None:
    calls, sent = list[Any](), list[Any]()

    class Calls:
        client = SimpleNamespace(proxy="http://proxy:8080")

        async def __call__(self, method: str, **parameters: Any) -> Any:
            calls.append((method, parameters))
            return {"upload_url": "https://files.slack.com/up", "file_id": "F9"}

        @property
        def http(self) -> Any:
            @asynccontextmanager
            async def post(address: str, **how: Any) -> Any:
                sent.append((address, how))
                if trouble is not None:
                    raise trouble
                yield SimpleNamespace(raise_for_status=lambda: None)

            return SimpleNamespace(post=post)

    file = KeptFile(ref="r", digest="d", name="", mime="text/plain", size=3, at=0.0)
    if trouble is None:
        assert await upload(Calls(), file, b"abc", channel_id="C1") == "F9"  # type: ignore[arg-type]
    else:
        with pytest.raises(AdapterError):
            await upload(Calls(), file, b"abc", channel_id="C1")  # type: ignore[arg-type]
    assert sent == [("https://files.slack.com/up", {"data": b"abc", "proxy": "http://proxy:8080"})]
    assert calls[0] == ("files.getUploadURLExternal", {"filename": "file", "length": 3})
    done = ("files.completeUploadExternal", {"files": [{"id": "F9", "title": "file"}], "channel_id": "C1"})
    assert calls[1:] == ([] if trouble else [done])
