"""`GuardedEngine`: how the host uses an engine, so that no engine breaks a turn.

It calls plain and coroutine functions alike, leaves out optional arguments that a signature lacks, logs exceptions and
gives a harmless answer instead, and refuses a result that is not a transcript. An engine that is not ours also gets
deep copies. Its plain functions run in a thread of its own, and if its `compress` is a plain function, so is its
`call_model` (`threads`). All its methods have a time limit, except `compress` and the tools, which the turn limits. A
method that overran its limit is not called again.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CoroutineType
from typing import Any, Final, Protocol, get_args

from gateway.context.engine import ContextEngine, Outcome
from gateway.context.foreign import AT_WORK
from gateway.context.threads import BlockingModel, OwnThread
from gateway.domain.message import HOST, Message, Role
from gateway.runtime.clock import Clock, SystemClock

_ROLES: Final = frozenset(get_args(Role))
_SECONDS: Final = 20.0  # for the methods that every turn waits for
_LONGER: Final = {"on_session_end": 120.0}  # may ask a model
_REST: Final = 600.0  # seconds without a pass after one that failed: each would hold its chat up
_UNLIMITED: Final = ("compress", "handle_tool_call")  # their callers have limits of their own
_MOST_CHARACTERS: Final = 16_000_000  # of a transcript, a state or a tool's result; the longest window holds far less
_MOST_PLACES: Final = 2_000_000  # of values in it


def is_ours(engine: ContextEngine) -> bool:
    """Whether an engine comes with Legato."""
    return type(engine).__module__.startswith("gateway.")


class Log(Protocol):
    """The part of a structlog logger that is used here."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Log one event."""


class GuardedEngine:
    """One session's engine, contained. Every method can be awaited safely, and raises nothing but a cancellation."""

    def __init__(self, engine: ContextEngine, *, log: Log, clock: Clock | None = None) -> None:
        self._engine = engine
        self._log = log
        self._clock = clock or SystemClock()
        self._hung: set[str] = set()  # methods that overran their limit
        self._ours = is_ours(engine)  # spares copies, threads and limits
        self._compacted = False
        self._rests_until = 0.0
        self._blocking: BlockingModel | None = None
        schemas = getattr(self._state("get_tool_schemas"), "__func__", None)
        self.may_have_tools = schemas is not ContextEngine.get_tool_schemas  # which gives none, as with most engines
        self._thread = OwnThread()
        weakref.finalize(self, self._thread.end)
        self.system_prompt = ""  # of the session, for engines that want it in front of the messages

    @property
    def engine(self) -> ContextEngine:
        """The engine itself; the host reads its state."""
        return self._engine

    @property
    def is_ours(self) -> bool:
        """Whether the engine comes with Legato."""
        return self._ours

    @property
    def automatic_blocked(self) -> bool:
        """Whether the engine holds automatic passes back."""
        return self._state("automatic_blocked") is True

    @property
    def supports_background(self) -> bool:
        """Whether a fresh instance may prepare a compaction."""
        return self._state("supports_background") is True

    @property
    def threshold_tokens(self) -> int:
        """How many tokens make the engine want to compact; 0 if it does not say."""
        value = self._state("threshold_tokens")
        return value if isinstance(value, int) else 0

    @property
    def prepends(self) -> bool:
        """Whether the engine gets the system prompt in front of the messages."""
        return bool(self.system_prompt) and self._state("takes_system_prompt") is True

    async def start(self, session_id: str, **info: Any) -> bool:
        """`on_session_start`; whether it returned."""
        call_model = info.get("call_model")
        plain = not inspect.iscoroutinefunction(getattr(self._engine, "compress", None))
        if callable(call_model) and not self._ours:
            self._blocking = BlockingModel(call_model, asyncio.get_running_loop())
            info["call_model"] = self._blocking if plain else call_model
        return await self._try("on_session_start", session_id, **info) is not _FAILED

    @property
    def has_compacted(self) -> bool:
        """Whether the engine itself has compacted this transcript before, as far as this process knows."""
        return self._compacted or self._state("compression_count") not in (None, 0)

    @property
    def rests(self) -> bool:
        """Whether a foreign engine recently failed, or took long in vain, so that no pass asks it. One that never heard
        of its session is not asked at all."""
        return self._clock.monotonic() < self._rests_until or "on_session_start" in self._hung

    @property
    def can_forget(self) -> bool:
        """Whether the engine keeps nothing of what is forgotten: it is ours, or has a `forget`."""
        return self._ours or callable(self._state("forget"))

    async def forget(self, texts: Sequence[str]) -> None:
        """`forget` of a foreign engine, if it has one: it must keep none of these texts, nor anything made from
        them."""
        if not self._ours and self.can_forget:
            await self._try("forget", list(texts))

    async def end(self, session_id: str, messages: Sequence[Message]) -> bool:
        """`on_session_end`; False if it raised, so that the host can call it again."""
        return await self._try("on_session_end", session_id, self._lent(messages)) is not _FAILED

    async def reset(self) -> bool:
        """`on_session_reset`; whether it returned."""
        return await self._try("on_session_reset") is not _FAILED

    async def learn(self, usage: Mapping[str, int]) -> None:
        """`update_from_response`."""
        await self._try("update_from_response", dict(usage))

    async def wants(self, prompt_tokens: int | None = None) -> bool:
        """`should_compress`; False if it raised."""
        return await self._try("should_compress", prompt_tokens=prompt_tokens) is True

    async def wants_preflight(self, messages: Sequence[Message]) -> bool:
        """`should_compress_preflight`; False if it raised."""
        return await self._try("should_compress_preflight", self._lent(messages)) is True

    async def has_content(self, messages: Sequence[Message]) -> bool:
        """`has_content_to_compress`; True if it raised: then `compress` finds out."""
        return await self._try("has_content_to_compress", self._lent(messages)) is not False

    async def compress(
        self,
        messages: Sequence[Message],
        *,
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> tuple[list[Message], Outcome]:
        """Return the new transcript and its outcome; the given one and `aborted` if the engine failed."""
        began = self._clock.monotonic()
        try:
            result = await self._try(
                "compress",
                self._lent(messages),
                current_tokens=current_tokens,
                focus_topic=focus_topic,
                force=force,
                memory_context=memory_context,
            )
        except asyncio.CancelledError:
            if self._blocking is not None:
                self._blocking.cancel()
            self._rest(began)
            raise
        if result is _FAILED:
            self._rest()
            return list(messages), Outcome(error="The context engine failed; nothing was changed.", aborted=True)
        flaw = self._flaw(result, messages)
        if flaw:
            self._rest()
            self._log.warning("context_engine_result_refused", engine=self._engine.name, reason=flaw)
            return list(messages), Outcome(error=f"The context engine's result was refused: {flaw}.", aborted=True)
        result = self._bare(result)
        if list(result) != list(messages):
            self._compacted = True
        else:
            self._rest(began)
        outcome = self._state("last_outcome")
        return list(result), outcome if isinstance(outcome, Outcome) else Outcome()

    def _rest(self, began: float | None = None) -> None:
        """Let a foreign engine rest, if its pass, begun at this time (monotonic), took long."""
        now = self._clock.monotonic()
        if not self._ours and (began is None or now - began >= _SECONDS):
            self._rests_until = now + _REST

    async def tool_schemas(self) -> list[dict[str, Any]]:
        """`get_tool_schemas`, without schemas that are not functions or lack a name."""
        schemas = await self._try("get_tool_schemas")
        if not schemas or not isinstance(schemas, list | tuple):
            return []
        whole = map(_wrapped, schemas)
        return [schema for schema in whole if _is_schema(schema) and (self._ours or _is_json(schema))]

    async def call_tool(self, name: str, args: Mapping[str, Any], **context: Any) -> str:
        """`handle_tool_call`; JSON text, {"error": …} if it raised."""
        if "messages" in context:
            context["messages"] = self._lent(context["messages"])
        result = await self._try("handle_tool_call", name, dict(args), **context)
        if result is _FAILED:
            return json.dumps({"error": f"{name} failed."})
        if _is_too_long(result):
            return json.dumps({"error": f"{name} gave more than {_MOST_CHARACTERS:,} characters."})
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    async def status(self) -> dict[str, Any]:
        """`get_status`; {} if it raised."""
        status = await self._try("get_status")
        return dict(status) if isinstance(status, Mapping) else {}

    async def dump(self) -> dict[str, Any]:
        """`dump_state`; {} if it raised or gave something that JSON cannot hold."""
        state = await self._try("dump_state")
        if not isinstance(state, Mapping):
            return {}
        if not self._ours and (_is_too_long(dict(state)) or not _is_json(dict(state))):
            self._log.warning("context_engine_state_refused", engine=self._engine.name)
            return {}
        return dict(state)

    async def load(self, state: Mapping[str, Any]) -> None:
        """`load_state`, with a copy."""
        await self._try("load_state", copy.deepcopy(dict(state)))

    async def update_model(self, model: str, context_length: int, **details: Any) -> None:
        """`update_model`; `details`: base_url, api_key, provider, max_output_tokens."""
        await self._try("update_model", model, context_length, **details)

    # -- containment ------------------------------------------------------------------------

    def _lent(self, messages: Sequence[Message]) -> list[Message]:
        lent = list(messages) if self._ours else copy.deepcopy(list(messages))
        return [{"role": "system", "content": self.system_prompt}, *lent] if self.prepends else lent

    def _bare(self, result: Sequence[Message]) -> Sequence[Message]:
        """A transcript without the system prompt that was lent with it, whatever the engine noted on it."""
        return result[1:] if self.prepends and result and result[0]["role"] == "system" else result

    def _state(self, name: str) -> Any:
        """Return an attribute of the engine; None if there is none, or if it raises."""
        try:
            return getattr(self._engine, name, None)
        except (Exception, SystemExit):
            return None

    async def _try(self, name: str, *args: Any, **optional: Any) -> Any:
        """Return the method's result, or `_FAILED` after its exception was logged."""
        if name in self._hung:
            return _FAILED
        try:
            if self._ours:
                result = getattr(self._engine, name)(*args, **optional)
                return await result if isinstance(result, CoroutineType) else result
            if name in _UNLIMITED:
                return await self._call(name, args, optional)
            async with self._clock.limit(_LONGER.get(name, _SECONDS)):
                return await self._call(name, args, optional)
            raise AssertionError("a limit that strikes raises")
        except (Exception, SystemExit) as error:  # an engine's `exit()` must not end the gateway
            if isinstance(error, TimeoutError) and name not in _UNLIMITED:
                self._hung.add(name)
            reason = f"{type(error).__name__}: {error}"[:300]
            engine = getattr(self._engine, "name", "")
            self._log.warning("context_engine_failed", engine=engine, method=name, error=reason)
            return _FAILED

    async def _call(self, name: str, args: Sequence[Any], optional: Mapping[str, Any]) -> Any:
        method = getattr(self._engine, name)
        accepted = _accepted(method, optional)
        if inspect.iscoroutinefunction(method):
            result = method(*args, **accepted)
        else:
            at_work = AT_WORK.set(self._blocking)
            if self._blocking is not None:
                self._blocking.context = contextvars.copy_context()
            try:
                result = await self._thread.call(lambda: method(*args, **accepted))
            finally:
                AT_WORK.reset(at_work)
        return await result if inspect.isawaitable(result) else result

    def _flaw(self, result: Any, given: Sequence[Message]) -> str:
        """Why a result is not a transcript; "" if it is one."""
        if not isinstance(result, list | tuple):
            return "it is not a list"
        if given and not result:
            return "it is empty"
        if not all(isinstance(message, dict) and message.get("role") in _ROLES for message in result):
            return "it holds something that is not a message"
        if self._ours:
            return ""
        if not all(_is_sound(message) for message in result):
            return "it holds a message that no model could be sent"
        if _is_too_long(result):
            return f"it has more than {_MOST_CHARACTERS:,} characters"
        return "" if _is_json(result) else "it holds something that cannot be stored"


_FAILED = object()


def _accepted(method: Callable[..., Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    """Return the optional arguments that the method's signature can take."""
    if not optional:
        return {}
    function = getattr(method, "__func__", None)
    names = _parameters(function) if inspect.isfunction(function) else _parameters_of(method)
    return dict(optional) if names is None else {name: value for name, value in optional.items() if name in names}


def _parameters_of(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of a function's parameters; None if it takes any."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if takes_any else frozenset(parameters)


# Reading a signature takes longer than most calls.
_parameters = lru_cache(maxsize=1_024)(_parameters_of)


def _wrapped(schema: Any) -> Any:
    """Return a function's schema in OpenAI's form; some engines offer only the function."""
    bare = isinstance(schema, dict) and "function" not in schema and isinstance(schema.get("name"), str)
    return {"type": "function", "function": schema} if bare else schema


def _is_schema(schema: Any) -> bool:
    function = schema.get("function") if isinstance(schema, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and bool(function["name"])


def _is_sound(message: Mapping[str, Any]) -> bool:
    """Whether host and APIs can read content, calls and the host's note."""
    content, calls, note = message.get("content"), message.get("tool_calls"), message.get(HOST, {})
    if isinstance(content, list):
        readable = all(isinstance(part, dict) for part in content)
    else:
        readable = content is None or isinstance(content, str)
    sources = note.get("derived_from", []) if isinstance(note, dict) else None
    return (
        readable
        and (calls is None or (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)))
        and isinstance(sources, list)
        and all(isinstance(name, str) for name in (note.get("id", ""), *sources))
    )


def _is_too_long(value: Any) -> bool:
    """Whether the text in a value is longer than any conversation, found out without copying it. A value that contains
    itself is too long, too."""
    left, waiting, places = _MOST_CHARACTERS, [value], _MOST_PLACES
    while waiting and left >= 0 and places:
        each = waiting.pop()
        places -= 1
        if isinstance(each, str):
            left -= len(each)
        elif isinstance(each, Mapping):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            waiting += each
    return left < 0 or not places


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
