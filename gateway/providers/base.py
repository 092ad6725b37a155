"""The provider port: one request to a model, answered as a stream of events.

A provider is stateless and shared by all sessions. It maps every failure of its transport to
`ProviderError`'s tree and never retries on its own: `providers.retry` does, in one place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import force_setattr

from gateway.domain.message import Message, Original, ToolCall
from gateway.domain.usage import UNKNOWN_WINDOW, CanonicalUsage, reserved_output
from gateway.runtime.errors import ProviderError

StopReason = Literal["stop", "tool_calls", "length", "refused"]
ToolChoice = Literal["auto", "none", "required"]
Feature = Literal[
    "tools",
    "tool_choice",
    "parallel_calls",
    "schema_extras",
    "stream",
    "system_role",
    "temperature",
    "reasoning_effort",
    "thinking",
    "cache_marks",
]
"""What a model may refuse of a request (`providers.features`)."""
READ_TIMEOUT: Final = 180.0  # seconds of silence; a thinking model may say nothing for minutes
WHOLE_ANSWER: Final = 300.0  # seconds for an answer in one piece; less than a turn may take without a sign of life
BEGINNING: Final = "(The conversation goes on.)"  # a person's, where an API wants one before the model's own words


class ModelSpec(Struct, frozen=True, kw_only=True):
    """A model that can be called, with everything the host must know about it."""

    provider: str  # a `ProviderPlugin`'s name
    name: str
    base_url: str | None = None
    api_key: str | None = None  # which no text of the spec shows
    context_length: int = UNKNOWN_WINDOW  # tokens
    max_output_tokens: int | None = None
    key_header: str = ""  # that carries the key; "" for a bearer token
    cache_ttl: str = "5m"
    cache_marks: bool = False  # whether it wants its prompts marked for its cache
    marks_results: bool = False  # whether results of tools, and answers without words, can carry a mark, too
    pictures: bool | None = None  # whether it takes them; None: to be found out
    sounds: tuple[str, ...] = ()  # formats that it hears, as providers call them
    silence: float | None = None  # seconds that a stream may take to begin; None: as long as the connection is kept
    whole_answer: float = WHOLE_ANSWER  # seconds that an answer may take which is not streamed
    settings: Any = None  # its section of the configuration, with the keys that only its provider knows
    # The model's name, address and account: the unit that can be away. Asked a dozen times for every message.
    place: tuple[str, str, str | None, str | None] = ("", "", None, None)

    def __post_init__(self) -> None:
        force_setattr(self, "place", (self.provider, self.name, self.base_url, self.api_key))

    def __repr__(self) -> str:
        return f"ModelSpec(provider={self.provider!r}, name={self.name!r}, base_url={self.base_url!r})"

    @property
    def reserved_output(self) -> int:
        """Tokens of the window that are kept free for the answer."""
        return reserved_output(self.context_length, self.max_output_tokens)

    def is_same_model(self, other: ModelSpec) -> bool:
        """Whether the other is the same model at the same address, whatever its settings."""
        return (self.provider, self.name, self.base_url) == (other.provider, other.name, other.base_url)


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One call. `messages` start with the system message; host notes are stripped by the codec.

    `tools` are OpenAI function schemas: {"type": "function", "function": {name, description, parameters}}. `max_tokens`
    caps the output; None leaves it to the provider. `prompt_tokens`: an estimate; 0: none was made. `tool_choice`
    "none": the tools are shown but must not be called; "required": one of them must be. `chosen`: settings for this
    call, by the names of Chat Completions, before those of the model. `files_at`: the positions of the messages that
    refer to kept files, in order, where that is known; None has them looked for. `omit`: features that the model is
    known to refuse; a codec leaves out `stream`, `temperature`, `reasoning_effort` and `thinking`. `instead`: other
    values than the configured ones, because the model takes only these. `pausing` is told, before each pause between
    two attempts, how many seconds it takes.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    max_tokens: int | None = None
    prompt_tokens: int = 0
    tool_choice: ToolChoice = "auto"
    chosen: Mapping[str, Any] = field(default_factory=dict)
    files_at: Sequence[int] | None = None
    omit: frozenset[Feature] = frozenset()
    instead: Mapping[Feature, str] = field(default_factory=dict)
    pausing: Callable[[float], None] | None = None

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the tools that are offered."""
        return frozenset([tool["function"]["name"] for tool in self.tools])

    def parted(self) -> tuple[Sequence[Message], Sequence[Message]]:
        """The system's messages, and those from the first other one on."""
        messages = self.messages
        first = next((at for at, message in enumerate(messages) if message["role"] != "system"), len(messages))
        return messages[:first], messages[first:]


class TextDelta(Struct, frozen=True, kw_only=True):
    """Text as it is written."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True):
    """Thinking as it is written; never shown as the reply."""

    text: str


class Restarted(Struct, frozen=True, kw_only=True):
    """The answer begins again: everything before this event is void. It broke off, with or without words, or the words
    turned out to be thoughts. `usage`: what the provider reported for an attempt that broke off."""

    broke_off: bool = False
    usage: CanonicalUsage | None = None


class Completed(Struct, frozen=True, kw_only=True):
    """The end of a call: everything that was said, in full. Always the last event.

    `usage` is None when the provider reported none. `cut_call`: the output limit cut a tool call off, which
    is left out of `tool_calls`. `omitted`: features that the request did without. `original`: the answer as its API
    worded it, where the other fields do not say all of it.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    stop: StopReason = "stop"
    usage: CanonicalUsage | None = None
    cut_call: bool = False
    omitted: frozenset[Feature] = frozenset()
    original: Original | None = None


ModelEvent = TextDelta | ReasoningDelta | Restarted | Completed


def anew(error: ProviderError, *, begun: bool = False) -> Sequence[Restarted]:
    """The event before another attempt, if the last one may cost something. `begun`: it said something."""
    if not (begun or error.billable or error.usage):
        return ()
    return (Restarted(broke_off=True, usage=error.usage),)


class Provider(Protocol):
    """One API at one address."""

    name: str

    def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model. Yields deltas, then exactly one `Completed`. Raises ProviderError.

        Closing the generator early (`contextlib.aclosing`) ends the call at the provider.
        """

    async def aclose(self) -> None:
        """Close connections."""


@runtime_checkable
class HasOneModel(Protocol):
    """A provider with a single model, which answers to any name."""

    has_one_model: Literal[True]


@runtime_checkable
class KeepsBodies(Protocol):
    """A provider that keeps in memory what it has encoded."""

    def rest(self) -> int:
        """Forget what was not sent again since the last call; return its bytes."""


@runtime_checkable
class ReportsWindow(Protocol):
    """A provider with a server that knows how long a model's window is."""

    async def reported_window(self, spec: ModelSpec) -> int | None:
        """Tokens; None if the server does not say. Raises ProviderError if it cannot be asked."""


class OfferedModel(Struct, frozen=True, kw_only=True):
    """A model that a server offers, as far as it says: its window in tokens, whether it takes pictures and tools, and
    US dollars per million tokens read and written."""

    name: str
    window: int | None = None
    pictures: bool | None = None
    tools: bool | None = None
    read_usd: float | None = None
    write_usd: float | None = None


@runtime_checkable
class ListsModels(Protocol):
    """A provider with a server that lists its models."""

    async def models(self, spec: ModelSpec) -> Sequence[OfferedModel]:
        """The models at the address of `spec`, in the server's order; none if it has no such list. Raises
        ProviderError if it cannot be asked."""


class Embedded(Struct, frozen=True, kw_only=True):
    """The vectors of texts, in their order, and the tokens that were read (0: the server does not say)."""

    vectors: Sequence[Sequence[float]]
    tokens: int = 0


@runtime_checkable
class Embeds(Protocol):
    """A provider with a server that gives vectors for texts."""

    async def embed(self, spec: ModelSpec, texts: Sequence[str]) -> Embedded:
        """The vectors of these texts by the model of `spec`. Raises ProviderError."""


class Windows(Protocol):
    """Knows the context length of models by name. Nothing raises for an unknown one."""

    def context_window(self, model: str, base_url: str | None = None) -> int | None:
        """Tokens, or None if the model is unknown at this address: your own server decides for itself."""


class Prices(Protocol):
    """Knows the costs of calls. Nothing raises for an unknown model."""

    def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None:
        """US dollars, or None if no price is known."""
