"""/skills: which instructions for certain work hold in a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gateway.agent.skills.catalogue import HERE, Skills
from gateway.agent.skills.skill import named
from gateway.agent.tools.shell import quoted_lines
from gateway.commands.base import Answer, CommandContext, command
from gateway.commands.chat import NOT_YOURS
from gateway.domain.approval import LABELS
from gateway.domain.chat import SessionKey, is_shared, one_line
from gateway.domain.command import Proposal
from gateway.domain.views import SkillLine
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

_NONE: Final = (
    "There are no skills here. In a shell, `legato skills add FOLDER` adds skills for everybody. In a chat, /skills "
    "learn turns what we have just done into a skill."
)
_HOW: Final = (
    "/skills on NAME and /skills off NAME switch a skill here. /skills learn turns what we have just done into a skill."
)
_LEARN: Final = (
    "Make a skill of what you have just done{what}, for the next time. Call `skill` with a short `name`, and as `text` "
    "with a whole SKILL.md. It begins with `name` and `description` (what it does, and when it helps) between two "
    "lines ---. The steps follow, and what to look out for. Leave out private facts."
)


async def _switches(ctx: CommandContext) -> tuple[Proposal, ...]:
    verbs = {each.name: "off" if each.state == "on" else "on" for each in await skill_lines(ctx) or ()}
    return tuple(Proposal(value=f"/skills {verb} {name}", label=f"{name}: {verb}") for name, verb in verbs.items())


@command(
    "skills [on|off name]",
    "About",
    "show or switch my skills",
    options="learn, share, remove",
    elsewhere=("skill",),
    proposals=_switches,
)
async def skills(ctx: CommandContext) -> Answer | str:
    """List the skills of the conversation; switch, learn, remove or share one."""
    known, (verb, _, name) = ctx.sessions.skills, ctx.argument.partition(" ")
    if not known.enabled:
        return "I have no skills here, because the setting tools.skills.enabled is off."
    if verb.lower() in ("", "list"):
        lines = await skill_lines(ctx)
        text = "\n".join([*map(_shown, lines), _HOW]) if lines else _NONE
        return Answer(text=text, choices=await _switches(ctx) if _may_choose(ctx) else ())
    if not _may_choose(ctx):
        raise UserError(NOT_YOURS)
    said: Answer | str
    if verb.lower() == "learn":
        await known.learn(ctx.key)
        said = Answer(then=_LEARN.format(what=f" ({name.strip()})" if name.strip() else ""))
    elif (run := _VERBS.get(verb.lower())) is not None:
        if not name.strip():
            raise UserError(f"Say the name of the skill, for example: /skills {verb.lower()} weekly-report")
        said = await run(ctx, known, named(name.strip()))
    else:
        raise UserError(f"/skills lists the skills. {_HOW}")
    await ctx.sessions.show_anew(ctx.owned().lease, await ctx.present())
    return said


async def skill_lines(ctx: CommandContext) -> list[SkillLine] | None:
    """The skills of the conversation; None: they are switched off."""
    if not (known := ctx.sessions.skills).enabled:
        return None
    decided = await known.decided(ctx.key)
    lines = [
        SkillLine(name=name, state="on", about=text, source=HERE if name in decided.own else known.known[name].source)
        for name, text in known.described(decided).items()
    ]
    lines += [SkillLine(name=name, state="off") for name in sorted(decided.off)]
    waiting = await asyncio.to_thread(known.waiting, ctx.key, decided)
    return [*lines, *(SkillLine(name=one_line(name), state="waits") for name in waiting)]


def _shown(each: SkillLine) -> str:
    if each.state == "on":
        return f"{each.name} ({each.source}): {each.about}"
    if each.state == "off":
        return f"{each.name}: switched off here"
    return f"{each.name}: a new skill in our workspace that needs your yes; /skills on {each.name} shows the skill"


async def _on(ctx: CommandContext, known: Skills, name: str) -> str:
    """One that lies in the workspace is shown whole, and needs a yes."""
    decided = await known.decided(ctx.key)
    if name in decided.off:
        await known.switch(_chooses(ctx), name, on=True)
        decided = await known.decided(ctx.key)
    if name in decided.off:
        return f"An admin has switched the skill {name} off for everybody here."
    if name in known.described(decided) and name not in await asyncio.to_thread(known.waiting, ctx.key, decided):
        return f"The skill {name} is switched on here."
    try:
        text = await asyncio.to_thread(known.lying, ctx.key, name)
    except UserError as error:
        raise UserError(f"There is no skill {name} here ({error}). /skills lists the skills.") from None
    if not await _agreed(ctx, "Follow this skill in this conversation from now on?", text):
        return "Nothing has changed."
    return await known.keep(ctx.key, text)


async def _off(ctx: CommandContext, known: Skills, name: str) -> str:
    if name not in known.described(await known.decided(ctx.key)):
        raise UserError(f"No skill named {name} is switched on here. /skills lists the skills.")
    await known.switch(_chooses(ctx), name, on=False)
    return f"I switched the skill {name} off here. /skills on {name} switches the skill on again."


async def _remove(ctx: CommandContext, known: Skills, name: str) -> str:
    await _own(ctx, known, name)
    await known.drop(ctx.key, name)
    return f"I removed the skill {name} from this conversation."


async def _share(ctx: CommandContext, known: Skills, name: str) -> str:
    """Give a conversation's own skill to everybody."""
    if not ctx.people.pairing.access.is_admin(ctx.inbound.source):
        raise UserError("Only an admin of this bot can share a skill with everybody.")
    text = await _own(ctx, known, name)
    if not await _agreed(ctx, "Give this skill to everybody who talks to this bot?", text):
        return "Nothing has changed."
    await asyncio.to_thread(known.share, name, text)
    await known.drop(ctx.key, name)
    place = known.folder / name
    return f"Everybody can use the skill {name} from their next session on. The skill is in {place}."


async def _own(ctx: CommandContext, known: Skills, name: str) -> str:
    if (text := (await known.decided(ctx.key)).own.get(name)) is None:
        raise UserError(f"This conversation has no skill of its own named {name}. /skills lists the skills.")
    return text


async def _agreed(ctx: CommandContext, question: str, text: str) -> bool:
    return await ctx.owned().confirm("\n".join([question, *quoted_lines(text)]), LABELS)


def _may_choose(ctx: CommandContext) -> bool:
    source = ctx.inbound.source
    return not is_shared(ctx.key, source) or ctx.people.pairing.access.is_admin(source)


def _chooses(ctx: CommandContext) -> SessionKey:
    """For whom the caller switches: an admin in a group does it for everybody there."""
    source = ctx.inbound.source
    admin = source.chat_type != "direct" and ctx.people.pairing.access.is_admin(source)
    return replace(ctx.key, user=None) if admin else ctx.key


_VERBS: Final[Mapping[str, Callable[[CommandContext, Skills, str], Awaitable[str]]]] = {
    "on": _on,
    "off": _off,
    "remove": _remove,
    "share": _share,
}
COMMANDS = (skills,)
