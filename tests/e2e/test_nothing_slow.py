"""No text that the size limits let in holds up the event loop: messages, answers, calls, files, searches."""

from __future__ import annotations

import gc
import json
import re
import threading
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from gateway.providers.errors import classify
from gateway.providers.openai.answer import ChatAnswer
from gateway.providers.plugin import ModelSettings
from gateway.runtime.patterns import Pattern
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.support.gateway import FakeModel, Gate, Say, config_in, in_turn, running
from tests.support.watchdog import nothing_slow

SIZE: Final = 40_000  # characters of a message of several parts, or of a long answer
UNITS: Final = {
    "headings": "# a\n",
    "stars": "*a**b",
    "words": "w1 x2 y3 ",
    "chinese": "界面密码",
    "passwords": "password=",
    "speakers": "\n[Anna] ",
    "percent": "%25",
    "escapes": "\x1b[1m",
    "info": "```a=b,",
    "marks": "\u0301\u0316",
    "table": "|a|b|\n|-|-|\n",
}


def quick(values: Iterable[str], *names: str) -> list[Any]:
    """The values, of which these are for every run and the others for the night's."""
    return [each if each in names else pytest.param(each, marks=pytest.mark.slow) for each in values]


@pytest.mark.parametrize("name", quick(UNITS, "headings", "chinese", "passwords", "marks", "table"))
async def test_no_message_and_no_answer_holds_up_the_loop(tmp_path: Path, name: str) -> None:
    text = UNITS[name] * (SIZE // len(UNITS[name]))
    search = json.dumps({"query": text})
    model = FakeModel(in_turn(Say(text=text, calls=[("search_history", search)]), Say(text=text)))
    async with running(tmp_path, model=model) as live:
        await live.ask("hello")
        with nothing_slow():
            await live.ask(text)
            await live.ask(f"/recall {text}")
            await live.ask(f"/pin {text}")
            await live.ask("/retry")


async def test_marks_are_put_in_order_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes quadratic time: 4,000 marks upon one letter take as long as a thousand messages."""
    lengths, normalize = list[int](), unicodedata.normalize

    def noted(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
        lengths.append(0 if text.isascii() else len(text))
        return normalize(form, text)

    text = UNITS["marks"] * 2_000
    model = FakeModel(in_turn(Say(text=text, calls=[("search_history", json.dumps({"query": text}))]), Say(text=text)))
    async with running(tmp_path, model=model) as live:
        monkeypatch.setattr(unicodedata, "normalize", noted)
        for said in (text, f"/recall {text}", f"/pin {text}", f"/remind {text}", f"/memory {text}", "/retry"):
            await live.ask(said)
    assert len(lengths) > len(text) // 1_000
    assert max(lengths) <= 600


async def test_long_texts_are_counted_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, counted, count, gate = threading.get_ident(), list[int](), TokenCounter.text, Gate()

    def text(counter: TokenCounter, said: str) -> int:
        if threading.get_ident() == here:
            counted.append(len(said))
        return count(counter, said)

    long = " ".join(f"a long story {number}" for number in range(3_000))
    model = FakeModel(in_turn(Say(text="go on"), Say(text=long), Say(first=long, gate=gate)))
    wide = ModelSettings(provider="offline", name="fake", context_length=4 * len(long))
    async with running(tmp_path, config=config_in(tmp_path, model=wide), model=model) as live:
        monkeypatch.setattr(TokenCounter, "text", text)
        await live.ask(long)
        await live.ask("and you?")
        await live.tell("once more?")
        await gate.until_waiting()
        await live.ask("/stop")
        assert (await live.ask("/last")).startswith("a long story")
    assert max(counted) < len(long)


def chunk(**call: object) -> dict[str, object]:
    return {"choices": [{"delta": {"tool_calls": [call]}}]}


async def test_no_answer_of_a_server_holds_up_the_loop() -> None:
    async def feed(*chunks: dict[str, object]) -> None:
        answer = ChatAnswer(lambda: "c")
        for each in chunks:
            answer.feed(each)

    piece = {"name": "f", "arguments": '{"a": "}'}
    with nothing_slow(1):
        await feed(*[chunk(index=0, function=piece)] * 4_000)
        await feed(*[chunk(function=piece)] * 20_000)
        await feed(*[chunk(id=f"c{number}", function=piece) for number in range(4_000)])
        await feed({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": piece}] * 4_000}}]})


@pytest.mark.parametrize(
    "said", ["/remind tomorrow at 9 milk", "/schedule milk every weekday at 8", "/reminders snooze 1 2h", "call"]
)
async def test_the_first_time_that_is_read_holds_up_nobody(tmp_path: Path, said: str) -> None:
    arguments = json.dumps({"action": "create", "text": "milk", "when": "tomorrow at 9"})
    model = FakeModel(in_turn(Say(calls=[("reminders", arguments)]), Say(text="done")))
    async with running(tmp_path, model=model) as live:
        await live.ask("/remind tomorrow at 9 bread")
        for each in gc.get_objects():
            if type(each) is Pattern:
                each.__dict__ = {"pattern": each.pattern, "_flags": each._flags}  # not compiled yet
        re.purge()
        with nothing_slow():
            await live.ask(said)


REFUSED: Final = ("9", "9,", "9_", "a", "sk-", "prompt ", "a*", "1h", "上下文", "超过", "a...", "max_tokens ")


@pytest.mark.parametrize("unit", quick(REFUSED, "9,", "sk-", "1h", "上下文"))
async def test_no_refusal_holds_up_the_loop(unit: str) -> None:
    redact = Redactor(["sk-" + "a1" * 20])

    async def read(status: int, body: str) -> None:
        classify(status, body, {}, redact=redact)

    text = unit * (20_000 // len(unit))
    with nothing_slow(1):
        await read(429, text)
        for around in ("{}", "maximum context length is {}", '{{"error": {{"message": "{}"}}}}', '{{"a": {}}}'):
            await read(400, around.format(text))  # the others are read as these two are
