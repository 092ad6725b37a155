"""Prompt caching: the marks that some models want, and the prefix that a provider may have in its cache.

A provider that caches prompts answers a request with a known beginning faster and at a fraction of the price. So a
question to the conversation's own model soon after a turn repeats that turn's request to the letter and puts one
instruction behind it. The cache counts as warm under these conditions:

- The session's own model is asked, it gave the last answer, and it is at the same address.
- The request for that answer is younger than `model.cache_ttl`, which is chosen for each turn where it is "auto".
- The provider is known to cache: the model has reported cached tokens in this session, or wants marks; and no
  repeated request was read anew in full before. (Some servers leave tools out of a prompt in which none may be called.)
- The request can be repeated: session and system prompt are the same, and everything sent is still there. Under one
  epoch a transcript only grows.
- The repeated request, the additions and the answer fit the model's window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final

from msgspec import Struct

from gateway.domain.message import Message, is_request, is_summary, note_of, user
from gateway.domain.session import Session, SessionRef
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelRequest, ModelSpec, ToolChoice

BEFORE: Final = 1  # messages of a request in front of the conversation: the system prompt
_MARKED_MESSAGES: Final = 3  # the last ones, beside the system prompt: four marks are allowed in all
_LIFETIMES: Final[Mapping[str, float]] = {"5m": 300.0, "1h": 3_600.0}  # seconds, by `model.cache_ttl`
# Anthropic's prices beside that of plain input ("Prompt caching" in its documentation).
_READ, _WRITE, _WRITE_HOUR = 0.1, 1.25, 2.0
_REQUESTS: Final = 40  # the newest ones, by which the lifetime is chosen
_BETTER: Final = 0.95  # of the cost: so much less it must be, because the next pauses may be others
_MARGIN: Final = 512  # tokens of the window left free for formats and miscounts


class Aside(Struct, frozen=True):
    """A text that precedes the message at `position` of a transcript, only in requests."""

    position: int
    text: str


def prompt(
    system_prompt: str, messages: Iterable[Message], spec: ModelSpec, aside: Aside | None = None
) -> list[Message]:
    """Return the messages of a request for a conversation, always the same for the same conversation."""
    whole: list[Message] = [{"role": "system", "content": system_prompt}, *messages]
    if aside is not None:
        whole[BEFORE + aside.position] = _behind(aside.text, whole[BEFORE + aside.position])
    return with_marks(whole, spec.cache_ttl, results=spec.marks_results) if spec.cache_marks else whole


def lifetime(pauses: Sequence[float], prompt: int, growth: float) -> str:
    """How long prompts should stay in the cache, "5m" or "1h". `pauses`: seconds between the newest requests of a chat,
    long tool runs included; `prompt`: tokens of its requests now; `growth`: tokens that each adds. An hour makes
    everything new more expensive, but saves writing the whole prompt again after a pause."""

    def cost(ttl: str, write: float) -> float:
        cold = sum(pause >= _LIFETIMES[ttl] for pause in pauses)
        read = (len(pauses) - cold) * _READ * prompt
        return read + write * (cold * prompt + len(pauses) * growth)

    return "1h" if cost("1h", _WRITE_HOUR) < _BETTER * cost("5m", _WRITE) else "5m"


def chosen_lifetime(newest_first: Iterable[Message], prompt: int) -> str:
    """Return the lifetime for a chat, by the times of its newest answers, back to a compaction: what is in front of its
    notes is far older."""
    times, tokens, answered = list[float](), 0, 0
    for message in newest_first:
        if is_summary(message):
            break
        note = note_of(message)
        tokens += note.get("tokens", 0)
        if message["role"] == "assistant":
            answered += 1
            times.append(note.get("at") or 0.0)
            if answered > _REQUESTS:
                break
    pauses = [later - earlier for later, earlier in pairwise(times) if earlier and later >= earlier]
    return lifetime(pauses, prompt, tokens / max(1, answered))


def last_pause(newest_first: Iterable[Message]) -> float:
    """Return the seconds between a person's newest words and what was said before; 0.0 at a beginning."""
    messages = iter(newest_first)
    at = next((note_of(message).get("at") for message in messages if is_request(message)), None)
    before = note_of(next(messages, user(""))).get("at")
    return max(0.0, at - before) if at and before else 0.0


def _behind(text: str, message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": f"{text}\n\n{content or ''}"}


def with_marks(messages: Sequence[Message], ttl: str, *, results: bool = False) -> list[Message]:
    """Return a copy of a request's messages with marks on the system prompt and on the last three others that can carry
    a mark. `results`: results of tools and answers without words can, too; the mark then stands on the message."""
    mark: dict[str, str] = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    marked = list(messages)
    # From either end only as far as needed: the cost of a mark must not grow with the conversation.
    able = (i for i, message in enumerate(messages) if message["role"] == "system" and _can_carry(message))
    others = (i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] != "system")
    last = (i for i in others if _can_carry(messages[i], results=results))
    for index in (*islice(able, 1), *islice(last, _MARKED_MESSAGES)):
        marked[index] = _marked(marked[index], mark)
    return marked


def _can_carry(message: Message, *, results: bool = False) -> bool:
    if message["role"] == "tool":
        return results
    return bool(message.get("content") or (results and message.get("tool_calls")))


def _marked(message: Message, mark: dict[str, str]) -> Message:
    content = message.get("content")
    if message["role"] == "tool" or not content:
        on_message: Any = {**message, "cache_control": mark}
        return on_message  # type: ignore[no-any-return]
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if isinstance(parts[-1], dict):
        parts[-1] = {**parts[-1], "cache_control": mark}
    return {**message, "content": parts}


# -- the prefix ---------------------------------------------------------------------------------


class Sent(Struct, frozen=True, kw_only=True):
    """A session's last answered request.

    `count`: its messages of the transcript. `tokens`: of its prompt, as the provider counts. `at`: its time, in seconds
    of the monotonic clock. `caches`: whether the provider is known to cache it.
    """

    session: SessionRef
    spec: ModelSpec
    system_prompt: str
    tools: Sequence[Mapping[str, Any]]
    tool_choice: ToolChoice
    count: int
    tokens: int
    at: float
    caches: bool
    aside: Aside | None = None

    def is_warm(self, now: float) -> bool:
        """Whether the provider's cache may still hold it at this time."""
        return self.caches and 0 <= now - self.at < _LIFETIMES.get(self.spec.cache_ttl, _LIFETIMES["5m"])


class Prefix(Struct):
    """The prefix of one session in its provider's cache, shared by all engines that work for the session. `missed`: the
    model for which a repeated request did not pay, in this process."""

    sent: Sent | None = None
    missed: ModelSpec | None = None

    def caches(self, spec: ModelSpec, usage: CanonicalUsage) -> bool:
        """Whether this model's provider is known to cache, after an answer with this usage. An answer without
        cached tokens proves nothing, because the cache may have been cold."""
        if self.missed is not None and self.missed.is_same_model(spec):
            return False
        if usage.cache_read_tokens or usage.cache_write_tokens or spec.cache_marks:
            return True
        return self.sent is not None and self.sent.caches and self.sent.spec.is_same_model(spec)


def obstacle(
    sent: Sent | None,
    *,
    session: Session,
    spec: ModelSpec,
    helpers: Sequence[ModelSpec],
    count: int,
    added: int,
    now: float,
) -> str | None:
    """Why a request that repeats `sent` would find no warm cache, or not fit; None if it would.

    `helpers`: the models for summaries, in order. `count`: messages of the transcript now. `added`: tokens after the
    repeated part, the answer included.
    """
    if [*helpers] != [spec]:
        return "another summariser"
    if sent is None:
        return "nothing sent"
    if not sent.spec.is_same_model(spec):
        return "another model"
    if not sent.caches:
        return "no cache"
    if not sent.is_warm(now):
        return "cold"
    if (sent.session, sent.system_prompt) != (session.ref, session.system_prompt):
        return "another session"
    if count < sent.count:
        return "another prefix"
    if sent.tokens + added + _MARGIN > spec.context_length:
        return "no room"
    return None


def repeated(sent: Sent, messages: Sequence[Message], instruction: str, max_tokens: int) -> ModelRequest:
    """Return the request `sent` once more, with later messages and one instruction behind it.

    No tool may be called, but the tools are there, because they stand in front of everything in the cache. Where
    caching goes by marks, marks and choice of tools stay as they were: Anthropic drops the cached messages of a request
    with another choice ("What invalidates the cache" in its documentation). The caller must then refuse a call.
    """
    spec = sent.spec
    return ModelRequest(
        messages=[
            *prompt(sent.system_prompt, messages[: sent.count], spec, sent.aside),
            *messages[sent.count :],
            user(instruction),
        ],
        tools=sent.tools,
        max_tokens=max_tokens,
        tool_choice=sent.tool_choice if spec.cache_marks and sent.tool_choice != "required" else "none",
    )
