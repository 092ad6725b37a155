"""Calls that models write into their text, as the vendors' chat templates have them."""

from __future__ import annotations

import itertools
import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.thinking import Thinking

TOOLS: Final = frozenset({"clock", "mcp_files-read", "note"})
ZONE: Final = {"zone": "Europe/Vienna", "hours": 2}
ONE: Final = [("clock", ZONE)]
TWO: Final = [("clock", ZONE), ("mcp_files-read", {})]
J: Final = '{"zone": "Europe/Vienna", "hours": 2}'

DIALECTS: Final = {
    "hermes": (f'<tool_call>\n{{"name": "clock", "arguments": {J}}}\n</tool_call>', ONE),
    "hermes, two": (
        f'<tool_call>\n{{"name": "clock", "arguments": {J}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "mcp_files-read", "arguments": {}}\n</tool_call>', TWO),
    "granite": (f'<|tool_call|>[{{"name": "clock", "arguments": {J}}}]<|/tool_call|>', ONE),
    "qwen3-coder": (
        "<tool_call>\n<function=clock>\n<parameter=zone>\nEurope/Vienna\n</parameter>\n<parameter=hours>\n2\n"
        "</parameter>\n</function>\n</tool_call>", ONE),
    "qwen3-coder, without its outer tag": (
        "<function=clock>\n<parameter=zone>\nEurope/Vienna\n</parameter>\n<parameter=hours>\n2\n"
        "</parameter>\n</function>\n</tool_call>", ONE),
    "llama 3.1, a function of its own": (f"<function=clock>{J}</function>", ONE),
    "mistral": (
        f'[TOOL_CALLS] [{{"name": "clock", "arguments": {J}}}, {{"name": "mcp_files-read", "arguments": {{}}}}]', TWO),
    "mistral, new": (f"[TOOL_CALLS]clock[ARGS]{J}[TOOL_CALLS]mcp_files-read[ARGS]{{}}", TWO),
    "mistral, with ids": (f"[TOOL_CALLS]clock[CALL_ID]abc123XYZ[ARGS]{J}", ONE),
    "mistral, name and arguments": (f"[TOOL_CALLS]clock{J}", ONE),
    "kimi": (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{J}"
        "<|tool_call_end|><|tool_call_begin|>functions.mcp_files-read:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>", TWO),
    "kimi, without a section": (
        f"<|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{J}<|tool_call_end|>", ONE),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="clock">\n<parameter name="zone">Europe/Vienna</parameter>\n'
        '<parameter name="hours">2</parameter>\n</invoke>\n<invoke name="mcp_files-read">\n</invoke>\n'
        "</minimax:tool_call>", TWO),
    "minimax m1": (f'<tool_calls>\n{{"name": "clock", "arguments": {J}}}\n</tool_calls>', ONE),
    "seed": (
        "<seed:tool_call><function=clock><parameter=zone>Europe/Vienna</parameter><parameter=hours>2</parameter>"
        "</function></seed:tool_call>", ONE),
    "nemotron": (f'<TOOLCALL>[{{"name": "clock", "arguments": {J}}}]</TOOLCALL>', ONE),
    "glm": (
        "<tool_call>clock\n<arg_key>zone</arg_key>\n<arg_value>Europe/Vienna</arg_value>\n<arg_key>hours</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>\n<tool_call>mcp_files-read\n</tool_call>", TWO),
    "deepseek v3": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n```json\n{J}\n```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>mcp_files-read\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>", TWO),
    "deepseek v3.1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>{J}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>", ONE),
    "deepseek v3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="clock">\n'
        '<｜DSML｜parameter name="zone" string="true">Europe/Vienna</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="hours" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>", ONE),
    "deepseek v4": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="note">\n'
        '<｜DSML｜parameter name="text" string="true">12</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [("note", {"text": "12"})]),
    **{
        f"deepseek, with {bars}": (
            f'<{bars}DSML{bars}tool_calls>\n<{bars}DSML{bars}invoke name="clock">\n'
            f'<{bars}DSML{bars}parameter name="zone" string="true">Europe/Vienna</{bars}DSML{bars}parameter>\n'
            f'<{bars}DSML{bars}parameter name="hours" string="false">2</{bars}DSML{bars}parameter>\n'
            f"</{bars}DSML{bars}invoke>\n</{bars}DSML{bars}tool_calls>", ONE)
        for bars in ("｜｜", "|", "||", "‖")
    },
    "deepseek, without its outer tag": (
        '<｜DSML｜invoke name="note">\n<｜DSML｜parameter name="text" string="true">a</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>", [("note", {"text": "a"})]),
    "deepseek, with spaces": (
        '<｜｜DSML｜｜ calls>\n<｜｜DSML｜｜ invoke name="note">\n'
        '<｜｜DSML｜｜ parameter name="text" string="true">a</｜｜DSML｜｜ parameter>\n'
        "</｜｜DSML｜｜ invoke>\n</｜｜DSML｜｜ calls>", [("note", {"text": "a"})]),
    "llama 3": (f'<|python_tag|>{{"name": "clock", "parameters": {J}}}<|eom_id|>', ONE),
    "llama 3, bare": (f'{{"name": "clock", "parameters": {J}}}', ONE),
    "llama 3, bare, of a type": (f'{{"type": "function", "name": "clock", "parameters": {J}}}<|eot_id|>', ONE),
    "llama 3, bare, two": (
        f'{{"name": "clock", "parameters": {J}}}; {{"name": "mcp_files-read", "parameters": {{}}}}', TWO),
    "claude": (
        '<function_calls>\n<invoke name="clock">\n<parameter name="zone">Europe/Vienna</parameter>\n'
        '<parameter name="hours">2</parameter>\n</invoke>\n</function_calls>', ONE),
    "claude, with a space of names": (
        '<@function_calls>\n<@invoke name="clock">\n<@parameter name="zone">Europe/Vienna</@parameter>\n'
        '<@parameter name="hours">2</@parameter>\n</@invoke>\n</@function_calls>'.replace("@", "ant" + "ml:"), ONE),
    "claude, without its outer tag": ('<invoke name="note">\n<parameter name="text">a < b</parameter>\n</invoke>',
                                      [("note", {"text": "a < b"})]),
    "cohere": (
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "clock", "parameters": {J}}}]<|END_ACTION|>', ONE),
    "harmony": (
        f"<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{J}<|call|>", ONE),
    "harmony, the role calls": (
        f"<|start|>assistant to=functions.clock<|channel|>commentary<|message|>{J}<|call|>", ONE),
}  # fmt: skip
BESIDE: Final = [name for name in DIALECTS if "bare" not in name and "harmony" not in name]


def read(text: str, *cuts: int) -> tuple[str, str, list[tuple[str, object]]]:
    """(words, thoughts, calls) of a text that comes in pieces."""
    thinking = Thinking(tools=TOOLS)
    parts = [thinking.feed(text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)])] + [thinking.flush()]
    words, thoughts = ("".join(each) for each in zip(*parts, strict=True))
    return words, thoughts, [(name, json.loads(arguments)) for name, arguments in thinking.calls]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_runs_in_every_dialect_and_nothing_of_it_is_shown(dialect: str) -> None:
    text, calls = DIALECTS[dialect]
    for size in (1, 2, 7, 100_000):
        assert read(text, *range(size, len(text), size)) == ("", "", calls)
    assert read(f"<think>hm</think>\n\n{text}") == ("", "hm", calls)


@pytest.mark.parametrize("dialect", BESIDE)
def test_words_before_a_call_are_shown_as_they_come(dialect: str) -> None:
    text, calls = DIALECTS[dialect]
    thinking = Thinking(tools=TOOLS)
    assert thinking.feed("I look at it.") == ("I look at it.", "")
    assert read(f"I look at it.\n\n{text}") == ("I look at it.\n\n", "", calls)
    if text.startswith(("<｜", "<|", "<‖", "[")):  # one token, which stands anywhere
        assert read(f"I look at it {text}") == ("I look at it ", "", calls)


@given(dialect=st.sampled_from(BESIDE), data=st.data())
def test_half_a_call_is_neither_shown_nor_kept(dialect: str, data: st.DataObject) -> None:
    """An answer that the output limit cut off within its first call."""
    text, calls = DIALECTS[dialect]
    mark = min(len(text) - 1, 12)
    words, thoughts, found = read("Well.\n" + text[: data.draw(st.integers(mark, len(text)))])
    assert (words, thoughts) == ("Well.\n", "")
    assert found == calls[: len(found)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_of_a_tool_that_was_not_offered_is_text(dialect: str) -> None:
    text, _ = DIALECTS[dialect]
    if "harmony" in dialect:
        return
    foreign = (
        text.replace("clock", "get_weather").replace("note", "get_weather").replace("mcp_files-read", "web_search")
    )
    for asked in (foreign, f"It looks like this:\n{foreign}\nThat is all.", f"So: {foreign}"):
        words, thoughts, calls = read(asked)
        assert (thoughts, calls) == ("", [])
        assert "".join(words.split()) == "".join(asked.split())


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "around", ["```\n{}\n```\n", "~~~xml\n{}\n~~~\n", "````md\n```\n{}\n```\n````\n", "- `{}` is one"]
)
def test_nothing_runs_in_code(dialect: str, around: str) -> None:
    text = DIALECTS[dialect][0].replace("```json", "").replace("```", "")
    asked = "Hermes writes:\n\n" + around.format(text.replace("\n", " ") if "is one" in around else text)
    assert read(asked) == (asked, "", [])


@pytest.mark.parametrize(
    "text",
    [
        'A tool call in Hermes\' format: <tool_call>{"name": "clock", "arguments": {}}</tool_call> stands in a line.',
        "Write <function=clock> and </function> around it.",
        "[TOOL_CALLS] is the mark of Mistral.",
        "<tool_call> is the tag, and the name stands behind it.",
        '{"name": "clock", "price": 3}',
        '{"name": "Anna", "parameters": {"age": 3}}',
        '{"name": "clock", "arguments": {}} would be the call.',
        "[1, 2, 3]",
        "{",
    ],
)
def test_words_about_calls_are_words(text: str) -> None:
    for size in (1, 5, 1_000):
        assert read(text, *range(size, len(text), size)) == (text, "", [])


def test_a_model_without_tools_calls_nothing() -> None:
    text, _ = DIALECTS["hermes"]
    thinking = Thinking()
    assert (thinking.feed(text)[0] + thinking.flush()[0], thinking.calls) == (text, [])


@pytest.mark.parametrize(
    ("text", "words", "thoughts"),
    [
        ("<THINK>hm</THINK>Yes.", "Yes.", "hm"),
        ("<Think>hm</think>\nYes.", "Yes.", "hm"),
        ("<reasoning>hm</reasoning>Yes.", "Yes.", "hm"),
        ("<think>a</think>\n\n<think>b</think>\n\nYes.", "Yes.", "ab"),
        ("<think>a</think>\nFirst.\n<think>b</think>\nSecond.", "First.\nSecond.", "ab"),
        ("hm\n</THINK>\n\nYes.", "Yes.", "hm\n"),
        (
            "<think>a</think>Tags: `<think>`, and\n```\n<think>\n```\nend",
            "Tags: `<think>`, and\n```\n<think>\n```\nend",
            "a",
        ),
        ("Tags:\n<think>x</think>\nend", "Tags:\n<think>x</think>\nend", ""),
    ],
)
def test_thoughts_between_further_tags(text: str, words: str, thoughts: str) -> None:
    for size in (1, 4, 1_000):
        thinking = Thinking(tools=TOOLS)
        said = thought = ""
        for piece in [*(text[at : at + size] for at in range(0, len(text), size)), None]:
            told = thinking.flush() if piece is None else thinking.feed(piece)
            said = "" if thinking.void else said
            thinking.void = False
            said, thought = said + told[0], thought + told[1]
        assert (said, thought) == (words, thoughts), size


def test_many_marks_in_a_long_text_are_read_in_a_line() -> None:
    thinking = Thinking(tools=TOOLS)
    for _ in range(20_000):
        thinking.feed("`<tool_call>` and ")
    assert thinking.flush() == ("", "")
