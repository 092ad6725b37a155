"""The rest of a key's transcripts when a part of them is forgotten."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.agent.compaction import reconcile
from gateway.context.assembly import sanitize
from gateway.context.forgetting import History, Remainder, telling_words, tells, without
from gateway.domain.message import Message, assistant, is_summary, note_of, noted, text_of, tool_result, user
from tests.support.transcripts import COUNTER, call, compressor, flaws

WORD = "quizzaciously"


async def _gossip(messages: Sequence[Message], max_tokens: int) -> str:
    """A summariser that keeps the word whenever it meets it."""
    text = text_of(messages[-1])
    return f"## Active Task\nthe last one\n## Goal\n{WORD if WORD in text else 'tea'} {text[:100]}"


@dataclass(slots=True)
class Life:
    """A key's sessions as a store would hold them; the last one goes on."""

    sessions: dict[str, list[Message]] = field(default_factory=lambda: {"s0": []})
    rows: int = 0

    @property
    def tip(self) -> list[Message]:
        """The transcript that goes on."""
        return next(reversed(self.sessions.values()))

    @property
    def history(self) -> History:
        """All of them, as they are read."""
        names = list(self.sessions)
        return History(transcripts=self.sessions, parents=dict(zip(names[1:], names, strict=False)))

    def say(self, *messages: Message) -> list[Message]:
        """Store messages at the end of the present session."""
        made = [self._stored(message) for message in messages]
        self.tip.extend(made)
        return made

    def ask(self, text: str, answer: str = "fine", *, tool: str | None = None) -> list[Message]:
        """One exchange, perhaps with a tool that returns `tool`."""
        if tool is None:
            return self.say(user(text), assistant(answer))
        made: Any = call(f"c{self.rows}")
        return self.say(user(text), assistant(None, [made]), tool_result(made["id"], tool), assistant(answer))

    async def compact(self) -> bool:
        """Go on in a continuation, if the engine can make one."""
        before = self.tip
        result = await compressor(_gossip).compress(list(before), force=True)
        after = reconcile(before, sanitize(result), COUNTER)
        if [note_of(each).get("id") for each in after] == [note_of(each)["id"] for each in before]:
            return False
        self.begin([self._stored(message) for message in after])
        return True

    def begin(self, messages: Sequence[Message]) -> None:
        """Go on in a session with these messages."""
        self.sessions[f"s{len(self.sessions)}"] = list(messages)

    def forget(self, *chosen: str) -> Remainder:
        """Take exchanges out of everything, as a store does."""
        left = without(self.history, chosen, counter=COUNTER, redact=str)
        stored = {old: made if "id" in note_of(made) else self._stored(made) for old, made in left.replaced.items()}
        for name, messages in self.sessions.items():
            kept = [stored.get(note_of(each)["id"], each) for each in messages]
            before = sum(note_of(each)["tokens"] for each in messages)
            self.sessions[name] = [each for each in kept if note_of(each)["id"] not in left.removed]
            after = sum(note_of(each)["tokens"] for each in self.sessions[name])
            assert before - after == left.freed.get(name, 0)
        return left

    def holds(self, word: str) -> bool:
        """Say whether any message of any session holds a word, in its text or in the host's note."""
        return word in json.dumps(self.sessions)

    def _stored(self, message: Message) -> Message:
        if "id" in note_of(message):
            return message
        self.rows += 1
        return noted(message, id=str(self.rows), at=float(self.rows), tokens=COUNTER.message(message))


def exchange_ids(life: Life, word: str = WORD) -> list[str]:
    return [name for each in life.history.exchanges if word in text_of(each.request) for name in each.ids]


def test_an_exchange_is_a_request_and_the_answers_to_it() -> None:
    life = Life()
    one, two = life.ask("one", tool="1"), life.ask("two")
    assert [each.ids for each in life.history.exchanges] == [
        tuple(note_of(message)["id"] for message in one),
        tuple(note_of(message)["id"] for message in two),
    ]
    found = life.history.exchange_of(note_of(one[2])["id"])
    assert found is not None
    assert text_of(found.request) == "one"
    assert life.history.exchange_of("77") is None


def test_several_requests_share_their_answer() -> None:
    life = Life()
    a, b, answer = (note_of(each)["id"] for each in life.say(user("a"), user("b"), assistant("both")))
    assert [each.ids for each in life.history.exchanges] == [(a, answer), (b, answer)]


async def test_a_summary_is_made_anew_without_it_in_every_generation() -> None:
    life = Life()
    for number in range(30):
        life.ask(f"question {number} {'about tea ' * 20}", f"answer {number}")
        if number == 4:
            life.ask(f"my secret is {WORD}", f"{WORD}, noted", tool=f"saved {WORD}")
        if number % 10 == 9:
            assert await life.compact()
    assert sum(is_summary(each) for messages in life.sessions.values() for each in messages) >= 3
    assert WORD in text_of(next(each for each in life.tip if is_summary(each)))
    gone = exchange_ids(life)
    left = life.forget(*gone)
    assert not life.holds(WORD)
    assert left.gone == set(gone)
    assert len(gone) == 4
    assert left.summaries >= 3
    for messages in life.sessions.values():
        assert flaws(messages) == []
    (summary,) = (each for each in life.tip if is_summary(each))
    assert note_of(summary)["fallback"]
    assert "question" in text_of(summary)


async def test_rules_and_facts_of_what_stays_are_in_the_summary_that_is_made_anew() -> None:
    life = Life()
    for number in range(4):
        life.ask(f"opening {number} {'about tea ' * 20}", f"answer {number}")
    life.ask("Never suggest trains. I am allergic to nuts.", "Noted")
    life.ask(f"my secret is {WORD}. I live near {WORD}.", "noted")
    for number in range(20):
        life.ask(f"question {number} {'about tea ' * 20}", f"answer {number}")
    for _ in range(2):
        assert await life.compact()
        for number in range(20):
            life.ask(f"question {number} {'about tea ' * 20}", f"answer {number}")
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)
    (summary,) = (each for each in life.tip if is_summary(each))
    assert "- Never suggest trains." in text_of(summary)
    assert "- I am allergic to nuts." in text_of(summary)
    assert note_of(summary)["standing"]


async def test_a_summary_of_nothing_else_goes() -> None:
    life = Life()
    (request, _) = life.ask(WORD, WORD)
    summary = user(f"notes on {WORD}", summary=True, derived_from=["1", "2"])
    life.begin([life._stored(summary)])
    life.say(user("next"), assistant("yes"))
    left = life.forget(*exchange_ids(life))
    assert [text_of(each) for each in life.tip] == ["next", "yes"]
    assert left.summaries == 1
    assert note_of(request)["id"] in left.gone


async def test_a_summary_before_a_request_leaves_the_request() -> None:
    life = Life()
    life.ask(WORD, WORD)
    life.ask("keep this", "kept")
    (last,) = life.say(user("the last one"))
    merged = user(
        f"notes on {WORD}\n\nthe last one",
        summary=True,
        merged=True,
        derived_from=["1", "2", "3", "4", note_of(last)["id"]],
    )
    life.begin([life._stored(merged)])
    life.say(assistant("done"))
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)
    (first, answer) = life.tip
    assert text_of(first).endswith("the last one")
    assert "keep this" in text_of(first)
    assert note_of(first)["derived_from"][-1] == note_of(last)["id"]
    assert text_of(answer) == "done"
    # And the other way round: the request goes, the notes stay.
    life.forget(*exchange_ids(life, "the last one"))
    assert "keep this" in text_of(life.tip[0])
    assert not life.holds("the last one")


def test_what_a_tool_quoted_goes_with_the_exchange_that_quotes() -> None:
    life = Life()
    (request, *_) = life.ask(f"the word is {WORD}")
    life.ask("tea?")
    life.say(
        user("what was the word?"),
        assistant(None, [call("c1")]),
        tool_result("c1", f"user (#{note_of(request)['id']}): {WORD}", recalled=True),
        assistant(f"It was {WORD}."),
    )
    left = life.forget(*exchange_ids(life))
    assert not life.holds(WORD)
    assert len(left.gone) == 6
    assert [text_of(each) for each in life.tip] == ["tea?", "fine"]


def test_a_quotation_is_known_by_its_words_where_it_has_no_handle() -> None:
    life = Life()
    life.ask(f"the word for today is {WORD}")
    life.say(
        user("what was it?"),
        assistant(None, [call("c1")]),
        tool_result("c1", f"2026-11-22: user: the word for today is {WORD} …", recalled=True),
        assistant(f"It was {WORD}."),
    )
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)


def test_a_long_message_is_known_by_its_beginning() -> None:
    life, told = Life(), f"the word for today is {WORD}, and " + "so on " * 50
    life.ask(told)
    life.say(
        user("what was it?"),
        assistant(None, [call("c1")]),
        tool_result("c1", f"2026-11-22: user: {told[:120]} …", recalled=True),
        assistant(f"It was {WORD}."),
    )
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)


def test_what_an_engine_made_of_nobody_knows_what_goes_too() -> None:
    life = Life()
    life.ask(WORD)
    life.begin([life._stored(noted(user(f"they said {WORD}"), derived_from=[]))])
    life.ask("tea?")
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)
    assert [text_of(each) for each in life.tip] == ["tea?", "fine"]


def test_words_that_only_forgotten_messages_hold_tell_what_was_made_of_them() -> None:
    words = telling_words([user("call 4711 about the Bluebird, 记住密码")], [user("I like the weather 记住")])
    assert tells("Bluebird!", words)
    assert tells("ring 4711", words)
    assert tells("密码", words)
    assert not tells("the weather", words)
    assert not tells("记住", words)
    assert not tells("", words)


@pytest.mark.parametrize("seed", range(12))
async def test_after_any_life_nothing_holds_what_was_forgotten_and_every_request_is_valid(seed: int) -> None:
    rng, life = random.Random(seed), Life()
    for number in range(rng.randrange(10, 60)):
        what = rng.random()
        if what < 0.1:
            await life.compact()
        elif what < 0.15:
            life.begin(life.tip)  # a branch
        elif what < 0.2:
            ends = [place for place, each in enumerate(life.tip) if each["role"] == "user" and place]
            life.begin(life.tip[: rng.choice(ends)] if ends else [])  # an undo
        elif what < 0.25:
            life.begin(rng.choice(list(life.sessions.values())))  # an old session goes on
        else:
            secret = WORD if rng.random() < 0.15 else "tea"
            tool = f"{secret} {number}" * rng.randrange(1, 60) if rng.random() < 0.4 else None
            life.ask(f"{number}: {secret} " * rng.randrange(1, 30), f"{secret}, yes", tool=tool)
    life.ask(f"the last {WORD}")
    await life.compact()
    before = {name: len(messages) for name, messages in life.sessions.items()}
    life.forget(*exchange_ids(life))
    assert not life.holds(WORD)
    assert before.keys() == life.sessions.keys()
    for messages in life.sessions.values():
        assert flaws(messages) == []
        assert len({note_of(each)["id"] for each in messages}) == len(messages)
