"""Running a gateway until it ends: in a shell, without one, or as several workers.

Which adapters there are is decided here, from the configuration and from how the program was called.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from gateway import __version__
from gateway.agent.mcp.servers import known_list
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.app.gateway import DRAIN_SECONDS, Gateway
from gateway.app.models import answering, model_in_full
from gateway.app.plugins import all_commands, platforms
from gateway.app.problems import HOPELESS
from gateway.app.reload import Reloader
from gateway.app.store import make_folders
from gateway.app.workers import SERVICE_ENDS, asked_to_end, at_hangup, when_alone
from gateway.commands.base import CommandRegistry
from gateway.commands.mcp import prompt_commands
from gateway.commands.sessions import farewell, greeting
from gateway.domain import adapter as ports
from gateway.domain.adapter import Adapter, HearsInterrupts, IsWatched, KnowsFailures, OpensFirst
from gateway.domain.chat import Source
from gateway.domain.place import EVERYWHERE, ListenRules, ShowRules
from gateway.domain.platform import AdapterHost, AdapterSettings, Platform
from gateway.domain.views import SetsUp, SettingUp
from gateway.people.access import Access
from gateway.runtime import posix
from gateway.runtime.aside import SHORT, RunsAside, WorkerProcess, at_once
from gateway.runtime.clock import Clock, SystemClock, SystemIds
from gateway.runtime.errors import AdapterError, ConfigError, StoreUnavailable, UserError
from gateway.runtime.logs import configure_logs, redact_crashes
from gateway.runtime.plugins import contained, imported, methods_of, refuse_misfit
from gateway.runtime.redaction import Redact
from gateway.runtime.supervisor import Supervisor
from gateway.runtime.tokens import ROUGH_SHARE, TokenCounter
from gateway.store.port import Documents

if TYPE_CHECKING:
    from gateway.app.backup.schedule import DailyBackups

T = TypeVar("T")

Tell = Callable[[str], None]
MakeDesk = Callable[[Reloader, Documents, Callable[[], None] | None], SettingUp]
"""Makes what changes settings from a page, of what reloads them, where keys are kept, and what starts Legato anew."""
AGAIN = 64  # the exit status of a gateway in the place of which another one is to start

_PACE = 0.02  # seconds between two words of a model that writes faster than people read


def _nobody(_: str) -> None:
    """Nobody looks at a shell."""


class ShellCall(Struct, frozen=True, kw_only=True):
    """A call of `legato chat` or `legato ask`: see `AdapterHost`. `page`: what can be served beside a terminal is."""

    as_json: bool = False
    question: str | None = None
    chat: str = ""
    fresh: bool = False
    page: bool = False


def served(config: Config) -> list[Platform]:
    """The platforms that are switched on."""
    return [platforms()[name] for name, settings in config.adapters.items() if settings.enabled]


def nothing_to_do(config: Config) -> str:
    """Return the reason why `legato run` would have nothing to do, with the next step; "" if it serves a platform, or
    the turns of a `legato chat` that shares its store."""
    if config.database is None or served(config):
        return ""
    switches = [f"adapters.{each.name}.enabled" for each in platforms().values() if each.settings]
    return (
        f"there is nothing to run: enable a platform ({' or '.join(switches)} in your config.yaml), or talk here with "
        "`legato chat`"
    )


def announcement(config: Config, workers: int) -> list[str]:
    """Return the lines of `legato run` at its start."""
    titles = " and ".join(each.title for each in served(config)) or "the conversations of its store"
    several = f" with {workers} workers" if workers > 1 else ""
    return [
        f"Legato {__version__} starts{several}. It serves {titles}.",
        f"Answers come from {model_in_full(config)}. Legato keeps everything in {config.database or config.store.url}.",
    ]


def adapters(config: Config, aside: RunsAside = at_once, tell: Tell = _nobody) -> list[Adapter]:
    """The adapters of the platforms that are switched on. Raises ConfigError."""
    return [adapter_of(config, each, [], aside=aside, tell=tell) for each in served(config)]


def adapter_of(
    config: Config,
    platform: Platform,
    running: list[Gateway],
    call: ShellCall = ShellCall(),
    *,
    aside: RunsAside = at_once,
    settings: AdapterSettings | None = None,
    tell: Tell = _nobody,
    clock: Clock | None = None,
) -> Adapter:
    """A platform's adapter, for the gateway that `running` will hold. `settings` None: those of the configuration.
    Raises ConfigError."""

    async def greet(source: Source) -> str:
        with suppress(StoreUnavailable):  # a greeting is not worth the chat
            return await greeting(running[0].store, running[0].readers.reception.rules.key(source))
        return ""

    async def part(source: Source) -> str:
        with suppress(StoreUnavailable):
            return await farewell(running[0].store, running[0].readers.reception.rules.key(source))
        return ""

    async def model_of(source: Source) -> str:
        gateway = running[0]
        models = gateway.agents.metering.models
        found = await answering(models, gateway.store, gateway.readers.reception.rules.key(source), source)
        return model if found is models.main else found.name

    model = config.model.name or f"{config.model.provider} model"
    host = AdapterHost(
        clock=clock or SystemClock(),
        ids=SystemIds(),
        home=config.home,
        menu=[each.entry for each in (*all_commands().commands, *_prompts(config).more)],
        admins=Access.of(config.access, {}).admins_on(platform.name),
        model=model,
        model_in_full=model_in_full(config),
        turns_running=lambda: running[0].running_turns.count() if running else 0,
        greeting=greet,
        farewell=part,
        model_of=model_of,
        as_json=call.as_json,
        question=call.question,
        chat=call.chat,
        fresh=call.fresh,
        aside=aside,
        tell=tell,
        listens=listens(config, platform.name),
        shows=shows(config, platform.name),
        served=[each.name for each in platforms().values() if not each.settings or each in served(config)],
    )
    create: Callable[[Any, AdapterHost], Adapter] = imported(platform.create)
    what = f"the adapter of the platform {platform.name}"
    adapter = contained(what, lambda: create(settings or config.adapters.get(platform.name), host))
    abilities = [each for each in vars(ports).values() if getattr(each, "_is_runtime_protocol", False)]
    for port in [Adapter, *(each for each in abilities if any(hasattr(adapter, name) for name in methods_of(each)))]:
        refuse_misfit(what, adapter, port)
    return adapter


def _prompts(config: Config) -> CommandRegistry:
    """The commands with the prompts of MCP servers as they were at the last start: menus are made before these are
    asked."""
    on = {name: each for name, each in config.tools.mcp.items() if each.enabled}
    prompts = {name: known_list(config.home / "mcp", name, each.place).prompts for name, each in on.items()}
    return CommandRegistry(all_commands().commands, partial(prompt_commands, on, prompts))


def listens(config: Config, platform: str) -> ListenRules:
    """When the bot answers in the chats of this platform."""
    called = frozenset({**_on(platform, config.by_place("names")), **_on(platform, config.by_place("joins"))})
    return ListenRules(
        rules=_on(platform, config.by_place("listen")),
        talk=bool(called) or config.by_place("context").get(f"{platform}:{EVERYWHERE}") != 0,
        called=called,
    )


def shows(config: Config, platform: str) -> ShowRules:
    """How messages are shown in the chats of this platform."""
    reply, silent, previews = (_on(platform, config.by_place(key)) for key in ("reply", "silent", "previews"))
    return ShowRules(reply=reply, silent=silent, previews=previews)


def _on(platform: str, rules: Mapping[str, T]) -> dict[str, T]:
    """The rules for places of a platform, by the places' names there."""
    said = ((*place.partition(":"), rule) for place, rule in rules.items())
    return {name: rule for where, _, name, rule in said if where == platform}


async def serve_platforms(
    config: Config,
    read: Callable[[], Config],
    *,
    parent_pipe: int | None = None,
    tell: Tell = _nobody,
    backups: Callable[..., DailyBackups] | None = None,
    monitored: Callable[[Gateway, Reloader], AbstractAsyncContextManager[None]] = lambda *_: nullcontext(),
    desk: MakeDesk | None = None,
) -> int:
    """`legato run`: the exit status. `read` gives the settings as they are written by then. `parent_pipe` is the pipe
    of a parent that keeps this worker, `backups` makes what makes backups by itself. Monitors are answered inside
    `monitored`. `tell` shows a line to who started it. `desk` makes what changes settings from a page."""
    with suppress(UserError):  # the part that needs the folder says why there is none
        make_folders(config)  # before an engine makes it, open to all
    # The turns of a `legato chat` go on here when its own process dies; it shows the answers when it is back.
    elsewhere = {each.name: each.limits for each in platforms().values() if each.in_shell and each.limits}
    async with aclosing(WorkerProcess(clock=SystemClock(), at_once=SHORT)) as aside:
        supervisor = Supervisor(address=os.environ.get("NOTIFY_SOCKET"), ends=True, patience=HOPELESS)
        counter = TokenCounter(roughly=ROUGH_SHARE)
        parts = Parts(counter=counter, also_runs=elsewhere, aside=aside, supervisor=supervisor, backups=backups)
        served = adapters(config, aside, tell)
        gateway = build(config, served, parts)
        for number in SERVICE_ENDS:
            posix.on_signal(number, gateway.stop)
        reloader = Reloader(
            config=config,
            read=read,
            reconfigure=gateway.settings.take_up,
            relog=partial(_relog, redact=gateway.settings.redact),
        )
        alone = parent_pipe is None and not supervisor.address  # else someone else starts it
        _give(served, desk, reloader, gateway, gateway.stop_for_another if alone else None)
        at_hangup(lambda: gateway.background.start(_reloaded(reloader), name="reload"), gateway.stop)
        if parent_pipe is not None:
            when_alone(parent_pipe, gateway.stop)
        async with monitored(gateway, reloader):
            return await _until_ended(gateway)


def _give(
    served: Sequence[Adapter],
    desk: MakeDesk | None,
    reloader: Reloader,
    gateway: Gateway,
    again: Callable[[], None] | None,
) -> None:
    """Let the adapters that can do so change settings, with what the first of them makes that does."""
    if desk is not None:
        made = cache(partial(desk, reloader, gateway.store, again))
        for adapter in served:
            if isinstance(adapter, SetsUp):
                adapter.setting_up = made


def _relog(config: Config, redact: Redact) -> None:
    configure_logs(level=config.log.level, form=config.log.format, redact=redact)
    redact_crashes(redact)


async def _reloaded(reloader: Reloader) -> None:
    with suppress(ConfigError):  # the log says why
        await reloader.reload(widens=False)


async def serve_shell(
    config: Config,
    call: ShellCall,
    log_to: Callable[[Config, Path | None], None],
    tell: Tell = _nobody,
    read: Callable[[], Config] | None = None,
    desk: MakeDesk | None = None,
) -> int:
    """`legato chat`: the exit status. What a person looks at must not be logged to, nor the stderr of a script, which
    is told in sentences."""
    running: list[Gateway] = []
    log_file = None if call.as_json else config.home / "legato.log"
    make_folders(config, home=log_file is not None)  # before the adapter makes them, open to all
    terminal = next(each for each in platforms().values() if each.in_shell)
    adapter = adapter_of(config, terminal, running, call)
    watched = isinstance(adapter, IsWatched) and adapter.watched
    log_to(config, log_file)
    beside = _beside(config, running, call, tell) if watched else []
    counter = TokenCounter(roughly=ROUGH_SHARE)
    parts = Parts(counter=counter, pace=_PACE, told=print) if watched else Parts(counter=counter)
    gateway = build(config, [adapter, *beside], parts)
    running.append(gateway)
    if read is not None and beside:
        take_up = gateway.settings.take_up
        reloader = Reloader(config=config, read=read, reconfigure=take_up, relog=lambda _: None)
        _give(beside, desk, reloader, gateway, gateway.stop_for_another)
    gateway.leaves_questions, gateway.upkeep.hasty = watched, True
    gateway.readers.beside = [each.name for each in beside]
    if call.question is not None and not (sys.stdin and sys.stdin.isatty()):
        # Before it is asked: a quick model asks back before the input has ended.
        gateway.people.approvals.nobody_is_left()
    for number in asked_to_end():
        posix.on_signal(number, gateway.stop)

    def interrupted() -> None:
        if not (isinstance(adapter, HearsInterrupts) and adapter.interrupted()):
            gateway.stop(grace=0 if watched else DRAIN_SECONDS)  # nobody waits where the prompt has gone

    posix.on_signal(signal.SIGINT, interrupted)
    status = await _until_ended(gateway)
    if gateway.again:
        return status
    return 1 if isinstance(adapter, KnowsFailures) and adapter.failed else status


def _beside(config: Config, running: list[Gateway], call: ShellCall, tell: Tell) -> list[Adapter]:
    """The adapters that are served beside a terminal. If one cannot be, it says why, and the terminal opens without
    it."""
    opened: list[Adapter] = []
    for platform in platforms().values():
        settings = config.adapters.get(platform.name)
        if not platform.beside_shell or platform.settings is None or not (call.page or (settings and settings.enabled)):
            continue
        adapter = adapter_of(config, platform, running, call, settings=settings or platform.settings(enabled=True))
        try:
            if isinstance(adapter, OpensFirst):
                tell(adapter.open())
        except AdapterError as error:
            tell(str(error))
        else:
            opened.append(adapter)
    return opened


async def _until_ended(gateway: Gateway) -> int:
    well = await gateway.run()
    if gateway.readers.failure:
        raise UserError(gateway.readers.failure)
    return AGAIN if gateway.again else 0 if well else 1
