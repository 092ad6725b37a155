"""What Meta's JSON means, and its errors."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock, Mock

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from adapters.whatsapp import codec, files
from adapters.whatsapp.adapter import WhatsAppBot
from adapters.whatsapp.calls import GraphCalls, in_words, refuse
from adapters.whatsapp.limits import LARGEST, LARGEST_FETCHED, rates
from adapters.whatsapp.platform import PLATFORM, WhatsAppSettings
from gateway.domain.adapter import earliest
from gateway.domain.chat import VOICE, ChatAddress, KeptFile
from gateway.domain.quoting import cannot_read
from gateway.runtime.connections import Answer
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, FileRefused, RateLimited
from tests.support.hosts import host

SETTINGS = WhatsAppSettings(
    token=SecretStr("t"), secret=SecretStr("s"), number="1", url="https://bot.example.org/whatsapp"
)


def heard(number: str = "1", **message: Any) -> codec.Heard:
    contact = {"profile": {"name": "Anna"}, "wa_id": "491701234567", "user_id": "DE.1"}
    said = {"from": "491701234567", "id": "wamid.A", "timestamp": "1795981218", **message}
    return codec.Heard(number=number, first="1", message=said, contact=contact)


def test_a_voice_message_a_sticker_and_a_picture_are_files() -> None:
    found = []
    parts: list[tuple[str, Any]] = [
        ("audio", {"id": "7", "mime_type": "audio/ogg; codecs=opus", "voice": True}),
        ("audio", {"id": "8", "mime_type": "audio/mpeg"}),
        ("sticker", {"id": "9", "mime_type": "image/webp"}),
        ("image", {"id": "10", "mime_type": "image/jpeg", "caption": "Look"}),
    ]
    for kind, part in parts:
        said = codec.inbound(heard(type=kind, **{kind: part}))
        assert said is not None
        found.append((said.attachments[0].kind, said.attachments[0].mime, said.text))
    assert found == [
        ("voice", "audio/ogg", ""),
        ("document", "audio/mpeg", ""),
        ("image", "image/webp", ""),
        ("image", "image/jpeg", "Look"),
    ]


def test_numbers_of_the_bot_are_conversations_and_places() -> None:
    first = codec.inbound(heard(type="text", text={"body": "Hello"}))
    other = codec.inbound(heard("2", type="text", text={"body": "Hello"}))
    assert first is not None
    assert other is not None
    assert (first.source.thread, other.source.thread) == (None, "2")
    assert (other.source.within, other.source.roles) == (("2",), ("DE.1",))
    assert other.event_id == "2:491701234567:wamid.A"
    assert codec.message_of(other.event_id) == "wamid.A"
    assert codec.message_of("schedule:r_1:1") == ""


def test_a_quoted_command_is_still_one_and_forwarded_words_command_nothing() -> None:
    quote, context = codec.Quote("you", 'Pay "now"]?'), {"id": "wamid.B"}
    said = codec.inbound(heard(type="text", text={"body": "y"}, context=context), quote)
    assert said is not None
    assert (said.text, said.own, said.reply_to) == ("[in reply to you: \"Pay 'now')?\"]\ny", "y", "wamid.B")
    command = codec.inbound(heard(type="text", text={"body": "/forget"}, context=context), quote)
    assert command is not None
    assert command.command is not None
    forwarded = codec.inbound(heard(type="text", text={"body": "/forget"}, context={"forwarded": True}))
    assert forwarded is not None
    assert (forwarded.text, forwarded.own, forwarded.command) == ("[forwarded]\n/forget", "", None)


def test_odd_things_are_named_or_mean_nothing() -> None:
    assert codec.inbound(heard(type="system", system={"type": "user_changed_number", "wa_id": "4917099"})) is None
    unread = codec.inbound(heard(type="order", order={}))
    assert unread is not None
    assert (unread.kind, unread.text) == ("unread", cannot_read(codec.AN_ORDER))
    assert codec.inbound(heard(type="interactive", interactive={"type": "nfm_reply", "nfm_reply": {}})) is None
    assert codec.inbound(heard(type="reaction", reaction={"message_id": "wamid.B"})) is None


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (131047, ChatGone, "nobody has written here for 24 hours"),
        (131026, ChatGone, "the person cannot be reached"),
        (131030, ChatGone, "a test number writes only to numbers on its list"),
        (132001, ChatGone, "refuses the template"),
        (130429, RateLimited, "asks to wait"),
        (131056, RateLimited, "asks to wait"),
        (190, AdapterError, "rejects the token"),
        (10, AdapterError, "lacks a permission"),
        (131042, AdapterError, "no payment method"),
        (131016, AdapterError, "could not do this right now"),
        (100, DeliveryRefused, "WhatsApp says: it is odd, 100"),
    ],
)
def test_errors_are_told_in_plain_words(code: int, kind: type[AdapterError], words: str) -> None:
    with pytest.raises(AdapterError, match=words) as raised:
        refuse({"code": code, "error_data": {"details": "it is odd."}})
    assert type(raised.value) is kind
    if isinstance(raised.value, RateLimited):
        assert raised.value.everywhere == (code != 131056), "one person has had too much, or the number"
        assert raised.value.retry_after > 0
    assert in_words({"code": code, "title": "it is odd"})[1] == (kind is ChatGone)


def test_one_person_rests_while_others_are_written_to() -> None:
    with pytest.raises(RateLimited) as raised:
        refuse({"code": 131056})
    assert (raised.value.everywhere, raised.value.retry_after) == (False, 6.0)
    pair, number = rates(ChatAddress(platform="whatsapp", chat="4917"), "1")
    burst = [0.01 * each for each in range(45)]
    assert earliest([burst], [pair], 1.0) == 270.0
    assert earliest([burst], [number], 1.0) == 1.0


def _file(mime: str, size: int = 10, ref: str = "file:1") -> KeptFile:
    return KeptFile(ref=ref, digest="d", name="a.bin", mime=mime, size=size, at=0.0)


class _Calls:
    async def upload(self, number: str, name: str, mime: str, content: bytes) -> str:
        return f"{mime} {name}"


async def test_an_answer_said_aloud_is_a_voice_message() -> None:
    calls: Any = _Calls()
    body = await files.shown(calls, "1", _file("audio/ogg", ref=f"{VOICE}o_1.voice1"), b"OggS", "")
    assert body == {"type": "audio", "audio": {"id": "audio/ogg a.bin", "voice": True}}
    body = await files.shown(calls, "1", _file("text/csv"), b"a,b", "Look")
    part = {"id": "text/plain a.bin", "filename": "a.bin", "caption": "Look"}
    assert body == {"type": "document", "document": part}
    assert files.kind_of(_file("image/webp; q=1")) == ("sticker", "image/webp")
    for refused in (_file("application/zip"), _file("image/png", LARGEST["image"] + 1)):
        with pytest.raises(DeliveryRefused, match=r"a\.bin"):
            files.kind_of(refused)


def test_names_and_settings_that_cannot_work_are_refused() -> None:
    assert (
        PLATFORM.person_problem("491701234567")
        is PLATFORM.person_problem("*@106540352242922")
        is PLATFORM.person_problem("DE.15")
        is None
    )
    assert "telephone number" in (PLATFORM.person_problem("+49 170") or "")
    assert PLATFORM.place_problem("491701234567/106540352242922") is None
    assert PLATFORM.place_problem("#choir") is not None
    wrong = WhatsAppSettings(enabled=True, url="http://bot.example.org/whatsapp")
    assert [keys[0] for keys, _ in wrong.contradictions()] == ["number", "token", "secret", "url"]
    with pytest.raises(ValueError, match="not a telephone number"):
        WhatsAppSettings(number="+49170")


async def test_a_file_of_the_largest_size_is_fetched_and_no_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [LARGEST_FETCHED, LARGEST_FETCHED + 1]

    async def told(*_: Any, **__: Any) -> Any:
        return {"file_size": sizes.pop(0), "url": "https://lookaside.fbsbx.com/1"}

    async def asked(*_: Any, **__: Any) -> Answer:
        return Answer(200, {}, b"content")

    monkeypatch.setattr(GraphCalls, "__call__", told)
    monkeypatch.setattr(GraphCalls, "_asked", asked)
    calls = GraphCalls(WhatsAppSettings(token=SecretStr("t")), patience=1.0)
    assert await calls.download("7") == b"content"
    with pytest.raises(FileRefused, match="larger than"):
        await calls.download("7")


async def test_what_cannot_be_read_is_told_once_of_each_kind() -> None:
    bot = WhatsAppBot(SETTINGS, host())
    bot._accept = AsyncMock(return_value=[])
    strange = {"metadata": {"phone_number_id": "9"}}
    broken = {
        "metadata": {"phone_number_id": "1"},
        "messages": [{"type": "reaction", "from": "4917", "id": "w", "reaction": {}}],
    }
    with capture_logs() as lines:
        for value in (strange, broken, strange, broken):
            await bot._heard({"entry": [{"changes": [{"field": "messages", "value": value}]}]})
    assert [line["event"] for line in lines] == ["number_unknown", "event_unreadable"]
    assert lines[0]["number"] == "9"


@pytest.mark.parametrize(("size", "fits"), [(8, True), (9, False)])
async def test_a_download_ends_where_it_is_longer_than_may_be(
    size: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = GraphCalls(WhatsAppSettings(token=SecretStr("t")), patience=1.0)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=b"x" * size))
    monkeypatch.setattr(calls._calls, "_pool", transport)
    if fits:
        answer = await calls._asked("GET", "https://lookaside.fbsbx.com/1", "", 0.0, most=8)
        assert (answer.status, answer.content) == (200, b"x" * size)
        return
    with pytest.raises(FileRefused):
        await calls._asked("GET", "https://lookaside.fbsbx.com/1", "", 0.0, most=8)


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (200, b'{"id": "1"}', None),
        (200, b"<html>", Ambiguous),
        (400, b"<html>", AdapterError),
        (499, b"", AdapterError),
        (500, b"", Ambiguous),
        (503, b"<html>", Ambiguous),
        (200, b'{"error": {"code": 131026}}', ChatGone),
        (400, b'{"id": "1"}', DeliveryRefused),
    ],
)
async def test_what_may_have_been_sent_is_told_from_what_was_not(
    status: int, content: bytes, error: type[AdapterError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = GraphCalls(WhatsAppSettings(token=SecretStr("t")), patience=1.0)
    monkeypatch.setattr(calls._calls, "_pool", httpx.MockTransport(lambda _: httpx.Response(status, content=content)))
    if error is None:
        assert await calls("POST", "9/messages", {"a": 1}) == {"id": "1"}
        return
    with pytest.raises(AdapterError) as raised:
        await calls("POST", "9/messages", {"a": 1})
    assert type(raised.value) is error


@pytest.mark.parametrize(("status", "again"), [(499, False), (500, True), (503, True)])
def test_what_whatsapp_could_not_do_is_tried_again(status: int, again: bool) -> None:
    with pytest.raises(AdapterError) as raised:
        refuse({"code": 1_000_000, "message": "odd"}, status)
    assert isinstance(raised.value, DeliveryRefused) is not again


async def test_why_meta_cannot_be_asked_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    bot = WhatsAppBot(SETTINGS, host())
    monkeypatch.setattr(bot._subscription, "findings", Mock(side_effect=AdapterError("Meta is away")))
    (found,) = await bot.probe()
    assert (found.ok, found.detail) == (False, "Meta is away")
