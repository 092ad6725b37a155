"""/forget: what was said goes for good, with everything that was made from it.

The person chooses it by the message that the command answers, by words, or as the last thing that was said; and nothing
goes without a yes. If several people share a conversation, each can forget what they said themselves, and an admin
anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from gateway.agent.forgetting import NOT_UNDONE, Contents, Deed, deed_of, is_by
from gateway.agent.holding import Holding
from gateway.commands.base import CommandContext, command
from gateway.commands.sessions import heading
from gateway.context.forgetting import Exchange, History
from gateway.domain.chat import is_shared
from gateway.domain.command import Parameter
from gateway.domain.message import Message, message_named, note_of, said_in
from gateway.domain.titles import quoted
from gateway.domain.wording import counted, moment
from gateway.runtime.errors import UserError
from gateway.words.text import Holds

_USAGE: Final = (
    "/forget last forgets the last thing you said, and my answer. /forget <words> finds messages to forget. "
    "/forget everything makes me forget everything you have told me. You can also answer a message with /forget."
)
_NONE: Final = "I did not find a message from you with these words."
_OTHERS: Final = "Someone else said these words, too. Only that person or an admin can make me forget those messages."
_SOME_WORDS: Final = "No message contains all of these words. These messages contain some of them:"
_COPIES: Final = "The words are also in {copies}. /forget all makes me forget every copy."
_ELSEWHERE: Final = "You said the words in other chats, too: {titles}. Send /forget in each of these chats."
_NOTED: Final = "Only my own notes on earlier conversations contain these words."
_NOT_THERE: Final = "I can no longer find that message here. Try /forget <words>."
_NOT_YOURS: Final = "Someone else wrote this message, so only its writer or an admin can make me forget it."
_EVERYTHING: Final = (
    "Forget everything that you said {places}, with all my answers, sessions, files and pinned rules? In conversations "
    "with several people, I keep what the others said. This cannot be undone."
)
_LABELS: Final = ("Forget", "Keep")
_KEPT: Final = "Nothing was forgotten."
_ENGINE: Final = "The context engine {engine} may keep a copy that I cannot reach. Ask the operator to delete the copy."
_WAITING: Final = (
    "The words are also in {waiting} in this chat that I have not answered yet. Send /forget again after I have "
    "answered."
)
_MOST_WAITING: Final = 1_000  # messages that are looked at
_MOST: Final = 10  # exchanges in a list
_LOOKED_AT: Final = 200  # messages that an index finds
_SESSION: Final = re.compile(r"session (s_\w+)( yes)?")  # a page has asked already
_NUMBERS: Final = re.compile(r"\d{1,2}(?:[\s,]+\d{1,2})*")


@command(
    "forget [words]",
    "What I remember",
    "forget something permanently",
    options="last, n, everything",
    parameters=(
        Parameter(name="words", help="words of the message to forget, or numbers from the list"),
        Parameter(name="last", help="the last thing you said", kind="flag", form="last"),
        Parameter(name="everything", help="everything you have told me", kind="flag", form="everything"),
    ),
    elsewhere=("delete",),
)
async def forget(ctx: CommandContext) -> str:
    """Choose, ask, and have it forgotten."""
    done = await ctx.store.forgotten(ctx.key, deed_of(ctx.item))
    if done is not None:
        return _told(done)
    argument = ctx.argument.strip().lower()
    if argument == "everything":
        return await _everything(ctx)
    contents, listed = await ctx.agents.forgetter.contents(ctx.key), await ctx.agents.forgetter.kept_list(ctx.key)
    if argument == "all" and listed is None:
        return await _everything(ctx)
    chosen, held = await _chosen(ctx, contents, listed)
    if isinstance(chosen, str):
        return chosen
    ids = {name for exchange in chosen for name in exchange.ids}
    deed = await ctx.agents.forgetter.deed(contents, ctx.key, deed_of(ctx.item), ids, ctx.item.id, held=held)
    session = _session_named(ctx, contents)
    is_sure = session is not None and session[2] is not None
    if not is_sure and not await ctx.owned().confirm(_question(ctx, chosen, deed), _LABELS):
        return _KEPT
    of_list = listed is not None and held is None and _NUMBERS.fullmatch(argument) is not None
    told = _with_copies(ctx, _told(await ctx.agents.forgetter.do(ctx.owned().lease, contents, deed, of_list=of_list)))
    waiting = await ctx.store.waiting(ctx.key, _MOST_WAITING) if held is not None else ()
    later = [each for each in waiting if held is not None and held.holds(each.inbound.text)]
    return f"{told} {_WAITING.format(waiting=counted(len(later), 'later message'))}" if later else told


async def _everything(ctx: CommandContext) -> str:
    """All that the bot holds of a person on this platform."""
    elsewhere = await ctx.agents.forgetter.talks_elsewhere(ctx.item)
    places = f"here and in {counted(len(elsewhere), 'other conversation')}" if elsewhere else "here"
    if not await ctx.owned().confirm(_EVERYTHING.format(places=places), _LABELS):
        return _KEPT
    await ctx.agents.forgetter.ask_elsewhere(ctx.item, elsewhere)
    told = _with_copies(ctx, _told(await ctx.agents.forgetter.forget_person(ctx.owned().lease, ctx.item)))
    if not elsewhere:
        return told
    return (
        f"{told} I will also forget what you said in {counted(len(elsewhere), 'other conversation')}, as soon as my "
        "work there ends."
    )


# -- choosing ---------------------------------------------------------------------------------


_Listed: TypeAlias = tuple[str, Sequence[str]]  # words, and the first messages of the exchanges that a list shows
_Chosen: TypeAlias = tuple[Sequence[Exchange] | str, Holding | None]


async def _chosen(ctx: CommandContext, contents: Contents, listed: _Listed | None) -> _Chosen:
    """The exchanges that are meant, or a list to choose from; and the holding of the words, if all of it is meant."""
    argument = ctx.argument.strip()
    if not argument and ctx.inbound.reply_to is not None:
        return _theirs(ctx, [await _answered(ctx, contents, ctx.inbound.reply_to)]), None
    if not argument:
        return _USAGE, None
    if (session := _session_named(ctx, contents)) is not None:
        return _theirs(ctx, _of_family(contents.history, session[1])), None
    if argument.lower() == "last":
        own = [each for each in contents.history.exchanges if _may(ctx, each.request)]
        if not own:
            raise UserError("There is nothing to forget here yet.")
        return own[-1:], None
    if argument.startswith("#") and (named := message_named(argument)) is not None:
        return _theirs(ctx, [_held(contents.history.exchange_of(named))]), None
    if listed is not None and (argument.lower() == "all" or _NUMBERS.fullmatch(argument)):
        return await _of_list(ctx, contents, argument.lower(), *listed)
    return await _found(ctx, contents, argument), None


def _session_named(ctx: CommandContext, contents: Contents) -> re.Match[str] | None:
    """The session that is named, if it is one of this conversation's, and whether the person was asked already."""
    found = _SESSION.fullmatch(ctx.argument.strip())
    return found if found is not None and found[1] in contents.history.transcripts else None


def _of_family(history: History, session_id: str) -> Sequence[Exchange]:
    """All that was said in a session, and in those that it is a version or a continuation of."""

    def root(name: str) -> str:
        while (above := history.parents.get(name)) is not None and above in history.transcripts:
            name = above
        return name

    family = [each for each in history.transcripts if root(each) == root(session_id)]
    ids = {note_of(message).get("id") for each in family for message in history.transcripts[each]}
    return [each for each in history.exchanges if each.ids[0] in ids]


async def _of_list(ctx: CommandContext, contents: Contents, argument: str, words: str, ids: Sequence[str]) -> _Chosen:
    """The exchanges that are meant of the list shown last. Where all are, everything goes that holds the words."""
    picked = list(ids) if argument == "all" else _picked(ids, argument)
    chosen = _theirs(ctx, [_held(contents.history.exchange_of(each)) for each in picked])
    held = await ctx.agents.forgetter.holding(contents, ctx.item, words, own=_owns_part(ctx)) if words else None
    if held is None or not held.whole or (argument != "all" and len(picked) < len(held.exchanges)):
        return chosen, None
    return held.exchanges, held


def _held(exchange: Exchange | None) -> Exchange:
    if exchange is None:
        raise UserError(_NOT_THERE)
    return exchange


def _theirs(ctx: CommandContext, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    if not all(_may(ctx, each.request) for each in exchanges):
        raise UserError(_NOT_YOURS)
    return exchanges


def _may(ctx: CommandContext, request: Message) -> bool:
    """Whether the caller may have this forgotten."""
    return not _owns_part(ctx) or is_by(request, ctx.inbound.source)


def _owns_part(ctx: CommandContext) -> bool:
    """Whether only a part of the conversation is the caller's to forget."""
    source = ctx.inbound.source
    return is_shared(ctx.key, source) and not ctx.people.pairing.access.is_admin(source)


async def _answered(ctx: CommandContext, contents: Contents, reply_to: str) -> Exchange:
    """The exchange of the message that the command answers: a person's, or one that the bot showed."""
    rows = await ctx.store.outbox(ctx.key.address, 1_000)
    events = {row.answers for row in rows if row.platform_message_id == reply_to and row.answers}
    for exchange in reversed(contents.history.exchanges):
        note = note_of(exchange.request)
        if note.get("place") == reply_to or note.get("event") in events:
            return exchange
    raise UserError(_NOT_THERE)


async def _found(ctx: CommandContext, contents: Contents, words: str) -> str:
    """A numbered list of the exchanges that hold the words, newest first, which is remembered."""
    held = await ctx.agents.forgetter.holding(contents, ctx.item, words, own=_owns_part(ctx))
    there = await _elsewhere(ctx, words)
    if not held and there:
        return there
    if not held:  # who looks whether words are gone leaves them nowhere
        await ctx.agents.forgetter.forget_line(ctx.owned().lease, contents, ctx.item)
        return f"{_NONE} {_OTHERS}" if held.others else _NONE
    shown = held.exchanges[:_MOST]
    await ctx.agents.forgetter.keep_list(ctx.key, words, [each.ids[0] for each in shown])
    lines = [] if held.whole else [_SOME_WORDS]
    lines += [_line(ctx, f"{number}.", each) for number, each in enumerate(shown, 1)]
    if held.whole:
        copies = {"exchanges": len(held.exchanges) - len(shown), **held.copies}
        lines += [_OTHERS] if held.others else []
        lines += [_COPIES.format(copies=_summed(copies))] if any(copies.values()) else [] if shown else [_NOTED]
    lines += [there] if there else []
    single = ["/forget 1"] if shown else []
    several = ["/forget 1 2"] if len(shown) > 1 else []
    every = ["/forget all"] if len(shown) != 1 or (held.whole and (held.copies or held.messages)) else []
    how = " or ".join(filter(None, [", ".join([*single, *several]), *every]))
    return "\n".join([*lines, f"To choose what I forget, send {how}. I will ask once more before I forget anything."])


async def _elsewhere(ctx: CommandContext, words: str) -> str:
    """The other chats of the person in which somebody said these words, in a sentence; "": none."""
    found, sought = await ctx.store.search(words, ctx.key, _LOOKED_AT), Holds(words)
    said = {each.hit.session_id for each in found if sought.held(said_in(each.hit.message)) == sought.every}
    others = [each for each in [await ctx.store.session(name) for name in sorted(said)] if each.key != ctx.key]
    titles = dict.fromkeys([f"“{await heading(ctx.store, each)}”" for each in others])
    return _ELSEWHERE.format(titles=", ".join(titles)) if titles else ""


def _line(ctx: CommandContext, label: str, exchange: Exchange) -> str:
    return f"{label} {_when(ctx, exchange)}: “{quoted(said_in(exchange.request))}”"


def _when(ctx: CommandContext, exchange: Exchange) -> str:
    return moment(note_of(exchange.request).get("at", 0.0), ctx.sessions.policy.zone)


def _picked(listed: Sequence[str], argument: str) -> list[str]:
    numbers = sorted({int(each) for each in re.split(r"[\s,]+", argument)})
    if wrong := [number for number in numbers if not 1 <= number <= len(listed)]:
        raise UserError(f"The list has no number {wrong[0]}. The last number is {len(listed)}.")
    return [listed[number - 1] for number in numbers]


# -- wording ----------------------------------------------------------------------------------

_NAMES: Final[Mapping[str, str]] = {
    "sessions": "session",
    "messages": "message",
    "rules": "pinned rule",
    "files": "file",
    "facts": "remembered fact",
    "reminders": "reminder",
    "personas": "chosen persona",
    "names": "chosen name",
    "notes": "note",
    "exchanges": "older exchange",
}


def _question(ctx: CommandContext, chosen: Sequence[Exchange], deed: Deed) -> str:
    """Return the question: the number of things that go, without a word of them."""
    in_order = sorted(chosen, key=lambda each: note_of(each.request).get("at", 0.0))
    times = [*dict.fromkeys(_when(ctx, each) for each in in_order)]
    when = ", ".join(times) if len(times) <= 3 else f"from {times[0]} to {times[-1]}"
    numbers = f" (in /reminders: {', '.join(map(str, deed.reminders))})" if deed.reminders else ""
    answers = "my answer" if len(chosen) == 1 else "my answers"
    what = f"what was said {when}, with {answers}" if chosen else "everything that contains these words"
    return f"Forget {what}: {_summed(deed.forgetting.counts)}{numbers}? This cannot be undone."


def _told(counts: Mapping[str, int]) -> str:
    return f"Forgot {_summed(counts)}. {NOT_UNDONE}"


def _with_copies(ctx: CommandContext, told: str) -> str:
    """The same, and the name of an engine that cannot be told."""
    engine = ctx.sessions.engines.out_of_reach
    return f"{told} {_ENGINE.format(engine=engine)}" if engine else told


def _summed(counts: Mapping[str, int]) -> str:
    parts = [counted(counts[what], name) for what, name in _NAMES.items() if counts.get(what)]
    if made := counts.get("summaries"):
        parts.append(f"{made:,} {'summary' if made == 1 else 'summaries'} that I rewrote without the words")
    return ", ".join(parts) or "nothing"


COMMANDS = (forget,)
