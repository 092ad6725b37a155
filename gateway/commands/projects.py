"""/project and /projects: chats about one thing, together under a name, with instructions that hold in all of them.

The chats that a person has alone with the bot share their projects. A conversation that a group shares has its own, and
an admin decides there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.agent.projects import drop_project, keep_project, project, projects
from gateway.commands.base import Answer, CommandContext, command
from gateway.commands.chat import refuse_others
from gateway.domain.chat import is_shared
from gateway.domain.command import Parameter, Proposal
from gateway.domain.place import names
from gateway.domain.session import LONGEST_INSTRUCTIONS, Project, Session, families
from gateway.domain.titles import shown_in_a_list
from gateway.domain.wording import counted
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.shared.documents import storable

MOST_PROJECTS: Final = 100  # of one owner
_SHARE: Final = 0.1  # of the context length: what the instructions of a project may take
_MOST_OWN: Final = 500  # sessions that are looked through for the versions of one
_OUT: Final = ("none", "off")  # no project is called that
_DEEDS: Final = ("instructions", "rename", "delete")
_NONE: Final = (
    "You have no projects yet. /project <name> makes a project, and puts this chat into it. A project keeps chats "
    "about one thing together, with instructions that I follow in all of them."
)
_OUTSIDE: Final = "This chat is in no project. /project <name> puts it into a project."
_LABELS: Final = ("Delete", "Keep")


async def _to_choose(ctx: CommandContext) -> list[Proposal]:
    return [Proposal(value=each.name, label=each.name) for each in await projects(ctx.store, ctx.key.owner)]


@command(
    "project [name]",
    "Sessions",
    "choose this chat's project",
    options="instructions, rename, delete",
    parameters=(
        Parameter(name="name", help="the project of this chat, or none", proposes=True),
        Parameter(name="instructions", help="what I follow in all its chats", form="instructions {}"),
        Parameter(name="rename", help="another name for this chat's project", form="rename {}"),
        Parameter(name="delete", help="delete it, and keep its chats", kind="flag", form="delete"),
    ),
    bypass="bare",
    proposals=_to_choose,
)
async def project_(ctx: CommandContext) -> Answer | str:
    """Show the chat's project, move the chat, or change the project that it is in."""
    argument, owner = storable(ctx.argument).strip(), ctx.key.owner
    present = await ctx.present()
    its = await project(ctx.store, owner, present.project) if present and present.project else None
    if not argument:
        others = [each for each in await projects(ctx.store, owner) if each != its]
        choices = [Proposal(value=f"/project {each.name}", label=each.name) for each in others]
        return Answer(text=_OUTSIDE if its is None else _told(ctx, its), choices=tuple(choices))
    if is_shared(ctx.key, ctx.inbound.source):
        refuse_others(ctx)
    verb, _, words = argument.partition(" ")
    if verb.lower() in _DEEDS:
        if its is None:
            raise UserError(_OUTSIDE)
        return await _change(ctx, its, verb.lower(), words.strip())
    if argument.lower() in _OUT:
        if its is None or present is None:
            return "This chat is in no project."
        await move(ctx, present, "")
        return f"This chat is no longer in the project “{its.name}”."
    wanted = await named(ctx, argument)
    found = wanted or await save(ctx, None, argument, "")
    await move(ctx, await ctx.sessions.open(ctx.owned().lease, ctx.inbound.source), found.id)
    made = "" if wanted else "I made the project. "
    hint = "" if found.instructions else " /project instructions <text> says what I should follow in all its chats."
    return f"{made}This chat is now in the project “{found.name}”.{hint}"


@command("projects", "Sessions", "list the projects", bypass=True)
async def projects_(ctx: CommandContext) -> Answer | str:
    """List the projects, each with the number of its chats."""
    found = await projects(ctx.store, ctx.key.owner)
    if not found:
        return _NONE
    newest = [family[-1] for family in families(await ctx.store.own_sessions(ctx.key.owner, _MOST_OWN))]
    chats = [each.project for each in newest if each.message_count]
    lines = [f"{each.name} ({counted(chats.count(each.id), 'chat')})" for each in found]
    choices = [Proposal(value=f"/project {each.name}", label=each.name) for each in found]
    text = "\n".join([*lines, "/project <name> puts this chat into a project, and /project none takes it out."])
    return Answer(text=text, choices=tuple(choices))


async def _change(ctx: CommandContext, its: Project, verb: str, words: str) -> str:
    if verb == "delete":
        if not await ctx.owned().confirm(delete(its.name), _LABELS):
            return f"I kept the project “{its.name}”."
        await drop_project(ctx.store, ctx.key.owner, its.id)
        return f"I deleted the project “{its.name}”. Its chats are still there."
    if not words:
        raise UserError(f"Write the new {'name' if verb == 'rename' else 'text'} after /project {verb}.")
    if verb == "rename":
        renamed = await save(ctx, its, words, its.instructions)
        return f"The project is now called “{renamed.name}”."
    await save(ctx, its, its.name, "" if words.lower() in _OUT else words)
    if words.lower() in _OUT:
        return f"The project “{its.name}” has no instructions any more."
    return f"From your next message on, I follow these instructions in all chats of the project “{its.name}”."


def delete(name: str) -> str:
    """What is asked before a project goes."""
    return f"Delete the project “{name}” and its instructions? Its chats stay."


async def named(ctx: CommandContext, name: str) -> Project | None:
    """The owner's project of this name, in capitals or not."""
    wanted = shown_in_a_list(name).casefold()
    return next((each for each in await projects(ctx.store, ctx.key.owner) if each.name.casefold() == wanted), None)


async def save(ctx: CommandContext, known: Project | None, name: str, instructions: str) -> Project:
    """Make a project (`known` None), or give a known one this name and these instructions. Raises UserError."""
    name, instructions = shown_in_a_list(name), storable(instructions).strip()
    same = await named(ctx, name)
    if not name or name.lower() in _OUT or name.lower().split()[0] in _DEEDS:
        raise UserError(f"A project cannot be called “{name}”. Choose another name." if name else "Give it a name.")
    if same is not None and (known is None or same.id != known.id):
        raise UserError(f"You already have a project called “{same.name}”. Choose another name.")
    if known is None and len(await projects(ctx.store, ctx.key.owner)) >= MOST_PROJECTS:
        raise UserError(f"You already have {MOST_PROJECTS} projects. Delete a project first.")
    if refusal := _refusal(ctx, name, instructions):
        raise UserError(refusal)
    if known is None:
        kept = Project(id=ctx.sessions.ids.new("p"), name=name, instructions=instructions)
    else:
        kept = replace(known, name=name, instructions=instructions)
    await keep_project(ctx.store, ctx.key.owner, kept)
    return kept


async def move(ctx: CommandContext, session: Session, project_id: str) -> None:
    """Put a conversation, with all its versions, into a project ("": into none)."""
    found = families(await ctx.store.own_sessions(ctx.key.owner, _MOST_OWN))
    family: Sequence[Session] = next((each for each in found if any(one.id == session.id for one in each)), [session])
    await ctx.store.set_project(ctx.key.owner, [each.id for each in family], project_id)


def _told(ctx: CommandContext, its: Project) -> str:
    where = f"This chat is in the project “{its.name}”"
    ways = "/project none takes it out, and /project instructions <text> says what I follow in all chats of the project"
    if not its.instructions:
        return f"{where}. {ways}."
    tokens = ctx.sessions.counter.text(its.part)
    return f"{where}, with these instructions (~{tokens:,} tokens of every prompt):\n{its.instructions}\n{ways}."


def _refusal(ctx: CommandContext, name: str, instructions: str) -> str | None:
    """Why a project cannot have these words; None: it can."""
    if len(instructions) > LONGEST_INSTRUCTIONS:
        return (
            f"Instructions may have at most {LONGEST_INSTRUCTIONS:,} characters, but these have "
            f"{len(instructions):,}. Shorten them."
        )
    if ctx.redact(f"{name}\n{instructions}") != f"{name}\n{instructions}":
        return (
            "These instructions seem to contain a password or a key, and I send instructions to the model with every "
            "message. Leave the secret out."
        )
    spec = ctx.sessions.models.home_of(ctx.key.platform, names(ctx.inbound.source))
    tokens, room = ctx.sessions.counter.text(instructions), int(_SHARE * spec.context_length)
    if tokens > room:
        return f"Instructions may take {room:,} tokens of this model's window, but these take {tokens:,}. Shorten them."
    return None


COMMANDS = (project_, projects_)
