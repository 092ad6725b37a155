"""Thoughts that come inside the text are told apart, however the text is cut."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.thinking import Thinking


def split(*pieces: str) -> tuple[str, str]:
    thinking = Thinking()
    parts = [thinking.feed(piece) for piece in pieces] + [thinking.flush()]
    return "".join(text for text, _ in parts), "".join(thought for _, thought in parts)


CASES = [
    ("Just text.", ("Just text.", "")),
    ("<think>hm</think>\n\nYes.", ("Yes.", "hm")),
    ("\n<think>\nhm\n</think>Yes.", ("Yes.", "\nhm\n")),
    ("<think></think>Yes.", ("Yes.", "")),
    ("<think>never closed", ("", "never closed")),
    ("<think>a < b </thin x</think>c", ("c", "a < b </thin x")),
    ("<thinking about it", ("<thinking about it", "")),
    ("<thi", ("<thi", "")),
    ("The tag <think>x</think> is text here.", ("The tag <think>x</think> is text here.", "")),
    ("<think>a</think>b <think>c</think>", ("b <think>c</think>", "a")),
    ("  indented", ("  indented", "")),
    ("", ("", "")),
]


@pytest.mark.parametrize("pieces", [lambda text: [text], list], ids=["whole", "letter by letter"])
def test_thoughts_at_the_beginning_are_split_off(pieces: Callable[[str], list[str]]) -> None:
    wrong = [
        f"{text!r} is split into {found}" for text, expected in CASES if (found := split(*pieces(text))) != expected
    ]
    assert not wrong, "\n".join(wrong)


@given(case=st.sampled_from(CASES), data=st.data())
def test_cut_anywhere(case: tuple[str, tuple[str, str]], data: st.DataObject) -> None:
    text, expected = case
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    assert split(*(text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)]))) == expected


TOOLS = frozenset({"clock", "files.read"})


def told(*pieces: str, unopened: bool = False) -> tuple[str, str, list[tuple[str, str]]]:
    """(words that stay, thoughts, calls): text that turns out to be thoughts is taken back."""
    thinking = Thinking(unopened=unopened, tools=TOOLS)
    words = thoughts = ""
    for piece in (*pieces, None):
        text, thought = thinking.flush() if piece is None else thinking.feed(piece)
        if thinking.void:
            words, thinking.void = "", False
        words, thoughts = words + text, thoughts + thought
    return words, thoughts, thinking.calls


CLOCK = [("clock", '{"zone": "UTC"}')]
FURTHER = [
    # the closing tag alone: the template has the opening one
    ("I should greet.\n</think>\n\nHello.", ("Hello.", "I should greet.\n", [])),
    ("I should greet.</think>\nHello.", ("Hello.", "I should greet.", [])),
    ("</think>\n\nHello.", ("Hello.", "", [])),
    ("thought</think>answer", ("answer", "thought", [])),
    ("So it is 4.</think>4", ("4", "So it is 4.", [])),
    ("我应该打招呼。</think>你好。", ("你好。", "我应该打招呼。", [])),
    ("only thoughts\n</think>", ("", "only thoughts\n", [])),
    ("a\n</think>\n\nb\n</think>\n\nc", ("b\n</think>\n\nc", "a\n", [])),
    # other tags
    ("[THINK]hm[/THINK]Hello.", ("Hello.", "hm", [])),
    ("<thinking>hm</thinking>\nHello.", ("Hello.", "hm", [])),
    ("◁think▷hm◁/think▷Hello.", ("Hello.", "hm", [])),
    # channels
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
     ("Hello.", "hm", [])),
    ("<|start|>assistant<|channel|>final<|message|>Hello <b>.", ("Hello <b>.", "", [])),
    ("<|channel|>analysis<|message|>hm", ("", "hm", [])),
    ('<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.clock '
     '<|constrain|>json<|message|>{"zone": "UTC"}<|call|>', ("", "hm", CLOCK)),
    ("analysisWe greet.assistantfinalHello.", ("Hello.", "We greet.", [])),
    ("analysis of the text", ("analysis of the text", "", [])),
    # calls as text
    ('<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>', ("", "", CLOCK)),
    ('I look.\n<tool_call>{"name": "clock", "arguments": "{\\"zone\\": \\"UTC\\"}"}</tool_call>',
     ("I look.\n", "", CLOCK)),
    ("<think>hm</think><tool_call>\n<function=clock>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>",
     ("", "hm", CLOCK)),
    ('<tool_call>{"name": "clock", "arguments": {"zone": "UTC"}}', ("", "", CLOCK)),
    ('<tool_call>{"name": "clock", nobody reads this}</tool_call>Hello.', ("Hello.", "", [])),
]  # fmt: skip
TEXTS = [
    "The mark `</think>` closes thoughts.",
    "Templates end with </think> and then go on.",
    "They write a <think>thought</think>answer into it.",
    "It closes (</think>) them, or '</think>'.",
    "Like so:\n```\nhm\n</think>\n\nHello.\n```\nDone.",
    "A line with <tool_call>{} in it",
    "Write it so:\n<tool_call> and then the name",
    "```xml\n<tool_call>\n{}\n</tool_call>\n```",
    "a < b, c <|d|> e, [THIN",
    "<t",
    "<|chan",
    "analysis",
]


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_what_nobody_should_read(size: int) -> None:
    wrong = []
    for text, expected in [*FURTHER, *((text, (text, "", [])) for text in TEXTS)]:
        found = told(*(text[at : at + size] for at in range(0, len(text), size)))
        if found != expected:
            wrong.append(f"{text!r} is split into {found}")
    assert not wrong, "\n".join(wrong)


def test_of_a_model_that_begins_with_thoughts_nothing_of_them_is_said() -> None:
    thinking = Thinking(unopened=True)
    assert [thinking.feed(piece) for piece in ("I should", " greet.\n</th", "ink>\n\nHel", "lo.")] == [
        ("", ""), ("", ""), ("Hel", "I should greet.\n"), ("lo.", "")
    ]  # fmt: skip
    assert thinking.unopened
    assert told("Hello", " there", unopened=True) == ("Hello there", "", [])
    assert told("<think>hm", "</think>Hello", unopened=True) == ("Hello", "hm", [])


def test_thoughts_beside_the_text_end_the_waiting() -> None:
    thinking = Thinking(unopened=True)
    thinking.apart()
    assert thinking.feed("Hello") == ("Hello", "")


def test_letters_of_a_long_call_are_not_read_again_and_again() -> None:
    thinking = Thinking(tools=TOOLS)
    thinking.feed('<tool_call>{"name": "clock", "arguments": {"zone": "')
    for _ in range(200_000):
        thinking.feed("abc")
    thinking.feed('"}}</tool_call>')
    assert len(thinking.calls[0][1]) > 600_000
