"""/export: the words of a conversation as a file, or where none can be shown as a message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from gateway.domain.message import Message, assistant, noted, tool_result, user
from gateway.domain.session import Session
from gateway.runtime.errors import SessionNotFound, ToolError
from tests.support.store_kit import new_session

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling


def said(number: int, message: Message, **more: Any) -> Message:
    return noted(message, id=f"{number}", at=1_700_000_000.0, **more)


EARLIER = [said(1, user("one")), said(2, assistant("One.")), said(3, tool_result("c", "the key is s3cret"))]
LATER = [
    said(4, user("notes", summary=True)),
    EARLIER[1],
    said(5, user("a part", derived_from="1")),
    said(6, user("two")),
]


class Chain:
    """A conversation that was compressed once; `ends`: how its first session ended."""

    def __init__(self, call: Calling, ends: Any = "compression") -> None:
        first = new_session("s1", end_reason=ends, title="Old")
        self.tip = new_session("s2", parent_id="s1", title="A trip, to the coast!")
        self.sessions = {"s1": first, "s2": self.tip}
        words = {"s1": EARLIER, "s2": LATER}
        call.store.tip = AsyncMock(return_value=self.tip)  # type: ignore[method-assign]
        call.store.session = AsyncMock(side_effect=self._session)  # type: ignore[method-assign]
        call.store.transcript = AsyncMock(side_effect=lambda each: words[each.id])  # type: ignore[method-assign]
        self.files = call.files

    async def _session(self, name: str) -> Session:
        if name not in self.sessions:
            raise SessionNotFound(name)
        return self.sessions[name]

    @property
    def sent(self) -> tuple[str, str, str]:
        """The name, the type and the text of the file."""
        name, mime, content = self.files.send.await_args.args
        return name, mime, content.decode("utf-8-sig")


async def test_a_file_has_the_words_before_they_were_compressed_and_no_notes(call: Calling) -> None:
    chain = Chain(call)
    told = await call("/export")
    assert told.startswith("The file holds 4 messages of “A trip, to the coast!”. /export gives")
    name, mime, text = chain.sent
    assert (name, mime) == ("a-trip-to-the-coast.md", "text/markdown")
    heads = [line.partition(" · ")[0] for line in text.splitlines() if line.startswith("**")]
    assert heads == ["**You**", "**Legato**", "**You**"]
    assert text.startswith("# A trip, to the coast!\n\n**You** · ")
    assert text.endswith("\n\ntwo\n")
    assert "s3cret" not in text
    chain.files.show.assert_awaited_once()


async def test_in_a_group_people_are_one_of_many(call: Calling) -> None:
    chain = Chain(call)
    await call("/export md", chat_type="group")
    assert "**One of you** · " in chain.sent[2]


async def test_lines_for_programs_have_results_without_secrets(call: Calling) -> None:
    chain = Chain(call)
    await call("/export JSONL")
    name, mime, text = chain.sent
    lines = [json.loads(line) for line in text.splitlines()]
    assert (name[-6:], mime) == (".jsonl", "application/jsonl")
    assert [each["content"] for each in lines] == ["one", "One.", "the key is …", "two"]
    assert {each["at"] for each in lines} == {"2023-11-14T22:13:20+00:00"}


@pytest.mark.parametrize("lost", [True, False])
async def test_what_went_before_in_another_conversation_or_is_gone_is_not_in_it(call: Calling, lost: bool) -> None:
    chain = Chain(call, "reset")
    if lost:
        del chain.sessions["s1"]
    assert "holds 2 messages" in await call("/export")
    assert "\none\n" not in chain.sent[2]


async def test_a_chain_that_leads_back_to_its_beginning_is_followed_to_an_end(call: Calling) -> None:
    chain = Chain(call)
    chain.sessions["s1"] = new_session("s1", end_reason="compression", parent_id="s2")
    assert "holds 4 messages" in await call("/export")


async def test_where_no_file_is_shown_the_text_is_unless_it_is_too_long(call: Calling) -> None:
    chain = Chain(call)
    chain.files.send.side_effect = ToolError("No files here.")
    assert (await call("/export")).startswith("# A trip")
    chain.tip = new_session("s2", parent_id="s1", title="x" * 12_000)
    call.store.tip.return_value = chain.tip  # type: ignore[attr-defined]
    told = await call("/export")
    assert told == "No files here. In a shell, `legato sessions show s2` prints the whole conversation."


async def test_other_formats_and_nothing_at_all_are_refused(call: Calling) -> None:
    assert await call("/export") == "There is nothing to export yet. Send a message first."
    assert (await call("/export pdf")).startswith("/export gives you this conversation as Markdown")
    Chain(call).tip = new_session("s2")
    call.store.transcript = AsyncMock(return_value=[])  # type: ignore[method-assign]
    assert (await call("/export")).startswith("There is nothing to export yet")
