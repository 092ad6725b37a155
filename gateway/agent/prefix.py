"""What a session's model was last sent, and whether its provider still has that in its cache.

A provider that caches prompts charges little, and waits hardly at all, for a request that begins like
an earlier one. So whoever wants something of the conversation's own model soon after a turn repeats
that turn's request to the letter and puts one instruction after it. The cache counts as warm when

- the session's own model is asked, and it is the one that answered last, at the same address;
- that answer was asked for less than `model.cache_ttl` ago;
- the provider is known to cache: this model has reported cached tokens in this session, or is one for
  which caching is announced (`ModelSpec.cache_marks`); and no repeated request was read anew in
  full before (some servers leave the tools out of a prompt in which none may be called);
- the request can be repeated: same session and system prompt (a transcript only grows under one
  epoch), and all that was sent is still there;
- the repeated request, with what was added and the answer, fits the model's window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gateway.agent.caching import prompt
from gateway.domain.message import Message, user
from gateway.domain.session import Session, SessionRef
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelRequest, ModelSpec, ToolChoice

Obstacle = Literal[
    "another summariser", "nothing sent", "another model", "no cache", "cold", "another session", "another prefix",
    "no room",
]  # fmt: skip

_LIFETIMES: Final[Mapping[str, float]] = {"5m": 300.0, "1h": 3_600.0}  # seconds, by `model.cache_ttl`
_MARGIN: Final = 512  # tokens of the window left free for formats and miscounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A session's last request that was answered.

    `count`: how many messages of the transcript it held. `tokens`: of its prompt, as the provider
    counts. `at`: when it was sent, in seconds of the monotonic clock. `caches`: whether the provider
    is known to keep it.
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


@dataclass(slots=True)
class Prefix:
    """What one session's provider may have in its cache: shared by whoever works for the session.
    `missed`: the model for which repeating a request did not pay, in this process."""

    sent: Sent | None = None
    missed: ModelSpec | None = None

    def caches(self, spec: ModelSpec, usage: CanonicalUsage) -> bool:
        """Whether this model's provider is known to cache, after an answer with this usage. One answer
        without cached tokens proves nothing: the cache had gone cold before it."""
        if self.missed is not None and _same_model(self.missed, spec):
            return False
        if usage.cache_read_tokens or usage.cache_write_tokens or spec.cache_marks:
            return True
        return self.sent is not None and self.sent.caches and _same_model(self.sent.spec, spec)


def obstacle(
    sent: Sent | None,
    *,
    session: Session,
    spec: ModelSpec,
    helpers: Sequence[ModelSpec],
    count: int,
    added: int,
    now: float,
) -> Obstacle | None:
    """Why a request that repeats `sent` would meet no warm cache, or not fit; None if it should.

    `helpers`: the models that are to summarise, in order. `count`: messages of the transcript now.
    `added`: tokens of what would follow what was sent, the answer included.
    """
    if [*helpers] != [spec]:
        return "another summariser"
    if sent is None:
        return "nothing sent"
    if not _same_model(sent.spec, spec):
        return "another model"
    if not sent.caches:
        return "no cache"
    if not 0 <= now - sent.at < _LIFETIMES.get(spec.cache_ttl, _LIFETIMES["5m"]):
        return "cold"
    if (sent.session, sent.system_prompt) != (session.ref, session.system_prompt):
        return "another session"
    if count < sent.count:
        return "another prefix"
    if sent.tokens + added + _MARGIN > spec.context_length:
        return "no room"
    return None


def repeated(sent: Sent, messages: Sequence[Message], instruction: str, max_tokens: int) -> ModelRequest:
    """The request `sent` once more, what was said since, and one instruction.

    No tool may be called, but the tools are there: they stand in front of everything that is cached.
    Where caching goes by marks they stay where they were, and the choice of tools stays as it was,
    too: Anthropic drops the cached messages of a request that changes it ("What invalidates the cache"
    in its documentation). Whoever asks must then refuse a call.
    """
    spec = sent.spec
    return ModelRequest(
        messages=[
            *prompt(sent.system_prompt, messages[: sent.count], spec),
            *messages[sent.count :],
            user(instruction),
        ],
        tools=sent.tools,
        max_tokens=max_tokens,
        tool_choice=sent.tool_choice if spec.cache_marks else "none",
    )


def _same_model(one: ModelSpec, other: ModelSpec) -> bool:
    return (one.provider, one.name, one.base_url) == (other.provider, other.name, other.base_url)
