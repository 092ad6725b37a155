"""The offline model: honest, deterministic, and useful enough to try everything else with."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.files.kinds import read
from gateway.agent.files.message import Reader, Received, with_files
from gateway.agent.waking import FRAME
from gateway.app import heartbeat
from gateway.commands.turn import GO_ON
from gateway.domain.chat import Attachment, Inbound, KeptFile, SessionKey, Source
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.domain.notes import SUMMARY_REQUEST
from gateway.providers.base import Completed, ModelRequest, ModelSpec, TextDelta
from gateway.providers.offline.model import Offline, words
from gateway.providers.offline.notes import memories
from gateway.providers.offline.replies import answer

SPEC = ModelSpec(provider="offline", name="offline")
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in ("clock", "todo", "search_history", "send_file")
]
SYSTEM: Message = {"role": "system", "content": "You are Legato."}


def count(text: str) -> int:
    return len(text.split())


def said(*texts: str) -> list[Message]:
    """A conversation in which a person said `texts`, each but the last answered."""
    messages: list[Message] = [SYSTEM]
    for text in texts:
        messages += [user(text), assistant("I see.")]
    return messages[:-1]


def reply(*texts: str, tools: Any = TOOLS) -> str:
    return answer(said(*texts), tools).text


async def complete(messages: list[Message], **more: Any) -> Completed:
    request = ModelRequest(messages=messages, **more)
    events = [event async for event in Offline(count).stream(SPEC, request)]
    last = events[-1]
    assert isinstance(last, Completed)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.text
    return last


def test_the_first_greeting_says_what_it_is_and_what_to_try() -> None:
    text = reply("Hello!")
    assert text.startswith("Hello!")
    assert "offline model" in text
    assert "legato init" in text


@pytest.mark.parametrize("asked", [["Hello!"], ["search the web for tea"], ["so", "so", "so"], ["so", "so"], ["so"]])
def test_it_says_where_a_real_model_or_a_search_is_set_up_without_a_shell(asked: list[str]) -> None:
    told = reply(*asked)
    assert ("under Settings on the page" in told) is ("Try “" not in told)


@pytest.mark.parametrize("question", ["What is my favourite colour?", "what's my favourite colour"])
def test_it_knows_what_stands_in_its_prompt(question: str) -> None:
    assert "dark green" in reply("My favourite colour is dark green.", "blah", question)


def test_the_newest_statement_counts_and_a_question_is_none() -> None:
    assert "Rome" in reply("my city is Graz", "what is my city", "my city is Rome", "what is my city?")


def test_it_reads_summaries_too() -> None:
    summary: Message = {
        "role": "assistant",
        "content": "## Critical Context\n- my dog is Rex",
        "_legato": {"summary": True},
    }
    assert "Rex" in answer([SYSTEM, user("x"), summary, user("what is my dog?")], TOOLS).text


def test_what_it_does_not_know_it_looks_up_or_admits() -> None:
    found = answer(said("what is my city?"), TOOLS)
    assert [(call.tool, call.arguments) for call in found.calls] == [("search_history", {"words": "city"})]
    assert "not told me" in reply("what is my city?", tools=())


def test_what_was_asked_before() -> None:
    assert "first thing" in reply("what did I ask before?")
    assert reply("one", "two", "what did I ask before?").splitlines()[-2:] == ["1. one", "2. two"]
    assert "one" in reply("one", "two", "what was my first question?")
    assert "two" in reply("one", "two", "what did I just say?")


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("What time is it?", ("clock", {})),
        ("what's the date in Europe/Vienna?", ("clock", {"timezone": "Europe/Vienna"})),
        ("add buy milk to my to-do list", ("todo", {})),
        ("search the history for blue whales", ("search_history", {"words": "blue whales"})),
        ('call todo {"items": [{"text": "a"}]}', ("todo", {"items": [{"text": "a"}]})),
        ("CALL clock", ("clock", {})),
        ("Write a file a.txt: one\ntwo", ("send_file", {"name": "a.txt", "content": "one\ntwo\n"})),
    ],
)
async def test_tools_on_request(request_text: str, expected: tuple[str, dict[str, Any]]) -> None:
    completed = await complete([SYSTEM, user(request_text)], tools=TOOLS)
    (call,) = completed.tool_calls
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == expected
    assert completed.stop == "tool_calls"


def test_it_says_that_it_sees_nothing() -> None:
    note = '[sent with this message: a picture "a.jpg", which you cannot be shown: this model takes no pictures]'
    assert reply(f"what time is it?\n{note}").startswith("I read words only, so I can neither see nor hear your file.")
    assert "under Settings on the page" in reply(f"what time is it?\n{note}")


def test_of_a_document_it_says_what_is_in_it() -> None:
    content, key = b"Tea is at five. Bring cake.\n", SessionKey(platform="telegram", chat="1")
    source = Source(platform="telegram", chat="1", chat_type="private", user="1")
    file = Attachment(kind="document", name="tea.txt", ref="r", size=len(content))
    inbound = Inbound(event_id="e", source=source, text="", attachments=(file,))
    kept = KeptFile(ref="r", digest="d", name="tea.txt", mime="text/plain", size=len(content), at=0.0)
    reader = Reader(window=32_000, sees=False, sounds=(), count=len, image_tokens=1)
    given_ = Received(attachment=file, kept=kept, reading=read(content, "text/plain", 1_000))
    told = answer([SYSTEM, with_files(key, inbound, [given_], reader)], TOOLS).text
    assert told.startswith('I was given a file "tea.txt". That is a text of 6 words, 28 characters.')
    assert "It begins: “Tea is at five.”" in told
    assert "instruction" not in told


@pytest.mark.parametrize(
    ("request_text", "result", "told"),
    [
        (
            "what is my dog?",
            "Nothing was found for 'dog'.",
            "You have not told me what your dog is. Say “My dog is …” and I will know.",
        ),
        (
            "search the history for cats",
            "Nothing was found for 'cats'.",
            "I looked through everything that was said here and found nothing.",
        ),
        ("search the history for cats", "2026, user: cats", "I found this in what was said:\n\n2026, user: cats"),
        ("write a file a.txt: x", "Error: `name` is too long; shorten it", "That did not work: `name` is too long."),
        ('call todo {"items": []}', "Nothing is on the list.", "The tool `todo` answered:\n\nNothing is on the list."),
    ],
)
async def test_what_a_tool_returned_is_told_as_to_a_person(request_text: str, result: str, told: str) -> None:
    asked = [SYSTEM, user(request_text)]
    calls = (await complete(asked, tools=TOOLS)).tool_calls
    step = [assistant("", calls), tool_result(calls[0]["id"], result)]
    assert answer([*asked, *step], TOOLS).text == told


def test_several_calls_at_once() -> None:
    made = answer(said('call clock {"timezone": "UTC"}\ncall todo'), TOOLS).calls
    assert [call.tool for call in made] == ["clock", "todo"]


def test_calls_that_cannot_be_made_are_explained() -> None:
    assert "no tool `nope`" in reply("call nope")
    assert "not JSON" in reply("call clock {zone}")
    assert "I have none here" in reply("what time is it?", tools=())


def test_an_item_is_added_to_the_list_that_is_there() -> None:
    ask = "add buy milk to my to-do list"
    look = assistant(None, [{"id": "c1", "type": "function", "function": {"name": "todo", "arguments": "{}"}}])
    step = [SYSTEM, user(ask), look, tool_result("c1", "[ ] water plants\n[x] sleep")]
    (call,) = answer(step, TOOLS).calls
    items = [
        {"text": "water plants", "status": "open"},
        {"text": "sleep", "status": "done"},
        {"text": "buy milk", "status": "open"},
    ]
    assert call.arguments == {"items": items}
    arguments = json.dumps(call.arguments)
    write = assistant(None, [{"id": "c2", "type": "function", "function": {"name": "todo", "arguments": arguments}}])
    done = answer([*step, write, tool_result("c2", "[ ] buy milk")], TOOLS)
    assert done.calls == ()
    assert "[ ] buy milk" in done.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("say hello world", "hello world"),
        ("count to 5", "1 2 3 4 5"),
        ("What is 7/2?", "7/2 = 3.5"),
        ("12 * 30 =", "12 * 30 = 360"),
    ],
)
def test_small_favours(text: str, expected: str) -> None:
    assert reply(text) == expected


def test_anything_else_is_quoted_with_a_hint() -> None:
    first, second = reply("purple monkey"), reply("hi", "purple monkey")
    assert "purple monkey" in first
    assert first != second


def test_what_no_person_said_is_answered_as_such() -> None:
    event = FRAME.format(
        what="an event came from house", task=" Tell what matters.", mark="a1", text="What time is it?"
    )
    assert reply(event).startswith("I read “What time is it?”. A real model would now ")
    look = heartbeat.TASK.format(now="Monday", file=heartbeat.FILE, text="What time is it?", due="(nothing)")
    assert reply(look) == "NOTHING"


def test_a_long_text_gets_its_gist() -> None:
    text = reply("The harbour opened at dawn. " + "Whales swam past the harbour wall. " * 60)
    assert "The harbour opened at dawn." in text
    assert "characters" in text


def test_the_speakers_name_is_not_part_of_the_request() -> None:
    assert reply("[Anna] say hello") == "hello"


MATERIAL = f"""{SUMMARY_REQUEST}
Keep notes.
## Active Task
the newest request
## Goal
what for
## Completed Actions
numbered
## Relevant Files
paths
## Critical Context
the rest
"""
TASK = """Your notes so far:
<previous-notes>
## Goal
Ship the harbour page
## Completed Actions
1. terminal: cloned
</previous-notes>

<conversation>
[user] My deadline is Friday.
[assistant calls read_file] {"path": "docs/plan.md"}
[result of read_file] 47 lines
[user Anna] Fix the tide table, please.
</conversation>

Write at most 300 tokens (about 225 words). Write the notes now."""


async def test_a_summary_is_extracted_in_the_given_sections() -> None:
    completed = await complete([{"role": "system", "content": MATERIAL}, user(TASK)], max_tokens=400)
    text = completed.text
    assert text.startswith("## Active Task\nFix the tide table, please.")
    assert "Ship the harbour page" in text
    assert "1. terminal: cloned\n2. read_file: 47 lines" in text
    assert "docs/plan.md" in text
    assert "My deadline is Friday." in text
    assert "Resolved Questions" not in text
    assert completed.stop == "stop"


async def test_what_a_request_says_about_gaps_is_nobodys_words() -> None:
    gaps = (
        "[12 older messages did not fit here]\n[user] Fix it.\n[3 messages between these did not fit here]\n[user] Go."
    )
    completed = await complete(
        [{"role": "system", "content": MATERIAL}, user(f"<conversation>\n{gaps}\n</conversation>")]
    )
    assert "Fix it." in completed.text
    assert "did not fit" not in completed.text


async def test_a_summary_keeps_to_its_size() -> None:
    turns = "\n".join(f"[user] Request number {n} about file{n}.txt\n[assistant] Done with {n}." for n in range(400))
    task = f"<conversation>\n{turns}\n</conversation>\nWrite at most 200 tokens."
    completed = await complete([{"role": "system", "content": MATERIAL}, user(task)])
    assert 100 < len(completed.text) <= 200 * 4
    assert "Request number 399" in completed.text


async def test_a_summary_of_chinese_keeps_to_its_size_too() -> None:
    turns = "\n".join(f"[user] 请把第{n}个文件改好，然后告诉我结果是什么。\n[assistant] 好的。" for n in range(300))
    task = f"<conversation>\n{turns}\n</conversation>\nWrite at most 300 tokens."
    model = Offline(len)  # a token for every character
    request = ModelRequest(messages=[{"role": "system", "content": MATERIAL}, user(task)], max_tokens=300)
    *_, completed = [event async for event in model.stream(SPEC, request)]
    assert isinstance(completed, Completed)
    assert completed.stop == "stop"
    assert "第299个文件" in completed.text


def test_the_same_transcript_gets_the_same_answer() -> None:
    assert reply("hm", "what?") == reply("hm", "what?")


async def test_stored_token_counts_are_believed() -> None:
    completed = await complete([user("hello there", tokens=1_000)])
    assert completed.usage is not None
    assert completed.usage.prompt_tokens == 1_000


async def test_a_pause_between_words_for_those_who_watch() -> None:
    pauses = 0

    async def pause() -> None:
        nonlocal pauses
        pauses += 1

    model = Offline(count, pause=pause)
    async for _ in model.stream(SPEC, ModelRequest(messages=[user("count to 7")])):
        pass
    assert pauses == 7


@given(st.text(max_size=80))
def test_words_join_to_the_text(text: str) -> None:
    assert "".join(words(text)) == text
    assert all(words(text))


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), st.text(max_size=40)), max_size=6))
def test_it_has_an_answer_to_every_transcript(turns: list[tuple[Any, str]]) -> None:
    made = answer([{"role": role, "content": text} for role, text in turns], TOOLS)
    assert made.text or made.calls


def test_what_continue_sends_is_not_read_out() -> None:
    told = answer([SYSTEM, user(GO_ON)], TOOLS).text
    assert told == "My last answer was whole: I never stop in the middle of one."


def test_only_news_is_to_be_remembered() -> None:
    known = "<memory>\n- 2026-01-02: Cat: Minka\n- 2026-01-02: City: Graz\n</memory>"
    said = (
        "<conversation>\n[1] person: my cat is Minka. My city is Wien now, I think. My dog is Rex\n"
        "[2] person: What is my bike is red?\n[3] assistant: my hat is old\n</conversation>"
    )
    person = {"action": "add", "about": "person"}
    assert memories([user(known), user(said)]) == [
        {"action": "replace", "fact": "City: Graz", "text": "City: Wien", "message": 1},
        {**person, "text": "Dog: Rex", "message": 1},
    ]
