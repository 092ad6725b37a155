"""The warmth of a provider's cache, the request that meets it, and every reason not to try."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from gateway.agent.auxiliary import AuxiliaryModel
from gateway.agent.caching import Obstacle, Prefix, Sent, obstacle, prompt, repeated
from gateway.agent.caps import Caps
from gateway.agent.metering import Metering
from gateway.agent.models import Models
from gateway.app.models import NoTable
from gateway.domain.message import assistant, text_of, user
from gateway.domain.session import SessionRef
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec
from gateway.providers.openai import PLUGIN
from gateway.providers.openai.codec import encode_request
from gateway.runtime.errors import (
    ContextOverflow,
    OutputCapTooLarge,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
    SpendCapReached,
    SummaryRefused,
)
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


def judge(sent: Sent | None = SENT, **changes: Any) -> Obstacle | None:
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
def test_every_reason_not_to_repeat_a_request(expected: Obstacle, sent: Sent | None, changes: dict[str, Any]) -> None:
    assert judge(sent, **changes) == expected


def test_the_edges_of_time_and_room() -> None:
    hour = replace(MAIN, cache_ttl="1h")
    assert judge(now=1_299.9) is None
    assert judge(now=4_599.0, spec=hour, helpers=[hour]) is None
    assert judge(now=4_600.0, spec=hour, helpers=[hour]) == "cold"
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


# -- asking ------------------------------------------------------------------------------------

JUST_NOW = replace(SENT, at=0.0)  # where a ManualClock begins


@dataclass
class Answering:
    """A provider with one answer, or failure; it keeps the requests."""

    answer: Completed | Exception
    name: str = "openai"
    asked: list[ModelRequest] = field(default_factory=list)

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        yield self.answer

    async def aclose(self) -> None:
        """Nothing is open."""


def auxiliary(
    provider: Answering, *, prefix: Prefix, charge: Callable[[LedgerEntry], None], helper: ModelSpec | None = None
) -> AuxiliaryModel:
    clock = ManualClock()
    known = Models(
        main=MAIN,
        providers={"openai": provider},
        plugins={"openai": PLUGIN},
        windows=NoTable(),
        prices=NoTable(),
        auxiliary={"compression": helper} if helper else {},
    )
    metering = Metering(
        models=known,
        store=cast(Store, None),
        caps=Caps(),
        counter=TokenCounter(),
        clock=clock,
        ids=SequentialIds(),
    )
    return AuxiliaryModel(
        metering=metering,
        purpose="compression",
        session=lambda: SESSION,
        live=lambda: MAIN,
        prefix=prefix,
        charge=charge,
        clock=clock,
    )


async def ask(
    answer: Completed | Exception, sent: Sent | None = JUST_NOW, **more: Any
) -> tuple[str | None, Answering, list[LedgerEntry]]:
    charged: list[LedgerEntry] = []
    provider = Answering(answer)
    model = auxiliary(provider, prefix=Prefix(sent), charge=charged.append, **more)
    return await model.aligned([*MESSAGES, assistant("four")], "take notes", 500), provider, charged


async def test_an_aligned_call_is_charged_as_compression_with_what_the_cache_gave() -> None:
    usage = CanonicalUsage(input_tokens=50, cache_read_tokens=5_950, output_tokens=20)
    text, provider, charged = await ask(Completed(text="## Goal\nx", usage=usage))
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
    await auxiliary(Answering(answer), prefix=prefix, charge=[].append).aligned(MESSAGES, "take notes", 500)
    assert prefix.missed == missed


@pytest.mark.parametrize("sent", [None, replace(SENT, at=-300.0)])
async def test_without_a_warm_cache_nothing_is_sent(sent: Sent | None) -> None:
    text, provider, charged = await ask(Completed(text="never"), sent)
    assert (text, provider.asked, charged) == (None, [], [])


async def test_a_summariser_of_its_own_is_never_asked_in_place() -> None:
    text, provider, _ = await ask(Completed(text="never"), helper=replace(MAIN, name="small"))
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
    text, provider, charged = await ask(error)
    assert (text, len(provider.asked), charged) == (None, 1, [])


@pytest.mark.parametrize("error", [ProviderUnavailable("down"), QuotaExceeded("empty", status=402)])
async def test_what_would_fail_the_other_way_too_goes_up(error: Exception) -> None:
    with pytest.raises(type(error)):
        await ask(error)


async def test_a_call_of_a_tool_is_refused_and_charged() -> None:
    call: Any = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    charged: list[LedgerEntry] = []
    model = auxiliary(
        Answering(Completed(text="## Goal", tool_calls=(call,), stop="tool_calls")),
        prefix=Prefix(JUST_NOW),
        charge=charged.append,
    )
    with pytest.raises(SummaryRefused, match="called a tool"):
        await model.aligned(MESSAGES, "take notes", 500)
    assert len(charged) == 1
