"""Running a gateway until it ends: in a terminal, without one, or as several workers.

Which adapters there are is decided here, from the configuration and from where the program runs.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.app.build import Parts, adapter_part, build, command_registry, home
from gateway.app.config import Config
from gateway.app.config.models import Telegram
from gateway.app.gateway import Gateway, collect_seldom
from gateway.app.workers import Workers, when_alone
from gateway.commands.sessions import greeting
from gateway.domain.adapter import Adapter, MenuEntry
from gateway.domain.chat import Source, session_key
from gateway.runtime.clock import Clock, SystemClock, SystemIds
from gateway.runtime.errors import StoreUnavailable, UserError

_PACE = 0.02  # seconds between two words of the offline model, for who watches it write


def is_of_use(config: Config) -> bool:
    """Whether a gateway without a terminal would have anything to do: a platform, or turns of a terminal
    that shares its store."""
    return config.store.sqlite_path is None or config.adapters.telegram.enabled


def announcement(config: Config, workers: int) -> str:
    """What `legato run` tells a person who started it in a terminal and would look at nothing else."""
    served = "Telegram" if config.adapters.telegram.enabled else "the conversations of its store"
    several = f" with {workers} workers" if workers > 1 else ""
    return f"Legato serves {served}{several}. Ctrl-C ends it, when what is being answered is finished."


def platforms(config: Config, clock: Clock) -> list[Adapter]:
    """The enabled platforms' adapters."""
    adapters: list[Adapter] = []
    if config.adapters.telegram.enabled:
        adapters.append(_telegram(config.adapters.telegram, clock, _admins(config, "telegram")))
    return adapters


def _telegram(telegram: Telegram, clock: Clock, admins: Sequence[str]) -> Adapter:
    assert telegram.token is not None, "the configuration sees to it that there is one"
    settings = {
        "clock": clock,
        "base_url": telegram.base_url,
        "proxy": telegram.proxy,
        "streaming": telegram.streaming,
        "menu": _menu(),
        "admins": admins,
    }
    token, webhook = telegram.token.get_secret_value(), telegram.webhook
    if telegram.mode == "polling":
        polling: Adapter = adapter_part("adapters.telegram.adapter:TelegramAdapter")(token, **settings)
        return polling
    called: Adapter = adapter_part("adapters.telegram.webhook:WebhookAdapter")(
        token,
        public_url=webhook.url,
        host=webhook.host,
        port=webhook.port,
        path=webhook.path,
        secret=webhook.secret.get_secret_value() if webhook.secret else None,
        **settings,
    )
    return called


def _admins(config: Config, platform: str) -> list[str]:
    """Who is an admin on a platform wherever they write, one by one."""
    named = (entry.partition(":") for entry in config.access.admins)
    return [user for where, _, user in named if where == platform and "@" not in user and user != "*"]


async def serve_platforms(config: Config, *, parent_pipe: int | None = None) -> int:
    """`legato run`: the exit status. `parent_pipe` is the pipe of a parent that keeps this worker."""
    collect_seldom()
    # A terminal's turns go on here when its own process dies; it shows the answers when it is back.
    parts = Parts(also_runs={"console": adapter_part("adapters.console:LIMITS")})
    gateway = build(config, platforms(config, SystemClock()), parts)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, gateway.stop)
    if parent_pipe is not None:
        when_alone(parent_pipe, gateway.stop)
    return await _until_ended(gateway)


async def serve_fleet(command: Sequence[str], workers: int) -> int:
    """`legato run --workers N`: the exit status."""
    return await Workers(command=command, size=workers, clock=SystemClock()).run()


async def serve_terminal(config: Config, json_lines: bool, log_to: Callable[[Config, Path | None], None]) -> int:
    """`legato chat`: the exit status. A terminal that people look at must not be logged to."""
    interactive = not json_lines and sys.stdin.isatty() and sys.stdout.isatty()
    log_file = home(config) / "legato.log" if interactive else None
    if log_file is not None:
        _make_home(log_file.parent)
    log_to(config, log_file)
    collect_seldom()
    running: list[Gateway] = []
    adapter = _console(config, json_lines, interactive, running)
    gateway = build(config, [adapter], Parts(pace=_PACE, told=print) if interactive else Parts())
    running.append(gateway)
    gateway.leaves_questions = interactive
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, gateway.stop)
    # In a terminal Ctrl-C is a key of the prompt; a signal comes only from who has left and will not wait.
    loop.add_signal_handler(signal.SIGINT, (lambda: gateway.stop(grace=0)) if interactive else gateway.stop)
    return await _until_ended(gateway)


async def _until_ended(gateway: Gateway) -> int:
    well = await gateway.run()
    if gateway.failure:
        raise UserError(gateway.failure)
    return 0 if well else 1


def _menu() -> list[MenuEntry]:
    commands = command_registry().commands
    return [MenuEntry(name=each.name, help=each.help, audience=each.audience) for each in commands]


def _make_home(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the folder {path} cannot be made ({error.strerror}); choose another place with store.url"
        ) from error


def _console(config: Config, json_lines: bool, interactive: bool, running: list[Gateway]) -> Adapter:
    clock, ids, files = SystemClock(), SystemIds(), home(config) / "files"
    if json_lines:
        lines: Adapter = adapter_part("adapters.console:JsonConsole")(
            sys.stdin, sys.stdout, ids=ids, clock=clock, files=files
        )
        return lines
    if not interactive:
        pipe = adapter_part("adapters.console:PipeConsole")
        piped: Adapter = pipe(sys.stdin, sys.stdout, ids=ids, clock=clock, stderr=sys.stderr, files=files)
        return piped

    async def welcome(source: Source) -> str:
        rules = running[0].reception.rules
        with suppress(StoreUnavailable):  # a greeting is not worth the chat
            return await greeting(running[0].store, session_key(source, groups=rules.groups, threads=rules.threads))
        return ""

    def toolbar() -> str:
        turns = running[0].running_turns.count() if running else 0
        name = config.model.name or "offline model"
        return f" {name}  ·  {'working' if turns else 'ready'}  ·  /help  ·  Ctrl-D leaves"

    prompt: Adapter = adapter_part("adapters.console.interactive:InteractiveConsole")(
        ids=ids,
        clock=clock,
        model=_model_name(config),
        commands=[(entry.name, entry.help) for entry in _menu()],
        toolbar=toolbar,
        greeting=welcome,
        history=home(config) / "history",
        files=files,
    )
    return prompt


def _model_name(config: Config) -> str:
    if config.model.provider == "offline":
        return "the offline model (no key, no network)"
    return f"{config.model.name} ({config.model.provider})"
