"""An engine's result as the host takes it: references restored, the rest counted and derived."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, get_args

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.asking import _distinct
from gateway.agent.compaction import Compactor, Trigger, reconcile
from gateway.agent.conversation import Conversation, opened
from gateway.agent.memory.flush import Started
from gateway.agent.models import Calibration
from gateway.agent.steps import close_open_calls
from gateway.context.assembly import sanitize
from gateway.context.engine import ContextEngine
from gateway.context.guard import GuardedEngine
from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, Message, assistant, note_of, noted, same, text_of, tool_result, user, wire
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.points import ignore_points
from gateway.runtime.tokens import TokenCounter
from tests.support.fakes import ManualClock

COUNTER = TokenCounter()
LONG = "words that take some room " * 30


@pytest.fixture(autouse=True, scope="module")
def vocabulary() -> None:
    """Loaded before hypothesis makes examples, which counts the time."""
    COUNTER.text("words")


def call(call_id: str) -> Any:
    return {"id": call_id, "type": "function", "function": {"name": "clock", "arguments": "{}"}}


def stored(*messages: Message) -> list[Message]:
    """Messages as a store gives them back."""
    return [
        {**message, HOST: {**note_of(message), "id": f"m{i}", "tokens": COUNTER.message(message)}}  # type: ignore[typeddict-item]
        for i, message in enumerate(messages)
    ]


texts = st.sampled_from(["a", "b", "c", "a longer text", "", "b"])
transcripts = st.lists(st.one_of(st.builds(user, texts), st.builds(assistant, texts)), max_size=8).map(
    lambda given_: stored(*given_)
)


# -- reconcile ---------------------------------------------------------------------------------


@given(transcripts, st.data())
def test_what_an_engine_kept_is_the_stored_message_with_or_without_our_notes(
    before: list[Message], data: st.DataObject
) -> None:
    kept = [message for message in before if data.draw(st.booleans())]
    bare: list[Any] = [wire(message) for message in kept]
    assert reconcile(before, copy.deepcopy(kept), COUNTER) == kept
    found = reconcile(before, bare, COUNTER)
    assert [wire(message) for message in found] == bare
    ids = [note_of(message)["id"] for message in found if "id" in note_of(message)]
    assert ids == sorted(set(ids)), "each stored message once, in order"


@given(transcripts, transcripts)
def test_whatever_an_engine_returns_every_message_is_stored_or_counted(
    before: list[Message], result: list[Message]
) -> None:
    given_, expected = copy.deepcopy(before), [wire(message) for message in result]
    after = reconcile(before, result, COUNTER)
    assert before == given_
    assert [wire(message) for message in after] == expected
    originals = {note_of(message)["id"]: message for message in before}
    for message in after:
        note = note_of(message)
        if "id" in note:
            assert message is originals[note["id"]]
        else:
            assert note["tokens"] == COUNTER.message(message)


def test_a_rewritten_message_derives_from_the_one_it_was() -> None:
    (original,) = stored(user("a long text"))
    (rewritten,) = reconcile([original], [{**original, "content": "short"}], COUNTER)
    assert note_of(rewritten)["derived_from"] == ["m0"]
    assert "id" not in note_of(rewritten)
    assert note_of(original)["id"] == "m0"


def test_a_message_used_twice_is_a_reference_once() -> None:
    before = stored(user("a"))
    after = reconcile(before, [before[0], before[0]], COUNTER)
    assert [note_of(message).get("id") for message in after] == ["m0", None]


def test_what_is_added_is_counted_and_searched_once_for_ever() -> None:
    talk = conversation(stored(user("hello")))
    talk.add(user("see src/a.py"), 5.0)
    assert note_of(talk.fresh.messages[0]) == {
        "tokens": COUNTER.message(user("see src/a.py")),
        "identifiers": ["src/a.py"],
        "instructions": [],
        "at": 5.0,
    }


# -- one pass ----------------------------------------------------------------------------------


class Keeping(ContextEngine):
    """Keeps the last `keep` messages behind notes."""

    name = "keeping"

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def update_from_response(self, usage: Any) -> None:
        """Nothing to learn."""

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return True

    def compress(self, messages: Sequence[Message], *_: Any, **__: Any) -> list[Message]:
        return [user("notes", summary=True), *messages[len(messages) - self.keep :]]


class Writer:
    """Writes down what it is asked to store."""

    def __init__(self) -> None:
        self.steps: list[list[Message]] = []
        self.continued: list[tuple[list[Message], Compaction]] = []

    async def begin_tools(self, conversation: Conversation, intents: Any) -> None:
        raise AssertionError("a compaction runs no tools")

    async def record_step(self, conversation: Conversation) -> None:
        record, start = conversation.record(2.0, None, {}), len(conversation.stored.messages)
        self.steps.append(list(record.messages))
        conversation.settle(record, [noted(each, id=f"f{start + i}") for i, each in enumerate(record.messages)])

    async def continue_(
        self, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> None:
        self.continued.append((list(transcript), compaction))


def conversation(messages: list[Message], keep: int = 1) -> Conversation:
    session = Session(
        id="s_1",
        key=SessionKey(platform="p", chat="c"),
        chat_type="direct",
        parent_id=None,
        started_at=0.0,
        model="m",
        system_prompt="be kind",
        transcript_tokens=sum(note_of(message).get("tokens", 0) for message in messages),
        message_count=len(messages),
    )
    known, fresh = opened(session, tuple(messages))
    return Conversation(
        stored=known,
        fresh=fresh,
        engine=GuardedEngine(Keeping(keep), log=structlog.get_logger()),
        spec=ModelSpec(provider="openai", name="m", context_length=10_000),
        counter=COUNTER,
        calibration=Calibration(),
        overhead=100,
    )


class NothingPrepared:
    """Every compaction is made when it is asked for."""

    def is_ready(self, talk: Conversation) -> bool:
        return False

    async def take(self, talk: Conversation) -> None:
        return None

    def forget(self, session: Session) -> None:
        pass


class NothingFlushed:
    """Memory is given nothing."""

    def before_compaction(self, session: Session, messages: Sequence[Message], start: int) -> Started:
        return Started(session)

    async def ended(self, started: Started) -> int:
        return 0


async def nobody(_: Conversation) -> None:
    """No engine helps out."""


def compactor(writer: Writer) -> Compactor:
    return Compactor(
        writer=writer,
        clock=ManualClock(),
        points=ignore_points,
        preparations=NothingPrepared(),
        flushes=NothingFlushed(),
        rescuer=nobody,
    )


async def test_what_is_fresh_is_stored_before_an_engine_may_fold_it_away() -> None:
    writer, talk = Writer(), conversation(stored(user(LONG), assistant(LONG)))
    talk.add(user("newest"), 1.0)
    report = await compactor(writer).run(talk, "threshold")
    assert [[text_of(m) for m in step] for step in writer.steps] == [["newest"]]
    assert report.changed
    ((transcript, compaction),) = writer.continued
    assert [text_of(m) for m in transcript] == ["notes", "newest"]
    assert note_of(transcript[-1])["id"] == "f2"
    assert (compaction.messages_before, compaction.messages_after) == (3, 2)
    assert compaction.tokens_after < compaction.tokens_before


@pytest.mark.parametrize(("trigger", "changes"), [("threshold", False), ("hygiene", False), ("manual", True)])
async def test_saving_less_than_a_tenth_changes_nothing_unless_a_person_asked(trigger: Any, changes: bool) -> None:
    writer, talk = Writer(), conversation(stored(user("hi"), user(LONG), assistant(LONG)), keep=2)
    report = await compactor(writer).run(talk, trigger)
    assert report.changed is changes
    assert len(writer.continued) == int(changes)
    if not changes:
        assert report.tokens_before == report.tokens_after
        assert list(report.after) == list(report.before)


class Asked(Keeping):
    """Notes whether its cooldowns and strikes were overruled."""

    forced: bool | None = None

    def compress(self, messages: Sequence[Message], *_: Any, force: bool = False, **__: Any) -> list[Message]:
        self.forced = force
        return list(messages)


@pytest.mark.parametrize("trigger", get_args(Trigger))
async def test_only_a_wish_and_a_refused_prompt_overrule_the_engine(trigger: Trigger) -> None:
    talk, engine = conversation(stored(user("hi"), assistant("hello"))), Asked(1)
    talk.engine = GuardedEngine(engine, log=structlog.get_logger())
    await compactor(Writer()).run(talk, trigger)
    assert engine.forced is (trigger in ("manual", "overflow", "plugin"))


class Growing(Keeping):
    """Puts notes before everything."""

    def compress(self, messages: Sequence[Message], *_: Any, **__: Any) -> list[Message]:
        return [user(LONG * self.keep, summary=True), *messages]


@pytest.mark.parametrize(("times", "changes"), [(1, True), (5_000, False)])
async def test_a_result_that_is_far_longer_than_the_conversation_changes_nothing(times: int, changes: bool) -> None:
    writer, talk = Writer(), conversation(stored(user("hi"), assistant("hello")))
    talk.engine = GuardedEngine(Growing(times), log=structlog.get_logger())
    report = await compactor(writer).run(talk, "manual")
    assert report.changed is changes
    assert len(writer.continued) == int(changes)
    assert report.outcome.aborted is not changes
    assert ("far longer than the conversation" in (report.outcome.error or "")) is not changes


# -- the conversation in memory ----------------------------------------------------------------


def test_the_estimate_is_what_was_reported_plus_what_was_added_since() -> None:
    talk = conversation(stored(user(LONG)))
    counted = talk.counted_tokens()
    assert talk.prompt_tokens() == counted == 100 + talk.stored.tokens
    talk.add(user("one"), 1.0)
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=900, cache_read_tokens=100), 1.0)
    assert talk.prompt_tokens() == 1_000
    talk.add(assistant("two"), 2.0)
    added = note_of(talk.fresh.messages[-1])["tokens"]
    assert talk.prompt_tokens() == 1_000 + talk.calibration["m"].apply(added)
    talk.settle(talk.record(3.0, None, {}), talk.fresh.messages)
    assert talk.prompt_tokens() == 1_000 + talk.calibration["m"].apply(added)
    assert talk.length == 3
    assert talk.fresh.messages == ()


def test_what_comes_while_a_record_is_written_stays_fresh() -> None:
    talk = conversation(stored(user("hello")))
    talk.add(user("one"), 1.0)
    talk.absorb(["7"])
    record, before = talk.record(2.0, None, {}), talk.counted_tokens()
    talk.add(user("two"), 2.0)
    talk.absorb(["8"])
    talk.settle(record, record.messages)
    assert [text_of(each) for each in talk.stored.messages] == ["hello", "one"]
    assert ([text_of(each) for each in talk.fresh.messages], talk.fresh.absorbed) == (["two"], ("8",))
    assert talk.counted_tokens() == before + note_of(talk.fresh.messages[0])["tokens"]


def test_a_provider_that_reports_nothing_teaches_nothing() -> None:
    talk = conversation(stored(user(LONG)))
    before = talk.prompt_tokens()
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(output_tokens=50), 1.0)
    assert talk.prompt_tokens() == before


def test_a_rough_count_teaches_that_a_model_counts_more_never_that_it_counts_less() -> None:
    text = "Завтра утром поезд отправляется с другого вокзала, поэтому выходите заранее. " * 40
    talk = conversation(stored(user("Здравствуйте")))
    talk.counter = TokenCounter(roughly=1.0)
    talk.add(user(text), 1.0)
    exact, rough = COUNTER.text(text), talk.counted_tokens()
    assert rough > 1.3 * exact
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=exact), 1.0)
    talk.overhead = talk.spec.context_length // 4  # the prompt and the tools of a small window
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=talk.overhead), 1.0)
    talk.overhead = 100
    assert talk.counter.takes_long(1, 1.1)  # the whole vocabulary is read, but what was said keeps its count
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=exact), 1.0)
    assert talk.calibration["m"].apply(1_000) == 1_000
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=2 * rough), 1.0)
    assert talk.calibration["m"].apply(1_000) > 1_000
    talk.calibration, talk.rough = Calibration(), True  # the prompt and the tools, when the turn began
    talk.answer_by(ModelSpec(provider="openai", name="m", context_length=4 * rough))  # of which it fills a good part
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=rough // 2), 1.0)
    assert talk.calibration["m"].apply(1_000) == 1_000
    talk.calibration, talk.rough = Calibration(), False
    talk.answered(ModelRequest(messages=[]), talk.spec, CanonicalUsage(input_tokens=rough // 2), 1.0)
    assert talk.calibration["m"].apply(1_000) == pytest.approx(500, abs=1)


def test_calls_without_a_result_get_one_and_answered_ones_do_not() -> None:
    talk = conversation(stored(user("go"), assistant(None, [call("x"), call("y")]), tool_result("x", "done")))
    close_open_calls(talk, 1.0)
    assert [message.get("tool_call_id") for message in talk.fresh.messages] == ["y"]
    close_open_calls(talk, 1.0)
    assert len(talk.fresh.messages) == 1


@given(st.lists(st.sampled_from(["", "a", "b", "call_0", "a_1"]), max_size=8))
def test_the_calls_of_a_step_get_distinct_ids_and_keep_their_order(names: list[str]) -> None:
    calls = [call(name) for name in names]
    distinct = _distinct(calls)
    assert len({each["id"] for each in distinct}) == len(names)
    assert all(each["id"] for each in distinct)
    assert [each["function"] for each in distinct] == [each["function"] for each in calls]


def test_a_server_that_names_every_call_alike_keeps_its_pairs() -> None:
    step = [assistant(None, [call("call_0")]), tool_result("call_0", "one")]
    messages = [user("go"), *step, *copy.deepcopy(step), assistant("done")]
    assert all(map(same, sanitize(messages), messages))


WORDS = st.lists(st.sampled_from(["one", "two", "three"]), max_size=12)


class Flat(TokenCounter):
    """Every message has one token."""

    def message(self, message: object) -> int:
        return 1


def rows(words: Sequence[str]) -> list[Message]:
    return [noted(user(word), id=str(number), tokens=1) for number, word in enumerate(words)]


@given(WORDS, WORDS)
def test_messages_without_notes_are_found_in_order_and_each_at_most_once(
    said: list[str], given_back: list[str]
) -> None:
    known = rows(said)
    result = reconcile(known, [user(word) for word in given_back], Flat())
    position, expected = 0, []
    for word in given_back:
        found = next((place for place in range(position, len(known)) if same(known[place], user(word))), None)
        expected.append(None if found is None else note_of(known[found])["id"])
        position = position if found is None else found + 1
    assert [note_of(message).get("id") for message in result] == expected
    assert [wire(message) for message in result] == [wire(user(word)) for word in given_back]


def test_thousands_of_rewritten_messages_are_matched_without_comparing_each_with_all() -> None:
    words = [f"message {number}" for number in range(4_000)]
    result = reconcile(rows(words), [user(f"rewritten {word}") for word in words], Flat())
    assert len(result) == len(words)
    assert not any("id" in note_of(message) for message in result)
