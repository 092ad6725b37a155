"""/memory: what is remembered here, who said it and when, and how to have it corrected or forgotten."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from gateway.agent.memory.memories import source_of
from gateway.agent.memory.rules import Edit, Source, found, saying
from gateway.agent.memory.snapshot import day, flat
from gateway.commands.base import Answer, CommandContext, command
from gateway.domain.chat import SessionKey, is_shared
from gateway.domain.command import Parameter, Proposal
from gateway.domain.memory import Fact, Memory, is_alone, scope_of
from gateway.domain.message import is_request
from gateway.domain.wording import counted
from gateway.runtime.errors import ToolError, UserError

_NONE: Final = (
    "I remember nothing here yet. Tell me something worth keeping, such as: remember that I prefer metric units."
)
_HOW: Final = (
    "/memory forget <n> removes a fact, /memory correct <n> <words> corrects a fact, and /memory search <words> finds "
    "facts."
)
_WHICH: Final = "Give the number of the fact to forget, for example: /memory forget 2"
_SURE: Final = (
    "You are about to remove everything that I remember here: {what}. If you are sure, send: /memory forget all yes"
)
_STILL_SAID: Final = "To remove the words from the conversation, too, send /forget <words>."
_MOST_LISTED: Final = 60
_MOST_FOUND: Final = 10
_FORGET: Final = re.compile(r"(?:forget|remove|delete)\b\s*(.*)", re.IGNORECASE | re.DOTALL)
_SEARCH: Final = re.compile(r"(?:search|find)\b\s*(.*)", re.IGNORECASE | re.DOTALL)
_CORRECT: Final = re.compile(r"(?:correct|change|replace)\b\s*#?(\d{0,6})[.:]?\s*(.*)", re.IGNORECASE | re.DOTALL)
_NUMBERS: Final = re.compile(r"#?\d{1,6}(?:[\s,]+#?\d{1,6})*")


async def _to_forget(ctx: CommandContext) -> tuple[Proposal, ...]:
    facts = (await ctx.sessions.memories.of(_scope(ctx))).listed()[:_MOST_LISTED]
    return tuple(
        Proposal(value=f"/memory forget {each.number}", label=f"Forget {each.number}. {flat(ctx.redact(each.text))}")
        for each in facts
    )


@command(
    "memory [forget n]",
    "What I remember",
    "show what I remember",
    options="correct n words, search words",
    parameters=(Parameter(name="what", help="forget n, correct n words, or search words"),),
    elsewhere=("memories", "remember"),
    proposals=_to_forget,
)
async def memory(ctx: CommandContext) -> Answer | str:
    """List what is remembered, find some of it, correct it, or take it away."""
    if correct := _CORRECT.fullmatch(ctx.argument):
        return await _correct(ctx, correct[1], correct[2])
    if forget := _FORGET.fullmatch(ctx.argument):
        return await _forget(ctx, forget[1].strip().lower())
    remembered = await ctx.sessions.memories.of(_scope(ctx))
    if search := _SEARCH.fullmatch(ctx.argument):
        return _search(ctx, remembered, search[1].strip())
    if ctx.argument.lower() not in ("", "list"):
        raise UserError(f"/memory shows what I remember. {_HOW}")
    # Another's press of a number means their own memory. Where there is one memory for all, it means that.
    one = ctx.inbound.source.chat_type == "direct" or is_shared(ctx.key, ctx.inbound.source)
    return Answer(text=_listed(ctx, remembered.listed()), choices=await _to_forget(ctx) if one else ())


def _search(ctx: CommandContext, remembered: Memory, words: str) -> str:
    if not words:
        raise UserError("Say what to look for, for example: /memory search coffee")
    lines = [
        _line(ctx, fact) if fact.is_current else f"(no longer true) {_said(ctx, fact)}"
        for fact in found(remembered, words, _MOST_FOUND)
    ]
    return (
        "\n".join(lines) or f"I remember nothing about “{words[:80]}”. /recall looks through everything that was said."
    )


async def _forget(ctx: CommandContext, which: str) -> str:
    scope = _scope(ctx)
    facts = (await ctx.sessions.memories.of(scope)).listed()
    if which in ("all", "everything"):
        what = counted(len(facts), "fact")
        return _SURE.format(what=what) if facts else _NONE
    if which.removesuffix("yes").strip() in ("all", "everything"):
        chosen = list(facts)
    elif _NUMBERS.fullmatch(which):
        chosen = [_of_number(facts, number) for number in dict.fromkeys(map(int, re.findall(r"\d+", which)))]
    else:
        raise UserError(f"{_WHICH}\n{_listed(ctx, facts)}" if facts else _NONE)
    await ctx.sessions.memories.forget(scope, chosen, await _also_said(ctx, chosen))
    await _show(ctx)
    names = "\n".join(f"- {flat(fact.text)}" for fact in chosen[:_MOST_FOUND])
    rest = f"\n(and {len(chosen) - _MOST_FOUND} more)" if len(chosen) > _MOST_FOUND else ""
    return f"Forgotten:\n{names}{rest}\n{_STILL_SAID}" if chosen else _NONE


async def _correct(ctx: CommandContext, number: str, text: str) -> str:
    """What a person puts in place of a fact counts as said by them, now."""
    if not number or not text.strip():
        raise UserError("Give the number of the fact and what is true, for example: /memory correct 2 I live in Graz")
    scope, sender = _scope(ctx), ctx.inbound.source
    said = Source(
        message_id=f"/{ctx.item.id}",
        session_id="",
        said_by=sender.user or "",
        said_by_name=sender.user_name or "",
        said_at=ctx.inbound.sent_at,
        own=text,
    )
    alone = is_alone(ctx.key, sender.chat_type)
    edit = Edit(scope=scope, source=said, now=ctx.clock.now(), alone=alone, redact=ctx.redact)
    try:
        await ctx.sessions.memories.change(scope, lambda memory: edit.replace(memory, f"#{number}", text)[0])
    except ToolError as error:
        _of_number((await ctx.sessions.memories.of(scope)).listed(), int(number))
        raise UserError(str(error)) from None
    await _show(ctx)
    return f"I corrected the fact. It now says: {' '.join(text.split())}"


async def _show(ctx: CommandContext) -> None:
    await ctx.sessions.show_anew(ctx.owned().lease, await ctx.present())


async def _also_said(ctx: CommandContext, facts: Sequence[Fact]) -> list[Source]:
    """The messages of the present session that say the same, and that memory has not been given yet."""
    present = await ctx.present()
    if present is None:
        return []
    waiting = [each for each in (await ctx.messages(present))[present.flushed_messages :] if is_request(each)]
    return await asyncio.to_thread(saying, [source_of(each, present) for each in waiting], facts)


def _scope(ctx: CommandContext) -> SessionKey:
    return scope_of(ctx.key, ctx.inbound.source.chat_type)


def _of_number(facts: Sequence[Fact], number: int) -> Fact:
    found = next((fact for fact in facts if fact.number == number), None)
    if found is None:
        raise UserError(f"There is no fact number {number}. /memory lists what I remember.")
    return found


def _listed(ctx: CommandContext, facts: Sequence[Fact]) -> str:
    if not facts:
        return _NONE
    alone = is_alone(ctx.key, ctx.inbound.source.chat_type)
    lines: list[str] = []
    for place, fact in enumerate(facts[:_MOST_LISTED]):
        if place == 0 or fact.about != facts[place - 1].about:
            heading = "What I know about you:" if fact.about == "person" else "My own notes:"
            lines.append(heading if alone else "What I remember of this conversation:")
        lines.append(_line(ctx, fact))
    if len(facts) > _MOST_LISTED:
        lines.append(f"I remember {len(facts) - _MOST_LISTED} more facts.")
    whose = "" if alone else " Everybody here sees these facts."
    return "\n".join([*lines, f"{_HOW}{whose}"])


def _line(ctx: CommandContext, fact: Fact) -> str:
    return f"{fact.number}. {_said(ctx, fact)}"


def _said(ctx: CommandContext, fact: Fact) -> str:
    """A fact, and in brackets its speaker and time, or whose words I kept for them."""
    who = "you" if is_alone(ctx.key, ctx.inbound.source.chat_type) else (flat(fact.said_by_name) or "somebody")
    who = f"the words of {flat(ctx.redact(fact.origin))}, kept for {who}" if fact.origin else who
    return f"{flat(ctx.redact(fact.text))} ({who}, {day(fact.said_at, ctx.sessions.memories.zone)})"


COMMANDS = (memory,)
