"""Counted is billed: whatever a server tells of a call's usage is in the ledger and under the caps, however the call
ended, on each API. The server here bills what it tells; an attempt of which it tells nothing is estimated."""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.metering import Metering
from gateway.domain.message import user
from gateway.domain.usage import BROKEN_OFF, LedgerEntry
from gateway.providers.adapting import Adapting
from gateway.providers.anthropic.messages import Messages
from gateway.providers.base import ModelRequest, ModelSpec, Provider, ReasoningDelta, TextDelta
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.openai_responses.responses import Responses
from gateway.providers.retry import Retrying
from gateway.runtime.errors import ProviderError
from tests.emulators.llm import WIRES
from tests.emulators.llm_replies import Reply
from tests.support.fakes import ManualClock
from tests.unit.agent.test_metering import NOON, SPEC, WORST, Accounts, metering, session

APIS = {"openai": ChatCompletions, "anthropic": Messages, "openai-responses": Responses}
REQUEST = ModelRequest(
    messages=[user("hello")],
    prompt_tokens=1_000,
    tools=[
        {"type": "function", "function": {"name": "clock", "description": "Time.", "parameters": {"type": "object"}}}
    ],
)
REFUSALS = (
    (429, "Rate limit reached for requests."),
    (500, "The server had an error."),
    (400, "This model does not support tools."),
    (400, "Unrecognized request argument supplied: stream_options"),
    (400, "Your credit balance is too low."),
)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """One way in which a call ends. `kind`: "answer", "nothing" (a whole answer without a choice), "refused",
    "error" (inside a 200, after so many frames) or "cut" (after so many frames, `tidy` or not)."""

    kind: str
    usage: tuple[int, int] | None
    text: str = ""
    calls: bool = False
    finish: str | None = None
    stream: bool = True
    after: int = 0
    tidy: bool = False
    refusal: tuple[int, str] = REFUSALS[0]


ENDINGS = st.builds(
    Ending,
    kind=st.sampled_from(["answer", "answer", "nothing", "refused", "error", "cut"]),
    usage=st.none() | st.tuples(st.integers(1, 5_000), st.integers(1, 900)),
    text=st.sampled_from(["", "", "word " * 9, "<think>words</think>"]),
    calls=st.booleans(),
    finish=st.sampled_from([None, None, "length", "content_filter", "error", "model_context_window_exceeded"]),
    stream=st.booleans(),
    after=st.integers(0, 6),
    tidy=st.booleans(),
    refusal=st.sampled_from(REFUSALS),
)


class Body(httpx.AsyncByteStream):
    """The pieces of an answer, and perhaps a break behind them."""

    def __init__(self, pieces: list[str], *, breaks: bool) -> None:
        self._pieces, self._breaks = pieces, breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece.encode()
        if self._breaks:
            raise httpx.ReadError("the connection dropped")


@dataclass(frozen=True)
class Bill:
    """What a server told of one attempt: `final` unless its stream broke before its last figures. `spoke`: it answered
    at all."""

    told: tuple[int, int] | None
    final: bool = True
    spoke: bool = True


@dataclass
class Till(httpx.AsyncBaseTransport):
    """A server that ends its calls as it is told, then answers; it keeps what it told of each."""

    api: str
    endings: list[Ending]
    bills: list[Bill] = field(default_factory=list)
    silent: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        ending = self.endings.pop(0) if self.endings else Ending(kind="answer", usage=(11, 3), text="done")
        status = ending.refusal[0] if ending.kind == "refused" else 200
        pieces = list(self._pieces(ending, body))
        whole = ending.kind in ("answer", "nothing") or ending.tidy
        spoke = "wor" in "".join(pieces) if ending.kind == "error" else ending.kind != "refused"
        self.bills.append(_bill(pieces, spoke=spoke))
        self.asked.set()
        if self.silent:
            await asyncio.Event().wait()
        return httpx.Response(status, stream=Body(pieces, breaks=ending.kind == "cut" and not whole))

    def _pieces(self, ending: Ending, body: Mapping[str, Any]) -> Iterator[str]:
        wire = next(wire for wire in WIRES if wire.path == _PATHS[self.api])
        calls = [("clock", {})] if ending.calls and ending.kind != "error" else []
        usage = _usage(self.api, ending.usage)
        reply = Reply(text=ending.text, tool_calls=calls, finish=ending.finish, usage=usage)
        frames = wire.frames(body, reply, 1, len, 1, 0)
        if ending.kind == "nothing":
            yield json.dumps({"choices": [], "content": [], "output": [], "status": "completed", "usage": usage})
        elif ending.kind == "refused":
            error = {"message": ending.refusal[1]}
            yield json.dumps({**json.loads(wire.error(ending.refusal[0], error)), "usage": usage})
        elif ending.kind == "error":
            yield from list(frames)[:-3][: ending.after]  # before its end
            failed = {"type": "error", "error": {"message": "overloaded"}, "usage": usage}
            yield f"data: {json.dumps(failed)}\n\n"
        elif ending.kind == "cut":
            yield from list(frames)[: ending.after]
        else:
            yield from frames if ending.stream else [frames.whole()]


_PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "openai-responses": "/v1/responses"}


def _usage(api: str, counts: tuple[int, int] | None) -> dict[str, int]:
    names = ("prompt_tokens", "completion_tokens") if api == "openai" else ("input_tokens", "output_tokens")
    return dict(zip(names, counts, strict=True)) if counts else {}


def _bill(pieces: list[str], *, spoke: bool) -> Bill:
    """What stands in the bytes that were sent."""
    told: dict[str, int] = {}
    events = [json.loads(found) for piece in pieces for found in _texts(piece)]
    usages = [each for event in events for each in _usages(event)]
    for usage in usages:
        told |= {name: number for name, number in usage.items() if isinstance(number, int)}
    counts = (told.get("prompt_tokens", told.get("input_tokens", 0)),
              told.get("completion_tokens", told.get("output_tokens", 0)))  # fmt: skip
    final = not any(event.get("type") == "message_start" for event in events) or len(usages) > 1
    return Bill(counts if any(counts) else None, final, spoke)


def _texts(piece: str) -> Iterator[str]:
    if piece.startswith("{"):
        yield piece
    for line in piece.splitlines():
        if line.startswith("data: {"):
            yield line.removeprefix("data: ")


def _usages(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for holder in (event, event.get("message"), event.get("response")):
        if isinstance(holder, dict) and holder.get("usage"):
            yield holder["usage"]


class Hasty(ManualClock):
    """Time that has passed at once where somebody sleeps."""

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds
        await asyncio.sleep(0)


class Desk:
    """Calls over one API, metered under a cap, and the ledger of them."""

    def __init__(self, api: str, *endings: Ending) -> None:
        clock = Hasty(NOON)
        self.till, self.store, self.ledger = Till(api, [*endings]), Accounts(), list[LedgerEntry]()
        served: Provider = APIS[api](httpx.AsyncClient(transport=self.till), str, clock=clock)
        provider: Any = Retrying(Adapting(served), clock=clock, rng=random.Random(1), deadline=1e9)
        self.metering: Metering = metering(self.store, provider, clock=clock, daily_usd=1_000)

    async def call(self, leave_after: int | None = None) -> bool:
        """Make a call; says whether it was left early."""
        spec = ModelSpec(provider="openai", name=SPEC.name, max_output_tokens=SPEC.max_output_tokens)
        over, count = self.metering, 0
        try:
            call = over.call(spec, REQUEST, session("s1"), "turn", self.ledger.append)
            async with call:
                async for event in call.events:
                    call.see(event)
                    count += 1
                    if count == leave_after and isinstance(event, TextDelta | ReasoningDelta):
                        return True
        except ProviderError:
            pass
        return False

    @property
    def spent(self) -> int:
        return sum(self.store.sums.values())


@pytest.mark.parametrize("api", APIS)
@given(endings=st.lists(ENDINGS, max_size=5), leave_after=st.none() | st.integers(1, 6))
def test_counted_is_billed_however_a_call_ends(api: str, endings: list[Ending], leave_after: int | None) -> None:
    desk = Desk(api, *endings)
    left = asyncio.run(desk.call(leave_after))
    bills = desk.till.bills
    if left:  # nobody has heard the figures of this one
        bills[-1] = Bill(None)
    entries, costs, estimated = deque(desk.ledger), 0, 0
    for bill in bills:
        if bill.told is not None:
            entry = entries.popleft()
            told, output = bill.told, entry.usage.output_tokens
            assert (entry.purpose, entry.usage.prompt_tokens) == ("turn", told[0])
            assert output == told[1] or (output > told[1] and not bill.final)
            costs += round(1e6 * (entry.cost_usd or 0))
        elif bill.spoke:
            estimated += 1
            assert entries.popleft().usage.prompt_tokens == 1_000
    assert not entries
    assert desk.spent == costs + estimated * WORST


async def test_a_silent_call_that_is_left_is_estimated() -> None:
    """The vendor had the prompt, and bills it."""
    desk = Desk("openai", Ending(kind="answer", usage=None, text="late"))
    desk.till.silent = True
    call = asyncio.create_task(desk.call())
    await desk.till.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert [(entry.purpose, entry.usage.prompt_tokens) for entry in desk.ledger] == [(BROKEN_OFF, 1_000)]
    assert desk.spent == WORST
