"""`legato access`: who was let in by a code, from a shell, beside a running gateway if need be."""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.options import ConfigOption
from gateway.cli.printing import show
from gateway.cli.program import ask_store
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from gateway.commands.people import Words
    from gateway.people.pairing import Pairing
    from gateway.store.port import Store

access_app = typer.Typer(
    help="Let people in by their code, or show them out.", no_args_is_help=True, rich_markup_mode=None
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
