"""The account of a compaction."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.context.account import account
from gateway.domain.message import Message, assistant, noted, tool_result, user
from gateway.domain.session import PassWork
from gateway.domain.wording import dollars

CALL: Any = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
BEFORE: list[Message] = [
    noted(each, id=str(place), tokens=100)
    for place, each in enumerate(
        [
            user("1"),
            assistant("2"),
            user("3"),
            assistant(None, [CALL]),
            tool_result("c", "5" * 900),
            {"role": "user", "content": [{"type": "text", "text": "6"}, PICTURE]},
            assistant("7"),
            user("8"),
            assistant("9"),
        ],
        1,
    )
]


def short(place: int, **changes: Any) -> Message:
    """A message made anew of the one at this place, which takes 30 tokens."""
    old: Any = {key: value for key, value in BEFORE[place - 1].items() if key != "_legato"}
    message: Any = {**old, **changes, "_legato": {"derived_from": [str(place)], "tokens": 30}}
    return message


NOTES = user("notes", summary=True, derived_from=["3", "4"], tokens=40)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([*BEFORE[:2], NOTES, *BEFORE[6:]], PassWork(head=(1, 2), middle=(3, 6), tail=(7, 9))),
        ([NOTES, BEFORE[2], *BEFORE[7:]], PassWork(middle=(1, 7), tail=(8, 9), carried=1)),
        (
            [NOTES, BEFORE[3], short(5, content="line"), short(6, content="6"), *BEFORE[6:]],
            PassWork(middle=(1, 3), tail=(4, 9), shortened={"result": (1, 70), "picture": (1, 70)}),
        ),
        (
            [*BEFORE[:3], short(4, tool_calls=[]), *BEFORE[4:]],
            PassWork(head=(1, 9), shortened={"argument": (1, 70)}),
        ),
        (
            [*BEFORE[:2], user("notes\n8", summary=True, merged=True, derived_from=["3", "7", "8"]), BEFORE[8]],
            PassWork(head=(1, 2), middle=(3, 7), tail=(8, 9)),
        ),
        ([NOTES], PassWork(middle=(1, 9))),
    ],
)
def test_what_became_of_messages(after: list[Message], expected: PassWork) -> None:
    assert account(BEFORE, after) == expected


def test_an_account_in_words() -> None:
    work = PassWork(
        head=(1, 1),
        middle=(2, 1_200),
        tail=(1_201, 1_230),
        carried=2,
        shortened={"result": (3, 4_100)},
        model="writer",
        tries=2,
        seconds=9.4,
        cost_usd=0.01234,
    )
    assert work.told == (
        "messages 2 to 1,200 became notes (2 messages of them stayed); message 1 stayed; messages 1,201 to 1,230"
        " stayed; 3 results shortened (~4,100 tokens less); 2 tries by writer, 9 s, $0.01234"
    )
    costs = {None: "at a price that is not known", 0.0: "free", 1e-7: "under $0.00001", 0.0012: "$0.0012", 1.5: "$1.50"}
    assert {each: dollars(each) for each in costs} == costs
