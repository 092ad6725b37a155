"""The shape of `config.yaml`: one frozen model per section, defaults included. Some stand with who keeps to them.

A model's section is that of its provider, a platform's that of its package: `shape` knows them. What concerns several
keys is a section's `contradictions`, asked for once every value is known, so that all problems can be told at once.
Durations are seconds unless the name says otherwise. The sections' docstrings and the descriptions of their keys are
what people read in config.yaml and in the reference of all settings (`legato config`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from gateway.agent.caps import Caps
from gateway.agent.files.quota import FileSettings
from gateway.agent.files.speech import SpeechSettings, TranscriptionSettings
from gateway.agent.mcp.settings import McpServerSettings, misnamed
from gateway.agent.memory.snapshot import MemorySettings
from gateway.agent.prompt import PromptSettings
from gateway.agent.skills.catalogue import SkillsSettings
from gateway.agent.tools.delegate import DelegateSettings
from gateway.agent.tools.outputs import OutputLimits
from gateway.agent.tools.send_file import PictureSettings
from gateway.agent.tools.shell import ShellSettings
from gateway.agent.tools.web_fetch import WebSearchSettings, WebSettings
from gateway.agent.workspace.folders import WorkspaceSettings
from gateway.app.backup.generations import Keep
from gateway.context.policy import CompressionSettings, HygieneRules
from gateway.domain.approval import Lasts
from gateway.domain.chat import ChatAddress
from gateway.domain.expiry import TimeOfDay
from gateway.domain.place import HOME, Listen, address_named
from gateway.domain.platform import AdapterSettings
from gateway.domain.reminder import ReminderRules
from gateway.domain.settings import (
    AList,
    Contradiction,
    Count,
    Flag,
    Ident,
    Natural,
    Seconds,
    Section,
    SpendCap,
    Text,
    Texts,
    is_loopback,
)
from gateway.domain.turn import SessionSettings, TurnSettings
from gateway.domain.usage import Purpose
from gateway.people.access import AccessSettings
from gateway.providers.plugin import ModelSettings

if TYPE_CHECKING:
    from gateway.app.config.shape import Shape

_SOUNDS_SECRET = re.compile(r"auth|key|token|secret|passw|credential", re.IGNORECASE)
PASSWORD_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")


def _as_its_provider_has_it(value: Any, whole: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    known: Shape | None = info.context
    return known.model_of(value).model_validate(value) if known and isinstance(value, dict) else whole(value)


def _as_a_name_or_its_provider_has_it(value: Any, whole: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict | ModelSettings):
        raise ValueError("must be a model's name, or a section like `model`")
    return _as_its_provider_has_it(value, whole, info)


def _as_its_package_has_it(value: Any, info: ValidationInfo) -> Any:
    known: Shape | None = info.context
    if known is None or not isinstance(value, dict):
        return value
    validated = known.adapters.model_validate(value)
    return {name: getattr(validated, name) for name in value}


ModelEntry = Annotated[ModelSettings, WrapValidator(_as_its_provider_has_it)]
Fallback = Annotated[ModelSettings | str, WrapValidator(_as_a_name_or_its_provider_has_it)]
Platforms = Annotated[dict[str, AdapterSettings], BeforeValidator(_as_its_package_has_it)]


class Auxiliary(Section):
    """The conversation's own model does side work, such as summaries. With mode `custom`, the models in this section do
    the side work. `compression.summary_model` names a model for summaries only."""

    mode: Literal["auto", "same-as-main", "custom"] = Field("auto", description="which model does the side tasks")
    compression: ModelEntry | None = Field(None, description="the model for summaries: a section like `model`")
    memory: ModelEntry | None = Field(None, description="the model that collects memories: a section like `model`")
    title: ModelEntry | None = Field(None, description="the model that names conversations: a section like `model`")
    delegate: ModelEntry | None = Field(None, description="the model for helpers: a section like `model`")


class Context(Section):
    """The engine keeps a conversation inside the model's window. With `compressor`, a model summarises the messages
    that leave the window. With `window`, old messages leave at 0.75 of the window (or compression.threshold) without a
    summary, and the model can search them."""

    engine: Text = Field("compressor", description="compressor, window, or the name of a plug-in")
    recall: Flag = Field(True, description="remind the model of earlier messages about the same subject")


class SearchSettings(Section):
    """How Legato finds past messages. A search compares words. With an embedding model, a search also finds other words
    for the same thing. The embedding model needs a server with OpenAI's /embeddings, which receives each message once,
    and each question.

        search: {embeddings: {provider: ollama, name: nomic-embed-text}}
        search: {embeddings: {provider: openai, name: text-embedding-3-small}}
    """

    embeddings: ModelEntry | None = Field(None, description="the embedding model: a section like `model`; null: none")


def _store_url(value: str) -> str:
    if value.startswith(("redis://", "rediss://")):
        return _server_url(value, "redis://HOST:PORT/0", r"(/\d*)?", needs_host=True, usual=6379)
    if value.startswith(("postgresql://", "postgres://")):
        return _server_url(value, "postgresql://USER@HOST/DATABASE", "/.+", needs_host=False, usual=5432)
    path = value.removeprefix("sqlite:///")
    if path == value or not path:
        raise ValueError(
            "must be sqlite:///FILE (three slashes, four before an absolute path), redis://HOST:PORT/0 or "
            "postgresql://USER@HOST/DATABASE"
        )
    if ":memory:" in path or "?" in path:
        raise ValueError("must name a file, without options: accepted messages must survive a restart")
    return value


def _server_url(value: str, form: str, path: str, *, needs_host: bool, usual: int) -> str:
    """The address of a server, if it has this form. Raises ValueError."""
    try:
        parts = urlsplit(value)
        valid = bool(parts.hostname or not needs_host) and (parts.port or usual) > 0 and re.fullmatch(path, parts.path)
    except ValueError:
        valid = None
    if not valid:
        encoded = ", with the / # ? [ ] of a password as %2F %23 %3F %5B %5D" if "@" in value else ""
        raise ValueError(f"must be {form}{encoded}")
    return value


class StoreSettings(Section):
    """Legato keeps conversations in a file, for one process, or on a Redis or PostgreSQL server, for many processes
    (docs/redis.md).

        url: redis://127.0.0.1:6379/0
        url: postgresql://legato:${POSTGRES_PASSWORD}@127.0.0.1/legato  # needs pip install 'legato[postgres]'
    """

    url: Annotated[str, Field(strict=True), AfterValidator(_store_url)] = Field(
        "sqlite:///legato.db", description="three slashes: a path in Legato's folder; four: an absolute path"
    )
    keep_copy: Flag = Field(True, description="keep a copy of the file before an upgrade changes it")

    @property
    def is_postgres(self) -> bool:
        """Whether it is a PostgreSQL server."""
        return self.url.startswith(("postgresql://", "postgres://"))

    @property
    def sqlite_path(self) -> Path | None:
        """The database file as it was written; see `Config.database`. None for another kind of store."""
        path = self.url.removeprefix("sqlite:///")
        return Path(path) if path != self.url else None


class ToolSettings(OutputLimits):
    """`tools` says which tools the model has, and who may use them. `offered` lists tools by person (as in `access`),
    by platform, or for everyone (`*`). For each person, only the narrowest entry counts. In a list of tools, `*` stands
    for any characters, and `-name` removes a tool. A list with only removals keeps all other tools.

        offered: {"*": [-shell], telegram: [clock, todo], "telegram:42": ["*"], "telegram:*@-100123": []}
        admins_only: [shell, "github_*"]
    """

    offered: dict[Ident, Texts] = Field(default_factory=dict, description="tools for single people, chats or platforms")
    admins_only: Texts = Field((), description="tools that only admins have")
    mcp: dict[str, McpServerSettings] = Field(
        default_factory=dict, description="MCP servers, each under a name that you choose (docs/mcp.md)"
    )
    topics: Flag = Field(
        False, description="let the model open, name and close topics and threads in groups, each with approval"
    )
    approval_deadline: Seconds = Field(300, description="seconds that a question waits for an answer")
    approval_lasts: Lasts = Field("always", description="how long a person's yes to a call can last")
    delegate: DelegateSettings = DelegateSettings()
    shell: ShellSettings = ShellSettings()
    skills: SkillsSettings = SkillsSettings()
    web: WebSettings = WebSettings()
    search: WebSearchSettings = WebSearchSettings()
    pictures: PictureSettings = PictureSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield an error for each name that no server may have."""
        for name in filter(misnamed, self.mcp):
            yield (f"mcp.{name}",), "must have a name of small letters, digits and - alone, 24 at most"


class Chat(Section):
    """`chats` sets things for single chats, topics, Discord servers or platforms. `/whoami`
    shows a chat's number.

        chats:
          telegram:-1001234567890: {persona: You are a pirate., listen: free}
          telegram:-1001234567890/7: {model: gpt-5-mini, tools: [search_history]}   # a topic of that group
          telegram:12345678: {daily_usd: 1}             # a person's own chat
          discord:guild-12345678: {groups: shared}      # all channels of a guild; discord:12345678 is one channel
          discord:*: {persona: You are a librarian.}    # the whole platform
    """

    persona: Text | None = Field(None, description="who the bot is there, in your words; null: as prompt.persona")
    model: Fallback | None = Field(
        None, description="the model there: a name at the provider of `model`, or a section like `model`"
    )
    tools: Texts | None = Field(None, description="which of the offered tools it has there; a list as in tools.offered")
    listen: Listen | None = Field(None, description="when the bot answers there")
    busy_mode: Literal["queue", "collect", "steer", "interrupt"] | None = Field(
        None, description="as sessions.busy_mode"
    )
    reactions: bool | None = Field(None, description="as sessions.reactions")
    groups: Literal["per_user", "shared"] | None = Field(None, description="as sessions.groups")
    threads: Literal["per_user", "shared"] | None = Field(None, description="as sessions.threads")
    context: Natural | None = Field(
        None,
        description="in a group, how many earlier messages the model sees; null: 50",
    )
    names: Texts | None = Field(None, description="other names that people call the bot")
    joins: Natural | None = Field(
        None, description="how many times an hour a model may check whether the bot should speak unasked; null: never"
    )
    reply: Flag | None = Field(None, description="in a group, answers reply to their question; null: true")
    silent: Flag | None = Field(
        None,
        description="reminders, notices and messages from programs arrive silently; null: only small notices in groups",
    )
    previews: Flag | None = Field(None, description="links have a preview; null: as the platform's section says")
    daily_usd: SpendCap | None = Field(None, description="what everything in this place together may cost in a day")

    def contradictions(self) -> Iterator[Contradiction]:
        """A section names its provider."""
        if isinstance(self.model, ModelSettings) and "provider" not in self.model.model_fields_set:
            yield ("model",), "must name the provider; a name alone stands for another model at the same address"


class Plugins(Section):
    """Plug-ins that are not installed as packages are in a folder of their own."""

    dir: Text = Field("plugins", description="each folder in its context_engine/ is an engine")


class LogSettings(Section):
    """The log."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="the lowest level that is logged"
    )
    format: Literal["console", "json"] = Field("console", description="for people, or for programs")


def _listening_address(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise ValueError('must be HOST:PORT, such as "127.0.0.1:9464"')
    return value


class MonitorSettings(Section):
    """At `address`, `legato run` tells monitors how Legato is doing
    (docs/operations.md).

        address: "127.0.0.1:9464"
    """

    address: Annotated[str, Field(strict=True), AfterValidator(_listening_address)] | None = Field(
        None, description="host and port; null: there is no such address"
    )
    public: Flag = Field(False, description="allow an address that other machines can reach")

    def contradictions(self) -> Iterator[Contradiction]:
        """Strangers are not told by accident."""
        if self.address is not None and not self.public and not is_loopback(self.place(0)[0]):
            yield (
                ("address", "public"),
                "can be reached from other machines: allow this with monitor.public: true, or listen at 127.0.0.1",
            )

    def place(self, worker: int) -> tuple[str, int]:
        """The host and the port of a worker; the first is number 0."""
        host, _, port = (self.address or "").rpartition(":")
        return host.strip("[]"), int(port) + worker


class AlertSettings(Section):
    """Legato reports problems to a chat, each kind at most once an hour
    (docs/operations.md).

        to: telegram:4711
    """

    to: Text | None = Field(
        None, description="PLATFORM:CHAT, as /whoami shows it there; null: the home chat, if there is one"
    )

    @property
    def chat(self) -> ChatAddress | None:
        """The chat that is told; None: the home chat."""
        return address_named(self.to)


def _interval(value: str) -> str:
    number, unit = value[:-1], value[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS and int(number) * _UNITS[unit] >= 300):
        raise ValueError('must be "5m" or more, such as "30m" or "2h"')
    return value


def _hours(value: str) -> str:
    first, dash, last = value.partition("-")
    if not (dash and all(each.isascii() and each.isdigit() and int(each) <= 24 for each in (first, last))):
        raise ValueError('must be two hours of the day, such as "8-22"')
    return value


_UNITS: Final = {"m": 60, "h": 3_600}


class HeartbeatSettings(Section):
    """At regular intervals, the model reads your file HEARTBEAT.md in Legato's folder, and sees what is due soon. The
    bot speaks only if there is something to say (docs/hooks.md).

        chat: telegram:4711
        hours: "8-22"
    """

    chat: Text | None = Field(None, description="PLATFORM:CHAT, as /whoami shows it there, or home; null: never")
    person: Ident | None = Field(None, description="in a group, the id of the person whose conversation it is")
    every: Annotated[str, Field(strict=True), AfterValidator(_interval)] = Field("30m", description="5m or more")
    hours: Annotated[str, Field(strict=True), AfterValidator(_hours)] | None = Field(
        None, description="only between these hours, in the time zone of sessions.expiry; null: always"
    )
    daily: Count = Field(24, description="the most checks in a day")
    daily_usd: SpendCap | None = Field(
        0.5,
        description="what all checks together may cost in a day; null: no limit",
    )

    @property
    def to(self) -> ChatAddress | None:
        """The chat; None: the home chat."""
        return address_named(self.chat)

    def may_look(self, hour: int, since: float, looks: int) -> bool:
        """Whether it is time for a look, so many seconds after the last one and so many looks today."""
        first, _, last = (self.hours or "0-24").partition("-")
        begin, end = int(first), int(last)
        inside = begin <= hour < end if begin < end else hour >= begin or hour < end
        return inside and looks < self.daily and since >= int(self.every[:-1]) * _UNITS[self.every[-1]]


class OtelSettings(Section):
    """Legato makes OpenTelemetry spans of turns, model calls and tools (docs/operations.md)."""

    enabled: Flag = Field(False, description="make spans")
    contents: Flag = Field(False, description="put the text of messages, answers and tool results into the spans")


def _kept(value: str) -> str:
    Keep.parse(value)
    return value


class BackupSettings(Section):
    """Legato makes backups of the store and the folder next to it
    (docs/operations.md).

        at: "04:00"
        to: /backups
        keep: 7d,4w,6m
    """

    at: TimeOfDay | None = Field(None, description="a time of day, in the time zone of sessions.expiry; null: never")
    to: Text | None = Field(None, description="an existing folder")
    keep: Annotated[Text, AfterValidator(_kept)] | None = Field(
        None, description="keep one backup for each of this many days, weeks and months; null: keep all"
    )
    command: Text | None = Field(None, description="a command that receives the backup, instead of a folder")
    recipient: Text | None = Field(None, description="a public key of age (age-encryption.org), to encrypt for")

    def contradictions(self) -> Iterator[Contradiction]:
        """One target, and a folder to thin out."""
        if self.to is not None and self.command is not None:
            yield ("command", "to"), "cannot be used with backup.to: choose one of them"
        if self.at is not None and self.to is None and self.command is None:
            yield ("at", "to", "command"), "needs backup.to or backup.command: say where backups go"
        if self.keep is not None and self.to is None:
            yield ("keep", "to"), "needs backup.to: only backups in a folder are deleted"

    @property
    def kept(self) -> Keep | None:
        """Which backups stay; None: all."""
        return None if self.keep is None else Keep.parse(self.keep)


class Config(Section):
    """All settings of Legato with their defaults. Do not change this file, because an update replaces it. Write the
    settings that you want to be different into your own config.yaml in Legato's folder (~/.legato, or the one that
    LEGATO_HOME names). `legato check` checks them, `legato config` prints this file.

    Keep keys and tokens out of your file: write "${NAME}", and set the variable NAME or put NAME=… into the file .env
    in Legato's folder. The environment can set any setting: LEGATO__COMPRESSION__THRESHOLD=0.6 sets
    compression.threshold."""

    model: ModelEntry = ModelSettings()
    fallback_models: Annotated[tuple[Fallback, ...], AList] = Field(
        (),
        description="models that answer if the main one cannot: names at the same provider, or sections like `model`",
    )
    auxiliary: Auxiliary = Auxiliary()
    transcription: TranscriptionSettings = TranscriptionSettings()
    speech: SpeechSettings = SpeechSettings()
    files: FileSettings = FileSettings()
    compression: CompressionSettings = CompressionSettings()
    hygiene: HygieneRules = HygieneRules()
    context: Context = Context()
    search: SearchSettings = SearchSettings()
    sessions: SessionSettings = SessionSettings()
    store: StoreSettings = StoreSettings()
    turns: TurnSettings = TurnSettings()
    access: AccessSettings = AccessSettings()
    memory: MemorySettings = MemorySettings()
    prompt: PromptSettings = PromptSettings()
    tools: ToolSettings = ToolSettings()
    reminders: ReminderRules = ReminderRules()
    plugins: Plugins = Plugins()
    budgets: Caps = Caps()
    chats: dict[str, Chat] = Field(default_factory=dict)  # by place
    adapters: Platforms = Field(default_factory=dict)  # those that are named, by name
    home_chat: Text | None = Field(
        None, description="PLATFORM:CHAT for news that has no other chat, until an admin writes /home elsewhere"
    )
    monitor: MonitorSettings = MonitorSettings()
    alerts: AlertSettings = AlertSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    otel: OtelSettings = OtelSettings()
    backup: BackupSettings = BackupSettings()
    log: LogSettings = LogSettings()
    _folder: Path = PrivateAttr(default_factory=Path)

    def contradictions(self) -> Iterator[Contradiction]:
        """Rules about several sections."""
        hygiene, compression = self.hygiene.threshold, self.compression.share
        if hygiene <= compression:
            yield (
                ("hygiene.threshold", "compression.threshold"),
                f"({hygiene:g}) must be above compression.threshold ({compression:g}): hygiene is the safety net "
                "behind it",
            )
        if self.auxiliary.mode == "custom" and not self.auxiliary_models():
            yield (
                ("auxiliary.mode", "auxiliary.compression"),
                "is custom, but no model is given: add auxiliary.compression, auxiliary.memory, auxiliary.title or "
                "auxiliary.delegate",
            )
        if any(
            isinstance(each, ModelSettings) and "provider" not in each.model_fields_set for each in self.fallback_models
        ):
            yield (
                ("fallback_models",),
                "must name the provider in each section; a name alone stands for another model at the same address",
            )
        if self.budgets.when_reached == "fallback" and not self.fallback_models:
            yield ("budgets.when_reached", "fallback_models"), "is fallback, but fallback_models names none"
        capped = bool(self.budgets) or any(chat.daily_usd is not None for chat in self.chats.values())
        transcription, speech, pictures = self.transcription, self.speech, self.tools.pictures
        for key, server, price in (
            ("transcription.usd_per_minute", transcription, transcription.usd_per_minute),
            ("speech.usd_per_million_chars", speech, speech.usd_per_million_chars),
            ("tools.pictures.usd_per_picture", pictures, pictures.usd_per_picture),
        ):
            if capped and server.base_url is not None and price is None:
                yield (
                    (key, "budgets"),
                    "is needed, or the spend caps could not be kept: say what it costs (0 for a server of your own)",
                )
        told = {"home_chat": self.home_chat, "alerts.to": self.alerts.to, "heartbeat.chat": self.heartbeat.chat}
        for name, value in told.items():
            if value is None or (value == HOME and name == "heartbeat.chat"):
                continue
            to = address_named(value)
            known = self.adapters.get(to.platform) if to is not None else None
            if known is None or not known.enabled:
                yield (name,), "must be PLATFORM:CHAT, on a platform that is enabled in adapters"
        patience, deadline = self.tools.approval_deadline, self.turns.deadline
        if patience >= deadline:
            yield (
                ("tools.approval_deadline", "turns.deadline"),
                f"({patience:g}) must be below turns.deadline ({deadline:g}), which ends a turn that waits, too",
            )

    def within(self, folder: Path) -> Self:
        """A copy whose relative paths begin in this folder."""
        copied = self.model_copy()
        copied._folder = folder
        return copied

    def at(self, path: str | Path) -> Path:
        """The place of a path that the settings name."""
        return self._folder / path

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store; None for another kind of store."""
        path = self.store.sqlite_path
        return None if path is None else self.at(path)

    @property
    def home(self) -> Path:
        """The gateway's own folder, beside its database: engines' files, console history, its log."""
        path = self.database or self.at("legato.db")
        return path.with_name(f"{path.stem}-home")

    def is_default(self) -> bool:
        """Whether every value is the default."""
        return self.replace(adapters={}) == Config() and all(each == type(each)() for each in self.adapters.values())

    def secrets(self) -> tuple[str, ...]:
        """Every secret the configuration holds: keys, tokens, and passwords inside addresses."""
        return tuple(dict.fromkeys(_secrets_of(self)))

    def auxiliary_models(self) -> dict[Purpose, ModelSettings]:
        """The models configured for side work; where a purpose has none, the session's live model does it.

        `compression.summary_model` is the short form of an entry.
        """
        given, short = self.auxiliary, self.compression.summary_model
        found: dict[Purpose, ModelSettings] = {}
        if short is not None and given.mode != "same-as-main":
            found["compression"] = self._beside(short)
        if given.mode == "custom":
            named: dict[Purpose, ModelSettings | None] = {
                "compression": given.compression,
                "memory": given.memory,
                "title": given.title,
                "listening": given.title,
                "delegate": given.delegate,
            }
            found |= {purpose: entry for purpose, entry in named.items() if entry is not None}
        return found

    def fallbacks(self) -> list[ModelSettings]:
        """The models that answer while the main one cannot, in order."""
        return [self._beside(each) if isinstance(each, str) else each for each in self.fallback_models]

    def chat_models(self) -> dict[str, ModelSettings]:
        """The models of places that have their own."""
        given = {place: chat.model for place, chat in self.chats.items() if chat.model is not None}
        return {place: self._beside(each) if isinstance(each, str) else each for place, each in given.items()}

    def by_place(self, key: str) -> Any:
        """The values of one key in `chats`, by place."""
        said = {place: getattr(chat, key) for place, chat in self.chats.items()}
        return {place: value for place, value in said.items() if value is not None}

    def _beside(self, name: str) -> ModelSettings:
        """The main model's provider and key with another name. Its window and its prices are left to be looked up."""
        return self.model.model_copy(update={"name": name, "context_length": None, "prices": None})

    def replace(self, **sections: Any) -> Self:
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
        for name, item in value.items() if isinstance(value, dict) else ():
            if isinstance(item, str) and _SOUNDS_SECRET.search(name):  # a header, such as Authorization
                yield item
    elif isinstance(value, str):
        for password in PASSWORD_IN_URL.findall(value):
            yield password
            if unquote(password) != password:
                yield unquote(password)
