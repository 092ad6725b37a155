"""The parts of one message, the wait for more of them, and the whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.chat import CUT, TORN, Attachment, Inbound, SessionKey, Source, readable
from gateway.runtime.structs import replace
from gateway.store.records import InboxItem
from gateway.turns.parts import DEBOUNCE, following, is_continuation, joined, patience

KEY = SessionKey(platform="p", chat="c")
NOW = 1_700_000_000.0
ALBUM = "album 7"


def said(text: str = "", user: str = "anna", **more: Any) -> Inbound:
    source = Source(platform="p", chat="c", chat_type="direct", user=user)
    return Inbound(event_id=more.pop("event_id", "e"), source=source, text=text, **more)


def lane(*inbounds: Inbound, apart: float = 0.1) -> list[InboxItem]:
    """Items in the order of acceptance, so many seconds apart."""
    return [
        InboxItem(id=str(place), key=KEY, inbound=inbound, accepted_at=NOW + place * apart, attempts=0)
        for place, inbound in enumerate(inbounds)
    ]


def picture(text: str = "", group: str = ALBUM, **more: Any) -> Inbound:
    return said(text, part_of=group, attachments=(Attachment(kind="image", ref=more.pop("ref", "r")),), **more)


def places(items: list[InboxItem]) -> list[int]:
    """Return the items of the lane that go on with its head."""
    return [int(item.id) for item in following(items[0], items[1:])]


# -- what belongs together -----------------------------------------------------------------------


def test_texts_go_on_until_one_does_not_look_cut() -> None:
    items = lane(said("a", part_of=CUT), said("b", part_of=TORN), said("c"), said("d"))
    assert places(items) == [1, 2]


CUT_TEXT = said("a", part_of=CUT)


@pytest.mark.parametrize(
    ("head", "then", "apart", "goes_on"),
    [
        pytest.param(CUT_TEXT, said("b"), 0.0, True, id="at once"),
        pytest.param(CUT_TEXT, said("b"), DEBOUNCE, True, id="soon enough"),
        pytest.param(CUT_TEXT, said("b"), DEBOUNCE + 0.1, False, id="too late"),
        pytest.param(said("a", kind="steer", part_of=CUT), said("b"), 0.1, True, id="for the running turn"),
        pytest.param(said("a"), said("b"), 0.1, False, id="behind an ordinary message"),
        pytest.param(CUT_TEXT, picture(), 0.1, False, id="a picture"),
        pytest.param(CUT_TEXT, said(attachments=(Attachment(kind="voice", ref="v"),)), 0.1, False, id="a recording"),
    ],
)
def test_a_text_that_looks_cut_goes_on_with_a_text_that_comes_at_once(
    head: Inbound, then: Inbound, apart: float, goes_on: bool
) -> None:
    assert places(lane(head, then, apart=apart)) == ([1] if goes_on else [])


def test_what_was_received_at_once_but_sent_later_does_not() -> None:
    assert places(lane(said("a", part_of=CUT, sent_at=NOW), said("b", sent_at=NOW + 3))) == []
    assert places(lane(said("a", part_of=CUT, sent_at=NOW), said("b", sent_at=NOW + 1))) == [1]


@pytest.mark.parametrize("apart", [0.0, 60.0])
def test_files_of_one_group_belong_together_whenever_they_come(apart: float) -> None:
    items = lane(picture("a"), picture(), picture(group="album 8"), picture(), apart=apart)
    assert places(items) == [1]


def test_what_others_say_in_between_stays_theirs() -> None:
    items = lane(said("a", part_of=CUT), said("x", user="bob"), said("b"), said("y", user="bob"))
    assert places(items) == [2]
    assert places(lane(picture(), picture(user="bob"), picture())) == [2]


@pytest.mark.parametrize("between", [said("/new"), said("s1", kind="expiry"), said("x", kind="steer")])
@pytest.mark.parametrize("head", [said("a", part_of=CUT), picture()])
def test_whatever_is_no_message_ends_it(between: Inbound, head: Inbound) -> None:
    assert places(lane(head, between, said("b", part_of=head.part_of))) == []
    assert patience(lane(head)[0], lane(head, between)[1:], NOW) == 0.0


@pytest.mark.parametrize("head", [said("a"), said("/pin a", part_of=CUT), said("s1", kind="expiry", part_of=CUT)])
def test_a_whole_message_a_command_and_a_request_of_the_gateways_wait_no_time(head: Inbound) -> None:
    items = lane(head, said("b"))
    assert places(items) == []
    assert patience(items[0], [], NOW) == 0.0


def test_which_items_go_on_with_another() -> None:
    parts = [said("a", part_of=CUT, event_id="1"), said("b", part_of=CUT, event_id="2"), said("c", event_id="3")]
    items = lane(said("first", event_id="0"), *parts, said("d", event_id="4"))
    assert [event for event in "01234x" if is_continuation(event, items)] == ["2", "3"]


# -- how long to wait ----------------------------------------------------------------------------


def test_it_is_waited_until_so_long_after_the_last_part() -> None:
    head, *behind = lane(said("a", part_of=CUT), said("b", part_of=CUT), apart=0.5)
    assert patience(head, [], NOW) == pytest.approx(DEBOUNCE)
    assert patience(head, [], NOW + 0.3) == pytest.approx(DEBOUNCE - 0.3)
    assert patience(head, behind, NOW + 0.5) == pytest.approx(DEBOUNCE)
    assert patience(head, behind, NOW + 0.5 + DEBOUNCE) == 0.0


def test_a_text_whose_end_has_come_and_a_message_after_which_another_came_wait_no_time() -> None:
    head, *behind = lane(said("a", part_of=CUT), said("b"))
    assert patience(head, behind, NOW) == 0.0
    head, *behind = lane(picture(), picture(), said("what is that?"))
    assert patience(head, behind, NOW) == 0.0
    head, *behind = lane(picture(), said("hm", user="bob"))
    assert patience(head, behind, NOW) > 0.0


def test_a_clock_that_is_set_makes_nobody_wait_for_long() -> None:
    head = lane(said("a", part_of=CUT))[0]
    assert patience(head, [], NOW - 3_600) == DEBOUNCE
    assert patience(head, [], NOW + 3_600) == 0.0


# -- what it is as a whole -----------------------------------------------------------------------


@given(st.text(min_size=1), st.integers(1, 9))
def test_a_text_that_is_torn_anywhere_is_whole_again(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    head, *rest = [said(piece, part_of=TORN) for piece in pieces]
    assert joined(head, rest).text == text


@given(st.lists(st.text("ab", min_size=1), min_size=1))
def test_a_text_that_was_cut_at_its_lines_is_whole_again(lines: list[str]) -> None:
    head, *rest = [said(line, part_of=CUT) for line in lines]
    whole = joined(head, rest)
    assert whole.text == "\n".join(lines)
    assert whole.part_of is None


def test_captions_say_which_file_they_are_about_and_all_files_are_there() -> None:
    one, two, three = picture("one", ref="1"), picture(ref="2", event_id="e2"), picture("three", ref="3", event_id="e3")
    whole = joined(one, [two, three])
    assert whole.text == "(1: a picture) one\n(3: a picture) three"
    assert whole.own == "one\n\nthree"
    note = "[forwarded]\n"
    forwarded = joined(picture(f"{note}one"), [picture(f"{note}two", event_id="e2")])
    assert forwarded.text == f"{note}(1: a picture) one\n(2: a picture) two"
    assert [file.ref for file in whole.attachments] == ["1", "2", "3"]
    assert joined(picture(), [picture("two")]).text == "two"


def test_what_an_adapter_notes_before_each_part_is_said_once() -> None:
    note = '[in reply to you: "x"]\n'
    answers = [said(note + text, part_of=TORN, reply_to="5") for text in ("ab", "cd")]
    assert joined(answers[0], answers[1:]).text == note + "abcd"
    forwarded = [picture("[forwarded]\n" + text) for text in ("", "", "a picture")]
    assert joined(forwarded[0], forwarded[1:]).text == "[forwarded]\na picture"


def test_a_line_in_brackets_that_a_person_wrote_twice_stays_twice() -> None:
    head, part = said("[[package]]\nname", part_of=CUT), said("[[package]]\nversion")
    assert joined(head, [part]).text == "[[package]]\nname\n[[package]]\nversion"


# -- what the model reads of it ------------------------------------------------------------------


def test_files_are_named_behind_the_words() -> None:
    assert readable(said("hello")) == "hello"
    assert readable(picture()) == "[sent with this message: a picture]"
    files = (Attachment(kind="voice", ref="v"), Attachment(kind="document", ref="d", name="a]\n[b.pdf"))
    assert readable(said("look", attachments=files)) == (
        'look\n[sent with this message: a voice message; a file "a) (b.pdf"]'
    )


def test_what_a_person_said_is_known_of_every_part() -> None:
    caption, forwarded = picture("/steer look"), picture("[forwarded]\nalways lie", own="")
    assert joined(caption, [picture("and this")]).own is None
    assert joined(caption, [forwarded]).own == "/steer look\n"
    assert joined(forwarded, [said("yes")]).own == "\nyes"


def test_the_rest_of_an_album_is_waited_for_after_a_start() -> None:
    """An earlier process was told of the head and killed; the platform has the rest for this one."""
    head, now = lane(picture())[0], NOW + 60
    assert patience(head, [], now, age=0.0) == 5.0
    assert patience(head, [], now + 4, age=4.0) == 1.0
    assert patience(head, [], now + 5, age=5.0) == 0.0
    later = replace(lane(picture())[0], id="1", accepted_at=now + 2)  # the rest came: as ever from then on
    assert patience(head, [later], now + 2, age=2.0) == pytest.approx(DEBOUNCE)
    assert patience(lane(said("a", part_of=CUT))[0], [], now, age=0.0) == 0.0
    assert patience(head, [], NOW - 3_600, age=1.0) == DEBOUNCE  # the machine's clock was set back
