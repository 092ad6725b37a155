"""/forget: what was said goes for good, with everything that was made of it.

It is chosen by the message that the command answers, by words, or as the last that was said; and nothing goes without a
yes. In a conversation of several people each forgets what they said themselves, an admin anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from gateway.agent.forgetting import Contents, Deed, deed_of, is_by
from gateway.commands.base import Command, CommandContext
from gateway.context.forgetting import Exchange
from gateway.domain.chat import is_shared
from gateway.domain.command import Parameter
from gateway.domain.handles import handle, message_named
from gateway.domain.message import Message, note_of, said_in
from gateway.domain.titles import quoted
from gateway.domain.wording import counted, moment
from gateway.runtime.errors import UserError

_USAGE: Final = (
    "/forget last forgets the last thing that you said, with my answer; /forget <words> finds what to forget; "
    "/forget everything forgets all that I hold of you. Or answer a message with /forget."
)
_NOT_THERE: Final = "I do not find that message here any more; /forget <words> finds others."
_NOT_YOURS: Final = "Somebody else said that. You can forget what you said yourself; an admin can forget anything here."
_EVERYTHING: Final = (
    "Forget everything that you said {places}, with all my answers, sessions, files and pinned rules? In conversations "
    "of several people what others said stays. This cannot be undone."
)
_LABELS: Final = ("Forget", "Keep")
_KEPT: Final = "Nothing was forgotten."
NOT_UNDONE: Final = (
    "What my model's provider was sent, and what stands in this chat, I cannot take back; delete it there yourself."
)
_MOST: Final = 10  # exchanges in a list
_MARK: Final = "forget:"  # the beginning of a session's mark that holds the list that was shown last
_NUMBERS: Final = re.compile(r"\d{1,2}(?:[\s,]+\d{1,2})*")


@partial(
    Command,
    name="forget",
    group="What I remember",
    argument="[words]",
    options="last, n, everything",
    parameters=(
        Parameter(name="words", help="words of what to forget, or the numbers of a list"),
        Parameter(name="last", help="the last thing that you said", kind="flag", form="last"),
        Parameter(name="everything", help="all that I hold of you", kind="flag", form="everything"),
    ),
    help="forget something for good",
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
    contents = await ctx.forgetter.contents(ctx.key)
    if argument == "all" and not _list_shown(contents):
        return await _everything(ctx)
    chosen = await _chosen(ctx, contents)
    if isinstance(chosen, str):
        return chosen
    ids = {name for exchange in chosen for name in exchange.ids}
    deed = await ctx.forgetter.deed(contents, ctx.key, deed_of(ctx.item), ids, ctx.item.id)
    assert ctx.confirm is not None, "a lane's command is given a way to ask"
    if not await ctx.confirm(_question(ctx, chosen, deed), _LABELS):
        return _KEPT
    return _told(await ctx.forgetter.do(ctx.owned(), contents, deed))


async def _everything(ctx: CommandContext) -> str:
    """All that the bot holds of a person on this platform."""
    elsewhere = await ctx.forgetter.talks_elsewhere(ctx.item)
    assert ctx.confirm is not None, "a lane's command is given a way to ask"
    places = f"here and in {counted(len(elsewhere), 'other conversation')}" if elsewhere else "here"
    if not await ctx.confirm(_EVERYTHING.format(places=places), _LABELS):
        return _KEPT
    await ctx.forgetter.ask_elsewhere(ctx.item, elsewhere)
    told = _told(await ctx.forgetter.forget_person(ctx.owned(), ctx.item))
    if not elsewhere:
        return told
    return (
        f"{told} What you said in {counted(len(elsewhere), 'other conversation')} goes as soon as nothing runs there."
    )


# -- choosing ---------------------------------------------------------------------------------


async def _chosen(ctx: CommandContext, contents: Contents) -> Sequence[Exchange] | str:
    """The exchanges that are meant, or a list to choose from."""
    argument = ctx.argument.strip()
    if not argument and ctx.inbound.reply_to is not None:
        return _theirs(ctx, [await _answered(ctx, contents, ctx.inbound.reply_to)])
    if not argument:
        return _USAGE
    if argument.lower() == "last":
        own = [each for each in contents.history.exchanges if _may(ctx, each.request)]
        if not own:
            raise UserError("There is nothing to forget here yet.")
        return own[-1:]
    if argument.startswith("#") and (named := message_named(argument)) is not None:
        return _theirs(ctx, [_held(contents.history.exchange_of(named))])
    listed = _list_shown(contents)
    if listed and (argument.lower() == "all" or _NUMBERS.fullmatch(argument)):
        return _theirs(ctx, [_held(contents.history.exchange_of(each)) for each in _picked(listed, argument)])
    return await _found(ctx, contents, argument)


def _held(exchange: Exchange | None) -> Exchange:
    if exchange is None:
        raise UserError(_NOT_THERE)
    return exchange


def _theirs(ctx: CommandContext, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    if not all(_may(ctx, each.request) for each in exchanges):
        raise UserError(_NOT_YOURS)
    return exchanges


def _may(ctx: CommandContext, request: Message) -> bool:
    """Say whether the caller may have this forgotten."""
    source = ctx.inbound.source
    if not is_shared(ctx.key, source) or ctx.pairing.access.is_admin(source):
        return True
    return is_by(request, source)


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
    """A numbered list of exchanges that hold the words, best first, which the session remembers."""
    passages = await ctx.store.search(words, ctx.key, 5 * _MOST)
    found: dict[str, Exchange] = {}
    for passage in passages:
        exchange = contents.history.exchange_of(note_of(passage.hit.message)["id"])
        if exchange is not None and _may(ctx, exchange.request):
            found.setdefault(exchange.ids[0], exchange)
    shown = list(found.values())[:_MOST]
    if not shown:
        return "I found nothing like that which you could forget."
    tip = contents.tip
    if tip is not None:
        marks = tuple(mark for mark in tip.announced if not mark.startswith(_MARK))
        mark = _MARK + " ".join(each.ids[0] for each in shown)
        await ctx.store.update_session(ctx.owned(), tip.ref, announced=(*marks, mark))
    lines = [_line(ctx, f"{number}." if tip else handle(each.ids[0]), each) for number, each in enumerate(shown, 1)]
    several = ", /forget 1 2 or /forget all" if len(shown) > 1 else ""
    how = f"/forget 1{several}" if tip else f"/forget {handle(shown[0].ids[0])}"
    return "\n".join([*lines, f"{how} forgets; I ask once more before."])


def _line(ctx: CommandContext, label: str, exchange: Exchange) -> str:
    return f"{label} {_when(ctx, exchange)}: “{quoted(said_in(exchange.request))}”"


def _when(ctx: CommandContext, exchange: Exchange) -> str:
    return moment(note_of(exchange.request).get("at", 0.0), ctx.sessions.policy.zone)


def _list_shown(contents: Contents) -> list[str]:
    """The ids of the list that was shown last."""
    marks = contents.tip.announced if contents.tip else ()
    return next((mark.removeprefix(_MARK).split() for mark in marks if mark.startswith(_MARK)), [])


def _picked(listed: Sequence[str], argument: str) -> list[str]:
    if argument.lower() == "all":
        return list(listed)
    numbers = sorted({int(each) for each in re.split(r"[\s,]+", argument)})
    if wrong := [number for number in numbers if not 1 <= number <= len(listed)]:
        raise UserError(f"The list has no number {wrong[0]}; it has {len(listed)}.")
    return [listed[number - 1] for number in numbers]


# -- wording ----------------------------------------------------------------------------------

_NAMES: Final[Mapping[str, str]] = {
    "sessions": "session",
    "messages": "message",
    "rules": "pinned rule",
    "files": "file",
    "facts": "remembered fact",
    "reminders": "reminder",
}


def _question(ctx: CommandContext, chosen: Sequence[Exchange], deed: Deed) -> str:
    """Return the question: the number of things that go, without a word of them."""
    when = _listed([_when(ctx, each) for each in chosen[:3]])
    more = f" and {len(chosen) - 3} more times" if len(chosen) > 3 else ""
    numbers = f" (in /reminders: {', '.join(map(str, deed.reminders))})" if deed.reminders else ""
    return f"Forget what was said {when}{more}, with my answer: {_summed(deed.counts)}{numbers}? This cannot be undone."


def _told(counts: Mapping[str, int]) -> str:
    return f"Forgot {_summed(counts)}. {NOT_UNDONE}"


def _summed(counts: Mapping[str, int]) -> str:
    parts = [counted(counts[what], name) for what, name in _NAMES.items() if counts.get(what)]
    if made := counts.get("summaries"):
        parts.append(f"{made:,} {'summary' if made == 1 else 'summaries'} made anew without it")
    return _listed(parts) or "nothing"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


COMMANDS = (forget,)
