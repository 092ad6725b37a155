"""What a turn's tools keep, show and ask in their chat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import SEVERAL, Album, Outbound
from gateway.runtime.errors import AdapterError, ToolError
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.turns.turn_files import TurnFiles, TurnPolls
from tests.support.fakes import ManualClock
from tests.support.store_kit import claimed, key

PNG = b"\x89PNG\r\n\x1a\n"


MakeOutbox = Callable[..., Outbox]


@pytest.fixture
async def files_of(store: Store, clock: ManualClock, shelf: MakeOutbox) -> Callable[..., TurnFiles]:
    """Make the files of the one turn, on a platform with these limits."""
    item = (await claimed(store)).item

    def made(attempts: int = 1, accepted_at: float = item.accepted_at, **limits: Any) -> TurnFiles:
        outbox, same = shelf(**{"file_bytes": 100} | limits), replace(item, attempts=attempts, accepted_at=accepted_at)
        return TurnFiles(item=same, store=store, outbox=outbox, clock=clock)

    return made


async def shown(store: Store) -> list[Outbound]:
    """The rows of the chat, oldest first."""
    return (await store.outbox(key().address, 50))[::-1]


async def test_a_long_result_is_kept_once_under_its_tools_name(files_of: Callable[..., TurnFiles]) -> None:
    files = files_of()
    name = await files.keep("shell", "ä" * 9)
    assert (name[:6], name[-4:], len(name)) == ("shell-", ".txt", 22)
    assert await files.keep("shell", "ä" * 9) == name
    assert await files.keep("shell", "b") != name
    kept = await files.output(name)
    assert kept is not None
    assert (kept.size, await files.content(kept)) == (18, ("ä" * 9).encode())
    assert await files.output("shell-0.txt") is None


async def test_words_of_messages_and_spoken_answers_are_not_listed(files_of: Callable[..., TurnFiles]) -> None:
    files = files_of()
    for name in ("a.txt", "b.txt"):
        await files.add(name, "text/plain", name.encode())
    for kind in ("words", "voice"):
        await files._kept(kind, f"{kind}.bin", "x/y", b"x")
    assert sorted(each.name for each in await files.listed(10)) == ["a.txt", "b.txt"]
    assert len(await files.listed(1)) <= 1


@pytest.mark.parametrize(("most", "size", "why"), [(None, 1, "Test cannot show files"), (5, 6, "at most 5")])
async def test_what_cannot_be_shown_is_refused_before_it_is_kept(
    files_of: Callable[..., TurnFiles], most: int | None, size: int, why: str
) -> None:
    files = files_of(file_bytes=most)
    with pytest.raises(ToolError, match=why):
        await files.send("a.txt", "text/plain", b"x" * size)
    assert await files.listed(10) == []
    if most:
        await files.send("a.txt", "text/plain", b"x" * most)


async def test_files_are_shown_in_albums_of_their_kind_with_their_captions(
    store: Store, files_of: Callable[..., TurnFiles]
) -> None:
    files = files_of(album=2)
    await files.send_together([(f"{n}.png", "image/png", PNG + b"%d" % n) for n in range(3)], "All three")
    await files.send("a.txt", "text/plain", b"a", "A text")
    await files.send("b.txt", "text/plain", b"b", "Another")
    await files.send("a.txt", "text/plain", b"a", "A text")
    assert await shown(store) == []
    await files.show()
    rows = await shown(store)
    assert [[each.name for each in row.files] for row in rows] == [
        ["0.png", "1.png"], ["2.png"], ["a.txt", "b.txt"],
    ]  # fmt: skip
    assert [row.text for row in rows] == ["All three", "", "A text\n\nAnother"]
    album, texts = rows[0].file, rows[2].file
    assert isinstance(album, Album)
    assert isinstance(texts, Album)
    assert (album.captions, texts.captions) == ((), ("A text", "Another"))
    await files.send("a.txt", "text/plain", b"a")
    await files.show()
    assert len(await shown(store)) == 3, "the same file is shown once"


async def test_an_attempt_after_a_crash_shows_no_file_again(store: Store, files_of: Callable[..., TurnFiles]) -> None:
    files = files_of()
    await files.send("a.txt", "text/plain", b"a")
    await files.show()
    again = files_of(attempts=2)
    for name in ("a.txt", "b.txt"):
        await again.send(name, "text/plain", b"a")
    await again.show()
    assert [row.files[0].name for row in await shown(store)] == ["a.txt", "b.txt"]


async def test_a_turn_that_ended_early_shows_what_its_tools_sent_and_nothing_older(
    store: Store, clock: ManualClock, files_of: Callable[..., TurnFiles]
) -> None:
    files = files_of()
    for name, kind in (("sent.txt", "sent"), ("kept.txt", "kept")):
        await files._kept(kind, name, "text/plain", name.encode())
    await files_of(accepted_at=clock.now() + 1).show_left()
    assert await shown(store) == []
    await files_of(accepted_at=clock.now()).show_left()
    assert [row.files[0].name for row in await shown(store)] == ["sent.txt"]


@pytest.mark.parametrize("several", [True, False])
async def test_a_poll_is_made_once_and_ended_by_its_question(
    store: Store, clock: ManualClock, shelf: MakeOutbox, several: bool
) -> None:
    outbox = shelf()
    outbox.close_poll = AsyncMock(side_effect=["Tea: 2", AdapterError("gone")])  # type: ignore[method-assign]
    polls = TurnPolls(item=(await claimed(store)).item, store=store, outbox=outbox, clock=clock)
    for _ in range(2):
        await polls.make("What?", ["Tea", "Milk"], several=several)
    (row,) = await shown(store)
    assert (row.kind, row.text) == ("poll", "What?\n1. Tea\n2. Milk")
    assert [(each.label, each.token) for (each,) in row.buttons] == [
        (name, SEVERAL if several else "") for name in ("Tea", "Milk")
    ]
    assert await polls.close("What?") == "Tea: 2"
    with pytest.raises(ToolError, match="I could not end the poll: gone"):
        await polls.close("What?")
    for question, item in (("Who?", polls.item), ("What?", replace(polls.item, key=replace(key(), user="eve")))):
        elsewhere = TurnPolls(item=item, store=store, outbox=outbox, clock=clock)
        with pytest.raises(ToolError, match="There is no poll with this question here"):
            await elsewhere.close(question)
