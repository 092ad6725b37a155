"""The steps that all commands share: they read the settings, ask the store, and say why something cannot be done."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from gateway.cli.printing import complain
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import TOO_FEW_FILES, ConfigError, GatewayError, StoreLocked
from gateway.runtime.heap import collect_seldom
from gateway.runtime.inside import is_inside

if TYPE_CHECKING:
    from gateway.app.config import Config, Setup
    from gateway.app.orders import Order
    from gateway.runtime.redaction import Redactor
    from gateway.store.port import Store
from typing import Annotated

T = TypeVar("T")


class _Command(TyperCommand):
    """Its help names what a person writes, without Python's types behind it."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Two lists: the arguments, and the options."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for each in self.get_params(ctx):
            if (row := each.get_help_record(ctx)) is not None:
                rows[each.param_type_name].append((row[0].partition(" <")[0], row[1]))
        for kind, found in rows.items():
            if found:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(found)


class Commands(typer.Typer):
    """A family of commands, in the plain text of a terminal."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"no_args_is_help": True, "rich_markup_mode": None, **given})

    def command(self, name: str | None = None, **given: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """What `typer.Typer.command` does."""
        return super().command(name, **{"cls": _Command, **given})


def fail(sentence: str, *, status: int = 1) -> NoReturn:
    """End the command with a sentence."""
    complain(f"legato: {sentence}")
    raise typer.Exit(status)


def misused(sentence: str) -> NoReturn:
    """End a command that cannot be meant as it was called."""
    fail(sentence, status=2)


def redactor(settings: Config | None) -> Redactor:
    """Takes secrets out of all that is printed; without a configuration only what looks like one."""
    from gateway.runtime.redaction import Redactor

    return Redactor(settings.secrets() if settings else ())


def refuse_inside() -> None:
    """End a command that something gave which a gateway started: it is for people."""
    if is_inside():
        fail(
            "a running Legato started this command for its model or an MCP server, but Legato's commands are for "
            "people: type this command in a shell of your own."
        )


@contextmanager
def told(settings: Config | None = None, *, status: int = 1) -> Iterator[None]:
    """Where the block fails, say why, and end the command: with 2 for settings that cannot be used, else `status`."""
    try:
        yield
    except ConfigError as error:
        redact = redactor(settings)
        for problem in error.problems:
            complain(redact(problem))
        raise typer.Exit(2) from None
    except GatewayError as error:
        fail(redactor(settings)(str(error)), status=status)


def words_of(words: Sequence[str], otherwise: str) -> str:
    """The words; a `-` at the end stands for the contents of stdin. Raises typer.Exit with the sentence `otherwise` if
    there are none."""
    parts = [" ".join(words)]
    if words[-1] == "-":
        if sys.stdin.isatty():
            complain("Type the text, and end it with Ctrl-D at the beginning of a line.")
        try:
            parts = [" ".join(words[:-1]), sys.stdin.buffer.read().decode("utf-8-sig").rstrip()]
        except UnicodeDecodeError as error:
            misused(f"stdin is not UTF-8 text (byte {error.start + 1}): send it as UTF-8")
    return "\n\n".join(part for part in parts if part.strip()) or misused(otherwise)


def setup_of(path: Path | None) -> Setup:
    """The settings and where they are; from now on logs go to stderr, and secrets to no crash's text."""
    from gateway.app.config import set_up
    from gateway.runtime.logs import redact_crashes

    redact_crashes(redactor(None))
    with told():
        found = set_up(path, os.environ)
    redact_crashes(redactor(found.config))
    log_to(found.config, None)
    return found


def settings_of(path: Path | None) -> Config:
    """Only the settings."""
    return setup_of(path).config


def served_from(path: Path | None) -> Config:
    """The settings, for a person who is told where they and the store are, if these are not where new ones would be."""
    found = setup_of(path)
    if found.earlier and sys.stderr.isatty():
        used = " and ".join(str(each) for each in found.earlier)
        complain(
            f"Legato uses {used} in this folder, as earlier versions did. Legato's own folder is {found.folder}: "
            "docs/operations.md (Upgrade) says how to move the files there."
        )
    return found.config


def log_to(settings: Config, file: Path | None, *, level: Literal["", "error"] = "") -> None:
    """Logs go to `file`, else to stderr: stdout belongs to what was asked for."""
    from gateway.runtime.logs import configure_logs

    configure_logs(level=level or settings.log.level, form=settings.log.format, redact=redactor(settings), file=file)


def teller(settings: Config) -> Callable[[str], None]:
    """Return what tells a sentence to who started the program, and to a service's journal."""
    from gateway.domain.wording import printable
    from gateway.runtime.logs import sentences

    say = sentences(settings.log.format)
    return lambda text: say(printable(text))


def guarded(run: Callable[[], Awaitable[T]], settings: Config | None) -> T:
    """The result of `run`. Raises typer.Exit once the person was told why there is none."""

    async def main() -> T:
        return await run()

    collect_seldom()
    try:
        with told(settings):
            answer = asyncio.run(main())
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        fail(TOO_FEW_FILES)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    return answer


def ask_store(path: Path | None, ask: Callable[[Store], Awaitable[T]]) -> T:
    """Return the answer of `ask` about the configured store, opened for reading only."""
    from gateway.app.store import configured_store

    settings = settings_of(path)

    async def run() -> T:
        async with aclosing(configured_store(settings, read_only=True)) as store:
            await store.open()
            return await ask(store)

    return guarded(run, settings)


def give(path: Path | None, orders: list[Order]) -> str:
    """Carry out orders, or leave them to the gateway that has the store; a sentence about that."""
    from gateway.app.orders import carry_out, dead_of, leave
    from gateway.app.store import configured_store

    settings = settings_of(path)

    async def run() -> str:
        async with aclosing(configured_store(settings, waits=False)) as store:
            store.serve(runs=(), sends=())  # what is due is for those who serve
            try:
                await store.open()
            except StoreLocked:
                return ""
            dead = await dead_of(store, orders)
            for order in orders:
                await carry_out(store, order, SystemClock(), dead)
        return "Done." if settings.database is None else "Done: the change takes effect as soon as Legato runs."

    if said := guarded(run, settings):
        return said
    ask_store(path, lambda store: leave(store, orders))
    return "The running gateway makes the change within ten seconds."


# -- options that many commands share ------------------------------------------------------------------


ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="Settings file (default: config.yaml in ~/.legato).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
