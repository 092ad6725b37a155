"""/pin and /unpin: rules that stand word for word in every prompt of a conversation.

Pins belong to the key's owner: /new, /resume and compactions leave them alone, the chats that a person has alone with
the bot share them, and nobody else's conversation shows them. Their number and size are limited, so that they never
fill the window.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from gateway.agent.prompt import pinned
from gateway.commands.base import CommandContext, command
from gateway.context.standing import holding
from gateway.domain.chat import is_shared, speaker
from gateway.domain.place import names
from gateway.domain.rule import LONGEST_PIN, MOST_PINS, PINS_SHARE, Pin, Pins, states_rule
from gateway.providers.base import ModelSpec
from gateway.runtime.errors import UserError
from gateway.store.records import InboxItem
from gateway.store.shared.documents import storable

_NONE: Final = (
    "No rules are pinned here. With /pin <rule>, I follow a rule in every answer, for example: /pin always use metres"
)
_WHICH: Final = "Give the number of the pin to remove, for example: /unpin 2"
STILL_SAID: Final = (
    "You also said this rule in our conversation, where it still holds: “{rule}” To end it, send: "
    "Forget the rule: {rule}"
)
# People number a list; nobody means a number of ten digits, and Python refuses to read thousands.
_NUMBERS: Final = re.compile(r"all|\d{1,9}(?:[\s,]+\d{1,9})*", re.IGNORECASE)
_REMOVAL: Final = re.compile(rf"(?:remove|delete|rm)\s+({_NUMBERS.pattern})", re.IGNORECASE)


def is_rule(item: InboxItem) -> bool:
    """Whether a message is pinned without /pin: a person alone with the bot states a rule, and the message is clear by
    itself."""
    inbound = item.inbound
    alone = inbound.kind == "message" and not inbound.attachments and inbound.reply_to is None and inbound.own is None
    return alone and not is_shared(item.key, inbound.source) and states_rule(inbound.text)


@command("pin [rule]", "What I remember", "follow a rule in every answer", aliases=("pins",), implied=is_rule)
async def pin(ctx: CommandContext) -> str:
    """Keep a rule, list the rules, or take some away."""
    argument = ctx.argument
    removal = _REMOVAL.fullmatch(argument)
    if removal is not None:
        return await _remove(ctx, removal[1])
    if argument.lower() in ("", "list"):
        pins = await ctx.store.pins(ctx.key)
        return _listed(ctx, pins.rules) if pins.rules else _NONE
    if _NUMBERS.fullmatch(argument):
        raise UserError("Write the rule in words after /pin. /pin lists the pins, and /unpin 2 removes the second pin.")
    return await _add(ctx, storable(argument))


@command("unpin <n>", "What I remember", "remove a pinned rule")
async def unpin(ctx: CommandContext) -> str:
    """Take rules away by their numbers, or one by its words: the numbers move when another rule goes."""
    if _NUMBERS.fullmatch(ctx.argument):
        return await _remove(ctx, ctx.argument)
    pins = await ctx.store.pins(ctx.key)
    number = next((number for number, rule in enumerate(pins.rules, 1) if ctx.argument == rule.signed), None)
    if number is not None:
        return await _remove(ctx, str(number))
    raise UserError(f"{_WHICH}\n{_listed(ctx, pins.rules)}" if pins.rules else _NONE)


async def _add(ctx: CommandContext, text: str) -> str:
    item = ctx.item
    pins = await ctx.store.pins(ctx.key)
    known = [rule.text for rule in pins.rules]
    if pins.set_by != item.id:
        if text in known:
            return f"This rule is already pinned as number {known.index(text) + 1}."
        present = await ctx.present()
        shared = is_shared(ctx.key, ctx.inbound.source)
        if shared:
            text = " ".join(text.split())  # a line of its own might read as someone else's rule
        rules = (*pins.rules, Pin(text=text, at=ctx.clock.now(), by=speaker(ctx.inbound.source) if shared else ""))
        models = ctx.sessions.models
        home = models.home_of(ctx.key.platform, names(ctx.inbound.source))
        if refusal := _refusal(ctx, rules, models.of(present) if present else home):
            raise UserError(f"I did not pin this rule, because {refusal}")
        said = text if ctx.inbound.command is None else None
        await ctx.sessions.set_pins(ctx.owned().lease, present, pins, Pins(rules=rules, set_by=item.id), said)
        known.append(text)
    number = len(known)
    whom = " to everybody here" if is_shared(ctx.key, ctx.inbound.source) else ""
    return (
        f"Pinned as number {number}. From now on, I follow this rule in every answer{whom}. /unpin {number} removes it."
    )


async def _remove(ctx: CommandContext, which: str) -> str:
    store = ctx.store
    pins = await store.pins(ctx.key)
    numbers = [] if which.lower() == "all" else sorted({int(number) for number in re.split(r"[\s,]+", which)})
    left = pins.rules
    if pins.set_by != ctx.item.id:
        for number in numbers:
            if not 1 <= number <= len(pins.rules):
                raise UserError(f"There is no pin number {number}. /pin lists the pins.")
        left = tuple(rule for number, rule in enumerate(pins.rules, 1) if numbers and number not in numbers)
        present = await ctx.present()
        await ctx.sessions.set_pins(ctx.owned().lease, present, pins, Pins(rules=left, set_by=ctx.item.id))
    gone = f"I removed pin {', '.join(map(str, numbers))}." if numbers else "I removed all pins."
    shown = f"{gone} These pins are left:\n{_listed(ctx, left)}" if left else f"{gone} No rules are pinned now."
    return "\n".join([shown, *await _still_said(ctx, {rule.text for rule in pins.rules if rule not in left})])


async def _still_said(ctx: CommandContext, removed: Collection[str]) -> list[str]:
    """How to end each of the removed rules that its author also said in the conversation, whose notes keep it."""
    own = speaker(ctx.inbound.source) if is_shared(ctx.key, ctx.inbound.source) else ""
    held = holding(await ctx.messages(await ctx.present()))
    return [STILL_SAID.format(rule=each.text) for each in held if each.by == own and each.text in removed]


def _listed(ctx: CommandContext, rules: Sequence[Pin]) -> str:
    lines = [f"{number}. {rule.signed}" for number, rule in enumerate(rules, 1)]
    whose = " and apply to everybody here" if is_shared(ctx.key, ctx.inbound.source) else ""
    tokens = pins_tokens(ctx, rules)
    lines.append(f"The pins take ~{tokens:,} tokens of every prompt{whose}. /unpin <number> removes a pin.")
    return "\n".join(lines)


def _refusal(ctx: CommandContext, rules: Sequence[Pin], spec: ModelSpec) -> str | None:
    """Why the last of these rules cannot be pinned with the others; None if it can."""
    text = rules[-1].text
    if len(rules) > MOST_PINS:
        return (
            f"I keep at most {MOST_PINS} pins for a conversation. /pin lists the pins, and /unpin <number> removes a "
            "pin."
        )
    if len(text) > LONGEST_PIN:
        return f"a pin may have at most {LONGEST_PIN} characters, but this one has {len(text):,}. Shorten or split it."
    if ctx.redact(text) != text:
        return (
            "it seems to contain a password or key, and pins go to the model with every message. Leave the secret out."
        )
    tokens, room = pins_tokens(ctx, rules), pins_room(spec)
    if tokens > room:
        return (
            f"all pins together may take {room:,} tokens of this model's window, but with this pin they would take "
            f"{tokens:,}. Shorten the pin, or remove another pin with /unpin <number>."
        )
    return None


def pins_tokens(ctx: CommandContext, rules: Sequence[Pin]) -> int:
    """The tokens that these rules take of a prompt."""
    return ctx.sessions.counter.text(pinned(rules)) if rules else 0


def pins_room(spec: ModelSpec) -> int:
    """Return the tokens that the pins of a conversation may take with this model."""
    return int(PINS_SHARE * spec.context_length)


COMMANDS = (pin, unpin)
