"""An event of Slack's is not forgotten before it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict, CIMultiDictProxy
from pydantic import SecretStr
from slack_sdk.errors import SlackApiError
from yarl import URL

from adapters.slack.adapter import SlackAdapter
from adapters.slack.calls import SlackCalls, mapped
from adapters.slack.codec import Me, Place
from adapters.slack.commands import SlashCommands
from adapters.slack.files import fetch, upload
from adapters.slack.history import SlackHistory
from adapters.slack.platform import SlackSettings
from adapters.slack.receiving import Receiver
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Attachment, Inbound, KeptFile, Outbound, SessionKey
from gateway.domain.place import NOT_SAID
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused, RateLimited
from tests.support.fast_clock import FastClock
from tests.support.hosts import host

ME = Me(id="UBOT", bot="BBOT", team="T1")
EVENT = {"event": {"type": "message", "channel": "D1", "user": "U1", "text": "Hello", "ts": "1795981218.440847"}}


class NoNotes:
    """A notebook that keeps nothing."""

    async def read(self) -> Mapping[str, str]:
        return {}

    async def write(self, changes: Mapping[str, str | None]) -> None:
        pass


async def refused(method: str, **_: Any) -> None:
    raise DeliveryRefused(method)


async def test_what_a_reading_that_was_ended_did_not_store_is_read_again() -> None:
    clock = SystemClock()
    history = SlackHistory(cast(SlackCalls, refused), clock)
    receiver = Receiver(SlackSettings(), clock, SlashCommands(()), history, NOT_SAID)
    came: asyncio.Queue[str] = asyncio.Queue()
    away = True

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        for each in batch:
            came.put_nowait(each.text)
        if away:
            await asyncio.Event().wait()
        return [Accepted(event_id=each.event_id, status="new") for each in batch]

    async def reading() -> None:
        receiver.begun(True)
        taken = receiver.heard("events_api", EVENT)
        assert (await taken) is not None
        assert receiver.heard("events_api", EVENT) is not taken
        raise LookupError("the end")

    running = asyncio.create_task(receiver.run(accept, NoNotes(), ME, reading()))
    assert await came.get() == "Hello"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    away = False
    with pytest.raises(LookupError):
        await receiver.run(accept, NoNotes(), ME, reading())
    assert await came.get() == "Hello"


async def test_a_message_that_waits_since_before_the_start_can_be_taken_back() -> None:
    clock, message = SystemClock(), EVENT["event"]
    history = SlackHistory(cast(SlackCalls, refused), clock)
    receiver = Receiver(SlackSettings(), clock, SlashCommands(()), history, NOT_SAID)
    came: list[Inbound] = []

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        came.extend(batch)
        return [Accepted(event_id=each.event_id, status="new") for each in batch]

    async def reading() -> None:
        receiver.begun(True)
        what = {"type": "message", "subtype": "message_deleted", "deleted_ts": message["ts"], "channel": "D1"}
        await receiver.heard("events_api", {"event": {**what, "previous_message": message}})
        raise LookupError("the end")

    with pytest.raises(LookupError):
        await receiver.run(accept, NoNotes(), ME, reading())
    assert [(each.kind, each.source.chat, each.amends) for each in came] == [
        ("withdrawn", "D1", ("T1:D1:U1:1795981218.440847",))
    ]


@pytest.mark.parametrize(
    ("edited", "text", "heard"), [(True, "Good day", ["Good day"]), (True, "Hello", []), (False, "Good day", [])]
)
async def test_an_edit_is_a_new_wording_and_no_preview_of_a_link(edited: bool, text: str, heard: list[str]) -> None:
    clock, before = SystemClock(), EVENT["event"]
    history = SlackHistory(cast(SlackCalls, AsyncMock(return_value={"members": []})), clock)
    receiver = Receiver(SlackSettings(), clock, SlashCommands(()), history, NOT_SAID)
    came: list[Inbound] = []

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        came.extend(batch)
        return [Accepted(event_id=each.event_id, status="new") for each in batch]

    async def reading() -> None:
        receiver.begun(True)
        now = {**before, "text": text} | ({"edited": {"user": "U1", "ts": "1795981300.000000"}} if edited else {})
        what = {"type": "message", "subtype": "message_changed", "channel": "D1", "message": now}
        await receiver.heard("events_api", {"event": {**what, "previous_message": before}})
        raise LookupError("the end")

    with pytest.raises(LookupError):
        await receiver.run(accept, NoNotes(), ME, reading())
    assert [(each.text, each.amends) for each in came] == [(each, ("T1:D1:U1:1795981218.440847",)) for each in heard]


async def test_a_message_in_a_thread_of_the_bots_waits_while_slack_asks_for_a_pause() -> None:
    answers: list[Any] = [RateLimited("later", retry_after=0.0), {"messages": [{"ts": "1.0", "text": "<@UBOT> hi"}]}]

    async def calls(method: str, **_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    history = SlackHistory(cast(SlackCalls, calls), FastClock(pace=1_000.0))
    assert await history.is_own(Place(channel="C1", thread="1.0"), ME)


@pytest.mark.parametrize("thread", [None, "1795981000.000000"])
@pytest.mark.parametrize("present", [False, True])
async def test_an_answer_that_may_have_been_shown_is_looked_for_where_it_went(
    monkeypatch: pytest.MonkeyPatch, thread: str | None, present: bool
) -> None:
    bot = SlackAdapter(SlackSettings(token=SecretStr("xoxb-1"), app_token=SecretStr("xapp-1")), host())
    page = [{"ts": "1.0"}, {"ts": "2.0", "metadata": {"event_payload": {"id": "r" if present else "other"}}}]
    calls: list[tuple[str, dict[str, Any]]] = []

    async def call(method: str, **given: Any) -> Any:
        calls.append((method, given))
        return {"messages": page, "ts": "3.0"}

    monkeypatch.setattr(bot, "_calls", call)
    key = SessionKey(platform="slack", chat="C1", thread=thread)
    row = Outbound(
        id="r", key=key, to=key.address, kind="reply", text="A", ambiguous=True, attempts=2, created_at=1_795_981_200.0
    )
    assert await bot.send(row) == ("2.0" if present else "3.0")
    (method, given), (then, shown) = calls
    assert present or shown["unfurl_links"] is shown["unfurl_media"] is False
    where = {"ts": thread} if thread else {}
    assert method == ("conversations.replies" if thread else "conversations.history")
    oldest = "1795981080.000000"  # two minutes earlier: clocks differ
    assert given == {"channel": "C1", "oldest": oldest, "limit": 200, "include_all_metadata": True, **where}
    assert then == ("chat.update" if present else "chat.postMessage")


@pytest.mark.parametrize(
    ("status", "error"), [(200, None), (302, FileRefused), (404, FileRefused), (500, AdapterError), (429, AdapterError)]
)
async def test_a_file_is_what_slack_gives_with_a_good_status(status: int, error: type[Exception] | None) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, body=b"content", content_type="application/pdf")

    application = web.Application()
    application.router.add_get("/file", answer)
    async with TestServer(application) as server, aiohttp.ClientSession() as http:
        client = SimpleNamespace(token="xoxb-1", base_url=str(server.make_url("/api/")))
        found = {"file": {"url_private": str(server.make_url("/file"))}}
        calls = cast(SlackCalls, AsyncMock(return_value=found, http=http, client=client))
        if error is None:
            assert await fetch(calls, Attachment(ref="F1", kind="document")) == b"content"
            return
        with pytest.raises(error) as raised:
            await fetch(calls, Attachment(ref="F1", kind="document"))
        assert isinstance(raised.value, FileRefused) is (error is FileRefused)


async def test_what_slack_takes_for_wrongly_laid_out_is_shown_as_bare_text(monkeypatch: pytest.MonkeyPatch) -> None:
    bot = SlackAdapter(SlackSettings(token=SecretStr("xoxb-1"), app_token=SecretStr("xapp-1")), host())
    blocks: list[Any] = []

    async def calls(method: str, **given: Any) -> Any:
        if method.startswith("conversations."):
            return {"messages": []}
        blocks.append(given["blocks"])
        if len(blocks) == 1:
            refusal = SlackApiError("?", SimpleNamespace(data={"error": "invalid_blocks"}, status_code=200, headers={}))
            raise mapped(refusal) from refusal
        return {"ts": "1.0"}

    monkeypatch.setattr(bot, "_calls", calls)
    key = SessionKey(platform="slack", chat="D1")
    row = Outbound(id="r", key=key, to=key.address, kind="reply", text="**A** [b](https://[c)\n\n```\nd\n```")
    assert await bot.send(row) == "1.0"
    (section,) = blocks[1][0]["elements"]
    assert section["elements"] == [{"type": "text", "text": "A b\nd"}]


def test_no_secret_address_comes_into_the_words_of_an_error() -> None:
    address = URL("https://hooks.slack.com/commands/T1/2/secret")
    about = aiohttp.RequestInfo(url=address, method="POST", headers=CIMultiDictProxy(CIMultiDict()))
    error = aiohttp.ClientResponseError(about, (), status=400, message="Bad Request")
    assert str(mapped(error)) == "Slack's answer was lost (400 Bad Request)."


@pytest.mark.parametrize(
    ("most", "kept", "more"), [(0, [], True), (2, ["2.0", "3.0"], True), (3, ["1.0", "2.0", "3.0"], False)]
)
async def test_of_several_pages_the_newest_messages_are_kept_oldest_first(
    most: int, kept: list[str], more: bool
) -> None:
    pages = [
        {"messages": [{"ts": "3.0"}, {"ts": "2.0"}], "response_metadata": {"next_cursor": "c"}},
        {"messages": [{"ts": "1.0"}, {"ts": "0.5"}]},
    ]
    asked: list[str] = []

    async def calls(method: str, **how: Any) -> Any:
        asked.append(how["cursor"])
        return pages[len(asked) - 1]

    history = SlackHistory(cast(SlackCalls, calls), SystemClock())
    found, left = await history._read("conversations.history", "C1", 500_000, most)
    assert ([each["ts"] for each in found], left) == (kept, more)
    assert asked == (["", "c"] if most > 1 else [""])


@pytest.mark.parametrize("status", [200, 500])
async def test_a_file_is_shown_only_once_slack_has_it(status: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status if await request.read() == b"content" else 400)

    application, asked = web.Application(), list[tuple[str, Any]]()
    application.router.add_post("/put", answer)
    async with TestServer(application) as server, aiohttp.ClientSession() as http:

        class Calls:
            def __init__(self) -> None:
                self.http, self.client = http, SimpleNamespace(proxy=None)

            async def __call__(self, method: str, **how: Any) -> Any:
                asked.append((method, how))
                return {"upload_url": str(server.make_url("/put")), "file_id": "F1"}

        file = KeptFile(ref="r", digest="", name="a.txt", mime="text/plain", size=7, at=0.0)
        showing = upload(cast(SlackCalls, Calls()), file, b"content", channel_id="C1")
        if status == 200:
            assert await showing == "F1"
        else:
            with pytest.raises(AdapterError):
                await showing
    shown = ("files.completeUploadExternal", {"files": [{"id": "F1", "title": "a.txt"}], "channel_id": "C1"})
    assert asked[0] == ("files.getUploadURLExternal", {"filename": "a.txt", "length": 7})
    assert asked[1:] == ([shown] if status == 200 else [])


async def test_the_library_repeats_no_call_of_itself() -> None:
    """A message whose answer was lost would be there twice."""
    calls = SlackCalls(SlackSettings(token=SecretStr("xoxb-1")), SystemClock(), patience=1.0)
    assert calls.client.retry_handlers == []
