"""The description of a wire format's package, the host of its provider, and the settings of a model.

A package registers a `ProviderPlugin` under the entry-point group `legato.providers`. Reading the description loads
nothing heavy: the HTTP stack, say, comes with `create`, when a model of it is configured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from pydantic import Field

from gateway.domain.settings import AList, Contradiction, Count, Dollars, HttpUrl, Seconds, Secret, Section, Text
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import READ_TIMEOUT, WHOLE_ANSWER, Feature, ModelRequest, ModelSpec
from gateway.runtime.clock import Clock

GROUP: Final = "legato.providers"

# The documents on `input_audio`: OpenAI takes wav and mp3; https://openrouter.ai/docs/features/multimodal/audio
# names more, which of them depends on the vendor.
Sound = Literal["wav", "mp3", "ogg", "flac", "m4a", "aac", "aiff"]

Temperature = Annotated[float, Field(strict=True, ge=0, le=2, allow_inf_nan=False)]


class ModelPrices(Section):
    """`prices` overrides the built-in table, in US dollars per million tokens."""

    input: Dollars = Field(description="for what the model reads")
    output: Dollars = Field(description="for what it writes")
    cache_read: Dollars | None = Field(None, description="for what it reads from a cache; null: as `input`")
    cache_write: Dollars | None = Field(None, description="for what it writes to one; null: as `input`")

    def cost_usd(self, usage: CanonicalUsage) -> float:
        """Return the cost of a call."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        dollars_per_million = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        )
        return dollars_per_million / 1_000_000


class ModelSettings(Section):
    """`model` is the model that people talk to. `offline` is a built-in model to try things out. A real one:"""

    provider: Text = Field(
        "offline", description="the vendor, or the API it speaks; `legato models --providers` lists them"
    )
    name: Text | None = Field(None, description="the model's name there")
    base_url: HttpUrl | None = Field(None, description="the server's address; null: the vendor's own")
    api_key: Secret | None = Field(None, description='the key for the vendor or server, as "${NAME}"')
    context_length: Count | None = Field(
        None, description="its window in tokens; null: as the provider or a built-in table says, else 128,000"
    )
    max_output_tokens: Count | None = Field(
        None, description="the longest answer in tokens; null: the provider decides"
    )
    cache_ttl: Literal["auto", "5m", "1h"] = Field(
        "auto", description="how long the provider caches a prompt; auto: whichever is cheaper"
    )
    prices: ModelPrices | None = Field(
        None, description="USD per million tokens, such as {input: 1, output: 4, cache_read: 0.1, cache_write: 1.25}"
    )
    pictures: Literal["auto", True, False] = Field("auto", description="send it pictures; auto: until it refuses them")
    sounds: Annotated[tuple[Sound, ...], AList] = Field(
        (), description="the sounds it can hear, such as [wav, mp3]; voice messages are ogg"
    )

    tools: Literal["auto", True, False] = Field("auto", description="give it tools; auto: until it refuses them")
    stream: Literal["auto", True, False] = Field(
        "auto", description="show its answers while they grow; auto: until it refuses"
    )
    system_role: Literal["auto", True, False] = Field(
        "auto", description="send it system messages; auto: until it refuses them"
    )
    temperature: Temperature | None = Field(
        None, description="0 to 2: how freely it chooses words; null: the provider decides"
    )
    reasoning_effort: Text | None = Field(
        None, description="how much it thinks, such as low, medium or high; null: the provider decides"
    )
    extra_body: dict[str, Any] = Field(default_factory=dict, description="more keys for the body of each request")
    headers: dict[str, str] = Field(default_factory=dict, description="more headers for each request")
    silence: Seconds | None = Field(
        None,
        description="seconds of silence after which another model answers; null: "
        f"90 if fallback_models names one, else {READ_TIMEOUT:.0f}",
    )
    whole_answer: Seconds = Field(WHOLE_ANSWER, description="seconds that an answer may take with stream: false")

    def contradictions(self) -> Iterator[Contradiction]:
        """An answer must leave room for a prompt."""
        most, window = self.max_output_tokens, self.context_length
        if most is not None and window is not None and most >= window:
            yield (
                ("max_output_tokens", "context_length"),
                f"({most:,}) must be below context_length ({window:,}), or no room is left for a prompt",
            )


class ServedModel(ModelSettings):
    """A model of a vendor or of a server: it has a name, and a key unless the server is one's own. A call that may work
    later is made again."""

    api_keys: Annotated[tuple[Secret, ...], AList] = Field(
        (), description="several keys; if one is refused or limited, it rests and the next is used"
    )
    api_key_command: Text | None = Field(
        None,
        description="a program that prints a key, run every 10 minutes, such as gcloud auth print-access-token",
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """As of every model, and a name is needed, and one source of keys."""
        if self.name is None:
            yield ("name", "provider"), f"is needed: which model of {self.provider} do you want to use?"
        for name in ("api_keys", "api_key_command"):
            if getattr(self, name) and (self.api_key or (name == "api_keys" and self.api_key_command)):
                yield (name, "api_key", "api_key_command"), "is one of three ways to name a key: leave the others out"
        yield from super().contradictions()


def request_settings(spec: ModelSpec, request: ModelRequest) -> dict[str, Any]:
    """Return the fields that a model's settings add to the body of a request, and those that were chosen for this call,
    by the names of Chat Completions."""
    settings: ModelSettings | None = spec.settings
    if settings is None:
        return {**request.chosen}
    effort = settings.reasoning_effort and request.instead.get("reasoning_effort", settings.reasoning_effort)
    usual = {"temperature": settings.temperature, "reasoning_effort": effort}
    kept = {key: value for key, value in usual.items() if value is not None and key not in request.omit}
    return {**kept, **settings.extra_body, **request.chosen}


SETTINGS: Final = frozenset(
    {"temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "response_format", "json_object"}
    | {"reasoning_effort", "verbosity", "top_k", "min_p", "repetition_penalty", "parallel_tool_calls"}
)
"""Those that Chat Completions take, of any server; "json_object" is a kind of `response_format`."""


def anywhere(model: str) -> Iterator[tuple[str | None, str]]:
    """The places of `ProviderPlugin.listed` for models of any vendor: in every list, by the name after a slash, too."""
    yield None, model
    if "/" in model:
        yield None, model.rpartition("/")[2]


class Vendor(Struct, frozen=True, kw_only=True):
    """Who has models, and how they are reached.

    `name` is what people write; `title` what they call it. `api`: the provider whose wire format it
    speaks; "": Chat Completions. `address`:
    of its API; what stands in braces is the customer's own, who must give the whole then. `key`: the variable in which
    people keep its key, "" where there is none; `keys_at`: the page where they get one. `key_header`: of a key that is
    no bearer token. `token_command`: what prints a token for it. `own`: a server of one's own, which needs no key;
    `free`: it costs nothing. `lacks`: what its models refuse. `prices`: its name in the price table. `traced_as`:
    its name in OpenTelemetry's conventions, where that is another one. `example`: a model. `note`: what people should
    know.
    """

    name: str
    title: str
    api: str = ""
    address: str = ""
    key: str = ""
    keys_at: str = ""
    key_header: str = ""
    token_command: str = ""
    own: bool = False
    free: bool = False
    lacks: Sequence[Feature] = ()
    prices: str = ""
    traced_as: str = ""
    example: str = ""
    note: str = ""

    @property
    def address_to_fill(self) -> str:
        """The address, with a customer's own words in capitals, to be filled in; "" if the address is complete."""
        return self.address.replace("{", "").replace("}", "") if "{" in self.address else ""


class ProviderPlugin(Struct, frozen=True, kw_only=True):
    """A wire format, described; or a vendor that speaks it.

    `name` is its entry point's and `model.provider`'s. `create` names the function, as "module:function", that is
    called with a `ProviderHost` and returns the `Provider`. `settings`: its models'; `examples`: lines that people may
    write into config.yaml. `only_model`: what to call the one model that it has ("the offline model"); "": its models
    have names. `free`: no call costs anything. `window`: of models that nobody knows the window of. `pictures`: whether
    its models take them; None: that is found out. `vendor`: whose API it is where no other address is given. `listed`:
    where a price table may list a model, the most telling place first: (a vendor's list, or None for any; the name
    there). `marks_cache`: whether a model, at an address or the vendor's own, wants its prompts marked for its cache.
    `marks_results`: whether results of tools, and answers without words, can carry a mark, too. `takes`: the settings
    that can be chosen for one call, by the names of Chat Completions.
    """

    name: str
    create: str
    settings: type[ModelSettings] = ModelSettings
    examples: Sequence[str] = ()
    only_model: str = ""
    free: bool = False
    window: int | None = None
    pictures: bool | None = None
    vendor: Vendor | None = None
    listed: Callable[[str], Iterator[tuple[str | None, str]]] = anywhere
    marks_cache: Callable[[str, str | None], bool] = lambda *_: False
    marks_results: bool = False
    takes: frozenset[str] = SETTINGS

    @property
    def is_vendor(self) -> bool:
        """Whether it is one vendor's, and no wire format that anybody's server may speak."""
        return self.vendor is not None and bool(self.vendor.address)

    @property
    def passes_on(self) -> bool:
        """Whether somebody's own server asks vendors, who charge for it."""
        return self.vendor is not None and self.vendor.own and not self.vendor.free


class ProviderHost(Struct, frozen=True, kw_only=True):
    """The parts of the program that a provider may use.

    `redact` takes credentials out of a text. `count` gives the tokens of a text. `pause` is awaited between two words
    by a model that writes faster than people like to read.
    """

    clock: Clock
    redact: Callable[[str], str]
    count: Callable[[str], int]
    pause: Callable[[], Awaitable[None]]
