"""`legato access` and `legato keys`: who may talk, from a shell, beside a running gateway if need be: people who were
let in by a code, logins, and the keys of other programs."""

from __future__ import annotations

import json
import socket
from contextlib import aclosing
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from gateway.cli.printing import complain, show
from gateway.cli.program import Commands, ConfigOption, ask_store, fail, guarded, settings_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from gateway.commands.people import Words
    from gateway.people.keys import Keys
    from gateway.people.pairing import Pairing
    from gateway.store.port import Documents, Store

_PATIENCE: Final = 5.0  # seconds for a page of this machine

access_app = Commands(help="Let people in, remove them, and log in to the page.")

keys_app = Commands(help="Manage the keys of programs that talk to the bot over its API.")


@access_app.command("list")
def list_(config: ConfigOption = None) -> None:
    """List the people who were let in, and those who are asking."""
    from gateway.commands.people import IN_SHELL, listed
    from gateway.people.pairing import guest_book

    async def look(store: Documents) -> str:
        return listed(await guest_book(store), SystemClock().now(), IN_SHELL)

    show(ask_store(config, look))


@access_app.command()
def confirm(
    code: Annotated[str, typer.Argument(metavar="CODE", help="Type the code that the person told you.")],
    config: ConfigOption = None,
) -> None:
    """Let someone in with the code that the bot gave them."""
    from gateway.commands.people import named, refused

    async def look(store: Documents) -> str:
        verdict, guest = await _pairing(store).confirm(code)
        if guest is None:
            raise UserError(refused(verdict, _words()))
        return f"Let in: {named(guest)}. The gateway tells this person within ten seconds, or as soon as Legato runs."

    show(ask_store(config, look))


@access_app.command()
def remove(
    who: Annotated[str, typer.Argument(metavar="PLATFORM:USER", help="Give the name that `legato access list` shows.")],
    config: ConfigOption = None,
) -> None:
    """Remove a person, within ten seconds."""
    from gateway.commands.people import IN_SHELL, shown_out, unnamed

    platform, _, user = who.partition(":")

    async def look(store: Documents) -> str:
        if not user:
            raise UserError(unnamed(_words()))
        return shown_out(await _pairing(store).show_out(platform.lower(), user), IN_SHELL)

    show(ask_store(config, look))


@access_app.command()
def link(config: ConfigOption = None) -> None:
    """Print a link that logs your browser in to the page.

    The link works once, and only for the page on this machine.
    """
    from gateway.app.plugins import platforms

    settings = settings_of(config)
    files = [settings.home / each.link_file for each in platforms().values() if each.link_file]
    links = [file.read_text(encoding="utf-8").strip() for file in files if file.exists()]
    if not (found := next(filter(_answers, links), None)):
        fail(
            "no page is open here: `legato chat --page` opens the page, and so does `legato run` if "
            "adapters.web.enabled is true. If other people use the page, too, everybody logs in with a name and "
            "a password."
        )
    show(found)


def _answers(address: str) -> bool:
    """Whether somebody listens there. A link of a page that has ended is left in its file."""
    at = urlsplit(address)
    try:
        socket.create_connection((at.hostname or "", at.port or 0), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


@access_app.command()
def logout(
    who: Annotated[str, typer.Argument(metavar="NAME", help="Give a name on the page, or `owner`.")],
    config: ConfigOption = None,
) -> None:
    """Log a person out of the page everywhere, within ten seconds."""
    from gateway.app.plugins import platforms
    from gateway.domain.adapter import LOGIN_NOTE

    name = who.rpartition(":")[2]  # also "web:anna", as the access lists have it

    async def look(store: Documents) -> str:
        count = 0
        for folder in (f"{each.name}:{each.logins}" for each in platforms().values() if each.logins):
            logins = [note for note in (await store.notes(folder)).items() if note[0].startswith(LOGIN_NOTE)]
            ended = [note for note, facts in logins if json.loads(facts)["person"] == name]
            await store.set_notes(folder, dict.fromkeys(ended))
            count += len(ended)
        if not count:
            return f"{name} is not logged in."
        return (
            f"{name}: {count} {'login' if count == 1 else 'logins'} ended. The browsers are logged out within ten "
            "seconds."
        )

    show(ask_store(config, look))


def _words() -> Words:
    """Return the words of this shell for a command, with the name of a person on an installed platform."""
    from gateway.app.plugins import platforms
    from gateway.commands.people import IN_SHELL

    named = next((each for each in platforms().values() if each.lists_people), None)
    return replace(IN_SHELL, person=f"{named.name}:{named.person}") if named else IN_SHELL


def _pairing(store: Documents) -> Pairing:
    from gateway.people.access import Access
    from gateway.people.pairing import Pairing

    return Pairing(access=Access(), store=store, clock=SystemClock(), rng=SystemRandom())


# -- keys of other programs ---------------------------------------------------------------------


@keys_app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Give the person or the front end a name.")],
    admin: Annotated[bool, typer.Option("--admin", help="Everybody who has this key can use admin commands.")] = False,
    front_end: Annotated[
        bool, typer.Option("--front-end", help="The program speaks for several people, and names the person each time.")
    ] = False,
    cap: Annotated[
        float | None,
        typer.Option(metavar="USD", min=0.0, help="Let people spend at most USD dollars a day with this key."),
    ] = None,
    person: Annotated[
        str,
        typer.Option("--for", metavar="PLATFORM:USER", help="Open the direct chat of this person over MCP."),
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Make a key, and print it this one time."""
    from gateway.app.plugins import keyed_platform
    from gateway.cli.importing import owner_named
    from gateway.domain.keys import Key

    async def look(store: Store) -> str:
        if admin and front_end:
            raise UserError("a front end's people cannot all be admins: leave out --admin or --front-end")
        key = Key(name=name, front_end=front_end, admin=admin, cap=cap, made_at=SystemClock().now())
        if person:
            owner = await owner_named(store, person)
            key = replace(key, chat=str(replace(owner.key, thread=None)), user=owner.user)
        return await _keys(store).add(key)

    make_store(config)
    show(ask_store(config, look))
    platform, served = keyed_platform(), settings_of(config).adapters
    if platform not in served or not served[platform].enabled:
        complain(f"No program can use this key yet. Set adapters.{platform}.enabled to true in config.yaml.")


@keys_app.command("list")
def list_keys(config: ConfigOption = None) -> None:
    """List the keys, without their secrets."""

    from gateway.people.keys import line_of

    async def look(store: Documents) -> str:
        return (
            "\n".join(map(line_of, await _keys(store).all()))
            or "There are no keys. `legato keys add NAME` makes a key."
        )

    show(ask_store(config, look))


@keys_app.command("remove")
def remove_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Give the name that `legato keys list` shows.")],
    config: ConfigOption = None,
) -> None:
    """Remove a key, which stops working within ten seconds."""

    async def look(store: Documents) -> str:
        if not await _keys(store).remove(name):
            raise UserError(f"there is no key named {name}; `legato keys list` shows the names")
        return f"The key {name} is removed. A running gateway will refuse the key within ten seconds."

    show(ask_store(config, look))


def make_store(config: Path | None) -> None:
    """Have a store, also before the first start."""
    from gateway.app.store import configured_store, make_folders

    settings = settings_of(config)
    if settings.database is None or settings.database.exists():
        return

    async def make() -> None:
        make_folders(settings)
        async with aclosing(configured_store(settings)) as store:
            await store.open()

    guarded(make, settings)


def _keys(store: Documents) -> Keys:
    from gateway.people.keys import Keys

    return Keys(store=store, clock=SystemClock())
