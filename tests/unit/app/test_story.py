"""Which versions of messages stand, and what tools did, told from transcripts alone."""

from __future__ import annotations

import json

import pytest

from gateway.app.story import story_of
from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, assistant, noted, tool_result, user
from gateway.domain.session import EndReason, Session
from gateway.domain.views import Branch

KEY = SessionKey(platform="web", chat="me")


def session(id_: str, at: float, parent: str | None = None, ended: EndReason | None = None) -> Session:
    return Session(
        id=id_,
        key=KEY,
        chat_type="direct",
        parent_id=parent,
        started_at=at,
        model="m",
        system_prompt="",
        ended_at=None if ended is None else at + 1,
        end_reason=ended,
        last_active_at=at,
    )


def said(name: str, answer: str = "") -> list[Message]:
    return [user(f"words {name}", id=name, event=f"e-{name}"), assistant(answer or f"to {name}", id=f"a-{name}")]


def redact(text: str) -> str:
    return text.replace("secret", "***")


def test_the_newest_session_says_which_versions_stand_also_behind_a_compaction() -> None:
    first, second, edited, later = said("1"), said("2"), said("2b"), said("3")
    summary = user("notes", id="n", summary=True)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "a secret"}'}}
    asked = user("words 4", id="4", event="e-4")
    looked = [
        asked,
        assistant("I look.\n", [call, {**call, "id": "d"}], id="t"),
        tool_result("c", "the secret", id="r"),
    ]
    transcripts: dict[str, list[Message]] = {
        "s1": [*first, *second],
        "s2": [*first, *edited],
        "s3": [summary, noted(edited[0], id="2b'", derived_from=["2b"]), edited[1], *later, *looked],
        "other": said("9"),
    }
    sessions = [
        session("other", 9),
        session("s3", 3, "s2"),
        session("s2", 2, "s1", "compression"),
        session("s1", 1, None, "undone"),
    ]
    story = story_of(sessions, transcripts, redact)
    assert story.hidden == {"e-2"}
    assert story.branches["e-2b"] == Branch(number=2, of=2, before="s1", after=None)
    assert {"e-1", "e-3", "e-9"}.isdisjoint(story.branches)
    deed, beside = story.deeds["e-4"]
    assert (deed.tool, deed.arguments, deed.result) == ("look", "at: a ***", "the ***")
    assert deed.told == "used look: a ***"
    assert (deed.words, beside.words) == ("I look.", "")


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("exit code 1\nno", True),
        ("Error: no such file", True),
        ("ended by signal 9", True),
        ("exit code 0\nError: x", False),
    ],
)
def test_a_result_says_whether_its_tool_failed(result: str, failed: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    said_so = [user("run it", id="1", event="e-1"), assistant("", [call], id="t"), tool_result("c", result, id="r")]
    (deed,) = story_of([session("s1", 1)], {"s1": said_so}, redact).deeds["e-1"]
    assert deed.failed is failed


def test_what_is_cut_has_lost_its_secrets_before() -> None:
    begin = "x" * 3_997
    arguments = json.dumps({"at": f"{begin}secret and more", "all": [f"{begin}secret"]})
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}
    long = "secret " * 2_000
    for result in (f"{begin}secret and more", f"{long[:7_997]}secret"):
        messages = [
            user("words", id="1", event="e-1"),
            {**assistant("", [call], id="t"), "reasoning_content": f"{begin}secret"},
            tool_result("c", result, id="r"),
        ]
        (deed,) = story_of([session("s1", 1)], {"s1": messages}, redact).deeds["e-1"]
        for shown in (deed.arguments, deed.result or "", deed.thoughts):
            assert "se" not in shown.replace(" characters", ""), shown[-60:]


def test_what_was_thought_stands_before_a_call_or_alone() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    called, answered = assistant("", [call], id="t"), assistant("done", id="a")
    messages = [
        user("words", id="1", event="e-1"),
        {**called, "reasoning_content": "the secret first"},
        tool_result("c", "seen", id="r"),
        {**answered, "reasoning_content": "now I know"},
    ]
    deeds = story_of([session("s1", 1)], {"s1": messages}, redact).deeds["e-1"]
    assert [(each.tool, each.thoughts) for each in deeds] == [("look", "the *** first"), ("", "now I know")]


def test_an_edit_has_versions_at_the_question_and_another_answer_has_them_at_the_answer() -> None:
    transcripts: dict[str, list[Message]] = {
        "s1": [user("pears", id="1", event="e-1"), assistant("one", id="a1")],
        "s2": [user("pears", id="2", event="e-2"), assistant("two", id="a2")],
        "s3": [user("plums", id="3", event="e-3"), assistant("three", id="a3")],
        "s4": [user("pears", id="1", event="e-1"), assistant("one", id="a1")],
    }
    parents = {"s1": None, "s2": "s1", "s3": "s2", "s4": "s1"}
    made = [session(each, at, parents[each], "undone") for at, each in enumerate(transcripts, 1)]
    story = story_of(made, transcripts, redact)
    assert story.branches == {"e-1": Branch(number=1, of=2, before=None, after="s3")}
    assert story.answers == {"e-1": Branch(number=1, of=2, before=None, after="s2")}
    story = story_of(made[:3], transcripts, redact)
    assert story.branches == {"e-3": Branch(number=2, of=2, before="s2", after=None)}
    assert story.answers == {}


def test_until_the_next_message_what_is_asked_again_is_known() -> None:
    transcripts = {"s1": [*said("1"), *said("2")], "s2": said("1")}
    story = story_of([session("s2", 2, "s1"), session("s1", 1, None, "undone")], transcripts, redact)
    assert (story.forked, story.asked_again, story.hidden) == (True, "words 2", {"e-2"})
    alone = story_of([session("s1", 1)], transcripts, redact)
    assert (alone.forked, alone.asked_again) == (False, "words 2")
