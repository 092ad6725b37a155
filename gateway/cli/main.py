"""The commands of the `legato` program. Imports happen where they are needed: `--help` is quick."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from copy import copy
from datetime import date
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer
from typer.main import get_command_name
from typer.models import CommandInfo

from gateway import __version__
from gateway.cli.printing import complain, show, show_rows
from gateway.cli.program import (
    Commands,
    ConfigOption,
    JsonOption,
    ask_store,
    fail,
    guarded,
    log_to,
    misused,
    redactor,
    refuse_inside,
    served_from,
    settings_of,
    setup_of,
    teller,
    told,
    words_of,
)
from gateway.runtime.clock import SystemClock, SystemIds
from gateway.runtime.errors import ConfigError
from gateway.runtime.inside import name_gateway

if TYPE_CHECKING:
    from gateway.app.config import Config
    from gateway.app.reload import Reloader
    from gateway.domain.views import SettingUp
    from gateway.store.port import Documents

app = Commands(
    name="legato",
    help="A chat gateway bot whose conversations never outgrow the model's window.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
sessions_app = Commands(help="Look at sessions, even while the bot runs.")
app.add_typer(sessions_app, name="sessions")
config_app = Commands(help="See and change settings.", no_args_is_help=False)
app.add_typer(config_app, name="config")
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Write the setting with dots, such as model.name.")]
IdentityOption = Annotated[
    Path | None, typer.Option("--identity", metavar="FILE", help="Read the key of an encrypted backup (age) from FILE.")
]

SessionArgument = Annotated[str, typer.Argument(metavar="ID", help="Give the id that `legato sessions list` shows.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
) -> None:
    """A chat gateway bot whose conversations never outgrow the model's window."""
    if version:
        show(f"legato {__version__}")
        raise typer.Exit
    if context.invoked_subcommand != "backup":  # a gateway makes some by itself
        refuse_inside()


@app.command()
def chat(
    question: Annotated[
        list[str] | None, typer.Argument(metavar="QUESTION", help="Ask only this question, and exit.")
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Read and write JSON lines.")] = False,
    going_on: Annotated[bool, typer.Option("--continue", help="Go on with the last session.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Start a new session.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Open the page for your browser, too.")] = False,
    config: ConfigOption = None,
) -> None:
    """Talk to Legato here in the terminal, or through a pipe.

    With a QUESTION, the bot answers it in a new session. Otherwise you go on where you left off.
    """
    from gateway.app.serving import ShellCall, serve_shell

    if new and going_on:
        misused("use --new or --continue, not both")
    asked = " ".join(question or ()).strip() or None
    call = ShellCall(as_json=json_lines, question=asked, fresh=new or (asked is not None and not going_on), page=page)
    settings = served_from(config)
    name_gateway()
    read, desk = partial(_settings_now, config), partial(_desk, config)
    _end(guarded(lambda: serve_shell(settings, call, log_to, show, read, desk), settings), config)


def _own(command: str, config: Path | None) -> list[str]:
    return [sys.executable, "-m", "gateway", command, *(["--config", str(config)] if config else [])]


def _end(status: int, config: Path | None) -> NoReturn:
    """End the program; or become `legato run`, where somebody asked for that in the page."""
    from gateway.app.serving import AGAIN

    if status == AGAIN:
        sys.stdout.flush()
        command = _own("run", config)
        os.execv(command[0], command)
    raise typer.Exit(status)


def _settings_now(path: Path | None) -> Config:
    from gateway.app.config import set_up

    return set_up(path, os.environ).config


def _desk(
    path: Path | None, reloader: Reloader, store: Documents, again: Callable[[], None] | None = None
) -> SettingUp:
    from gateway.cli.desk import Desk

    return Desk(path=path, reloader=reloader, store=store, again=again)


@app.command()
def ask(
    question: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTION", help="Write your question. A `-` at the end adds what comes through the pipe."
        ),
    ],
    session: Annotated[
        str, typer.Option(metavar="NAME", help="Continue the conversation NAME (`main`: the terminal's own).")
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Ask one QUESTION and print only the answer. The exit status is 0 if the bot answered.

    `legato ask "Summarise this" - < notes.txt` asks about a file. Each question begins a new conversation. To
    continue one, name it with --session.
    """
    from gateway.app.serving import ShellCall, serve_shell

    if not session.isprintable():
        misused("--session takes a name that can be printed")
    asked = words_of(question, "there is no question: write one after `legato ask`, or `-` to read it from stdin")
    call = ShellCall(question=asked, chat=session, fresh=not session)
    settings = served_from(config)
    name_gateway()
    raise typer.Exit(guarded(lambda: serve_shell(settings, call, log_to), settings))


@app.command()
def send(
    place: Annotated[str, typer.Argument(metavar="PLATFORM:CHAT", help="Give the chat. `home` is the home chat.")],
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Write the text. A `-` at the end adds what comes through the pipe."),
    ],
    key: Annotated[
        str, typer.Option("--id", metavar="KEY", help="Send the text only once, however often this KEY is used.")
    ] = "",
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Send the text to this thread or topic of the chat.")
    ] = None,
    asks: Annotated[
        bool, typer.Option("--ask", help="Let the bot read TEXT as a message from a program and answer it.")
    ] = False,
    task: Annotated[
        str, typer.Option(metavar="WORDS", help="Say what the bot should do with TEXT. This implies --ask.")
    ] = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Send TEXT to a chat, from a script or cron. It prints the id that `legato trace` takes.

    A running bot shows the text within ten seconds; if none is running, the text appears after the next start. If the
    exit status is 0, the text is stored. If your script may run again, give the text a KEY.
    """
    from gateway.app.plugins import platforms
    from gateway.cli import send as sending

    settings = settings_of(config)
    said = words_of(text, "there is no text: write it after the chat, or `-` to read it from stdin")
    if place == sending.HOME:
        home = ask_store(config, lambda store: sending.home_of(store, settings.home_chat))
        place, thread = f"{home.platform}:{home.chat}", home.thread
    with told(settings, status=2):
        to = sending.place_named(place, thread, platforms(), settings.adapters)
        order = sending.order_for(to, said, key, SystemClock(), SystemIds(), task if asks or task else None)
    row = ask_store(config, lambda store: sending.send(store, order))
    complain(sending.sentence(row))
    show_rows(row, as_json, lambda each: str(each["id"]))


@app.command()
def mcp(
    person: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="PLATFORM:USER",
            help="Show the program the direct chat of this person (default: you, in this terminal).",
        ),
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Run an MCP server for another program.

    The program can search what you said, keep facts, and send you texts.

    If the variable LEGATO_KEY is a key from `legato keys add`, the server works for the person of that key.
    """
    from gateway.cli.access import make_store
    from gateway.cli.serving_mcp import serve

    secret = os.environ.get("LEGATO_KEY", "")
    if secret and person:
        misused("LEGATO_KEY already names the person: leave out --for, or the variable")
    settings = settings_of(config)
    make_store(config)
    ask_store(config, lambda store: serve(store, settings, secret, person, redactor(settings)))


@app.command()
def run(
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Run N processes here. For more than one process, the store must be on a server.",
        ),
    ] = 1,
    worker: Annotated[
        int | None,
        typer.Option("--worker", hidden=True, help="The number of this worker, which another `run` started."),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Run the bot on every platform that is switched on."""
    from gateway.app.serving import AGAIN, announcement, nothing_to_do, serve_platforms
    from gateway.app.workers import Workers

    settings = served_from(config)
    if reason := nothing_to_do(settings):
        misused(reason)
    if workers > 1 and settings.database is not None:
        misused(
            "several workers need a Redis or PostgreSQL server (store.url), because only one process can use a "
            "SQLite file"
        )
    tell, redact = teller(settings), redactor(settings)
    if worker is None:
        for line in announcement(settings, workers):
            tell(redact(line))
        if sys.stderr.isatty():
            tell("Ctrl-C ends Legato after the current answers.")

    serve: Callable[[], Awaitable[int]] = Workers(
        command=[*_own("run", config), "--worker"], size=workers, clock=SystemClock()
    ).run
    if workers == 1:
        parent_pipe = None if worker is None else sys.stdin.fileno()
        read, desk = partial(_settings_now, config), partial(_desk, config)
        alone = partial(serve_platforms, settings, read, parent_pipe=parent_pipe, tell=tell, desk=desk)
        if (at := settings.backup.at) is not None:
            from gateway.app.backup.schedule import DailyBackups

            command = [*_own("backup", config), "--json", "--daily"]
            backups = partial(DailyBackups, at=at, zone=settings.sessions.expiry.zone, command=command)
            alone = partial(alone, backups=backups)
        if settings.monitor.address is not None:
            from gateway.app.monitor import answering

            alone = partial(alone, monitored=partial(answering, settings.monitor, worker or 0))
        serve = alone
        name_gateway()
    status = guarded(serve, settings)
    if worker is None and status != AGAIN:
        tell("Legato has ended.")
    _end(status, config)


@app.command()
def init(
    provider: Annotated[
        str, typer.Option(metavar="NAME", help="Use this vendor or server. `legato models --providers` lists all.")
    ] = "",
    model: Annotated[str, typer.Option(metavar="NAME", help="Use this model.")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Use your own server at this address.")] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLATFORM:PERSON", help="Let this person talk to the bot. Repeat the option for more people."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing. Use only flags and variables.")] = False,
    config: ConfigOption = None,
) -> None:
    """Set Legato up by answering a few questions.

    It checks your answers. Run it again to change one of them."""
    from gateway.app.config import set_up
    from gateway.cli import init as setting_up
    from gateway.cli.check import next_step, printed, probed

    found = setup_of(config)
    with told(found.config, status=2):
        if yes or provider or model or base_url or allow:
            draft = setting_up.by_flags(
                found, os.environ, provider=provider, model=model, base_url=base_url, allow=allow or ()
            )
        elif sys.stdin.isatty():
            talk = setting_up.Dialogue(ask=_ask, secret=_ask_secret, tell=show)
            draft = setting_up.by_answers(talk, found, os.environ, lambda run: asyncio.run(run()))
        else:
            misused("there is nobody to ask: give --provider and --model, or --yes")
        files = setting_up.write(draft, found, os.environ)
        settings = set_up(config, os.environ)
    show("\n".join(f"Written: {file}" for file in files) or "Nothing has changed.")
    log_to(settings.config, None, level="error")
    status = guarded(lambda: printed(probed(settings), redactor(settings.config)), settings.config)
    show(next_step(settings, status))
    raise typer.Exit(status)


def _ask(question: str, usual: str) -> str:
    return str(typer.prompt(question, default=usual)).strip()


def _ask_secret(question: str) -> str:
    return str(typer.prompt(question, default="", show_default=False, hide_input=True))


@app.command()
def check(config: ConfigOption = None) -> None:
    """Check the settings, and try the models and platforms in them."""
    from gateway.cli.check import next_step, printed, probed

    found = setup_of(config)
    settings = found.config
    log_to(settings, None, level="error")  # the findings say it
    status = guarded(lambda: printed(probed(found), redactor(settings)), settings)
    show(f"\n{next_step(found, status)}")
    raise typer.Exit(status)


@app.command()
def doctor(
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Print a report for an issue, without names, ids, secrets or anything that anyone wrote.",
        ),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Look for problems without changing anything.

    In addition to `check`, it looks at the store, permissions, disk, clock and versions."""
    from gateway.cli import doctor as examining
    from gateway.cli.check import printed

    found = setup_of(config)
    settings = found.config

    async def run() -> int:
        found_out = examining.examined(found, SystemClock())
        if not report:
            return await printed(found_out, redactor(settings))
        async with aclosing(found_out):
            show(examining.report([each async for each in found_out], settings))
        return 0

    raise typer.Exit(guarded(run, settings))


@app.command()
def models(
    provider: Annotated[
        str, typer.Argument(metavar="[PROVIDER]", help="List the models of this provider (default: your own).")
    ] = "",
    known: Annotated[
        bool, typer.Option("--known", help="List Legato's own table of models, with sources and dates.")
    ] = False,
    vendors: Annotated[
        bool, typer.Option("--providers", help="List all providers, and where Legato looks for each key.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List a provider's models, with windows and prices.

    If you have not chosen a provider yet, it lists the providers."""
    from gateway.cli import models as listed

    if known:
        show_rows(listed.known_rows(date.fromtimestamp(SystemClock().now())), as_json, listed.known_text)
        return
    found = setup_of(config)
    named = provider or found.config.model.provider
    if vendors or (not provider and listed.has_no_list(named)):
        show_rows(listed.vendor_rows(os.environ), as_json, listed.vendors_text)
        return
    try:
        asked = listed.asked_of(named, found, os.environ)
    except ConfigError as error:
        misused(" ".join(error.problems))
    log_to(asked, None)
    rows = guarded(lambda: listed.model_rows(asked, redactor(asked)), asked)
    show_rows(rows, as_json, listed.models_text)


@app.command()
def status(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Ask the running bot how it is.

    If no bot is running, you see what the store says. The exit status is 0 if a gateway answers at monitor.address and
    messages get through, otherwise 1.
    """
    from gateway.cli.status import asked, is_well, nobody, of_store, status_text

    settings = settings_of(config)
    reports = asked(settings.monitor)
    if not reports:
        complain(f"{nobody(settings)} The store says:")
    rows = reports or [ask_store(config, of_store)]
    show_rows(rows, as_json, status_text)
    raise typer.Exit(0 if is_well(reports) else 1)


@app.command()
def reload(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Make the running bot use your changed settings.

    You see which settings need a restart.

    The exit status is 0 if all went well, 1 if the gateway or one of its workers does not answer at monitor.address,
    and 2 if the settings have mistakes.
    """
    from gateway.cli.status import SILENT, nobody, reload_text, reloaded

    settings = settings_of(config)
    if not (answers := reloaded(settings.monitor)):
        fail(f"{nobody(settings)} The next start applies all changed settings.")
    redact = redactor(settings)
    show_rows(answers, as_json, lambda rows: redact(reload_text(rows)))
    raise typer.Exit(2 if any("problems" in each for each in answers) else int(any(SILENT in each for each in answers)))


@config_app.callback(invoke_without_command=True)
def config_(ctx: typer.Context) -> None:
    """Print every setting with its default and its meaning, as a config.yaml. Or show and change your settings."""
    from gateway.cli.reference import as_yaml

    if ctx.invoked_subcommand is None:
        show(as_yaml().removesuffix("\n"))


@config_app.command("show")
def config_show(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show what you have set, and where. Everything else has its default."""
    from gateway.cli.settings import in_force_text, rows_in_force

    show_rows(rows_in_force(setup_of(config), os.environ), as_json, in_force_text)


@config_app.command("get")
def config_get(key: KeyArgument, config: ConfigOption = None) -> None:
    """Print the value of KEY that Legato uses, such as sessions.busy_mode."""
    from gateway.cli.settings import value_of

    found = setup_of(config)
    with told(found.config, status=2):
        show(value_of(found, key))


@config_app.command("set")
def config_set(
    key: KeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Write the value as you would write it in the file.")],
    config: ConfigOption = None,
) -> None:
    """Write VALUE into your settings file. Legato keeps your comments, and refuses a wrong value."""
    from gateway.app.reload import differences, taken_up
    from gateway.cli.settings import change

    found = setup_of(config)
    with told(found.config, status=2):
        file = change(found, os.environ, {key: value})
    wanted = setup_of(config).config
    waits = differences(taken_up(found.config, wanted), wanted)
    when = "at its next start" if waits else "by `legato reload`, or at its next start"
    show(f"{key} is set in {file}. A running gateway uses the new value {when}.")


@app.command()
def usage(
    days: Annotated[int, typer.Option(min=1, metavar="N", help="Look back this many days.")] = 30,
    by: Annotated[
        str, typer.Option(metavar="WHAT", help="Add the costs up by model, purpose, platform, session or day.")
    ] = "model",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show what models were used for, and what they cost."""
    from gateway.cli.reports import usage_rows, usage_text

    if by not in ("model", "purpose", "platform", "session", "day"):
        misused(f"--by takes model, purpose, platform, session or day, not {by!r}")
    since = SystemClock().now() - days * 86_400
    rows = ask_store(config, lambda store: usage_rows(store, since, by))
    show_rows(rows, as_json, usage_text)


@app.command()
def trace(
    item: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Give the id of a turn (from the log), a message, an event, a session or a row."
        ),
    ],
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Follow one message from the person to the answer.

    You see each call of a model with its tokens and cost, each tool, and what people were shown."""
    from gateway.app.plugins import platforms
    from gateway.cli.trace import trace_text, traced

    show_rows(
        ask_store(config, lambda store: traced(store, item, platforms(), SystemClock().now())), as_json, trace_text
    )


@app.command()
def plugins(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the plug-ins: platforms, models and more.

    You see where each plug-in is from, and why one does not load."""
    from gateway.app.config import set_up
    from gateway.cli.plugins import plugin_rows, plugins_text

    try:
        settings = set_up(config, os.environ).config
    except ConfigError:  # a broken plug-in keeps the settings from being read
        settings = None
    show_rows(rows := plugin_rows(settings), as_json, plugins_text)
    raise typer.Exit(int(any(row["problem"] for row in rows)))


@app.command()
def logs(
    source: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="Read this log file, or standard input with `-` (default: the log of `legato chat`)."
        ),
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines as they come.")] = False,
    turn: Annotated[str, typer.Option(metavar="ID", help="Print only the lines of this turn.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, metavar="N", help="Begin with the last N lines.")] = 100,
    config: ConfigOption = None,
) -> None:
    """Print the last lines of the log. If a line names a turn, `legato trace ID` shows the rest."""
    from gateway.cli.logs import coming, last, of_turn, opened

    settings, belongs = settings_of(config), of_turn(turn)
    if source == "-":
        for line in sys.stdin if follow else last(sys.stdin, lines, belongs):
            if not follow or belongs(line):
                show(line.rstrip("\n"))
        return
    with told(settings):
        file = opened(Path(source) if source else settings.home / "legato.log")

    async def run() -> None:
        for line in last(file, lines, belongs):
            show(line)
        if follow:
            async for line in coming(file, SystemClock(), belongs):
                show(line)

    with file:
        guarded(run, settings)


@app.command()
def backup(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="TARGET", help="Write to this file, or to a new file in this folder (default: backup.to)."
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            metavar="7d,4w,6m",
            help="Keep this many backups for days, weeks and months, and delete the others in the folder.",
        ),
    ] = "",
    secrets: Annotated[bool, typer.Option("--secrets", help="Include the files with secrets (.env).")] = False,
    verify: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Make no backup. Check that FILE can be restored, and compare it with the store."
        ),
    ] = None,
    identity: IdentityOption = None,
    daily: Annotated[bool, typer.Option("--daily", hidden=True, help="Made by a gateway.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Copy the store, its folder and the settings into one file. The bot can keep running.

    The file is an ordinary tar archive. If TARGET ends with .db, only the SQLite store is copied.
    """
    from gateway.app.backup.generations import Keep
    from gateway.app.backup.making import make
    from gateway.app.backup.restoring import verify as tried
    from gateway.app.home_files import FOR_ALL, OWNERS
    from gateway.cli.backup import made_text, verified_text

    if not daily or target or keep or secrets or verify:
        refuse_inside()
    found = setup_of(config)
    settings = found.config
    if verify is not None:
        looked = guarded(lambda: tried(settings, verify, SystemClock(), identity), settings)
        show_rows(looked, as_json, verified_text)
        return
    try:
        kept = Keep.parse(keep) if keep else None if target is not None else settings.backup.kept
    except ValueError as error:
        misused(f"--keep {error}")
    brought = [settings.at(name) for name in (*FOR_ALL, OWNERS, "skills")] + ([found.file] if found.file else [])
    others = [*filter(Path.exists, brought), *(each / ".env" for each in found.secrets if secrets)]
    made = guarded(lambda: make(settings, SystemClock(), target=target, keep=kept, others=others), settings)
    show_rows(made, as_json, made_text)


@app.command()
def restore(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Restore this backup, or the copy of the store that Legato made before an upgrade."
        ),
    ],
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Replace the store and its folder with a backup. Stop the bot first.

    Legato keeps the earlier data in a folder. A Redis store must be empty.
    """
    from gateway.app.backup.restoring import restore as put_back
    from gateway.app.store import make_folders
    from gateway.cli.backup import restored_text

    settings = settings_of(config)
    with told(settings):
        make_folders(settings, home=False)
    restored = guarded(lambda: put_back(settings, file, SystemClock(), identity), settings)
    show_rows(restored, as_json, restored_text)


@app.command()
def upgrade(
    store: Annotated[
        bool, typer.Option("--store", help="Leave the program as it is, and only upgrade the store.")
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Change nothing. Try the upgrade on a copy of the store, and compare the two."),
    ] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Upgrade Legato, and update the store. Legato shows the commands first, and asks.

    Legato finds out whether it came with pipx, uv, pip, a clone or an image. Stop the bot first; --rehearse
    does not need this. It exits with 1 if something would be lost, or if the disk is too small.
    """
    if rehearse:
        _rehearse(settings_of(config), as_json)
    elif store:
        _upgrade_store(settings_of(config))
    else:
        _upgrade_program(yes, config)


def _rehearse(settings: Config, as_json: bool) -> None:
    from gateway.cli.backup import is_fit, rehearsal_text
    from gateway.store.sqlite.rehearsal import Rehearsal
    from gateway.store.sqlite.rehearsal import rehearse as rehearsed

    path = settings.database
    if path is None:
        misused("a store on a server needs no rehearsal: processes of two versions can share it (docs/redis.md)")

    async def tried() -> Rehearsal:
        return rehearsed(path, SystemClock(), keeps_copy=settings.store.keep_copy)

    found = guarded(tried, settings)
    show_rows(found, as_json, rehearsal_text)
    raise typer.Exit(0 if is_fit(found) else 1)


def _upgrade_store(settings: Config) -> None:
    from gateway.app.store import configured_store

    async def run() -> None:
        async with aclosing(configured_store(settings, waits=False, told=show)) as store:
            store.serve(runs=(), sends=())  # what is due is for those who serve
            await store.open()

    guarded(run, settings)
    show("The store is up to date for this version of Legato.")


def _upgrade_program(yes: bool, config: Path | None) -> None:
    from gateway.cli import upgrading

    refuse_inside()
    made = upgrading.plan(upgrading.installed())
    show(upgrading.told(made))
    if not made.commands:
        return
    if not yes and not sys.stdin.isatty():
        fail("Nothing has changed, because nobody is here to say yes. Add --yes to run these commands anyway.")
    if not yes:
        typer.confirm("Run this?", abort=True, err=True)
    if trouble := upgrading.carry_out(made, ("--config", str(config)) if config else ()):
        fail(trouble)


@app.command()
def migrate(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Copy from the store that you have, such as sqlite:///legato.db.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Copy into an empty store, such as redis://127.0.0.1:6379/0.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Copy one store into another, and verify the copy. Stop the bot first."""
    from gateway.cli.migrate import migrate_between, report_row, report_text

    for name, url in (("SOURCE", source), ("TARGET", target)):
        _check_address(name, url)
    report = guarded(lambda: migrate_between(source, target), None)
    show_rows(report_row(report), as_json, report_text)


@app.command("import")
def import_(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="Say where the export is from: hermes, chatgpt, claude, openwebui or jsonl."
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Give the export as you got it: state.db, .zip, .json, .jsonl, or its folder."
        ),
    ],
    person: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="PLATFORM:USER",
            help="Give the conversations to this person (default: you, in this terminal).",
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing. Show what would be imported.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Import your conversations from another program.

    /recall finds them, and /resume goes on with one. Each is imported once, however often you run this. With a SQLite
    store, stop the bot first.
    """
    from gateway.app.imports import FORMATS
    from gateway.cli import importing

    if form not in FORMATS:
        misused(f"Legato cannot read the format {form!r}; choose one of {', '.join(FORMATS)}")
    settings = settings_of(config)

    async def run() -> importing.ImportReport:
        with importing.shown_progress(form, file) as tell:
            return await importing.import_file(settings, form, file, person, SystemClock(), dry_run=dry_run, tell=tell)

    report = guarded(run, settings)
    show_rows(report, as_json, importing.report_text)
    if report.ended:
        fail(f"{report.ended} Legato has stored everything up to that point.")


@app.command()
def purge(
    person: Annotated[
        str | None, typer.Option(metavar="PLATFORM:USER", help="Delete everything that this person said.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Delete this whole conversation.")] = None,
    older_than: Annotated[
        int | None, typer.Option(min=1, metavar="DAYS", help="Delete only older sessions and files.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing. Print the plan.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Delete conversations permanently.

    Choose one person, one conversation, or sessions that ended some days ago. With a SQLite store, stop the bot
    first. Legato cannot delete backups, messages in the chats, or what a provider received.
    """
    from gateway.cli.purge import Purge, carry_out, key_named, person_named, preview, preview_text

    if not (person or key or older_than) or (person and key):
        misused("say what to purge with --person or --key, or with --older-than")
    settings = settings_of(config)
    with told(settings, status=2):
        what = Purge(
            person=person_named(person) if person else None,
            key=key_named(key) if key else None,
            before=SystemClock().now() - older_than * 86_400 if older_than else None,
        )
    rows = ask_store(config, lambda store: preview(store, what))
    if dry_run or not rows:
        show_rows(rows, as_json, preview_text)
        return
    if not yes:
        complain(preview_text(rows))
        typer.confirm("Delete this permanently?", abort=True, err=True)
    went, copies = guarded(lambda: carry_out(settings, what), settings)
    if copies:
        complain(copies)
    show_rows(went, as_json, lambda counts: "\n".join(f"{name}: {count:,}" for name, count in counts.items()))


@sessions_app.command("list")
def sessions_list(
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Print at most this many.")] = 50,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List sessions, newest first."""
    from gateway.cli.reports import session_rows, sessions_text

    show_rows(ask_store(config, lambda store: session_rows(store, limit)), as_json, sessions_text)


@sessions_app.command("show")
def sessions_show(session_id: SessionArgument, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show one session with everything that was said."""
    from gateway.cli.reports import show_row, show_text

    show_rows(ask_store(config, lambda store: show_row(store, session_id)), as_json, show_text)


@sessions_app.command("lineage")
def sessions_lineage(session_id: SessionArgument, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show the chain of sessions that a session belongs to.

    You see what each compaction did and took.
    """
    from gateway.cli.reports import lineage_rows, lineage_text

    show_rows(ask_store(config, lambda store: lineage_rows(store, session_id)), as_json, lineage_text)


@sessions_app.command("search")
def sessions_search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Look for these words.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="Print at most this many.")] = 20,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Find messages by their words, the best first."""
    from gateway.cli.reports import found_rows, found_text

    show_rows(ask_store(config, lambda store: found_rows(store, " ".join(words), limit)), as_json, found_text)


def _check_address(name: str, url: str) -> None:
    from pydantic import ValidationError

    from gateway.app.config.models import StoreSettings

    try:
        StoreSettings(url=url)
    except ValidationError as error:  # the address may hold a password, so it is not shown
        misused(f"{name} {error.errors()[0]['msg'].removeprefix('Value error, ')}")


# Groups of commands, by their names, with the modules that have them.
_GROUPS: Final = {
    "access": "access",
    "keys": "access",
    "outbox": "queues",
    "dead": "queues",
    "skills": "skills",
    "trajectories": "trajectories",
}


def program(arguments: Sequence[str]) -> typer.Typer:
    """The program for a call of it. Of all commands it has the one that is named first, if there is one: to load and
    read all of them takes a twentieth of a start."""
    named = [each for each in app.registered_commands if [each.name or _name_of(each)] == [*arguments[:1]]]
    if not named:
        return _whole()
    one = copy(app)
    one.registered_commands, one.registered_groups = named, []
    return one


@cache
def _whole() -> typer.Typer:
    whole = copy(app)
    whole.registered_groups = [*app.registered_groups]
    for name, module in _GROUPS.items():
        whole.add_typer(getattr(import_module(f"gateway.cli.{module}"), f"{name}_app"), name=name)
    return whole


def _name_of(command: CommandInfo) -> str:
    return get_command_name(getattr(command.callback, "__name__", ""))
