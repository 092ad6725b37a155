"""/approve and /deny: the answer to a question that a tool call waits for."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.commands.base import CommandContext, command
from gateway.domain.approval import Approval, Lasts, Verdict
from gateway.people.approvals import listed, standing, take_back
from gateway.runtime.errors import UserError

_NONE = "Nothing here is waiting for your yes or no."
_WORDS = "Answer this question in your own words: just write your answer, or send it after /answer."
_WORDLESS = "Write your answer after the command, for example: /answer the blue one"
_TOO_NEW = "Your message came before you could see my question, so I did not count it. Please answer now:\n{questions}"


_NONE_STAND = "You have not given me any lasting permissions here, so I ask every time."
_STAND = (
    "You have allowed me to do exactly the following without asking:\n{yeses}\n"
    "/approvals remove <n> withdraws one permission, and /approvals remove all withdraws all of them."
)


@command(
    "approve [n|all]",
    "While I work",
    "say yes to what I ask (also y)",
    options="session, always",
    bypass=True,
    urgent=True,
)
async def approve(ctx: CommandContext) -> str:
    """Say yes."""
    return await _decide(ctx, "approved")


@command("deny [n|all]", "While I work", "say no to what I ask (also n)", bypass=True, urgent=True)
async def deny(ctx: CommandContext) -> str:
    """Say no."""
    return await _decide(ctx, "denied")


async def _decide(ctx: CommandContext, verdict: Verdict) -> str:
    """Answer the one open question, the one with a number, or all of them."""
    approvals = ctx.people.approvals
    there = await approvals.answerable(ctx.inbound.source)
    if verdict == "approved" and there and not (there := [each for each in there if not each.wants_words]):
        raise UserError(_WORDS)
    if not there:
        return _NONE
    name = "approve" if verdict == "approved" else "deny"
    which, _, last = ctx.argument.strip().lower().rpartition(" ")
    lasts: Lasts = "session" if last == "session" else "always" if last == "always" else "once"
    if lasts != "once" and verdict == "approved" and not any(each.deed for each in there):
        raise UserError("You can only allow this once, not for the future. Send /approve.")
    chosen = _chosen(which if lasts != "once" else f"{which} {last}".strip(), there, name, ctx.inbound.source.user)
    if unread := [each for each in chosen if approvals.came_before(ctx.inbound, each)]:
        raise UserError(_TOO_NEW.format(questions=listed(unread)))
    said = [await approvals.answer(each, verdict, ctx.inbound.source, lasts) for each in chosen]
    if len(chosen) == 1:
        return said[0]
    return "\n".join(f"{each.number}. {what}" for each, what in zip(chosen, said, strict=True))


def _chosen(argument: str, there: Sequence[Approval], name: str, user: str) -> Sequence[Approval]:
    """The approvals that are meant. Without a number, only a person's own single question is meant. Raises UserError if
    the words do not say which one."""
    if argument == "all" or (not argument and len(there) == 1 and there[0].person == user):
        return there
    numbered = [each for each in there if str(each.number) == argument]
    if len(numbered) == 1:
        return numbered
    if len(numbered) > 1:  # only an admin sees questions of several people at once
        raise UserError(
            f"Several people here have a question number {argument}. Press the button below your own question."
        )
    unknown = f"There is no question with the number {argument[:9]} here. " if argument.isdecimal() else ""
    raise UserError(
        f"{unknown}Say which question you mean, as in /{name} {there[0].number}, or send /{name} all:\n{listed(there)}"
    )


@command("answer <text>", "While I work", "answer a tool's question", bypass=True, urgent=True)
async def answer(ctx: CommandContext) -> str:
    """Answer in words."""
    if not ctx.argument.strip():
        raise UserError(_WORDLESS)
    return await ctx.people.approvals.answer_in_words(ctx.inbound.source, ctx.key, ctx.argument.strip())


@command("approvals [remove n]", "While I work", "list what I may do without asking", bypass=True)
async def approvals(ctx: CommandContext) -> str:
    """List the open questions and the yeses that last, or take one back."""
    present, person = await ctx.present(), ctx.inbound.source.user
    held = await standing(ctx.store, ctx.key, person, present.id if present else "")
    verb, _, which = ctx.argument.strip().lower().partition(" ")
    if verb in ("remove", "delete"):
        chosen = held if which == "all" else [each for number, each in enumerate(held, 1) if str(number) == which]
        if not chosen:
            raise UserError(
                f"There is no permission number {which[:9]}. Send /approvals to see your permissions."
                if which
                else "Give the number of the permission, for example: /approvals remove 1"
            )
        for each in chosen:
            await take_back(ctx.store, ctx.key, each)
        return "From now on, I will ask you before I do this:\n" + "\n".join(f"- {each.question}" for each in chosen)
    if verb:
        raise UserError("Send /approvals to see your permissions, or /approvals remove <n> to withdraw one.")
    asked = await ctx.people.approvals.answerable(ctx.inbound.source)
    lasts = ("always", "in this session")
    yeses = "\n".join(f"{at}. {each.question} ({lasts[bool(each.session)]})" for at, each in enumerate(held, 1))
    told = [f"Waiting for your answer:\n{listed(asked)}"] if asked else []
    return "\n\n".join([*told, _STAND.format(yeses=yeses) if held else _NONE_STAND])


COMMANDS = (approve, deny, answer, approvals)
