"""Calls the hooks of plug-ins (`moments`), so that none of them breaks or delays a turn.

If a hook raises, hangs or answers what its moment does not know, that is logged and the turn goes on without it. A hook
that overran its limit rests for a while. Loaded only if a plug-in with hooks is installed.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, Final

import structlog
from msgspec import Struct, field

from gateway.agent.moments import (
    ANSWERS,
    Answered,
    Asked,
    Called,
    Compact,
    Compacting,
    Moment,
    Refuse,
    Returned,
    Said,
    Words,
)
from gateway.agent.tools.arguments import parsed
from gateway.context.prompts import neutralise
from gateway.context.threads import OwnThread
from gateway.domain.chat import Inbound, readable
from gateway.domain.message import Message, ToolCall, tool_result
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelSpec
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ConfigError, ToolError
from gateway.runtime.metrics import Histogram
from gateway.runtime.plugins import contained, load, origin
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

SECONDS: Final = 5.0  # for one hook
REST: Final = 600.0  # seconds for which a hook that overran this is not called
_LONGEST_NOTE: Final = 4_000  # characters
_REMEMBERED: Final = 256  # messages whose answers are known: one that waits for its turn is looked at again
NOTED: Final = "[Note of the plug-in {name}: {text}]"
REFUSED: Final = "Error: {tool} was not called: {sentence}"

HOOKS: Final = Histogram(
    name="hook_seconds",
    text="Time that a plug-in's hook took, and how it ended: answered, failed or timed out.",
    labels=("plugin", "hook", "outcome"),
)


class Heard(Struct, frozen=True):
    """A message as the hooks left it, or the sentence of a refusal."""

    said: Inbound
    refusal: str = ""


class Plugged(Struct, kw_only=True):
    """The hooks of all plug-ins, by the plug-ins' names in their order."""

    plugins: Mapping[str, Any]
    clock: Clock
    _threads: dict[str, OwnThread] = field(default_factory=dict)
    _resting: dict[tuple[str, str], float] = field(default_factory=dict)  # until when (monotonic)
    _heard: OrderedDict[str, Heard] = field(default_factory=OrderedDict)
    _wishes: dict[str, str] = field(default_factory=dict)  # by session: who asked for a compaction

    # -- the moments ------------------------------------------------------------------------

    async def message(self, session: Session, said: Inbound) -> Heard:
        """`on_message`."""
        known = f"{session.key} {said.event_id} {readable(said)}"  # one that waits may be corrected
        if (before := self._heard.get(known)) is not None:
            return before
        self._heard[known] = heard = await self.words(session, said)
        if len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)
        return heard

    async def words(self, session: Session, said: Inbound) -> Heard:
        """`on_message`, also of what answers a question in the middle of a turn."""
        text, refusal = readable(said), ""
        moment = Said(session=session, source=said.source, text=text, files=len(said.attachments))
        own = said.text if said.own is None else said.own
        async for name, answer in self._answers("on_message", moment):
            if isinstance(answer, Refuse):
                refusal = answer.text
            else:
                noted = NOTED.format(name=name, text=neutralise(answer.text[:_LONGEST_NOTE]))
                said = replace(said, text=f"{said.text}\n{noted}".lstrip(), own=own)
        return Heard(said, refusal)

    async def asked(self, session: Session, spec: ModelSpec, messages: Sequence[Message]) -> None:
        """`before_model`."""
        if self._has("before_model"):
            await self._tell(
                "before_model", Asked(session=session, model=spec.name, messages=copy.deepcopy([*messages]))
            )

    async def answered(self, session: Session, spec: ModelSpec, completed: Completed) -> None:
        """`after_model`."""
        if not self._has("after_model"):
            return
        moment = Answered(
            session=session,
            model=spec.name,
            text=completed.text,
            calls=tuple(copy.deepcopy(completed.tool_calls)),
            usage=completed.usage or CanonicalUsage(),
        )
        await self._tell("after_model", moment)

    async def refusals(self, session: Session, calls: Sequence[ToolCall], done: Collection[str]) -> dict[str, Message]:
        """`before_tool`: the results of the calls that are refused, of those that are not `done`."""
        refused = {}
        for call in (each for each in calls if each["id"] not in done):
            async for _, answer in self._answers("before_tool", Called(session=session, **_of(call))):
                told = REFUSED.format(tool=call["function"]["name"], sentence=answer.text)
                refused[call["id"]] = tool_result(call["id"], told)
        return refused

    async def returned(self, session: Session, call: ToolCall, text: str) -> str:
        """`after_tool`: the text that the model reads."""
        moment = Returned(session=session, text=text, **_of(call))
        async for _, answer in self._answers("after_tool", moment, then=_replaced):
            text = answer.text
        return text

    async def compacting(self, session: Session, trigger: str, tokens: int, messages: Sequence[Message]) -> None:
        """`before_compaction`."""
        if self._has("before_compaction"):
            moment = Compacting(session=session, trigger=trigger, tokens=tokens, messages=copy.deepcopy([*messages]))
            await self._tell("before_compaction", moment)

    async def began(self, session: Session) -> None:
        """`on_session_start`."""
        if session.key.helper is None:
            await self._tell("on_session_start", Moment(session=session))

    async def ended(self, session: Session) -> None:
        """`on_session_end`."""
        if session.key.helper is None:
            await self._tell("on_session_end", Moment(session=session))

    def wish(self, session: Session) -> str:
        """The plug-in that asked for a compaction of a session; "": none did since the last time."""
        return self._wishes.pop(session.id, "")

    # -- containment ------------------------------------------------------------------------

    def _has(self, hook: str) -> bool:
        return any(hasattr(each, hook) for each in self.plugins.values())

    async def _tell(self, hook: str, moment: Moment) -> None:
        async for _ in self._answers(hook, moment):
            pass

    async def _answers(
        self, hook: str, moment: Moment, then: Callable[[Moment, Any], Moment] = lambda moment, _: moment
    ) -> AsyncIterator[tuple[str, Any]]:
        """Yield what the hooks answer beside wishes for a compaction. `then`: what the next hook sees."""
        for name, plugin in self.plugins.items():
            if (method := getattr(plugin, hook, None)) is None:
                continue
            for answer in await self._call(name, hook, method, moment):
                if isinstance(answer, Compact):
                    self._wishes[moment.session.id] = name
                else:
                    moment = then(moment, answer)
                    yield name, answer
                if isinstance(answer, Refuse):
                    return

    async def _call(self, name: str, hook: str, method: Callable[[Moment], Any], moment: Moment) -> Sequence[Any]:
        began = self.clock.monotonic()
        if self._resting.get((name, hook), began) > began:
            return ()
        outcome, error = "answered", ""
        answers: Sequence[Any] = ()
        try:
            async with self.clock.limit(SECONDS):
                answers = _checked(hook, await self._run(name, method, moment))
        except TimeoutError:
            outcome, error = "timed out", f"took longer than {SECONDS:g} seconds; it rests for {REST / 60:g} minutes"
            self._resting[name, hook] = self.clock.monotonic() + REST
        except (Exception, SystemExit, asyncio.CancelledError) as failure:  # foreign code: the turn goes on
            task = asyncio.current_task()
            if isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the turn's own
            outcome, error = "failed", f"{type(failure).__name__}: {failure}"[:300]
        seconds = self.clock.monotonic() - began
        HOOKS.observe(seconds, name, hook, outcome)
        note = log.warning if error else log.debug
        note("hook_called", plugin=name, hook=hook, outcome=outcome, seconds=round(seconds, 3), error=error)
        return answers

    async def _run(self, name: str, method: Callable[[Moment], Any], moment: Moment) -> Any:
        if inspect.iscoroutinefunction(method):
            return await method(moment)
        answer = await self._threads.setdefault(name, OwnThread()).call(lambda: method(moment))
        return await answer if inspect.isawaitable(answer) else answer


def plugged_in(points: Mapping[str, EntryPoint], clock: Clock) -> Plugged:
    """The hooks of these entry points. Raises ConfigError."""
    return Plugged(plugins={name: made(point) for name, point in points.items()}, clock=clock)


def made(point: EntryPoint) -> Any:
    """The object of an entry point. Raises ConfigError where it has no hook, or one that takes something else."""
    offered, where = load(point), origin(point)
    plugin = contained(where, offered) if isinstance(offered, type) else offered
    hooks = [name for name in ANSWERS if hasattr(plugin, name)]
    if not hooks:
        raise ConfigError([f"{where}: it has no hook; hooks are {', '.join(ANSWERS)}"])
    for name in hooks:
        contained(f"{where}: {name} must take one moment", partial(_takes_one, getattr(plugin, name)))
    return plugin


def _takes_one(method: Any) -> None:
    inspect.signature(method).bind(None)


def _checked(hook: str, answer: Any) -> Sequence[Any]:
    answers = answer if isinstance(answer, tuple) else () if answer is None else (answer,)
    for each in answers:
        if not isinstance(each, ANSWERS[hook]):
            may = " or ".join(("None", *(kind.__name__ for kind in ANSWERS[hook])))
            raise TypeError(f"it may answer {may}, and answered {type(each).__name__}")
        if isinstance(each, Words) and not (isinstance(each.text, str) and each.text.strip()):
            raise TypeError(f"{type(each).__name__} must hold a text")
    return answers


def _of(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = parsed(call["function"]["arguments"])
    except ToolError:
        arguments = {}
    return {"tool": call["function"]["name"], "arguments": arguments}


def _replaced(moment: Moment, answer: Any) -> Moment:
    return replace(moment, text=answer.text) if isinstance(moment, Returned) else moment
