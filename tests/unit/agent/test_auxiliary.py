"""The auxiliary model: who answers, and the request that meets the warm cache of the conversation's own model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest

from gateway.agent.auxiliary import AuxiliaryModel, asked_aside
from gateway.agent.caching import Prefix, Sent, obstacle, prompt, repeated
from gateway.agent.caps import Caps
from gateway.agent.metering import Metering
from gateway.agent.models import Models
from gateway.app.models import NoTable
from gateway.domain.message import assistant, text_of, user
from gateway.domain.session import Session, SessionRef
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, LedgerEntry
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, StopReason
from gateway.providers.openai import PLUGIN
from gateway.providers.openai.codec import encode_request
from gateway.runtime.errors import (
    ContextOverflow,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
    SpendCapReached,
    SummaryRefused,
)
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.store_kit import new_session

MAIN = ModelSpec(provider="openai", name="main", base_url="http://127.0.0.1:9/v1", context_length=10_000)
CLAUDE = replace(MAIN, name="anthropic/claude-opus-4", base_url="https://openrouter.ai/api/v1", cache_marks=True)
SESSION = replace(new_session("s1"), system_prompt="be kind", model="main")
TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
MESSAGES = [user("one"), assistant("two"), user("three")]
SENT = Sent(
    session=SESSION.ref,
    spec=MAIN,
    system_prompt="be kind",
    tools=[TOOL],
    tool_choice="auto",
    count=3,
    tokens=6_000,
    at=1_000.0,
    caches=True,
)


def judge(sent: Sent | None = SENT, **changes: Any) -> str | None:
    """The obstacle to repeating `sent` 100 s later with one more message, but for what is changed."""
    usual: dict[str, Any] = {"session": SESSION, "spec": MAIN, "helpers": [MAIN], "count": 4, "added": 2_000}
    return obstacle(sent, **{**usual, "now": 1_100.0, **changes})


def test_after_an_answer_of_a_model_that_caches_the_prefix_is_warm() -> None:
    assert judge() is None
    assert judge(count=3) is None


@pytest.mark.parametrize(
    ("expected", "sent", "changes"),
    [
        ("another summariser", SENT, {"helpers": [replace(MAIN, name="small"), MAIN]}),
        ("another summariser", SENT, {"helpers": [replace(MAIN, name="small")]}),
        ("nothing sent", None, {}),
        ("another model", replace(SENT, spec=replace(MAIN, name="before")), {}),
        ("another model", replace(SENT, spec=replace(MAIN, base_url="http://127.0.0.1:8/v1")), {}),
        ("no cache", replace(SENT, caches=False), {}),
        ("cold", SENT, {"now": 1_300.0}),
        ("cold", SENT, {"now": 999.0}),
        ("another session", replace(SENT, session=SessionRef(id="parent", epoch=1)), {}),
        ("another session", replace(SENT, session=SessionRef(id="s1", epoch=9)), {}),
        ("another session", SENT, {"session": replace(SESSION, system_prompt="be kind, and brief")}),
        ("another prefix", SENT, {"count": 2}),
        ("no room", SENT, {"added": 3_489}),
    ],
)
def test_every_reason_not_to_repeat_a_request(expected: str, sent: Sent | None, changes: dict[str, Any]) -> None:
    assert judge(sent, **changes) == expected


def test_the_edges_of_time_and_room() -> None:
    hour = replace(MAIN, cache_ttl="1h")
    assert judge(now=1_299.9) is None
    sent = replace(SENT, spec=hour)  # by its marks, whatever the settings say by now
    assert judge(sent, now=4_599.0) is None
    assert judge(sent, now=4_600.0) == "cold"
    assert judge(added=3_488) is None


def test_a_model_is_known_to_cache_once_it_said_so_and_another_is_not_by_that() -> None:
    prefix = Prefix()
    silent, telling = CanonicalUsage(input_tokens=9), CanonicalUsage(input_tokens=9, cache_read_tokens=1)
    assert not prefix.caches(MAIN, silent)
    assert prefix.caches(MAIN, telling)
    assert prefix.caches(MAIN, CanonicalUsage(cache_write_tokens=1))
    assert prefix.caches(CLAUDE, silent), "caching is announced for it"
    prefix.sent = SENT
    assert prefix.caches(MAIN, silent), "the cache had gone cold, which proves nothing"
    assert not prefix.caches(replace(MAIN, name="other"), silent)


def test_where_repeating_did_not_pay_it_is_not_tried_again() -> None:
    prefix = Prefix(SENT, missed=MAIN)
    assert not prefix.caches(MAIN, CanonicalUsage(cache_read_tokens=1))
    assert prefix.caches(CLAUDE, CanonicalUsage())


@pytest.mark.parametrize("spec", [MAIN, CLAUDE], ids=["by itself", "by marks"])
def test_on_the_wire_the_repeated_request_begins_like_the_one_before(spec: ModelSpec) -> None:
    sent = replace(SENT, spec=spec)
    before = encode_request(spec, ModelRequest(messages=prompt("be kind", MESSAGES, spec), tools=[TOOL]))
    body = encode_request(spec, repeated(sent, [*MESSAGES, assistant("four")], "take notes", 500))
    assert body["messages"][: len(before["messages"])] == before["messages"]
    assert [message["role"] for message in body["messages"][len(before["messages"]) :]] == ["assistant", "user"]
    assert body["messages"][-1]["content"] == "take notes"
    assert body["tools"] == before["tools"]
    assert body["max_tokens"] == 500


def test_tools_must_not_be_called_but_where_that_would_cost_the_cache() -> None:
    assert repeated(SENT, MESSAGES, "x", 9).tool_choice == "none"
    assert repeated(replace(SENT, spec=CLAUDE), MESSAGES, "x", 9).tool_choice == "auto"


JUST_NOW = replace(SENT, at=0.0)  # where a ManualClock begins


HELPER = replace(MAIN, name="helper")


class Answering:
    """A provider with one answer (or failure) per model; it keeps what it was asked."""

    name = "openai"

    def __init__(self, **answers: Completed | Exception) -> None:
        self.answers = answers
        self.asked: list[ModelRequest] = []
        self.specs: list[ModelSpec] = []

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(request)
        self.specs.append(spec)
        answer = self.answers[spec.name]
        if isinstance(answer, Exception):
            raise answer
        yield answer

    async def aclose(self) -> None:
        """Nothing is open."""


def metering(provider: Answering, clock: ManualClock, helper: ModelSpec | None = None) -> Metering:
    """One without caps, which never asks its store."""
    known = Models(
        main=MAIN,
        providers={"openai": provider},
        plugins={"openai": PLUGIN},
        windows=NoTable(),
        prices=NoTable(),
        auxiliary={"compression": helper} if helper else {},
    )
    return Metering(
        models=known, store=cast(Store, None), caps=Caps(), counter=TokenCounter(), clock=clock, ids=SequentialIds()
    )


def auxiliary(
    provider: Answering,
    charged: list[LedgerEntry],
    *,
    prefix: Prefix | None = None,
    helper: ModelSpec | None = None,
    live: ModelSpec = MAIN,
) -> AuxiliaryModel:
    return AuxiliaryModel(
        metering=metering(provider, ManualClock(), helper),
        purpose="compression",
        session=lambda: SESSION,
        live=lambda: live,
        prefix=prefix or Prefix(),
        charge=charged.append,
    )


# -- asking by itself ---------------------------------------------------------------------------


async def ask(provider: Answering, charged: list[LedgerEntry], **more: Any) -> tuple[str, str | None]:
    text = await auxiliary(provider, charged, **more)([user("summarise")], 100)
    return str(text), text.failed_model


async def test_the_purposes_own_model_answers_and_is_charged() -> None:
    charged: list[LedgerEntry] = []
    usage = CanonicalUsage(input_tokens=7)
    provider = Answering(helper=Completed(text="notes", usage=usage))
    assert await ask(provider, charged, helper=HELPER) == ("notes", None)
    assert [(entry.model, entry.purpose, entry.usage) for entry in charged] == [("helper", "compression", usage)]


@pytest.mark.parametrize("failure", [ProviderUnavailable("down"), Completed(text="half", stop="length")])
async def test_when_it_fails_the_live_model_answers_and_the_failure_is_named(failure: Completed | Exception) -> None:
    provider = Answering(helper=failure, main=Completed(text="notes"))
    assert await ask(provider, [], helper=HELPER) == ("notes", "helper")
    assert [spec.name for spec in provider.specs] == ["helper", "main"]


@pytest.mark.parametrize(("silence", "borne"), [(None, None), (90.0, 180.0), (300.0, 300.0)])
async def test_the_last_model_that_can_be_asked_is_not_left_early(silence: float | None, borne: float | None) -> None:
    provider = Answering(helper=ProviderUnavailable("down"), main=Completed(text="notes"))
    await ask(provider, [], helper=HELPER, live=replace(MAIN, silence=silence))
    assert [(spec.name, spec.silence) for spec in provider.specs] == [("helper", None), ("main", borne)]


async def test_when_all_fail_the_last_error_goes_up() -> None:
    provider = Answering(helper=ProviderUnavailable("down"), main=ProviderUnavailable("down, too"))
    with pytest.raises(ProviderError, match="too"):
        await ask(provider, [], helper=HELPER)


@pytest.mark.parametrize("stop", ["length", "refused"])
async def test_a_cut_or_refused_answer_is_charged_and_refused(stop: StopReason) -> None:
    charged: list[LedgerEntry] = []
    with pytest.raises(SummaryRefused):
        await ask(Answering(main=Completed(text="half", stop=stop)), charged)
    assert len(charged) == 1


class Till:
    """A store that only charges sessions."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, str, int]] = []

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        self.charged += [(session.id, call.purpose, call.usage.output_tokens) for call in calls]


@pytest.mark.parametrize(
    ("answer", "text", "charged"),
    [
        (Completed(text="Tea", usage=CanonicalUsage(output_tokens=3)), "Tea", [("s1", "title", 3)]),
        (Completed(text="Te", stop="length", usage=CanonicalUsage(output_tokens=3)), "", [("s1", "title", 3)]),
        (ProviderUnavailable("down"), "", []),
    ],
)
async def test_a_conversation_pays_for_the_small_request_beside_it(
    answer: Completed | Exception, text: str, charged: list[tuple[str, str, int]]
) -> None:
    till, counted = Till(), metering(Answering(main=answer), ManualClock())
    counted.store = cast(Store, till)
    request = ModelRequest(messages=[user("Name it.")], max_tokens=9)
    assert await asked_aside(SESSION, MAIN, counted, request) == text
    assert till.charged == charged


# -- asking in place -----------------------------------------------------------------------------


async def ask_in_place(
    answer: Completed | Exception, sent: Sent | None = JUST_NOW, **more: Any
) -> tuple[str | None, Answering, list[LedgerEntry]]:
    charged: list[LedgerEntry] = []
    provider = Answering(main=answer)
    model = auxiliary(provider, charged, prefix=Prefix(sent), **more)
    return await model.aligned([*MESSAGES, assistant("four")], "take notes", 500), provider, charged


async def test_an_aligned_call_is_charged_as_compression_with_what_the_cache_gave() -> None:
    usage = CanonicalUsage(input_tokens=50, cache_read_tokens=5_950, output_tokens=20)
    text, provider, charged = await ask_in_place(Completed(text="## Goal\nx", usage=usage))
    assert text == "## Goal\nx"
    [request] = provider.asked
    assert [text_of(message) for message in request.messages] == [
        "be kind",
        "one",
        "two",
        "three",
        "four",
        "take notes",
    ]
    assert [(entry.purpose, entry.model, entry.usage) for entry in charged] == [("compression", "main", usage)]


@pytest.mark.parametrize(("read", "missed"), [(5_888, None), (0, MAIN)])
async def test_whether_it_paid_is_remembered(read: int, missed: ModelSpec | None) -> None:
    prefix = Prefix(JUST_NOW)
    answer = Completed(text="## Goal\nx", usage=CanonicalUsage(input_tokens=90, cache_read_tokens=read))
    await auxiliary(Answering(main=answer), [], prefix=prefix).aligned(MESSAGES, "take notes", 500)
    assert prefix.missed == missed


@pytest.mark.parametrize("sent", [None, replace(SENT, at=-300.0)])
async def test_without_a_warm_cache_nothing_is_sent(sent: Sent | None) -> None:
    text, provider, charged = await ask_in_place(Completed(text="never"), sent)
    assert (text, provider.asked, charged) == (None, [], [])


async def test_a_summariser_of_its_own_is_never_asked_in_place() -> None:
    text, provider, _ = await ask_in_place(Completed(text="never"), helper=replace(MAIN, name="small"))
    assert (text, provider.asked) == (None, [])


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflow("too long"),
        OutputCapTooLarge("too much"),
        ProviderRejected("odd roles", status=400),
        SpendCapReached("the whole prompt could cost too much"),
    ],
)
async def test_a_request_that_is_refused_leaves_the_other_way_open(error: Exception) -> None:
    text, provider, charged = await ask_in_place(error)
    assert (text, len(provider.asked), charged) == (None, 1, [])


@pytest.mark.parametrize("error", [ProviderUnavailable("down"), QuotaExceeded("empty", status=402)])
async def test_what_would_fail_the_other_way_too_goes_up(error: Exception) -> None:
    with pytest.raises(type(error)):
        await ask_in_place(error)


async def test_a_call_of_a_tool_is_refused_and_charged() -> None:
    call: Any = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    charged: list[LedgerEntry] = []
    answer = Completed(text="## Goal", tool_calls=(call,), stop="tool_calls")
    model = auxiliary(Answering(main=answer), charged, prefix=Prefix(JUST_NOW))
    with pytest.raises(SummaryRefused, match="called a tool"):
        await model.aligned(MESSAGES, "take notes", 500)
    assert len(charged) == 1


async def test_a_silent_attempt_that_the_vendor_may_bill_is_charged_by_an_estimate() -> None:
    charged: list[LedgerEntry] = []
    silent = ProviderUnavailable("nothing came", timed_out=True, billable=True)
    with pytest.raises(ProviderUnavailable):
        await auxiliary(Answering(main=silent), charged, prefix=Prefix(JUST_NOW)).aligned(MESSAGES, "notes", 500)
    assert [entry.purpose for entry in charged] == [BROKEN_OFF]
    assert charged[0].usage.input_tokens >= SENT.tokens
