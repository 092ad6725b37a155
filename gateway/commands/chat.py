"""/model, /persona, /voice and /web: which model answers in a chat, who the bot is, and whether its answers are said
aloud or looked up on the web. A choice holds for the chat or topic in which it was made, in all its sessions. In a
group an admin chooses; alone with the bot, the person does."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from gateway.agent.choices import Choice, Held, What, choose, held
from gateway.agent.models import Models
from gateway.agent.tools.offer import member
from gateway.agent.tools.web_fetch import SEARCH
from gateway.commands.base import Answer, CommandContext, command
from gateway.commands.pins import pins_room, pins_tokens
from gateway.domain.chat import one_line, speaker
from gateway.domain.command import Proposal
from gateway.domain.place import choosing, names, narrowest
from gateway.domain.rule import PINS_SHARE
from gateway.domain.session import Session
from gateway.domain.wording import first_of, moment
from gateway.providers.base import ModelSpec
from gateway.runtime.errors import ProviderError, UserError
from gateway.runtime.structs import replace
from gateway.store.shared.documents import storable

LONGEST_PERSONA: Final = 2_000  # characters
_BUTTONS: Final = 8
_NAMED: Final = 30  # models in one message
_BRIEF: Final = 60  # characters of a persona in a line
NOT_YOURS: Final = (
    "In a group, only an admin can change this setting. In a private chat with me, you can change your own."
)
_IDENTITY: Final = "I am Legato, an assistant."


async def _models_to_use(ctx: CommandContext) -> list[Proposal]:
    home = _home(ctx)
    offered, _ = await _offered(ctx, home)
    return [Proposal(value=name, label=name) for name in dict.fromkeys([home.name, *offered])]


@command(
    "model [name]",
    "About",
    "show or switch this chat's model",
    bypass="bare",
    elsewhere=("models",),
    proposals=_models_to_use,
)
async def model(ctx: CommandContext) -> Answer | str:
    """Show or switch the chat's model; budgets follow its window from the next message on."""
    models, session = ctx.sessions.models, await ctx.present()
    home = _home(ctx)
    if ctx.argument:
        refuse_others(ctx)
    offered, silent = await _offered(ctx, home)
    if not ctx.argument:
        spec = models.of(session or await ctx.sessions.first(ctx.key, ctx.inbound.source))
        there = f"This session uses {spec.name}" if session else f"Your first session will use {spec.name}"
        lines = [f"{there} ({_window(models, spec)})."]
        if others := [name for name in offered if name != spec.name]:
            lines.append(f"You can also choose {first_of(others, _NAMED)}. /model <name> switches to another model.")
        text = "\n".join([*lines, *([silent] if silent else [])])
        return Answer(text=text, choices=_choices(spec.name, others) if _may_choose(ctx) else ())
    name = _known(ctx.argument.split()[0], offered, models, home)
    spec = models.spec(name, home)
    pinned = pins_tokens(ctx, (await ctx.store.pins(ctx.key)).rules)
    if pinned > (room := pins_room(spec)):
        raise UserError(
            f"The model {name} has room for {room:,} tokens of pins, but your pins take {pinned:,}. "
            "/pin lists the pins, and /unpin <number> removes a pin."
        )
    chosen_at = None if name == home.name else home.provider
    await _choose(ctx, "model", name if chosen_at else None, provider=home.provider)
    if session is not None:
        await ctx.store.update_session(ctx.owned().lease, session.ref, model=name, model_chosen_at=chosen_at)
    there = "This session now uses" if session else "This chat will use"
    told = f"{there} {name} ({_window(models, spec)})."
    return " ".join([told, *([silent] if silent else []), *await _to_be_compressed(ctx)])


def _choices(present: str, others: Sequence[str]) -> tuple[Proposal, ...]:
    """Buttons for the models, those with names most like the present one's first: a router has hundreds."""
    near = get_close_matches(present, others, n=_BUTTONS, cutoff=0.0) if others else ()
    return tuple(Proposal(value=f"/model {name}", label=name) for name in dict.fromkeys([*near, *others]))


def _window(models: Models, spec: ModelSpec) -> str:
    assumed = "; the size is my guess, because the provider does not state it" if models.is_assumed(spec) else ""
    return f"a window of {spec.context_length:,} tokens{assumed}"


async def _to_be_compressed(ctx: CommandContext) -> list[str]:
    """Say that the conversation is too long for its new model, where it is."""
    session = await ctx.present()
    if session is None or not ctx.program.automatic:
        return []
    conversation = await ctx.sessions.glance(session)
    threshold = int((await conversation.engine.status()).get("threshold_tokens") or 0)
    tokens = conversation.prompt_tokens()
    if not threshold or tokens < threshold:
        return []
    return [
        f"Our conversation (~{tokens:,} tokens) is too long for the new model, so I will compress it before my next "
        "answer."
    ]


_LONGEST_NAME: Final = 200  # characters of a model's name; those of registries have 100 at most
_OFF: Final = ("off", "none", "reset", "default")  # nobody wants the bot to be that


async def _no_persona(ctx: CommandContext) -> tuple[Proposal, ...]:
    return (Proposal(value="/persona off", label="Back to the usual persona"),)


@command(
    "persona [text|off]",
    "About",
    "show or change who I am in this chat",
    bypass="bare",
    elsewhere=("personality", "character", "system"),
    proposals=_no_persona,
)
async def persona(ctx: CommandContext) -> Answer | str:
    """Show the chat's persona, replace it, or go back to the configured one."""
    text = storable(ctx.argument)
    if not text:
        session = await _session(ctx)
        held = ctx.sessions.persona(session, await ctx.sessions.choices(session))
        if held is None:
            own = ctx.sessions.prompts.settings.persona
            shown = f"My persona comes from config.yaml:\n{own}" if own else _IDENTITY
            return f"{shown}\n/persona <text> gives me another persona here."
        back = " /persona off goes back to the configured persona." if held.choice else ""
        text = f"My persona here, {_origin(ctx, held)}:\n{held.value}\n/persona <text> changes this persona.{back}"
        may = held.choice is not None and _may_choose(ctx)
        return Answer(text=text, choices=await _no_persona(ctx) if may else ())
    refuse_others(ctx)
    if text.lower() in _OFF:
        await _choose(ctx, "persona", None)
        return "From your next message on, I will use the persona from config.yaml again."
    if refusal := _refusal(ctx, text, ctx.sessions.models.of(await _session(ctx))):
        raise UserError(refusal)
    await _choose(ctx, "persona", text)
    return (
        "From your next message on, I will use this persona in all sessions of this chat. /persona off goes back to "
        "the usual persona."
    )


async def said_of_chat(ctx: CommandContext, present: Session) -> list[str]:
    """The choices that hold only in this chat, one line each, with their sources."""
    models, session = ctx.sessions.models, _seen(ctx, present)
    chosen = await ctx.sessions.choices(session)
    lines, model, persona = [], ctx.sessions.model(session, chosen), ctx.sessions.persona(session, chosen)
    home, name = models.home(session).name, models.of(session).name
    if models.is_chosen(session):
        lines.append(f"Someone chose the model {name} for this chat with /model, although config.yaml names {home}.")
    elif model is not None and model.choice is None:
        lines.append(f"The model {name} answers here, because config.yaml says so for {model.place}.")
    if persona is not None:
        brief = one_line(persona.value)
        brief = brief if len(brief) <= _BRIEF else brief[: _BRIEF - 1] + "…"
        lines.append(f"Persona: “{brief}”, {_origin(ctx, persona)}.")
    for key, by_place in ctx.program.chats.items():
        if found := narrowest(by_place, ctx.key.platform, session.places):
            lines.append(f"config.yaml sets {key} to {found.value} for {found.place}.")
    return lines


def _origin(ctx: CommandContext, held: Held) -> str:
    if held.choice is None:
        return f"from config.yaml for {held.place}"
    at = moment(held.choice.at, ctx.sessions.policy.zone)
    return f"chosen with /persona by {held.choice.by} on {at}"


async def _session(ctx: CommandContext) -> Session:
    """The present session, or the one that a first message would open."""
    present = await ctx.present()
    return await ctx.sessions.first(ctx.key, ctx.inbound.source) if present is None else _seen(ctx, present)


def _seen(ctx: CommandContext, session: Session) -> Session:
    """A session as the next message from here will find it."""
    return replace(session, places=names(ctx.inbound.source))


def _home(ctx: CommandContext) -> ModelSpec:
    return ctx.sessions.models.home_of(ctx.key.platform, names(ctx.inbound.source))


def refuse_others(ctx: CommandContext) -> None:
    """Raise UserError unless the caller may change the settings of this chat."""
    if not _may_choose(ctx):
        raise UserError(NOT_YOURS)


def _may_choose(ctx: CommandContext) -> bool:
    source = ctx.inbound.source
    return source.chat_type == "direct" or ctx.people.pairing.access.is_admin(source)


async def _choose(ctx: CommandContext, what: What, value: str | None, provider: str = "") -> None:
    source = ctx.inbound.source
    place = choosing(ctx.key, source.chat_type, names(source))[0]
    by = speaker(source)
    await choose(ctx.store, place, what, Choice(value=value, by=by, at=ctx.clock.now(), provider=provider))


def _refusal(ctx: CommandContext, text: str, spec: ModelSpec) -> str | None:
    """Return the reason why a text cannot be a persona; None: it can."""
    if len(text) > LONGEST_PERSONA:
        return f"A persona may have at most {LONGEST_PERSONA:,} characters, but this one has {len(text):,}. Shorten it."
    if ctx.redact(text) != text:
        return (
            "This persona seems to contain a password or a key, and I send the persona to the model with every "
            "message. Leave the secret out."
        )
    tokens, room = ctx.sessions.counter.text(text), int(PINS_SHARE * spec.context_length)
    if tokens > room:
        return f"A persona may take {room:,} tokens of this model's window, but this one takes {tokens:,}. Shorten it."
    return None


async def _offered(ctx: CommandContext, home: ModelSpec) -> tuple[list[str], str]:
    """The names of the provider's models, and a sentence where its server does not say them just now."""
    try:
        return [each.name for each in await ctx.sessions.models.offered(home)], ""
    except (ProviderError, TimeoutError):
        return [], "The provider cannot list its models at the moment. Try again later."


def _known(wanted: str, offered: Sequence[str], models: Models, home: ModelSpec) -> str:
    """The model that is meant, as its provider calls it. Raises UserError if there is none; without a list, any name
    may be right that fits into a line."""
    if len(wanted) > _LONGEST_NAME or not wanted.isprintable() or not models.may_be(wanted, home):
        raise UserError(
            f"There is no model {wanted[:40]} here, only {home.name}. The operator can add models in config.yaml."
        )
    names = {name.lower(): name for name in (*offered, home.name)}
    if not offered or wanted.lower() in names:
        return names.get(wanted.lower(), wanted)
    near = get_close_matches(wanted.lower(), names, n=1)
    hint = f" Did you mean {names[near[0]]}?" if near else ""
    raise UserError(f"The provider has no model {wanted[:40]}.{hint} /model lists the models.")


_DEAF: Final = (
    "I cannot listen, because speech-to-text is not set up here. The operator can set `transcription` in config.yaml."
)
_VOICE: Final = {
    "voice": "I speak when you send a voice message",
    "always": "I speak every answer",
    "asked": "I only write",
}


@command(
    "voice [on|off|auto]",
    "About",
    "switch my voice",
    bypass="bare",
    options="join, listen, leave",
    elsewhere=("tts", "speak"),
)
async def voice(ctx: CommandContext) -> str:
    """Show whether answers are said aloud here, or choose it; `auto` goes back to the configuration."""
    if not ctx.program.speaks:
        raise UserError("I cannot speak here yet. The operator can set `speech` in config.yaml.")
    wanted = ctx.argument.strip().lower()
    if wanted in ("join", "listen", "leave"):
        return await _room(ctx, wanted)
    if not wanted:
        session = await _session(ctx)
        chosen = held((await ctx.sessions.choices(session)).voice, {}, ctx.key.platform, session.places)
        usual = f"{_VOICE[ctx.program.speaks]} here. This comes from config.yaml."
        told = (
            usual
            if chosen is None
            else f"My voice is switched {chosen.value} here. /voice auto goes back to what config.yaml says."
        )
        return f"{told} To change this, send /voice on or /voice off."
    if wanted not in ("on", "off", "auto"):
        raise UserError("Send /voice on, /voice off or /voice auto.")
    refuse_others(ctx)
    await _choose(ctx, "voice", None if wanted == "auto" else wanted)
    said = {"on": "From now on, I will speak my answers here.", "off": "From now on, I will only write here."}
    return said.get(wanted) or f"{_VOICE[ctx.program.speaks]} here again. This comes from config.yaml."


async def _room(ctx: CommandContext, wanted: str) -> str:
    rooms, to = ctx.program.rooms.get(ctx.key.platform), ctx.inbound.source.address
    if rooms is None:
        raise UserError(
            "I cannot join a voice channel here. Voice channels are switched off, or this platform has none."
        )
    if wanted == "leave":
        return "I left the voice channel." if await rooms.leave(to) else "I am not in a voice channel for this chat."
    if wanted == "listen" and not ctx.program.writes_down:
        model = ctx.sessions.models.of(await _session(ctx))
        if "ogg" not in model.sounds:
            raise UserError(_DEAF)
    name = await rooms.join(to, ctx.inbound.source.user, listens=wanted == "listen")
    if wanted == "listen":
        return (
            f"🎙 I am listening in {name} now. When someone who may talk to me speaks, I write down their words here, "
            "and answer aloud and in writing. To stop the listening, send /voice join. To make me leave, send "
            "/voice leave."
        )
    return (
        f"I have joined {name}, and will read my answers from this chat aloud there. To silence me, send /stop. To "
        "make me leave, send /voice leave."
    )


_WEB: Final = {  # after "From now on, ", too
    "on": "I search the web for every answer that needs facts here.",
    "off": "I do not search the web here.",
    "": "I search the web here when I think that an answer needs it.",
}


@command("web [on|off|auto]", "About", "switch my web search", bypass="bare", elsewhere=("websearch", "browse"))
async def web(ctx: CommandContext) -> str:
    """Show whether the web is searched here, or choose it; `auto` leaves it to the model."""
    session = await _session(ctx)
    if not ctx.sessions.toolbox.has(SEARCH, member(session)):
        raise UserError("I cannot search the web yet. The operator can set `tools.search` in config.yaml.")
    wanted = ctx.argument.strip().lower()
    if not wanted:
        told = _WEB[ctx.sessions.web(session, await ctx.sessions.choices(session))]
        return f"{told} To change this, send /web on, /web off or /web auto."
    if wanted not in ("on", "off", "auto"):
        raise UserError("Send /web on, /web off or /web auto.")
    refuse_others(ctx)
    await _choose(ctx, "search", None if wanted == "auto" else wanted)
    return f"From now on, {_WEB[wanted.removeprefix('auto')]}"


COMMANDS = (model, persona, voice, web)
