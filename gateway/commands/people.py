"""/pair: an admin lets people in by the code that the bot gave them, and shows them out. /home: an admin says where
news without a chat of its own is told."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from gateway.commands.base import CommandContext, command
from gateway.domain.pairing import CODE_LENGTH, CODE_SECONDS, Guest, GuestBook, Verdict
from gateway.people.people import place_at
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

_WANTS_OUT: Final = re.compile(r"(?:remove|delete|rm)\b.*", re.IGNORECASE | re.DOTALL)
_REMOVAL: Final = re.compile(r"(?:remove|delete|rm)\s+([^\s:]+):(\S+)", re.IGNORECASE)


@command("pair [code]", "About", "let a person in (admins)", audience="admins")
async def pair(ctx: CommandContext) -> str:
    """Let a person in, show one out, or list the guests and those who ask."""
    pairing = ctx.people.pairing
    if not pairing.access.is_admin(ctx.inbound.source):
        raise UserError("Only an admin can let people in. access.admins in config.yaml names the admins.")
    if not ctx.argument:
        return listed(await pairing.book(), ctx.clock.now(), IN_CHAT)
    here = ctx.inbound.source.platform
    words = IN_CHAT if here in pairing.access.trusted else replace(IN_CHAT, person=f"{here}:12345678")
    removal = _REMOVAL.fullmatch(ctx.argument)
    if removal is not None:
        guest = await pairing.show_out(removal[1].lower(), removal[2])
        answer = shown_out(guest, IN_CHAT)
        if guest is not None:  # another process sees before its turn's next step that the guest is gone
            for key in ctx.running_turns.for_person(guest.platform, guest.user):
                await ctx.store.signal(key, "stop", ctx.clock.now())
        return answer
    if _WANTS_OUT.fullmatch(ctx.argument):
        raise UserError(unnamed(words))
    verdict, guest = await pairing.confirm(ctx.argument)
    if guest is None:
        raise UserError(refused(verdict, words))
    await ctx.people.welcome.greet()
    return f"I let {named(guest)} in. To shut this person out again, send /pair remove {guest.platform}:{guest.user}."


class Words(Struct, frozen=True, kw_only=True):
    """The words that an admin types, in a chat or in a shell. `person` is an example of a person's name."""

    confirm: str
    look: str
    remove: str
    person: str = "PLATFORM:12345678"


IN_CHAT: Final = Words(confirm="/pair <code>", look="/pair", remove="/pair remove")
IN_SHELL: Final = Words(confirm="legato access confirm CODE", look="legato access list", remove="legato access remove")

_REFUSED: Final[dict[Verdict, str]] = {
    "no code": (
        f"A code has {CODE_LENGTH} letters and digits, as in H4KD-7XQM. To see who is asking, use {{look}}. To "
        "shut someone out, use {remove} {person}."
    ),
    "wrong": (
        "This code is wrong, older than an hour, or already used. {look} lists the people who are waiting to be let "
        "in. People get a new code when they write to the bot again."
    ),
    "locked": (
        "Five codes in a row were wrong, so I will accept no code for an hour. Until then, you can add people to "
        "access.allow in config.yaml."
    ),
}


def refused(verdict: Verdict, words: Words) -> str:
    """The answer to a code that lets nobody in."""
    return _REFUSED[verdict].format(look=words.look, remove=words.remove, person=words.person)


def unnamed(words: Words) -> str:
    """The answer to a removal without a person's name."""
    return f"Give the person as {words.look} shows them, for example: {words.remove} {words.person}"


def shown_out(guest: Guest | None, words: Words) -> str:
    """The answer to a removal. Raises UserError if there was no such guest."""
    if guest is None:
        raise UserError(
            f"Nobody with this name was let in with a code. To see who was, use {words.look}. If access.allow in "
            "config.yaml names this person, remove the name there."
        )
    return f"I shut {named(guest)} out."


def named(guest: Guest) -> str:
    """A person as admins see them: the number is sure, the name is the person's choice."""
    return f"{guest.platform}:{guest.user}" + (f" “{guest.name}”" if guest.name else "")


def listed(book: GuestBook, now: float, words: Words) -> str:
    """The guests and those who ask. Codes are not shown: an admin hears one from the person."""
    lines = [f"Let in: {named(guest)}" for guest in book.guests]
    for each in book.asking:
        if each.code and abs(now - each.at) < CODE_SECONDS:
            name = f" “{each.name}”" if each.name else ""
            place = f" in {each.place}" if each.place else ""
            lines.append(f"Asks, {int(abs(now - each.at) / 60)} min ago: {each.platform}:{each.user}{name}{place}")
    if not lines:
        return "Nobody has been let in with a code, and nobody is asking."
    return "\n".join([*lines, f"To let in the person who told you a code, use {words.confirm}."])


@command("home [off]", "About", "make this the home chat (admins)", audience="admins", elsewhere=("sethome",))
async def home(ctx: CommandContext) -> str:
    """Make this chat the home, or leave it to config.yaml again."""
    access, source, said = ctx.people.pairing.access, ctx.inbound.source, ctx.argument.strip().lower()
    if not access.is_admin(source):
        raise UserError("Only an admin can choose the home chat. access.admins in config.yaml names the admins.")
    if said not in ("", "off"):
        raise UserError("Send /home in the chat that should be the home chat, or /home off to have none.")
    before = await ctx.people.home.place()
    await ctx.people.home.move(None if said else place_at(source, access))
    now = await ctx.people.home.place()
    if now is None:
        return "There is no home chat any more. Hooks, heartbeats and alerts that name no chat will not arrive."
    if now == place_at(source, access):
        still = "still" if now == before else "now"
        return (
            f"This chat is {still} the home chat. Messages from hooks, heartbeats and alerts come here if they do not "
            "name another chat."
        )
    return f"The home chat is now {now.to.platform}:{now.to.chat} again, as config.yaml says."


COMMANDS = (pair, home)
