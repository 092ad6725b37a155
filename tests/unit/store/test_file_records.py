"""What the writer of a file remembers of it is what the file says."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.chat import OutboundState
from gateway.store.draft import Draft
from gateway.store.kinds import OUT, ROW, Row
from gateway.store.shared.platforms import chat_name
from gateway.store.space import Space
from gateway.store.sqlite import records
from gateway.store.sqlite.connection import Connection
from tests.support.store_kit import key, outbound

Change: TypeAlias = tuple[Literal["new", "ended", "moved", "gone"], int, str]
Step: TypeAlias = tuple[list[Change], bool]  # False: its transaction is undone

steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(("new", "ended", "moved", "gone")), st.integers(0, 9), st.sampled_from("ab")),
            max_size=4,
        ),
        st.booleans() | st.just(True),
    ),
    max_size=8,
)


def change(space: Space, changes: list[Change], numbers: list[int]) -> None:
    """Put rows into chats, out of them, into another one; or drop them."""
    for what, which, chat in changes:
        if what == "new":
            numbers.append(space.number())
            space.put(ROW, row(numbers[-1], chat))
        elif numbers and what == "gone":
            space.drop(ROW, f"o{numbers[which % len(numbers)]}")
        elif numbers:
            state = OutboundState.SENT if what == "ended" else OutboundState.PENDING
            space.put(ROW, row(numbers[which % len(numbers)], chat, state))


def row(number: int, chat: str, state: OutboundState = OutboundState.PENDING) -> Row:
    """A row whose place is its number."""
    return Row(seq=number, place=number, out=outbound(f"o{number}", chat, state=state))


def seen(space: Space, numbers: list[int]) -> list[Any]:
    """Everything that a step can look at; what is asked last is remembered, too."""
    found: list[Any] = [space.get(ROW, f"o{number}") for number in numbers]
    for chat in (chat_name(key("a").address), chat_name(key("b").address)):
        for most in (9, 1, 2):
            found += [space.first(OUT, chat, most), space.last(OUT, chat, most), space.count(OUT, chat)]
            found += [space.first(OUT, chat, most, since=12), space.last(OUT, chat, most, since=11, before=14)]
    return found


@settings(max_examples=40)
@given(steps, st.booleans())
def test_the_writer_remembers_what_the_file_says(steps: list[Step], forgets: bool) -> None:
    connection = Connection(":memory:")
    connection.execute("CREATE TABLE meta(name TEXT PRIMARY KEY, value)")
    records.lay_out(connection, from_number=10)
    written = records.WrittenRecords(connection)
    numbers: list[int] = []
    most = {"_REMEMBERED": 2, "_FORGOTTEN": 2, "_MOST_SHORT": 3} if forgets else {"_MOST_SHORT": 99}
    with patch.multiple(records, **most):
        for changes, stays in steps:
            connection.execute("BEGIN")
            written.run(change, changes, numbers)
            connection.execute("COMMIT" if stays else "ROLLBACK")
            told, _ = written.run(seen, numbers)
            assert told == seen(Draft(records.FileRecords(connection)), numbers)
    connection.close()
