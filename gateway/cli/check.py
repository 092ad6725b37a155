"""`legato check`: is everything that the configuration names really there?"""

from __future__ import annotations

import fnmatch
import os
import shutil
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from gateway.agent.embeddings import Embeddings
from gateway.agent.metering import Metering
from gateway.agent.models import Models, WindowSource
from gateway.agent.search.plugin import Search, SearchPlugin, Wanted, opened
from gateway.agent.skills.catalogue import Skills
from gateway.agent.tools.shell import ShellSettings
from gateway.app import heartbeat
from gateway.app.build import Parts, build
from gateway.app.config import Config, Setup
from gateway.app.config.environment import FILE, overlooked
from gateway.app.config.sentences import did_you_mean
from gateway.app.config.setup import misnamed
from gateway.app.gateway import Gateway
from gateway.app.home_files import FOR_ALL, OWNERS, home_files
from gateway.app.models import caching_note, configured_speaker, configured_transcriber
from gateway.app.plugins import platforms
from gateway.app.serving import adapters
from gateway.app.store import configured_store
from gateway.cli.printing import show
from gateway.context.engine import ContextEngine
from gateway.context.guard import is_ours
from gateway.domain.adapter import Adapter, CanBeProbed, Finding
from gateway.domain.message import Message, user
from gateway.domain.speech import Transcriber
from gateway.domain.wording import counted, first_of
from gateway.providers.base import Completed, Feature, ModelRequest, ModelSpec, Provider
from gateway.providers.media import SpeechServer
from gateway.runtime.errors import (
    EmptyAnswer,
    GatewayError,
    MediaFailed,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    StoreOutdated,
)
from gateway.runtime.plugins import held_to
from gateway.runtime.redaction import Redactor
from gateway.runtime.sandbox import why_not
from gateway.runtime.structs import replace
from gateway.store.port import CanBeDamaged, Store
from gateway.store.sqlite.database import kept_copies, left_copies

MARKS: Final[Mapping[bool | None, str]] = {True: "ok", False: "FAIL", None: "note"}
_PROBE_TOKENS = 1_024  # of an answer: one word, and the thoughts before it; some servers refuse to give few
_NAMED = 20  # skills
_NUMBER_REFUSED = (400, 422)
_READ_BY_OTHERS, _WRITTEN_BY_OTHERS = 0o044, 0o022  # of a file's mode
_PROMPT = "You are asked whether you are there."
_GREETING = "Answer with the single word: ready"
# A request like those of a conversation: what a model refuses of it is found out now.
_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look something up. Do not use it now.",
        "parameters": {
            "type": "object",
            "properties": {"words": {"type": "string"}},
            "required": ["words"],
            "additionalProperties": False,
        },
    },
}
_OMITTED: Mapping[Feature, str] = {
    "tools": "tools (it can only talk)",
    "tool_choice": "a request to call no tool",
    "parallel_calls": "several tool calls at once",
    "schema_extras": "some keys of tools' schemas",
    "stream": "streaming (answers come whole)",
    "system_role": "system messages",
    "temperature": "a temperature",
    "reasoning_effort": "a reasoning effort",
    "thinking": "the way of thinking",
    "cache_marks": "marks for its cache",
}


async def printed(found: AsyncGenerator[Finding, None], redact: Callable[[str], str]) -> int:
    """Print findings as they come, without secrets. Returns the exit status."""
    worst = 0
    async with aclosing(found):
        async for finding in found:
            show(redact(f"{finding.what:<16} {MARKS[finding.ok]:<5} {finding.detail}"))
            worst = max(worst, int(finding.ok is False))
    return worst


def next_step(setup: Setup, status: int) -> str:
    """Return what to do after a check that ended with this status."""
    on = [name for name, each in setup.config.adapters.items() if each.enabled and not platforms()[name].beside_shell]
    start = f"tart it with `legato {'run' if on else 'chat'}`."
    if status:
        return f"Fix what says FAIL, then s{start}"
    if setup.file or on:
        return f"S{start}"
    return "Next, run `legato init` to set up a model and a platform, or `legato chat` to try the built-in model."


async def probed(setup: Setup) -> AsyncGenerator[Finding, None]:
    """Probe everything that the configuration names."""
    settings = setup.config
    served = adapters(settings)
    # To build a gateway finds mistakes that no single value can show.
    gateway = build(settings, served, Parts(store=configured_store(settings, waits=False, read_only=True)))
    try:
        async for finding in _all_findings(setup, gateway, served):
            yield finding
    finally:  # also where the reader of the output has left
        for adapter in served:
            await adapter.aclose()
        await gateway.settings.aclose()


async def _all_findings(setup: Setup, gateway: Gateway, served: Sequence[Adapter]) -> AsyncIterator[Finding]:
    settings, agents = setup.config, gateway.agents
    known, tools = agents.sessions.toolbox.installed, settings.tools
    lists = {f"offered for {whom}": names for whom, names in tools.offered.items()} | {"admins_only": tools.admins_only}
    for finding in (
        *of_files(setup, os.environ),
        *of_tools("chat's tools", settings.by_place("tools"), known, tools.mcp),
        *of_tools("tools", lists, known, tools.mcp),
        *of_offered(tools.offered, [*platforms()]),
        *of_sandbox(tools.shell),
        *of_brought(settings, agents.sessions.skills),
    ):
        yield finding
    if settings.heartbeat.chat is not None:
        yield of_heartbeat(settings)
    yield of_engine(agents.sessions.engines.factory())
    yield _no_store(settings.database) or await _store(gateway.store, settings.database)
    async for finding in of_models(agents.metering, settings.compression.share):
        yield finding
    if any(not each.limits.trusted for each in served):
        access = settings.access
        yield Finding(what="people", ok=None, detail=may_talk(access.allow, access.admins, pairing=access.pairing))
    for adapter in served:
        if isinstance(adapter, CanBeProbed):
            for finding in await adapter.probe():
                yield finding
    async for finding in agents.mcp.probe():
        yield finding
    if (transcriber := configured_transcriber(settings, gateway.clock)) is not None:
        yield await of_transcription(transcriber)
    if settings.speech.base_url is not None:
        yield await of_speech(configured_speaker(settings.speech, gateway.clock), settings.speech.voice)
    if agents.embeddings is not None:
        yield await of_embeddings(agents.embeddings)
    if settings.tools.search.provider is not None:
        yield await of_search(*opened(settings.tools.search, gateway.clock))


async def of_models(metering: Metering, threshold: float) -> AsyncIterator[Finding]:
    """Probe each model, and say what there is to say about prompt caching and spend caps."""
    models = metering.models
    await models.learn_windows()
    yield await of_model("model", models, models.main)
    for spec in models.fallbacks:
        yield await of_model("fallback model", models, spec)
    for where, spec in models.of_places.items():
        asked = await of_model("chat's model", models, spec)
        yield replace(asked, detail=f"{where}: {asked.detail}")
    for purpose, helper in models.auxiliary.items():
        asked = await of_model("auxiliary model", models, helper)
        yield replace(asked, detail=f"{purpose}: {asked.detail}")
        if purpose == "compression" and helper.context_length < threshold * models.main.context_length:
            yield Finding(
                what="auxiliary window",
                ok=None,
                detail=f"{helper.name} reads {helper.context_length:,} tokens at once, so it gets a long compression "
                "in parts",
            )
    yield Finding(what="prompt caching", ok=None, detail=caching_note(models.main))
    if (caps := metering.note()) is not None:
        yield Finding(what="spend caps", ok=None, detail=caps)


def of_files(setup: Setup, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say which files are the configuration and where Legato's folder is, and which variables set nothing. Warn if
    others on this machine can read the files, the secrets beside them, the store's file or the gateway's folder, and
    if an upgrade left a copy of the store."""
    settings = setup.config
    none = f"there is no config.yaml in {setup.folder.absolute()}, so every setting has its default"
    yield Finding(what="config", ok=True, detail=str(setup.file.absolute()) if setup.file else none)
    for path in misnamed(setup.folder):
        yield Finding(
            what="config",
            ok=None,
            detail=f"Legato ignores {path.absolute()}, because the file must be named config.yaml",
        )
    if setup.earlier:
        used = " and ".join(str(each) for each in setup.earlier)
        detail = (
            f"Legato uses {used} of this folder, as earlier versions did; its own folder is {setup.folder.absolute()}"
        )
        yield Finding(what="earlier", ok=None, detail=detail)
    either = _READ_BY_OTHERS | _WRITTEN_BY_OTHERS
    # A configuration may be read: its secrets stand beside it.
    yield from _open_to_others("config's file", setup.file, _WRITTEN_BY_OTHERS, "chmod go-w")
    for folder in dict.fromkeys([setup.folder, *([setup.file.parent] if setup.file else [])]):
        yield from _open_to_others("secrets", folder / FILE, either, "chmod 600")
    yield from _open_to_others("store's file", settings.database, either, "chmod 600")
    yield from _open_to_others("folder", settings.home, either, "chmod 700")
    for name in (*FOR_ALL, OWNERS, "skills"):
        yield from _open_to_others("prompt's file", settings.at(name), _WRITTEN_BY_OTHERS, "chmod go-w")
    yield from _copies(settings.database)
    yield from _of_backups(settings)
    for name in overlooked(environ):
        detail = f"{name} sets nothing: write two underscores each time, as in LEGATO__MODEL__NAME"
        yield Finding(what="environment", ok=None, detail=detail)


def of_brought(config: Config, skills: Skills) -> Iterator[Finding]:
    """Say which of a person's files are part of prompts, and which skills there are."""
    for each in home_files(config, Redactor(config.secrets())):
        yield Finding(what="prompt's file", ok=None if each.broken else True, detail=each.said)
    if skills.known:
        yield Finding(what="skills", ok=True, detail=first_of([*skills.known], _NAMED))
    for where, reason in skills.broken:
        yield Finding(what="skill", ok=None, detail=f"{where}: {reason}")


def of_heartbeat(config: Config) -> Finding:
    """Say when the agent looks at HEARTBEAT.md, and what that may cost."""
    looks = config.heartbeat
    file = config.at(heartbeat.FILE).absolute()
    if not heartbeat.written_in(config.at(".")):
        return Finding(what="heartbeat", ok=None, detail=f"{file} is empty, so the bot does not look yet")
    most = "any sum" if looks.daily_usd is None else f"${looks.daily_usd:.2f}"
    hours = f" from {looks.hours.replace('-', ' to ')} o'clock" if looks.hours else ""
    detail = f"{file}, every {looks.every}{hours} if something changed, for {looks.chat}; at most "
    return Finding(what="heartbeat", ok=True, detail=f"{detail}{counted(looks.daily, 'look')} and {most} a day")


def of_engine(engine: ContextEngine) -> Finding:
    """Say which context engine compacts, and whose it is."""
    source = "" if is_ours(engine) else f", from {type(engine).__module__.partition('.')[0]}"
    return Finding(what="context engine", ok=True, detail=f"{engine.name}{source}")


def _copies(database: Path | None) -> Iterator[Finding]:
    """Point at the copies that upgrades and restores kept: `/forget` does not reach them."""
    if database is not None:
        for copy in kept_copies(database):
            of = f"{copy} is from before an upgrade or a restore"
            detail = f"{of}, and still contains what the bot has forgotten since then; delete the copy when all is well"
            yield Finding(what="store's copy", ok=None, detail=detail)
        for copy in left_copies(database):
            detail = f"{copy} was made for a rehearsal or a migration; delete the copy if neither is running"
            yield Finding(what="store's copy", ok=None, detail=detail)


def _of_backups(settings: Config) -> Iterator[Finding]:
    """Say whether backups can be made where the settings say."""
    backup = settings.backup
    if backup.recipient is not None and shutil.which("age") is None:
        yield Finding(what="backup", ok=False, detail="backup.recipient needs the program `age`: install it")
    if backup.to is not None:
        folder = settings.at(Path(backup.to).expanduser())
        ok = folder.is_dir() and os.access(folder, os.W_OK)
        why = (
            "is a folder that you cannot write to"
            if folder.is_dir()
            else "is not a folder: make it, or change backup.to"
        )
        yield Finding(what="backup", ok=ok, detail=str(folder) if ok else f"{folder} {why}")


async def of_transcription(transcriber: Transcriber) -> Finding:
    """Say whether somebody writes a second of silence down."""
    sound = _silence()
    try:
        await transcriber.transcribe(sound, "wav", sha256(sound).hexdigest())
    except MediaFailed as error:
        detail = f"{transcriber.model}: {error}{f' ({error.detail})' if error.detail else ''}"
        return Finding(what="transcription", ok=False, detail=detail)
    return Finding(what="transcription", ok=True, detail=f"{transcriber.model}, writes down what is said")


async def of_speech(speaker: SpeechServer, voice: str) -> Finding:
    """Say whether somebody says a word aloud."""
    try:
        await speaker.say("Ready.", voice, "mp3")
    except MediaFailed as error:
        return Finding(what="speech", ok=False, detail=f"{speaker.model}: {error} ({error.detail})")
    return Finding(what="speech", ok=True, detail=f"{speaker.model}, says answers aloud")


async def of_embeddings(embeddings: Embeddings) -> Finding:
    """Say whether the embedding model gives a vector."""
    try:
        length = await embeddings.probe()
    except (ProviderError, TimeoutError) as error:
        detail = (
            f"{embeddings.spec.name}: {str(error) or 'it does not answer'} Without this model, searches match only "
            "words."
        )
        return Finding(what="search.embeddings", ok=False, detail=detail)
    return Finding(
        what="search.embeddings", ok=True, detail=f"{embeddings.spec.name}, {length:,} numbers for each text"
    )


async def of_search(plugin: SearchPlugin, search: Search) -> Finding:
    """Say whether the search of the web finds a page."""
    rule = "a search may raise only ToolError"
    try:
        found = await held_to(search.find(Wanted(query="weather", most=1)), plugin.name, rule)
    except GatewayError as error:
        return Finding(what="tools.search", ok=False, detail=f"{plugin.name}: {error}")
    detail = f"{plugin.title} {'finds pages' if found else 'answers, but found nothing for “weather”'}"
    return Finding(what="tools.search", ok=True if found else None, detail=detail)


def _silence(rate: int = 16_000) -> bytes:
    """A second of it, as WAV with one channel of 16 bits."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    head = b"RIFF" + struct.pack("<I", 36 + 2 * rate) + b"WAVE" + form
    return head + struct.pack("<4sI", b"data", 2 * rate) + bytes(2 * rate)


def of_tools(
    what: str, lists: Mapping[str, Sequence[str]], tools: Sequence[str], servers: Collection[str] = ()
) -> Iterator[Finding]:
    """Find names in lists that no tool has. Those of MCP servers are not known before these are asked."""
    for where, listed in lists.items():
        for entry in listed:
            name = entry.removeprefix("-")
            if not fnmatch.filter(tools, name) and not name.startswith(tuple(f"{server}_" for server in servers)):
                detail = f"{where} names {name}, which is not a tool here{did_you_mean(name, tools)}"
                yield Finding(what=what, ok=None, detail=detail)


def of_offered(entries: Iterable[str], platforms: Sequence[str]) -> Iterator[Finding]:
    """Return the findings about platforms in `tools.offered` that do not exist."""
    for entry in entries:
        platform = entry.partition(":")[0]
        if platform not in (*platforms, "*"):
            detail = (
                f"tools.offered names {entry}, but there is no such platform here{did_you_mean(platform, platforms)}"
            )
            yield Finding(what="tools", ok=None, detail=detail)


def of_sandbox(shell: ShellSettings) -> Iterator[Finding]:
    """Say where commands run, and why not in a sandbox."""
    if shell.enabled is False:
        yield Finding(what="commands", ok=None, detail="the bot runs no commands, because tools.shell.enabled is false")
        return
    reason = "" if shell.sandbox == "auto" else "tools.shell.sandbox says so"
    if not (reason := reason or why_not()):
        yield Finding(what="commands", ok=True, detail="the bot runs commands in a sandbox, without asking you")
        for name, folder in shell.folders.items():
            if not Path(folder.path).expanduser().is_dir():
                detail = f"tools.shell.folders.{name} is not a folder: {folder.path}"
                yield Finding(what="commands", ok=None, detail=detail)
    elif shell.enabled is True:
        detail = f"the bot runs commands on this machine after your yes, because there is no sandbox: {reason}"
        yield Finding(what="commands", ok=None, detail=detail)
    else:
        yield Finding(
            what="commands", ok=None, detail=f"the bot runs no commands, because there is no sandbox: {reason}"
        )


def _open_to_others(what: str, path: Path | None, mode: int, cure: str) -> Iterator[Finding]:
    """Return the finding about a file or folder of which others have rights in `mode`."""
    if path is None or not path.exists():
        return
    rights = path.stat().st_mode & mode
    can = {_READ_BY_OTHERS: "read", _WRITTEN_BY_OTHERS: "write"}
    named = " and ".join(name for right, name in can.items() if rights & right)
    if named:
        yield Finding(what=what, ok=None, detail=f"others on this machine can {named} {path}: {cure} {path}")


def _no_store(database: Path | None) -> Finding | None:
    """Return the finding about a store whose file does not exist yet; None where it exists, or the store is no file."""
    if database is None or database.exists():
        return None
    folder = database.parent if database.parent.exists() else database.parent.parent  # the first start makes one
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "is not a folder that can be written to; correct store.url"
        return Finding(what="store", ok=False, detail=f"{database.parent.absolute()} {why}")
    return Finding(what="store", ok=True, detail=f"there is no store yet; the first start makes {database}")


async def _store(store: Store, database: Path | None) -> Finding:
    """Look at the store, and change nothing of it."""
    try:
        async with aclosing(store):
            await store.open()
            if isinstance(store, CanBeDamaged):
                await store.check()
            status = await store.status()
    except StoreOutdated as error:
        return Finding(what="store", ok=None, detail=str(error))
    except GatewayError as error:
        return Finding(what="store", ok=False, detail=str(error))
    detail = f"{counted(status.sessions, 'session')}, {counted(status.waiting, 'message')} waiting, "
    detail += f"{status.unsent:,} not yet shown"
    if database is not None and not os.access(database, os.W_OK):
        return Finding(what="store", ok=False, detail=f"{detail}; {database} cannot be written: check its permissions")
    if status.unindexed:
        detail += f"; the search index is rebuilt while the gateway runs: {counted(status.unindexed, 'message')} left"
    return Finding(what="store", ok=True, detail=detail)


def may_talk(allow: Sequence[str], admins: Sequence[str], *, pairing: bool) -> str:
    """Return the sentence that says who may talk on public platforms by the configuration."""
    if not allow and not admins:
        if not pairing:
            return "nobody may talk, because access.allow and access.admins are empty and access.pairing is off"
        return (
            "strangers get a code for `legato access confirm CODE`; `legato access list` names the people whom a "
            "code let in"
        )
    if public := [entry for entry in allow if entry.endswith((":*", ":*@*"))]:
        platform = public[0].partition(":")[0]
        return f"EVERYBODY on {platform} may talk, at your cost; {platform}:*@CHAT lets in everyone in one chat"
    strangers = "strangers get a code" if pairing else "strangers get no answer"
    return f"access.allow names {len(allow):,}, access.admins names {len(admins):,}; {strangers}"


_SOURCES: Final[Mapping[WindowSource, str]] = {
    "configured": "as configured",
    "reported": "as its server says",
    "known": "known for this model",
    "assumed": "assumed: set model.context_length if you know it",
}


async def of_model(what: str, models: Models, spec: ModelSpec) -> Finding:
    """Say whether a model answers."""
    name = spec.name if spec.name == spec.provider else f"{spec.name} ({spec.provider})"
    source = models.window_source(spec)
    detail = f"{name}, window {spec.context_length:,} tokens ({_SOURCES[source]})"
    try:
        rule = "a provider may raise only ProviderError"
        answered = await held_to(_answers(models.provider(spec), spec), spec.provider, rule)
    except EmptyAnswer:
        return Finding(what=what, ok=True, detail=f"{detail}, answers, but its answer was empty")
    except GatewayError as error:
        # A server that answers may well say its window.
        return Finding(what=what, ok=False, detail=f"{name if source == 'assumed' else detail}: {error}")
    if not answered:
        return Finding(what=what, ok=False, detail=f"{detail}: it did not answer")
    reported = "" if answered[0].usage else "; it reports no usage, so tokens are estimated"
    missing = ", ".join(_OMITTED[feature] for feature in sorted(answered[0].omitted))
    refused = f"; it does not support {missing}" if missing else ""
    return Finding(what=what, ok=True, detail=f"{detail}, answers{reported}{refused}")


async def _answers(provider: Provider, spec: ModelSpec) -> list[Completed]:
    """Return the model's answer with little room for it; with a conversation's room where the server refuses that."""
    usual = spec.max_output_tokens
    try:
        return await _asked(provider, spec, min(_PROBE_TOKENS, usual or _PROBE_TOKENS))
    except OutputCapTooLarge:
        return await _asked(provider, spec, usual)
    except ProviderRejected as error:
        if error.status not in _NUMBER_REFUSED:
            raise
        return await _asked(provider, spec, usual)


async def _asked(provider: Provider, spec: ModelSpec, max_tokens: int | None) -> list[Completed]:
    messages: list[Message] = [{"role": "system", "content": _PROMPT}, user(_GREETING)]
    request = ModelRequest(messages=messages, max_tokens=max_tokens, tools=[_TOOL])
    async with aclosing(provider.stream(spec, request)) as events:
        return [event async for event in events if isinstance(event, Completed)]
