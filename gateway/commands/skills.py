"""/skills: which instructions for certain work hold in a conversation."""

from __future__ import annotations

import asyncio
from typing import Final

from gateway.agent.skills.catalogue import HERE, Kept, Skills
from gateway.agent.skills.skill import named
from gateway.agent.tools.shell import shown
from gateway.commands.base import Answer, CommandContext, command
from gateway.domain.approval import LABELS
from gateway.domain.chat import SessionKey, is_shared, speaker
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

_NONE: Final = (
    "There are no skills here. `legato skills add FOLDER` in a shell brings some for everybody, and /skills learn has "
    "me write down what we have just done."
)
_HOW: Final = "/skills on NAME and /skills off NAME switch one here; /skills learn has me write a new one."
_NOT_YOURS: Final = "In a group only an admin of this bot can choose that. In a private chat with me, you can."
_LEARN: Final = (
    "Make a skill of what you have just done{what}, for the next time: call `skill` with a short `name`, and as `text` "
    "a whole SKILL.md, that is front matter with `name` and `description` (what it does, and when it helps) between "
    "two lines ---, then the steps, what to look out for, and no private facts."
)


@command(
    "skills [on|off name]",
    "About",
    "show or switch instructions for certain work",
    options="learn, share, remove",
    elsewhere=("skill",),
)
async def skills(ctx: CommandContext) -> Answer | str:
    """List the skills of the conversation; switch, learn, remove or share one."""
    known = ctx.sessions.skills
    verb, _, rest = ctx.argument.partition(" ")
    name = rest.strip()
    if not known.enabled:
        return "Skills are switched off here (tools.skills.enabled)."
    if verb.lower() in ("", "list"):
        return await _listed(ctx, known)
    said: Answer | str
    if (run := {"on": _on, "off": _off, "remove": _remove, "share": _share}.get(verb.lower())) is not None:
        if not name:
            raise UserError(f"Say which one, for example: /skills {verb.lower()} weekly-report")
        said = await run(ctx, known, named(name))
    elif verb.lower() == "learn":
        await known.learn(_key(ctx))
        said = Answer(then=_LEARN.format(what=f" ({name})" if name else ""))
    else:
        raise UserError(f"/skills lists them. {_HOW}")
    if (present := await ctx.present()) is not None:
        await ctx.sessions.show_anew(ctx.owned().lease, present)
    return said


async def _listed(ctx: CommandContext, known: Skills) -> str:
    decided = await known.decided(ctx.key)
    described, lines = known.described(decided), list[str]()
    for name, text in described.items():
        kept = decided.get(name, Kept())
        lines.append(f"{name} ({HERE if kept.text else known.known[name].source}): {text}")
    lines += [f"{name}: off here" for name, each in decided.items() if each.off]
    for name in await asyncio.to_thread(known.waiting, ctx.key, decided):
        lines.append(f"{name}: lies in our workspace, and waits for your yes: /skills on {name} shows it")
    return "\n".join([*lines, _HOW]) if lines else _NONE


async def _on(ctx: CommandContext, known: Skills, name: str) -> str:
    """One that lies in the workspace is shown whole, and needs a yes."""
    key, kept = _key(ctx), (await known.decided(ctx.key)).get(name, Kept())
    if kept.text or (name in known.known and name not in await asyncio.to_thread(known.waiting, ctx.key, {})):
        await known.decide(key, name, replace(kept, off=False))
        return f"{name} is on here."
    try:
        text = await asyncio.to_thread(known.lying, ctx.key, name)
    except UserError as error:
        raise UserError(f"There is no skill {name} here ({error}); /skills lists them.") from None
    lines = "\n".join(f"| {shown(line)}" for line in text.splitlines())
    if not await ctx.owned().confirm(f"Follow this skill in this conversation from now on?\n{lines}", LABELS):
        return "Nothing has changed."
    return await known.keep(key, text, by=speaker(ctx.inbound.source), at=ctx.clock.now())


async def _off(ctx: CommandContext, known: Skills, name: str) -> str:
    key, decided = _key(ctx), await known.decided(ctx.key)
    if name not in known.described(decided):
        raise UserError(f"There is no skill {name} that is on here; /skills lists them.")
    await known.decide(key, name, replace(decided.get(name, Kept()), off=True))
    return f"{name} is off here. /skills on {name} takes it back."


async def _remove(ctx: CommandContext, known: Skills, name: str) -> str:
    key = _key(ctx)
    if not (await known.decided(ctx.key)).get(name, Kept()).text:
        raise UserError(f"{name} is no skill of this conversation alone; /skills off {name} switches it off here.")
    for each in {key, ctx.key}:
        await known.decide(each, name, None)
    return f"{name} is no skill of this conversation any more."


async def _share(ctx: CommandContext, known: Skills, name: str) -> str:
    """Let a conversation's own skill hold for everybody."""
    if not ctx.people.pairing.access.is_admin(ctx.inbound.source):
        raise UserError("Only an admin of this bot can share a skill with everybody.")
    kept = (await known.decided(ctx.key)).get(name, Kept())
    if not kept.text:
        raise UserError(f"{name} is no skill of this conversation alone; /skills lists them.")
    lines = "\n".join(f"| {shown(line)}" for line in kept.text.splitlines())
    if not await ctx.owned().confirm(f"Let everybody who talks to this bot have this skill?\n{lines}", LABELS):
        return "Nothing has changed."
    await asyncio.to_thread(known.share, name, kept.text)
    await known.decide(_key(ctx), name, None)
    return f"Everybody has {name} now, in their next session at the latest. It lies in {known.folder / name}."


def _key(ctx: CommandContext) -> SessionKey:
    """Where the caller chooses: for their conversation, or, as an admin, for all of a group. Raises UserError."""
    source = ctx.inbound.source
    admin = ctx.people.pairing.access.is_admin(source)
    if is_shared(ctx.key, source) and not admin:
        raise UserError(_NOT_YOURS)
    return replace(ctx.key, user=None) if admin and source.chat_type != "direct" else ctx.key


COMMANDS = (skills,)
