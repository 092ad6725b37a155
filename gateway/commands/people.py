"""/pair: an admin lets people in by the code that the bot gave them, and shows them out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.commands.base import Answer, Command, CommandContext
from gateway.domain.pairing import CODE_LENGTH, CODE_SECONDS, Guest, GuestBook, Verdict
from gateway.runtime.errors import UserError

_WANTS_OUT: Final = re.compile(r"(?:remove|delete|rm)\b.*", re.IGNORECASE | re.DOTALL)
_REMOVAL: Final = re.compile(r"(?:remove|delete|rm)\s+([^\s:]+):(\S+)", re.IGNORECASE)


@partial(Command, name="pair", group="About", argument="[code]", help="let a person in (admins)", audience="admins")
async def pair(ctx: CommandContext) -> Answer:
    """Let somebody in, show somebody out, or list who was and who asks."""
    pairing = ctx.pairing
    if not pairing.access.is_admin(ctx.inbound.source):
        raise UserError("Only an admin lets people in; access.admins of the configuration names them.")
    if not ctx.argument:
        return Answer(text=listed(await pairing.book(), ctx.clock.now(), IN_CHAT))
    here = ctx.inbound.source.platform
    words = IN_CHAT if here in pairing.access.trusted else replace(IN_CHAT, person=f"{here}:12345678")
    removal = _REMOVAL.fullmatch(ctx.argument)
    if removal is not None:
        return Answer(text=shown_out(await pairing.show_out(removal[1].lower(), removal[2]), IN_CHAT))
    if _WANTS_OUT.fullmatch(ctx.argument):
        raise UserError(unnamed(words))
    verdict, guest = await pairing.confirm(ctx.argument)
    if guest is None:
        raise UserError(refused(verdict, words))
    await ctx.welcome.greet()
    return Answer(text=let_in(guest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What an admin writes to do a thing, where they are; `person` is the example of somebody's name."""

    confirm: str
    look: str
    remove: str
    person: str = "PLATFORM:12345678"


IN_CHAT: Final = Words(confirm="/pair <code>", look="/pair", remove="/pair remove")
IN_SHELL: Final = Words(confirm="legato access confirm CODE", look="legato access list", remove="legato access remove")

_REFUSED: Final[dict[Verdict, str]] = {
    "no code": (
        f"That is no code: one has {CODE_LENGTH} letters and digits, as in H4KD-7XQM; {{look}} says who asks, and "
        "{remove} {person} shows somebody out."
    ),
    "wrong": (
        "Nobody was given that code in the last hour, or it was used; {look} says who asks, and they get a new one by "
        "writing to the bot again."
    ),
    "locked": (
        "Five wrong codes came one after another, so none is taken for an hour; access.allow of the configuration lets "
        "somebody in meanwhile."
    ),
}


def refused(verdict: Verdict, words: Words) -> str:
    """What an admin reads whose code lets nobody in."""
    return _REFUSED[verdict].format(look=words.look, remove=words.remove, person=words.person)


def unnamed(words: Words) -> str:
    """What an admin reads who said nobody's name as it is written here."""
    return f"Name them as {words.look} does, for example: {words.remove} {words.person}"


def let_in(guest: Guest) -> str:
    """What an admin reads whose code was right."""
    return f"Let in: {named(guest)}. /pair remove {guest.platform}:{guest.user} shows them out again."


def shown_out(guest: Guest | None, words: Words) -> str:
    """What an admin reads who showed somebody out. Raises UserError if nobody of that name was let in."""
    if guest is None:
        raise UserError(
            f"Nobody of that name was let in by a code; {words.look} says who was, and access.allow of the "
            "configuration may name them, too."
        )
    return f"Shown out: {named(guest)}."


def named(guest: Guest) -> str:
    """A person as admins see them. The name is theirs to choose, the number is not."""
    return f"{guest.platform}:{guest.user}" + (f" “{guest.name}”" if guest.name else "")


def listed(book: GuestBook, now: float, words: Words) -> str:
    """Who was let in and who asks. Codes are not shown: to hear one is to know the person."""
    lines = [f"Let in: {named(guest)}" for guest in book.guests]
    for each in book.asking:
        if abs(now - each.at) < CODE_SECONDS:
            name = f" “{each.name}”" if each.name else ""
            lines.append(f"Asks, {int(abs(now - each.at) / 60)} min ago: {each.platform}:{each.user}{name}")
    if not lines:
        return "Nobody was let in by a code, nobody asks."
    return "\n".join([*lines, f"{words.confirm} lets in who told you theirs."])


COMMANDS = (pair,)
