"""The shape of `config.yaml`: one frozen model per section, defaults included.

A model's section is that of its provider, a platform's that of its package: `shape` knows them. What concerns several
keys is a section's `contradictions`, asked for once every value is known, so that all problems can be told at once.
Durations are seconds unless the name says otherwise. The sections' docstrings and the descriptions of their keys are
what people read in config.yaml and in the reference of all settings (`legato config`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from gateway.agent.tools.shell import ShellSettings
from gateway.domain.platform import AdapterSettings
from gateway.domain.settings import (
    AList,
    Contradiction,
    Count,
    Flag,
    Ident,
    Natural,
    Seconds,
    Section,
    Share,
    SpendCap,
    Text,
    Texts,
)
from gateway.providers.plugin import ModelSettings

PASSWORD_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")


class Known(Protocol):
    """What a configuration is validated with: the sections that plug-ins bring."""

    adapters: type[Section]

    def model_of(self, value: Any) -> type[ModelSettings]:
        """The kind of a model's section, by the provider that it names."""


def _as_its_provider_has_it(value: Any, whole: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    known: Known | None = info.context
    return known.model_of(value).model_validate(value) if known and isinstance(value, dict) else whole(value)


def _as_its_package_has_it(value: Any, info: ValidationInfo) -> Any:
    known: Known | None = info.context
    if known is None or not isinstance(value, dict):
        return value
    validated = known.adapters.model_validate(value)
    return {name: getattr(validated, name) for name in value}


ModelEntry = Annotated[ModelSettings, WrapValidator(_as_its_provider_has_it)]
Platforms = Annotated[dict[str, AdapterSettings], BeforeValidator(_as_its_package_has_it)]


class Auxiliary(Section):
    """The models for side work. With `auto` and `same-as-main` the conversation's own model does it, unless
    compression.summary_model names another; with `custom` those named here do."""

    mode: Literal["auto", "same-as-main", "custom"] = Field("auto", description="who does the side work")
    compression: ModelEntry | None = Field(None, description="who writes summaries: a section like `model`")


class Compression(Section):
    """A conversation that grows past `threshold` of the window is compacted: its middle becomes a summary."""

    enabled: Flag = Field(True, description="whether conversations are compacted without being asked")
    threshold: Share = Field(0.50, description="the share of the window at which it begins")
    target_ratio: Annotated[float, Field(strict=True, ge=0.10, le=0.80, allow_inf_nan=False)] = Field(
        0.20, description="how much of the threshold the newest messages keep, word for word"
    )
    protect_first_n: Natural = Field(3, description="messages at the start that stay as they are")
    protect_last_n: Count = Field(20, description="messages at the end that stay while there is room")
    summary_model: Text | None = Field(
        None, description="short form of `auxiliary.compression`: another model at the same address"
    )
    min_threshold_tokens: Natural = Field(64_000, description="no compaction begins below it, on a large window")
    background: Flag = Field(True, description="a summary is prepared after a reply, so that no turn waits for it")


class Hygiene(Section):
    """The safety net before each turn, for what compression cannot see coming."""

    threshold: Share = Field(0.85, description="a share of the window above compression.threshold")
    min_messages: Count = Field(4, description="shorter conversations are left alone")
    max_messages: Count = Field(5_000, description="longer conversations are compacted, whatever their size")
    timeout: Seconds = Field(120, description="seconds that a compaction may take")

    def contradictions(self) -> Iterator[Contradiction]:
        """A range has two ends."""
        if self.max_messages <= self.min_messages:
            yield (
                ("max_messages", "min_messages"),
                f"({self.max_messages:,}) must be above hygiene.min_messages ({self.min_messages:,})",
            )


class Context(Section):
    """What keeps a conversation inside the model's window. `compressor` has a model summarise what leaves view.
    `window` asks no model: a note says how much left view, and the originals are looked up. It waits for 0.75 of the
    window, unless compression.threshold is not 0.50."""

    engine: Text = Field("compressor", description="compressor, window, or the name of a plug-in")


def _time_of_day(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError('must be written in quotes, such as "04:00": YAML reads bare 14:00 as a number')
    if isinstance(value, str) and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        raise ValueError(f'must be a time of day from "00:00" to "23:59", not {value!r}')
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError):  # KeyError covers ZoneInfoNotFoundError
        raise ValueError(f"must be the name of a time zone such as Europe/Berlin, not {value!r}") from None
    return value


class Expiry(Section):
    """When a session that nobody talks in ends."""

    mode: Literal["idle", "daily", "both", "none"] = Field("idle", description="after a pause, or once a day")
    idle_minutes: Count = Field(10_080, description="the pause: 7 days")
    daily_at: Annotated[str, Field(strict=True), BeforeValidator(_time_of_day)] = Field(
        "04:00", description="the time of day, in quotes"
    )
    notify: Flag = Field(True, description="tell the chat once how to get the conversation back")
    timezone: Annotated[str, Field(strict=True), AfterValidator(_zone)] | None = Field(
        None, description="such as Europe/Berlin; null: this machine's"
    )


class Sessions(Section):
    """Whose conversation a message belongs to, and what it does to a running turn."""

    groups: Literal["per_user", "shared"] = Field(
        "per_user", description="in a group, one conversation each, or one for all"
    )
    threads: Literal["per_user", "shared"] = Field("shared", description="the same in a thread")
    busy_mode: Literal["queue", "steer", "interrupt"] = Field(
        "queue", description="a message during a turn waits, joins it, or ends it"
    )
    expiry: Expiry = Expiry()


def _store_url(value: str) -> str:
    if value.startswith(("redis://", "rediss://")):
        return _redis_url(value)
    path = value.removeprefix("sqlite:///")
    if path == value or not path:
        raise ValueError("must be sqlite:///FILE (three slashes, four before an absolute path) or redis://HOST:PORT/0")
    if ":memory:" in path or "?" in path:
        raise ValueError("must name a file, without options: what is accepted has to survive a restart")
    return value


def _redis_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = bool(parts.hostname) and (parts.port or 6379) > 0 and re.fullmatch(r"(/\d*)?", parts.path) is not None
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be redis://HOST:PORT/0")
    return value


class Store(Section):
    """Where conversations are kept: in a file, which one process uses, or on a Redis server, for any number of
    processes on any hosts.

        url: redis://127.0.0.1:6379/0
    """

    url: Annotated[str, Field(strict=True), AfterValidator(_store_url)] = Field(
        "sqlite:///legato.db", description="three slashes: beside where Legato runs; four: an absolute path"
    )

    @property
    def sqlite_path(self) -> Path | None:
        """The database file; relative to the working directory. None for another kind of store."""
        path = self.url.removeprefix("sqlite:///")
        return Path(path) if path != self.url else None


class Turns(Section):
    """Limits of turns and of the lanes they run in."""

    concurrent: Count = Field(256, description="turns at once, over all chats")
    deadline: Seconds = Field(1_800, description="seconds a turn may take")
    inactivity: Seconds = Field(600, description="seconds a turn may take without any sign of life")
    max_steps: Count = Field(90, description="model calls in one turn")
    lane_cap: Count = Field(100, description="messages that may wait in one conversation")


class Access(Section):
    """Who may talk to the bot on public platforms; who runs `legato chat` always may. People are named as
    PLATFORM:PERSON, or as PLATFORM:PERSON@CHAT for one chat only; `*` stands for any person or chat."""

    allow: Annotated[tuple[Ident, ...], AList] = Field((), description="who may talk")
    admins: Annotated[tuple[Ident, ...], AList] = Field((), description="who may talk, and decide")
    pairing: Flag = Field(True, description="a stranger is given a code, by which an admin lets them in")


class Prompt(Section):
    """What the system prompt says beyond the built-in parts."""

    persona: Text | None = Field(None, description="who the bot is; null: an assistant named Legato")
    context_files: Texts = Field((), description="files whose text stands in every prompt")


class Tools(Section):
    """What the model may do beside talking."""

    approval_deadline: Seconds = Field(300, description="seconds for a yes or no to a tool; then it counts as a no")
    shell: ShellSettings = ShellSettings()


class Plugins(Section):
    """Where plug-ins are looked for, beside installed packages."""

    dir: Text = Field("plugins", description="a folder, whose context_engine/NAME/ is an engine")


class Budgets(Section):
    """Spend caps in US dollars; a day begins at 00:00 UTC. Before each call to a model, the most it can cost is set
    aside; a call for which no room is left is not made, and the person is told. A model whose price the built-in table
    lacks needs `prices` then. Without model.max_output_tokens an answer has at most a tenth of the window, and at most
    8,192 tokens, once there is a cap."""

    per_session_usd: SpendCap | None = Field(None, description="one conversation, however often it is condensed")
    per_user_daily_usd: SpendCap | None = Field(
        None, description="one person (in a shared conversation: the chat), one day"
    )
    daily_usd: SpendCap | None = Field(None, description="everybody together, one day")

    def contradictions(self) -> Iterator[Contradiction]:
        """Nobody can spend more than all."""
        person, everybody = self.per_user_daily_usd, self.daily_usd
        if person is not None and everybody is not None and person > everybody:
            yield (
                ("per_user_daily_usd", "daily_usd"),
                f"({person:g}) must not exceed budgets.daily_usd ({everybody:g}), which all share",
            )


class Log(Section):
    """What is logged, and in which form."""

    level: Literal["debug", "info", "warning", "error"] = Field("warning", description="what is worth a line")
    format: Literal["console", "json"] = Field("console", description="for people, or for programs")


class Config(Section):
    """The configuration of Legato. Every value below is the default, so this file can be deleted: what is not given
    here is as it stands here. `legato check` tells what it thinks of your changes, `legato config` prints this file.

    Keys and tokens never go into this file. Write "${NAME}" and set the variable NAME, or put NAME=… into a file .env
    beside this one. Any key can also be set from outside: LEGATO__COMPRESSION__THRESHOLD=0.6 sets
    compression.threshold.
    """

    model: ModelEntry = ModelSettings()
    auxiliary: Auxiliary = Auxiliary()
    compression: Compression = Compression()
    hygiene: Hygiene = Hygiene()
    context: Context = Context()
    sessions: Sessions = Sessions()
    store: Store = Store()
    turns: Turns = Turns()
    access: Access = Access()
    prompt: Prompt = Prompt()
    tools: Tools = Tools()
    plugins: Plugins = Plugins()
    budgets: Budgets = Budgets()
    adapters: Platforms = Field(default_factory=dict)  # those that are named, by name
    log: Log = Log()

    def contradictions(self) -> Iterator[Contradiction]:
        """What concerns several sections."""
        hygiene, compression = self.hygiene.threshold, self.compression.threshold
        if hygiene <= compression:
            yield (
                ("hygiene.threshold", "compression.threshold"),
                f"({hygiene:g}) must be above compression.threshold ({compression:g}): hygiene is the safety net "
                "behind it",
            )
        if self.auxiliary.mode == "custom" and self.auxiliary_model() is None:
            yield (
                ("auxiliary.mode", "auxiliary.compression"),
                "is custom, but no model is given: add auxiliary.compression",
            )
        patience, deadline = self.tools.approval_deadline, self.turns.deadline
        if patience >= deadline:
            yield (
                ("tools.approval_deadline", "turns.deadline"),
                f"({patience:g}) must be below turns.deadline ({deadline:g}), which ends a turn that waits, too",
            )

    def secrets(self) -> tuple[str, ...]:
        """Every secret the configuration holds: keys, tokens, and passwords inside addresses."""
        return tuple(dict.fromkeys(_secrets_of(self)))

    def auxiliary_model(self) -> ModelSettings | None:
        """The model configured for summaries, or None where the session's live model writes them.

        `compression.summary_model` is the short form of an entry: the main model's provider and key with
        another name. Its window is not known, so it is left to be looked up.
        """
        if self.auxiliary.mode == "custom" and self.auxiliary.compression is not None:
            return self.auxiliary.compression
        short = self.compression.summary_model
        if short is None or self.auxiliary.mode == "same-as-main":
            return None
        return self.model.model_copy(update={"name": short, "context_length": None, "prices": None})

    def replace(self, **sections: Section) -> Self:
        """A copy with other sections, for tests and command line options."""
        return self.model_copy(update=sections)


def _secrets_of(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets_of(getattr(value, name))
    elif isinstance(value, tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _secrets_of(item)
    elif isinstance(value, str):
        for password in PASSWORD_IN_URL.findall(value):
            yield password
            if unquote(password) != password:
                yield unquote(password)
