"""Domain objects as JSON documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from gateway.domain.chat import ChatAddress, Inbound, Source
from gateway.store.shared.documents import dumps, inbound_from, storable
from gateway.store.shared.platforms import chat_name


@given(st.text(), st.text(), st.none() | st.text())
def test_an_inbound_is_read_from_its_document(event_id: str, text: str, thread: str | None) -> None:
    source = Source(platform="p", chat=text, chat_type="thread", user=event_id, thread=thread, renamed=thread)
    inbound = Inbound(event_id=event_id, source=source, text=text, reply_to=thread, part_of=thread)
    assert inbound_from(dumps(to_builtins(inbound))) == inbound


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    storable(text).encode("utf-8")
    dumps({"x": text}).encode("utf-8")


def test_threads_of_a_chat_share_its_outbox_lane() -> None:
    one, two = (ChatAddress(platform="p", chat="c", thread=thread) for thread in ("1", None))
    assert chat_name(one) == chat_name(two)
    assert chat_name(one) != chat_name(ChatAddress(platform="p", chat="c/thread=1"))
