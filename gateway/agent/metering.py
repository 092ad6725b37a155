"""The spend caps: every model call of every purpose goes through here.

Where a cap is configured, a call's worst case is reserved under each cap that applies before the call is sent, and
replaced by its real cost when the answer is there. So no number of turns and processes overruns a cap, as far as the
prompt is counted right: the reservation adds a quarter to what the model's reports let expect, and more before the
first report. Without a cap the store is not asked.

The usage that a provider tells is the cost of a call, however the call ended: in an answer, in an empty one, in an
error. Without it, a call that was refused, or that nobody answered, cost nothing. Any other one stays at its worst
case, and so does a call whose process died, because the money may have been spent. The ledger gets an estimate of it
(`ModelCall`). Each attempt that `providers.retry` repeats counts by itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, Final, Self

import structlog
from msgspec import Struct

from gateway.agent.caps import (
    NEAR_MARK,
    UNPRICED,
    UNPRICED_AT_START,
    Caps,
    Standing,
    WorstCase,
    in_force,
    mark_of,
    millionths,
    nearly,
    refusal,
    written,
)
from gateway.agent.files.view import FileView
from gateway.agent.models import Models
from gateway.domain.chat import SessionKey
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, LedgerEntry, Purpose, Seller, estimated_output
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, ReasoningDelta, Restarted, TextDelta
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.errors import (
    ConfigError,
    ContextOverflow,
    GatewayError,
    MediaFailed,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    StoreUnavailable,
    UserError,
)
from gateway.runtime.metrics import Counter, Histogram, outcome_of
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Cap, Reservation

log = structlog.get_logger(__name__)

_PATIENCE: Final = 60.0  # seconds for which a call waits for the ends of others that have set money aside
_MARGIN: Final = 1.25  # of the prompt's count: a provider may count more than its last reports let expect
_UNKNOWN_MARGIN: Final = 2.5  # before a model's first report; vendors' tokenizers cut Chinese up to as fine as that
_MOST_ROOTS: Final = 10_000  # sessions whose lineage's root is remembered
_NO_USAGE: Final = CanonicalUsage()
_NOTHING: Final = Reservation(id="", amount=0, caps=())
LEAST_OUTPUT: Final = 1_024  # tokens of an answer that a cap has shortened; models that think need some for that

CALLS: Final = Histogram(
    name="model_call_seconds",
    text="How long model calls took, repeated attempts included.",
    labels=("provider", "model", "purpose", "outcome"),
)
CAPS_MET: Final = Counter(name="caps_met", text="Model calls refused by a spend cap.", labels=("cap",))


class ModelCall(Struct, kw_only=True):
    """A call as a block. Its `events` are those of `Provider.stream`, and whoever reads them shows each to `see`.
    `enter` is called with a ledger line for each attempt that its vendor may bill. An attempt that was left early is
    one of them: the vendor had it. `estimate` gives the usage of an attempt that told none, by what it said. `began`:
    when, on the monotonic clock."""

    models: Models
    clock: Clock
    spec: ModelSpec
    session: Session
    purpose: Purpose
    events: AsyncGenerator[ModelEvent, None]
    enter: Callable[[LedgerEntry], None]
    estimate: Callable[[str], CanonicalUsage]
    began: float
    said: list[str] = []  # by the attempt under way
    is_billed: bool = True  # whether the attempt under way may be

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            await self.events.aclose()
        finally:
            self._end(error)

    def see(self, event: ModelEvent) -> None:
        """Note what an event says of the attempt under way."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self.said.append(event.text)
            return
        if isinstance(event, Completed):
            self.is_billed = False
        elif not event.broke_off:
            return
        usage = event.usage or self.estimate("".join(self.said))
        line = self.purpose if event.usage or isinstance(event, Completed) else BROKEN_OFF
        self.enter(self.models.entry(self.clock.now(), line, self.spec, usage))
        self.said.clear()

    def _end(self, error: BaseException | None) -> None:
        outcome, told = "broken_off", None
        if error is None:
            outcome = "answered"
            self.models.answered(self.spec)
        elif isinstance(error, GatewayError):  # one of our own may have come before the call
            outcome = outcome_of(error)
            is_known = isinstance(error, ProviderError) and bool(error.usage or error.billable)
            self.is_billed = self.is_billed and (bool(self.said) or is_known)
        if isinstance(error, ProviderError):
            told = error.usage
            self.models.failed(self.spec, error)
            if not isinstance(error, ContextOverflow | OutputCapTooLarge):  # for these the caller makes the prompt fit
                log.warning(
                    "model_call_failed",
                    provider=self.spec.provider,
                    model=self.spec.name,
                    purpose=self.purpose,
                    status=error.status,
                    cause=str(error),
                    session=self.session.id,
                )
        if self.is_billed:
            self.see(Restarted(broke_off=True, usage=told))
        CALLS.observe(self.clock.monotonic() - self.began, self.spec.provider, self.spec.name, self.purpose, outcome)


@dataclass(slots=True, kw_only=True)
class Metering:
    """Calls models within the spend caps; `chats` are those of places. A day begins at 00:00 UTC, the same on every
    host. The cap of a person counts for the one who is answered (`person`, a user's id); of calls that answer nobody,
    for the user in the conversation's key, else for its chat. A session's cap spans its whole lineage. Raises
    ConfigError for a cap and a configured model without a known price."""

    models: Models
    store: Store
    caps: Caps
    chats: Mapping[str, float] = field(default_factory=dict)
    counter: TokenCounter
    clock: Clock
    ids: Ids
    beside: tuple[Cap, ...] = ()  # caps of this use of it
    person: str | None = None  # who is answered in this use of it
    caller: Session | None = None  # whose helper calls in this use of it: it spends what its caller may spend
    view: FileView = field(init=False)
    has_caps: bool = field(init=False)  # whether some call may have to be refused
    _roots: dict[str, str] = field(default_factory=dict)
    _until_look: dict[str, int] = field(default_factory=dict)  # may be spent here before a cap is looked at again
    _under_way: Tally[str] = field(default_factory=Tally)  # by account: set aside for calls that still run here
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)  # calls that wait for the end of others

    def __post_init__(self) -> None:
        self.view = FileView(self.store)
        self.has_caps = bool(self.caps or self.chats)
        if self.has_caps:
            self._require_prices()

    def take_up(self, other: Metering) -> None:
        """Go on with another one's models and caps. What was learned and spent stays."""
        self.models.become(other.models)
        self.caps, self.chats, self.has_caps = other.caps, other.chats, other.has_caps

    def within(self, *caps: Cap) -> Metering:
        """The same, for one use that also has caps of its own. They hold if the model's price is known."""
        use = copy(self)  # which shares all that was learned
        use.beside = caps
        return use

    def helping(self, caller: Session) -> Metering:
        """The same for a helper of a session."""
        use = copy(self)
        use.caller = caller
        return use

    def answering(self, person: str) -> Metering:
        """The same for the turn of this user. Without a cap for people it makes no difference."""
        if self.caps.per_user_daily_usd is None:
            return self
        use = copy(self)
        use.person = person
        return use

    def _require_prices(self) -> None:
        configured = {"model": self.models.main}
        configured |= {f"fallback_models[{index}]": spec for index, spec in enumerate(self.models.fallbacks)}
        configured |= {f"chats.{place}.model": spec for place, spec in self.models.of_places.items()}
        configured |= {"search.embeddings": self.models.embedding} if self.models.embedding else {}
        configured |= {f"auxiliary.{purpose}": spec for purpose, spec in self.models.auxiliary.items()}
        sample = CanonicalUsage(input_tokens=1, output_tokens=1)
        problems = [
            UNPRICED_AT_START.format(where=where, model=spec.name)
            for where, spec in configured.items()
            if self._price(spec, sample) is None
        ]
        if problems:
            raise ConfigError(problems)

    # -- calling ----------------------------------------------------------------------------

    def call(
        self,
        spec: ModelSpec,
        request: ModelRequest,
        session: Session,
        purpose: Purpose,
        enter: Callable[[LedgerEntry], None],
        *,
        least: int | None = None,
    ) -> ModelCall:
        """Return a call of the model for this session, whose block may raise SpendCapReached before anything is sent.
        `least`: the output tokens that would do; None: all that the request asks for."""
        session = self.caller or session
        return ModelCall(
            models=self.models,
            clock=self.clock,
            spec=spec,
            session=session,
            purpose=purpose,
            events=self._stream(spec, request, session, least),
            enter=enter,
            estimate=partial(self._estimate, spec, request),
            began=self.clock.monotonic(),
        )

    def _stream(
        self, spec: ModelSpec, request: ModelRequest, session: Session, least: int | None
    ) -> AsyncGenerator[ModelEvent, None]:
        """Return the call's events, within the caps.

        With a cap, a call without a limit of its own gets the model's `reserved_output`, because its worst case would
        be the whole window. A call that costs nothing needs no room.
        """
        provider = self.models.provider(spec)
        if not self.has_caps and not self.beside:
            return self.view.stream(provider, spec, request, session.key)
        limited = replace(request, max_tokens=request.max_tokens or spec.reserved_output)
        worst = self._worst_case(spec, limited, least)
        if not worst.amount:
            return self.view.stream(provider, spec, request, session.key)
        return self._metered(self.view.stream(provider, spec, limited, session.key), spec, session, worst)

    async def _metered(
        self, stream: AsyncGenerator[ModelEvent, None], spec: ModelSpec, session: Session, worst: WorstCase
    ) -> AsyncGenerator[ModelEvent, None]:
        reservation = await self._reserve(worst, session)
        begun = False
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    begun = not (isinstance(event, Restarted) and event.broke_off)
                    if isinstance(event, Restarted | Completed):
                        await self._settle(reservation, self._told(spec, event.usage))
                    yield event
                    if not begun:  # the attempt is in the ledger, and another one needs room
                        self._ended(reservation)
                        reservation = _NOTHING
                        reservation = await self._reserve(worst, session)
        except ProviderError as error:
            free = not (begun or error.billable or error.usage)
            await self._settle(reservation, 0 if free else self._told(spec, error.usage))
            raise
        finally:
            self._ended(reservation)

    @asynccontextmanager
    async def paying(self, session: Session, most: float) -> AsyncIterator[Callable[[float | None], None]]:
        """Set aside US dollars for a purchase other than a model call: the most that it can cost. Yields a function
        that takes the real cost; None: it stays at the most. A failed purchase costs nothing. Raises
        SpendCapReached."""
        costs: list[float | None] = []
        if not self.has_caps or not most:
            yield costs.append
            return
        reservation = await self._reserve(WorstCase(amount=millionths(most)), session)
        try:
            yield costs.append
        except (MediaFailed, ProviderRejected, ProviderRateLimited):
            costs = costs or [0.0]
            raise
        finally:
            if costs and costs[-1] is not None:
                await self._settle(reservation, millionths(costs[-1]))
            self._ended(reservation)

    @asynccontextmanager
    async def buying(
        self,
        session: Session,
        purpose: Purpose,
        seller: Seller,
        most: float | None,
        later: Callable[[LedgerEntry], None] | None = None,
    ) -> AsyncIterator[Callable[..., None]]:
        """`paying`, with a line in the ledger for what the given function was told: the cost, and the usage if there is
        one. `later` is given the line while the store cannot take it."""
        lines: list[LedgerEntry] = []
        async with self.paying(session, most or 0.0) as paid:

            def pay(cost: float | None, usage: CanonicalUsage = _NO_USAGE) -> None:
                paid(cost)
                line = LedgerEntry(
                    at=self.clock.now(), purpose=purpose, provider=seller.provider, model=seller.model, usage=usage,
                    cost_usd=cost,
                )  # fmt: skip
                lines.append(line)

            yield pay
        try:
            await self.store.charge(session, lines)
        except StoreUnavailable:
            if later is None:
                raise
            for line in lines:
                later(line)

    # -- caps -------------------------------------------------------------------------------

    async def standings(self, key: SessionKey, session: Session | None) -> list[Standing]:
        """Return the use of each cap that applies there, widest first."""
        caps = await self._in_force(key, session)
        if not caps:
            return []
        spent = await self.store.spent([cap.account for cap in caps])
        return [Standing(cap=cap, spent=used) for cap, used in zip(caps, spent, strict=True)]

    async def warnings(
        self, session: Session, told: Collection[str], *, another: int = 0
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return a sentence for each cap that is nearly used up and of which nothing was `told`, and the session's
        marks with all that is told now. `another`: the most that a short answer more can cost. The store is asked when
        this process may have spent what was left until then, and at least once a twentieth of a cap."""
        caps = {mark_of(cap): cap for cap in await self._in_force(session.key, session)}
        if not any(self._until_look.get(cap.account, 0) <= 0 for mark, cap in caps.items() if mark not in told):
            return [], tuple(told)
        if len(self._until_look) >= _MOST_ROOTS:
            self._until_look.clear()
        standings = await self.standings(session.key, session)
        self._until_look |= {each.cap.account: each.until_look(another) for each in standings}
        news = [each for each in standings if each.is_near(another) and mark_of(each.cap) not in told]
        others = [mark for mark in told if mark in caps or not mark.startswith(NEAR_MARK)]
        return [nearly(each) for each in news], (*others, *(mark_of(each.cap) for each in news))

    async def _in_force(self, key: SessionKey, session: Session | None) -> tuple[Cap, ...]:
        root = await self._root(session) if session is not None and self.caps.per_session_usd is not None else ""
        return in_force(self.caps, self.chats, key, session, root, self.clock.now(), self.person)

    async def _root(self, session: Session) -> str:
        """Return the first session of the lineage; the store is asked once for each continuation."""
        if session.parent_id is None:
            return session.id
        root = self._roots.get(session.id)
        if root is None:
            root = (await self.store.lineage(session.id))[0].id
            if len(self._roots) >= _MOST_ROOTS:
                self._roots.clear()
            self._roots[session.id] = root
        return root

    # -- reserving --------------------------------------------------------------------------

    async def _reserve(self, worst: WorstCase, session: Session) -> Reservation:
        """Set the worst case aside. Where there is no room only because of calls that still run, and most of which will
        cost less, it waits for their ends. Raises SpendCapReached. While the store cannot be written, the call
        waits."""
        caps = (*await self._in_force(session.key, session), *self.beside)
        reservation = Reservation(id=self.ids.new("r"), amount=worst.amount, caps=caps)
        until = self.clock.monotonic() + _PATIENCE
        first = False  # a call that waited stands before those that came later
        while reached := await insist(lambda: self.store.reserve(reservation), clock=self.clock, what="reserve"):
            cap = reached.cap
            spent = reached.spent - self._under_way[cap.account]
            left = until - self.clock.monotonic()
            if spent + worst.amount > cap.limit or not self._under_way[cap.account] or left <= 0:
                self._wake_next()
                CAPS_MET.count(cap.name)
                raise refusal(reached, worst, self.clock.now())
            await self._wait_for_an_end(left, first=first)
            first = True
        self._under_way.update(dict.fromkeys((cap.account for cap in caps), worst.amount))
        self._wake_next()
        return reservation

    async def _wait_for_an_end(self, seconds: float, *, first: bool) -> None:
        ended = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(ended)
        try:
            async with self.clock.limit(seconds):
                await ended
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if ended.done():
                self._wake_next()
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(ended)

    def _wake_next(self) -> None:
        while self._waiting:
            ended = self._waiting.popleft()
            if not ended.done():
                ended.set_result(None)
                return

    def _ended(self, reservation: Reservation) -> None:
        """The call is over, and its money settled, if it is."""
        for cap in reservation.caps:
            self._under_way[cap.account] -= reservation.amount
            if self._under_way[cap.account] <= 0:
                del self._under_way[cap.account]
        self._wake_next()

    async def _settle(self, reservation: Reservation, cost: int | None) -> None:
        if cost is None:
            return
        for cap in reservation.caps:
            if cap.account in self._until_look:
                self._until_look[cap.account] -= cost
        try:
            await self.store.settle(reservation, cost)
        except StoreUnavailable as error:  # it stays at its worst case, and the answer is kept
            log.warning("spending_not_settled", reservation=reservation.id, error=str(error))

    def _worst_case(self, spec: ModelSpec, request: ModelRequest, least: int | None) -> WorstCase:
        """The most that a call can cost. Raises UserError for a model without a known price, which somebody chose and
        nobody configured."""
        prompt = self._at_most(spec, self._expected(spec, request))
        output = request.max_tokens or 0
        amount = self._dearest(spec, prompt, output)
        if amount is None and not self.has_caps:
            return WorstCase(amount=0)
        if amount is None:
            raise UserError(UNPRICED.format(model=spec.name))
        alone = self._dearest(spec, prompt, 0) or 0
        return WorstCase(
            amount=amount, prompt=alone, output=output, least=output if least is None else min(least, output)
        )

    def _at_most(self, spec: ModelSpec, prompt_tokens: int) -> int:
        """The most tokens that a provider may count if we expect so many."""
        return ceil((_MARGIN if self.models.calibration[spec.name].samples else _UNKNOWN_MARGIN) * prompt_tokens)

    def _estimate(self, spec: ModelSpec, request: ModelRequest, said: str) -> CanonicalUsage:
        """The usage of an attempt that told none: what was sent, by our own count, and what came of the answer."""
        expected = self._expected(spec, request)
        return CanonicalUsage(input_tokens=expected, output_tokens=estimated_output(said))

    def _expected(self, spec: ModelSpec, request: ModelRequest) -> int:
        """The tokens of a prompt as the provider probably counts them."""
        return request.prompt_tokens or self.models.calibration[spec.name].apply(
            self.count(request.messages, request.tools)
        )

    def _dearest(self, spec: ModelSpec, prompt: int, output: int) -> int | None:
        plain = self._price(spec, CanonicalUsage(input_tokens=prompt, output_tokens=output))
        stored = self._price(spec, CanonicalUsage(cache_write_tokens=prompt, output_tokens=output))
        return None if plain is None else max(plain, stored or 0)

    def short_answer(self, spec: ModelSpec, prompt_tokens: int) -> int:
        """Return the most that an answer of the fewest tokens that do can cost, in millionths of a US dollar."""
        return self._dearest(spec, self._at_most(spec, prompt_tokens), min(LEAST_OUTPUT, spec.reserved_output)) or 0

    def count(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> int:
        """Return our own count of a request, in tokens."""
        return sum(map(self.counter.message, messages)) + self.counter.schemas(tools)

    def _told(self, spec: ModelSpec, usage: CanonicalUsage | None) -> int | None:
        """The price of what a provider told; None: it told nothing."""
        return None if usage is None else self._price(spec, usage)

    def _price(self, spec: ModelSpec, usage: CanonicalUsage) -> int | None:
        cost = self.models.prices.cost_usd(spec, usage)
        return None if cost is None else millionths(cost)

    def note(self) -> str | None:
        """The caps and their effect on calls, in one line; None if there are none."""
        named = [
            (self.caps.per_session_usd, "a conversation"),
            (self.caps.per_user_daily_usd, "a person and day"),
            (self.caps.daily_usd, "a day in all"),
        ]
        if not self.has_caps:
            return None
        named += [(cap, f"a day in {place}") for place, cap in self.chats.items()]
        listed = ", ".join(f"{written(millionths(cap))} {what}" for cap, what in named if cap is not None)
        most = self.models.main.reserved_output
        return f"{listed}; days begin at 00:00 UTC; answers that cost anything have at most {most:,} tokens"
