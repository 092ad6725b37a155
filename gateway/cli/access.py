"""`legato access`: who was let in by a code, and logins, from a shell, beside a running gateway if need be."""

from __future__ import annotations

import json
import socket
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from gateway.cli.options import ConfigOption
from gateway.cli.printing import show
from gateway.cli.program import ask_store, fail, settings_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from gateway.commands.people import Words
    from gateway.people.pairing import Pairing
    from gateway.store.port import Store

_PATIENCE: Final = 5.0  # seconds for a page of this machine

access_app = typer.Typer(
    help="Let people in by their code, show them out, end their logins, or print the link to the page.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@access_app.command("list")
def list_(config: ConfigOption = None) -> None:
    """List the people who were let in, and those who ask."""
    from gateway.commands.people import IN_SHELL, listed
    from gateway.people.guests import guest_book

    async def look(store: Store) -> str:
        return listed(await guest_book(store), SystemClock().now(), IN_SHELL)

    show(ask_store(config, look))


@access_app.command()
def confirm(
    code: Annotated[str, typer.Argument(metavar="CODE", help="The code that the bot gave the person.")],
    config: ConfigOption = None,
) -> None:
    """Let somebody in by the code they told you."""
    from gateway.commands.people import named, refused

    async def look(store: Store) -> str:
        verdict, guest = await _pairing(store).confirm(code)
        if guest is None:
            raise UserError(refused(verdict, _words()))
        return f"Let in: {named(guest)}. The gateway tells them within ten seconds, or as soon as it runs."

    show(ask_store(config, look))


@access_app.command()
def remove(
    who: Annotated[str, typer.Argument(metavar="PLATFORM:USER", help="As `legato access list` names them.")],
    config: ConfigOption = None,
) -> None:
    """Show somebody out. A running gateway knows within ten seconds."""
    from gateway.commands.people import IN_SHELL, shown_out, unnamed

    platform, _, user = who.partition(":")

    async def look(store: Store) -> str:
        if not user:
            raise UserError(unnamed(_words()))
        return shown_out(await _pairing(store).show_out(platform.lower(), user), IN_SHELL)

    show(ask_store(config, look))


@access_app.command()
def link(config: ConfigOption = None) -> None:
    """Print a link that lets your browser into the page of this machine, once."""
    from gateway.app.plugins import platforms

    settings = settings_of(config)
    files = [settings.home / each.link_file for each in platforms().values() if each.link_file]
    links = [file.read_text(encoding="utf-8").strip() for file in files if file.exists()]
    if not (found := next(filter(_answers, links), None)):
        fail(
            "no page is open here: `legato chat --page` opens one, and with adapters.web.enabled so does `legato run`. "
            "A page for other people has no link: they log in by name."
        )
    show(found)


def _answers(address: str) -> bool:
    """Say whether somebody listens there. A link of a page that has ended is left in its file."""
    at = urlsplit(address)
    try:
        socket.create_connection((at.hostname or "", at.port or 0), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


@access_app.command()
def logout(
    who: Annotated[str, typer.Argument(metavar="NAME", help='As the person logs in to the page; or "owner".')],
    config: ConfigOption = None,
) -> None:
    """End all logins of a person on the page, which knows within ten seconds."""
    from gateway.app.plugins import platforms
    from gateway.domain.adapter import LOGIN_NOTE

    name = who.rpartition(":")[2]  # also "web:anna", as the access lists have it

    async def look(store: Store) -> str:
        count = 0
        for folder in (f"{each.name}:{each.logins}" for each in platforms().values() if each.logins):
            logins = [note for note in (await store.notes(folder)).items() if note[0].startswith(LOGIN_NOTE)]
            ended = [note for note, facts in logins if json.loads(facts)["person"] == name]
            await store.set_notes(folder, dict.fromkeys(ended))
            count += len(ended)
        if not count:
            return f"{name} is not logged in."
        return f"{name}: {count} {'login' if count == 1 else 'logins'} ended. The page knows within ten seconds."

    show(ask_store(config, look))


def _words() -> Words:
    """Return the words of this shell for a command, with the name of a person on an installed platform."""
    from gateway.app.plugins import platforms
    from gateway.commands.people import IN_SHELL

    named = next((each for each in platforms().values() if each.settings), None)
    return replace(IN_SHELL, person=f"{named.name}:{named.person}") if named else IN_SHELL


def _pairing(store: Store) -> Pairing:
    from gateway.people.access import Access
    from gateway.people.pairing import Pairing

    return Pairing(access=Access(), store=store, clock=SystemClock(), rng=SystemRandom())
