"""The shape of `config.yaml`: one frozen model per section, defaults included.

Types are strict: `"5"` is not a number and `1` is not `true`. Only what concerns a single value is
checked here; what concerns several stands in `rules`, so that all problems can be told at once.
Durations are seconds unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from gateway.app.config.values import (
    PASSWORD_IN_URL,
    CommandStart,
    Count,
    Dollars,
    Flag,
    HttpUrl,
    Ident,
    Natural,
    Port,
    Seconds,
    Secret,
    Share,
    SpendCap,
    Text,
    store_url,
    time_of_day,
    tuple_of_list,
    zone,
)
from gateway.context.policy import LEAST_TARGET, MOST_TARGET, CompressionSettings, HygieneRules
from gateway.domain.usage import CanonicalUsage

_SIZES, _RULES = CompressionSettings(), HygieneRules()

# What is documented of `input_audio`: OpenAI takes wav and mp3; https://openrouter.ai/docs/features/multimodal/audio
# names more, which of them depends on the vendor.
Sound = Literal["wav", "mp3", "ogg", "flac", "m4a", "aac", "aiff"]


class Section(BaseModel):
    """What all sections have in common: frozen, and no key that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Prices(Section):
    """What a model costs, in US dollars per million tokens; overrides the built-in table."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None  # None: as `input`
    cache_write: Dollars | None = None  # None: as `input`

    def cost_usd(self, usage: CanonicalUsage) -> float:
        """What a call costs."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        dollars_per_million = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        )
        return dollars_per_million / 1_000_000


class Model(Section):
    """A model that can be called."""

    provider: Literal["offline", "openai", "openai-responses", "anthropic"] = "offline"
    name: Text | None = None
    base_url: HttpUrl | None = None  # None: the vendor's own
    api_key: Secret | None = None
    context_length: Count | None = None  # tokens; None: ask the provider, then a table, then 128,000
    max_output_tokens: Count | None = None
    cache_ttl: Literal["5m", "1h"] = "5m"
    prices: Prices | None = None
    pictures: Literal["auto", True, False] = "auto"  # whether it takes them; auto: try, and remember what it says
    sounds: Annotated[tuple[Sound, ...], BeforeValidator(tuple_of_list)] = ()  # formats that it hears


class Auxiliary(Section):
    """The models for side work; an entry is used when `mode` is `custom`."""

    mode: Literal["auto", "same-as-main", "custom"] = "auto"
    compression: Model | None = None
    memory: Model | None = None
    title: Model | None = None


class Compression(Section):
    """When and how far a transcript is compacted."""

    enabled: Flag = True
    threshold: Share = _SIZES.threshold  # of the context length
    target_ratio: Annotated[float, Field(strict=True, ge=LEAST_TARGET, le=MOST_TARGET, allow_inf_nan=False)] = (
        _SIZES.target_ratio
    )
    protect_first_n: Natural = _SIZES.protect_first_n
    protect_last_n: Count = _SIZES.protect_last_n
    summary_model: Text | None = None
    min_threshold_tokens: Natural = _SIZES.min_threshold_tokens
    background: Flag = True


class Hygiene(Section):
    """The pass before the agent."""

    threshold: Share = _RULES.threshold  # of the context length
    min_messages: Count = _RULES.min_messages
    max_messages: Count = _RULES.max_messages
    timeout: Seconds = _RULES.timeout


class Context(Section):
    """Which context engine is used."""

    engine: Text = "compressor"


class Expiry(Section):
    """When a session that nobody talks in ends."""

    mode: Literal["idle", "daily", "both", "none"] = "idle"
    idle_minutes: Count = 10_080
    daily_at: Annotated[str, Field(strict=True), BeforeValidator(time_of_day)] = "04:00"
    notify: Flag = True
    timezone: Annotated[str, Field(strict=True), AfterValidator(zone)] | None = None  # None: the machine's


class Sessions(Section):
    """Whose conversation a message belongs to, and what it does to a running turn."""

    groups: Literal["per_user", "shared"] = "per_user"
    threads: Literal["per_user", "shared"] = "shared"
    busy_mode: Literal["queue", "collect", "steer", "interrupt"] = "queue"
    expiry: Expiry = Expiry()


class Store(Section):
    """Where conversations are kept."""

    url: Annotated[str, Field(strict=True), AfterValidator(store_url)] = "sqlite:///legato.db"

    @property
    def sqlite_path(self) -> Path | None:
        """The database file; relative to the working directory. None for another kind of store."""
        path = self.url.removeprefix("sqlite:///")
        return Path(path) if path != self.url else None


class Turns(Section):
    """Limits of turns and of the lanes they run in."""

    concurrent: Count = 256
    deadline: Seconds = 1_800
    inactivity: Seconds = 600
    max_steps: Count = 90
    lane_cap: Count = 100


class Access(Section):
    """Who may talk to the bot on public platforms."""

    allow: Annotated[tuple[Ident, ...], BeforeValidator(tuple_of_list)] = ()
    admins: Annotated[tuple[Ident, ...], BeforeValidator(tuple_of_list)] = ()
    pairing: Flag = True


class Memory(Section):
    """What outlives sessions; limits in characters."""

    flush: Flag = True
    notes_chars: Count = 2_200
    person_chars: Count = 1_400


class Prompt(Section):
    """What the system prompt says beyond the built-in parts."""

    persona: Text | None = None
    context_files: Annotated[tuple[Text, ...], BeforeValidator(tuple_of_list)] = ()


class Shell(Section):
    """The tool that runs commands on this machine. `allow`: beginnings of commands that need no yes."""

    enabled: Flag = False
    allow: Annotated[tuple[CommandStart, ...], BeforeValidator(tuple_of_list)] = ()
    admins_only: Flag = True
    timeout: Seconds = 60


class Tools(Section):
    """Limits of tool output in characters, and the tools that must be asked for."""

    result_chars: Count = 100_000
    turn_chars: Count = 200_000
    preview_chars: Count = 1_500
    approval_deadline: Seconds = 300  # for a yes or no; then it counts as a no
    shell: Shell = Shell()
    mcp: dict[str, Any] = {}


class Plugins(Section):
    """Where plug-ins are looked for."""

    dir: Text = "plugins"


class Budgets(Section):
    """Spend caps in US dollars; None: no cap. A day begins at 00:00 UTC."""

    per_session_usd: SpendCap | None = None
    per_user_daily_usd: SpendCap | None = None
    daily_usd: SpendCap | None = None


class Web(Section):
    """The web page."""

    enabled: Flag = False
    host: Text = "127.0.0.1"
    port: Port = 8787


class Webhook(Section):
    """Where Telegram calls (`url`), and where this program listens for it behind that; None: `path` is that of
    `url`, and `secret` is made of the bot's token."""

    url: HttpUrl | None = None
    host: Text = "127.0.0.1"
    port: Port = 8443
    path: Text | None = None
    secret: Secret | None = None


class Telegram(Section):
    """The Telegram bot."""

    enabled: Flag = False
    token: Secret | None = None
    mode: Literal["polling", "webhook"] = "polling"
    webhook: Webhook = Webhook()
    streaming: Literal["edits", "drafts", "none"] = "edits"
    proxy: Text | None = None  # None: as HTTPS_PROXY and ALL_PROXY say
    base_url: HttpUrl | None = None


class Discord(Section):
    """The Discord bot."""

    enabled: Flag = False
    token: Secret | None = None
    base_url: HttpUrl | None = None


class Adapters(Section):
    """The platforms the bot talks on; the console needs no entry."""

    web: Web = Web()
    telegram: Telegram = Telegram()
    discord: Discord = Discord()


class Log(Section):
    """What is logged, and in which form."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["console", "json"] = "console"


class Config(Section):
    """All of `config.yaml`. `Config()` is what an empty file means."""

    model: Model = Model()
    fallback_models: Annotated[tuple[Model, ...], BeforeValidator(tuple_of_list)] = ()
    auxiliary: Auxiliary = Auxiliary()
    compression: Compression = Compression()
    hygiene: Hygiene = Hygiene()
    context: Context = Context()
    sessions: Sessions = Sessions()
    store: Store = Store()
    turns: Turns = Turns()
    access: Access = Access()
    memory: Memory = Memory()
    prompt: Prompt = Prompt()
    tools: Tools = Tools()
    plugins: Plugins = Plugins()
    budgets: Budgets = Budgets()
    adapters: Adapters = Adapters()
    log: Log = Log()

    def secrets(self) -> tuple[str, ...]:
        """Every secret the configuration holds: keys, tokens, and passwords inside addresses."""
        return tuple(dict.fromkeys(_secrets_in(self)))

    def auxiliary_model(self, task: Literal["compression", "memory", "title"]) -> Model | None:
        """The model configured for a side task, or None where the session's live model is used.

        `compression.summary_model` is the short form of an entry for `compression`: the main model's
        provider and key with another name. Its window is not known, so it is left to be looked up.
        """
        entry: Model | None = getattr(self.auxiliary, task)
        if self.auxiliary.mode == "custom" and entry is not None:
            return entry
        short = self.compression.summary_model
        if task != "compression" or short is None or self.auxiliary.mode == "same-as-main":
            return None
        return self.model.model_copy(update={"name": short, "context_length": None, "prices": None})

    def replace(self, **sections: Section) -> Self:
        """A copy with other sections, for tests and command line options."""
        return self.model_copy(update=sections)


def _secrets_in(section: BaseModel) -> Iterator[str]:
    for name in type(section).model_fields:
        yield from _secrets_of(getattr(section, name))


def _secrets_of(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        yield from _secrets_in(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _secrets_of(item)
    elif isinstance(value, str):
        for password in PASSWORD_IN_URL.findall(value):
            yield password
            if unquote(password) != password:
                yield unquote(password)
