"""What is kept of a request's beginning never changes a body: each is compared with the plain encoder's, byte by byte,
over conversations of odd messages that grow, are marked, shown other files, compacted and sent to other models."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.caching import Aside, prompt
from gateway.domain.message import Message, assistant, noted, tool_result, user
from gateway.providers.anthropic import codec as messages
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.bodies import LONG, Bodies
from gateway.providers.http import json_bytes
from gateway.providers.openai import codec as chat
from gateway.providers.openai_responses import codec as responses
from gateway.runtime.errors import ProviderRejected
from tests.support.examples import one_of

TEXTS = (
    "Hello.",
    "",
    " \n",
    "half \ud83d",
    "\ude00 of it",
    "nul \x00 and \\u0000",
    "天气 😀",
    '{"":""}',
    "x" * 300,
    "a\x07\x7f",
)
ARGUMENTS = ("{}", '{"a": 1e-7, "b": [1.0, true]}', "no object", '{"a": NaN}', "", '{"text": "\\ud83d"}')
MODELS = ("gpt-4", "gemini-3-pro", "deepseek-chat")
OFFERS: tuple[Any, ...] = (
    (),
    [{"type": "function", "function": {"name": "f", "parameters": {"messages": [{"": ""}]}}}],
    [{"type": "function", "function": {"name": "g", "description": "nul \x00", "parameters": {"n": 1e-7}}}],
)
HABITS = (chat.Habits(), chat.Habits(signed=True), chat.Habits(attached=False), chat.Habits(reasoning=True))


class Talk:
    """A conversation that goes on by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.stored: list[Message] = []
        self.calls: list[str] = []

    def message(self) -> Message:
        chance = self.chance
        said: Any = chance.choice(TEXTS)
        kind = chance.choice(("user", "user", "assistant", "assistant", "call", "tool", "parts", "system", "kept"))
        if kind == "call":
            self.calls = [chance.choice(("c", "a b", "x" * 90, f"call_{len(self.stored)}")) for _ in range(2)]
            made: Any = [
                {"id": name, "type": "function", "function": {"name": "f", "arguments": chance.choice(ARGUMENTS)}}
                for name in self.calls
            ]
            blocks = [
                {"type": "answer", "extra_content": {"n": 1e-7}},
                {"type": "call", "id": self.calls[0], "extra": 1},
            ]
            kept: Any = {"api": "openai", "model": chance.choice(MODELS), "blocks": blocks}
            return assistant(said or None, made, **({"original": kept} if chance.random() < 0.5 else {}))
        if kind == "tool":
            picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
            shown: Any = [{"type": "text", "text": said}, picture] if chance.random() < 0.1 else said
            return {**tool_result(chance.choice(self.calls or ["c"]), ""), "content": shown}
        if kind == "parts":
            return {
                "role": "user",
                "content": [{"type": "text", "text": said}, {"type": "text", "text": "more", "n": 0.1}],
            }
        if kind == "kept":
            thought: Any = [{"type": "thinking", "thinking": "so", "signature": "s"}, {"type": "text", "text": said}]
            return assistant(said, original={"api": "anthropic", "model": chance.choice(MODELS), "blocks": thought})
        if kind == "system":
            return {"role": "system", "content": said}
        if kind == "assistant" and chance.random() < 0.3:
            return {**assistant(said), "reasoning_content": "because"}
        return {"role": "user" if kind == "user" else "assistant", "content": said, "name": chance.choice(("A", "a b"))}

    def grow(self, count: int) -> None:
        self.stored += [noted(self.message(), id=str(self.chance.random())) for _ in range(count)]

    def change(self) -> None:
        """Something happens between two requests."""
        chance, stored = self.chance, self.stored
        match chance.choice(("grows", "grows", "grows", "undo", "compaction", "another", "copy")):
            case "grows":
                self.grow(chance.randrange(12))
            case "undo":
                del stored[-chance.randrange(1, 20) :]
            case "compaction":
                stored[: chance.randrange(20)] = [user("A summary.", summary=True)]
            case "another" if stored:  # a file is shown in another way: the same message in another object
                at = chance.randrange(len(stored))
                stored[at] = {**stored[at], "content": chance.choice(TEXTS)}
            case "copy" if stored:
                at = chance.randrange(len(stored))
                stored[at] = {**stored[at]}

    def request(self, spec: ModelSpec) -> ModelRequest:
        chance = self.chance
        fresh = [self.message() for _ in range(chance.randrange(3))]
        whole = [*self.stored, *fresh]
        aside = Aside(len(whole) - 1, "Before:") if whole and chance.random() < 0.2 else None
        asked: Any = prompt(chance.choice(("Be kind.", "", '{"":""}')), whole, spec, aside)
        if chance.random() < 0.1:
            asked = asked[1:]
        self.stored += [noted(each, id=str(chance.random())) for each in fresh]
        return ModelRequest(messages=asked, tools=chance.choice(OFFERS), max_tokens=chance.choice((None, 9)))


def of_chat(bodies: Bodies, spec: ModelSpec, request: ModelRequest, chance: random.Random) -> tuple[bytes, bytes]:
    habits = chance.choice(HABITS) if chance.random() < 0.1 else HABITS[0]
    encode = partial(chat.encode_request, spec, habits=habits)
    kept = bodies.of(request, (spec.name, habits), partial(chat.Entries, spec, habits), encode)
    return b"".join(kept.pieces), json_bytes(encode(request))


def of_others(
    codec: Any, bodies: Bodies, spec: ModelSpec, request: ModelRequest, chance: random.Random
) -> tuple[bytes, bytes]:
    thoughts = chance.random() < 0.9
    encode = partial(codec.encode_request, spec, thoughts=thoughts)
    kept = bodies.of(request, (spec.name, thoughts), partial(codec.Entries, spec, thoughts), encode)
    return b"".join(kept.pieces), json_bytes(encode(request))


APIS: dict[str, Callable[[Bodies, ModelSpec, ModelRequest, random.Random], tuple[bytes, bytes]]] = {
    "openai": of_chat,
    "anthropic": partial(of_others, messages),
    "openai-responses": partial(of_others, responses),
}


@pytest.mark.parametrize("api", APIS)
@one_of(2)
@given(seed=st.integers(0, 2**32), marks=st.booleans())
def test_every_body_is_the_plain_encoders(api: str, seed: int, marks: bool) -> None:
    talk, bodies = Talk(seed), Bodies(most_bytes=400_000)
    talk.grow(2 * LONG)
    for _ in range(12):
        name = talk.chance.choice(MODELS) if talk.chance.random() < 0.1 else MODELS[0]
        spec = ModelSpec(provider=api, name=name, cache_marks=marks, marks_results=talk.chance.random() < 0.5)
        kept, plain = APIS[api](bodies, spec, talk.request(spec), talk.chance)
        assert kept == plain
        talk.change()


@pytest.mark.parametrize("count", [3_000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("api", APIS)
def test_thousands_of_odd_messages(api: str, count: int) -> None:
    talk, bodies, spec = Talk(7), Bodies(), ModelSpec(provider=api, name=MODELS[0])
    talk.grow(count)
    for _ in range(3):
        kept, plain = APIS[api](bodies, spec, ModelRequest(messages=talk.stored[:]), random.Random(1))
        assert kept == plain
        talk.grow(5)


def test_an_odd_answer_before_hundreds_of_messages_that_are_one_entry() -> None:
    """It is looked at where it is written, long after the others that came with it."""
    blocks = [{"type": "answer", "extra_content": {"n": 1e-7}}]
    kept_by: Any = {"api": "openai", "model": "m", "blocks": blocks}
    odd = assistant("so", original=kept_by)
    talk = [*spoken(254), user("and"), odd, *[user("so on")] * 600, assistant("yes"), *spoken(600)]
    spec = ModelSpec(provider="openai", name="m")
    kept, plain = of_chat(Bodies(), spec, ModelRequest(messages=talk), random.Random(1))
    assert kept == plain
    assert b'"n":1e-07' in kept


def test_every_character_is_written_alike() -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    pieces = ["".join(characters[first : first + 20_000]) for first in range(0, len(characters), 20_000)]
    talk = [make(piece) for piece in pieces for make in (user, assistant)]
    kept, plain = of_chat(
        Bodies(), ModelSpec(provider="openai", name="m"), ModelRequest(messages=talk), random.Random(1)
    )
    assert kept == plain
    assert sys.getsizeof(pieces[-1]) < 5 * len(pieces[-1]), "no second form of a text stays in memory"


class Counted:
    """Bodies of one model's requests; `added` are the messages that were encoded for the latest one."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self.added = 0

    def __call__(self, messages: list[Message], files_at: tuple[int, ...] = ()) -> int:
        spec, self.added = ModelSpec(provider="openai", name="m"), 0
        request = ModelRequest(messages=messages, files_at=files_at)
        self.bodies.of(request, "m", lambda: Counting(self, spec), partial(chat.encode_request, spec))
        return self.added


class Counting(chat.Entries):
    def __init__(self, counted: Counted, spec: ModelSpec) -> None:
        super().__init__(spec, chat.Habits())
        self.counted = counted

    def add(self, messages: Iterable[Message]) -> bool:
        """Take the next messages."""
        taken = list(messages)
        self.counted.added += len(taken)
        return super().add(taken)


def spoken(count: int) -> list[Message]:
    return [make(f"said {n}") for n in range(count // 2) for make in (user, assistant)]


def test_only_what_is_new_is_encoded_again() -> None:
    added, talk = Counted(Bodies()), spoken(1_000)
    assert added(talk) == 1_000
    assert added([*talk, *spoken(2)]) < 20
    changed = [*talk[:500], user("other"), *talk[501:]]
    assert [added(changed) for _ in range(3)] == [1_000, 500, 8]


@pytest.mark.parametrize(("at", "files_at"), [(900, (900,)), (950, ())], ids=["a file", "a mark"])
def test_what_is_kept_ends_before_what_is_made_for_each_request(at: int, files_at: tuple[int, ...]) -> None:
    added, talk = Counted(Bodies()), spoken(1_000)

    def request() -> list[Message]:
        parts: Any = {"role": "user", "content": [{"type": "text", "text": "said"}]}
        return [*talk[:at], parts, *talk[at + 1 :]]

    assert [added(request(), files_at) for _ in range(3)] == [1_000, 1_000 - at, 1_000 - at]


def test_the_oldest_are_forgotten_where_there_is_no_room() -> None:
    added, one, other = Counted(Bodies(most_bytes=200_000)), spoken(100), spoken(100)
    assert [added(each) for each in (one, one, other, one)] == [100, 8, 100, 100]


def test_what_is_not_sent_again_is_forgotten() -> None:
    bodies = Bodies()
    added, one, other = Counted(bodies), spoken(100), spoken(100)
    assert [added(one), added(other), bodies.rest(), added(one), added(one)] == [100, 100, 0, 8, 8]
    assert bodies.rest() > 100 * 1_000
    assert [added(one), added(other)] == [8, 100]


def test_what_json_cannot_express_is_refused_each_time() -> None:
    odd: Any = {"role": "user", "content": [{"type": "number", "value": float("nan")}]}
    added, talk = Counted(Bodies()), [*spoken(50), odd, *spoken(50)]
    for _ in range(3):
        with pytest.raises(ProviderRejected, match="cannot write the request as JSON"):
            added(talk)
