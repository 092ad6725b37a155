"""Commands that begin, end, name and revisit sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from gateway.agent.caps import written
from gateway.agent.forgetting import NOT_UNDONE
from gateway.agent.holding import SHELF
from gateway.commands.base import Answer, CommandContext, command
from gateway.domain.chat import SessionKey
from gateway.domain.command import Parameter, Proposal
from gateway.domain.message import HOST, Message, behind, last_requests, note_of, said_in
from gateway.domain.session import Session
from gateway.domain.titles import last_exchange, last_words, quoted, shown_in_a_list, title_of
from gateway.domain.usage import UsageTotal
from gateway.domain.wording import counted
from gateway.people.approvals import listed
from gateway.runtime.errors import FileRefused, SessionNotFound, UserError
from gateway.store.port import Documents, Store, under

TEMPORARY: Final = "Temporary chat"
NAMED: Final = "title "  # begins a note of it: the name of the session whose id follows
_TEMPORARY = (
    "This chat is temporary now. I remember nothing of it, and no other chat of yours finds it. I delete it {hours} "
    "after its last message, or when you send /new. To keep it after all, send /temporary keep."
)
_DELETED = "I deleted the temporary chat. This is a fresh session."
_LISTED = 10
_PICKED = 30  # sessions that buttons offer
_LOOKED_AT = 500
_DIGITS = 9  # of the longest number that is read; Python refuses to read one of thousands
_HOUR, _DAY, _MONTH = 60, 1_440, 43_200  # minutes


@command(
    "new",
    "Conversation",
    "start a fresh session",
    aliases=("reset",),
    elsewhere=("clear", "restart"),
    over_question="stop",
)
async def new(ctx: CommandContext) -> str:
    """End the present session and start an empty one."""
    return await _begun_anew(ctx, await ctx.present())


async def _begun_anew(ctx: CommandContext, present: Session | None) -> str:
    if await ctx.opened_before() is None:
        if present is None or (present.message_count == 0 and not present.temporary):
            return "This is already a fresh session."
        await ctx.sessions.reset(ctx.owned().lease, present, session_id=ctx.session_id)
    for ended in await ctx.store.sessions(ctx.key, _LISTED):  # also where a crash came between end and deletion
        if ended.temporary and ended.ended_at is not None:
            await ctx.agents.forgetter.delete_temporary(ctx.owned().lease, ended, ctx.item)
            return f"{_DELETED} {NOT_UNDONE}"
    return "Started a fresh session. /sessions lists the earlier session, and /resume goes back to it."


@command(
    "temporary",
    "Sessions",
    "start a chat that is not kept",
    options="keep, end",
    parameters=(
        Parameter(name="keep", help="make it an ordinary chat", kind="flag", form="keep"),
        Parameter(name="end", help="delete it now", kind="flag", form="end"),
    ),
    elsewhere=("incognito", "private"),
)
async def temporary(ctx: CommandContext) -> str:
    """Begin a temporary chat in place of the present session, keep it after all, or end it."""
    present, is_new = await ctx.present(), await ctx.opened_before() is None
    if ctx.inbound.source.chat_type != "direct":
        raise UserError("I can only have a temporary chat with you alone. Ask me in a private chat.")
    if ctx.argument.lower() == "keep":
        if present is not None and present.temporary:
            await ctx.sessions.keep(ctx.owned().lease, present)
        elif ctx.item.attempts == 1:
            raise UserError("This is not a temporary chat, so I keep it anyway.")
        return "This is an ordinary chat from now on: I keep all of it."
    if ctx.argument.lower() == "end":
        if is_new and (present is None or not present.temporary):
            raise UserError("This is not a temporary chat. /new starts a fresh session.")
        return await _begun_anew(ctx, present)
    if ctx.argument:
        raise UserError("Send /temporary to start a chat that is not kept, then /temporary keep or /temporary end.")
    if is_new and (present is None or not present.temporary):
        await ctx.sessions.open_temporary(ctx.owned().lease, present, ctx.inbound.source, ctx.session_id)
    hours = counted(ctx.sessions.policy.temporary_hours, "hour")
    return _TEMPORARY.format(hours=hours)


async def _overview(ctx: CommandContext) -> Answer | str:
    present, listed = await ctx.present(), await earlier(ctx, _PICKED)
    here = f"You are in {await _described(ctx, present)}." if present and present.message_count else ""
    if not listed:
        return f"{here} There are no earlier sessions yet." if here else "There are no earlier sessions yet."
    names = [await heading(ctx.store, session) for session in listed]
    told = enumerate(listed[:_LISTED], 1)
    lines = [await _line(ctx, number, session, names[:_LISTED]) for number, session in told]
    text = "\n".join(
        [*([here] if here else []), *lines, "/resume <number> goes back to a session in this list, as in /resume 1."]
    )
    # By their ids: the numbers may be other ones by the time that somebody presses.
    choices = [Proposal(value=f"/resume {each.id}", label=name) for each, name in zip(listed, names, strict=True)]
    return Answer(text=text, choices=tuple(choices))


async def _sessions_to_resume(ctx: CommandContext) -> list[Proposal]:
    return [
        Proposal(value=str(number), label=f"{number}. {await heading(ctx.store, session)}")
        for number, session in enumerate(await earlier(ctx), 1)
    ]


@command(
    "sessions", "Sessions", "list earlier sessions", elsewhere=("history",), bypass=True, proposals=_sessions_to_resume
)
async def sessions(ctx: CommandContext) -> Answer | str:
    """List the caller's earlier conversations, newest first."""
    return await _overview(ctx)


@command(
    "resume [n]",
    "Sessions",
    "go back to an earlier session",
    elsewhere=("load",),
    bypass="bare",
    proposals=_sessions_to_resume,
)
async def resume(ctx: CommandContext) -> Answer | str:
    """Go on from an earlier session, in a new one that refers to the same messages."""
    if not ctx.argument:
        return await _overview(ctx)
    opened = await ctx.opened_before()
    wanted, _, after = ctx.argument.partition(" after ")  # the event of a message, behind whose answer it goes on
    target = await _find(ctx, wanted)
    if opened is not None:
        return await _went_back(ctx, target if target.key != ctx.key else opened)
    present = await ctx.present()
    if present is not None and target.id == present.id:
        raise UserError("You are already in this session. Just write on.")
    messages, name = await ctx.messages(target), await given_name(ctx.store, target)
    if after:
        if (place := behind(messages, after)) is None:
            raise UserError("That message is no longer here. /branch copies the whole session.")
        messages = messages[: place[0]]
    if target.key != ctx.key:
        try:
            await ctx.agents.files.carry(messages, target.key, ctx.key, ctx.inbound.source)
        except FileRefused as error:
            raise UserError(f"I did not copy the session, because {error}.") from error
        messages, name = [_anew(each) for each in messages], f"{await heading(ctx.store, target)} (copy)"
    await ctx.switch(present, target, messages, "switched", name or None)
    return await _went_back(ctx, target)


def _anew(message: Message) -> Message:
    """A message as one of another chat. Each chat has its own, so what is forgotten in one stays in the other."""
    note: dict[str, Any] = {**note_of(message)}
    copy: dict[str, Any] = {**message, HOST: {name: note[name] for name in note if name not in ("id", "derived_from")}}
    return copy  # type: ignore[return-value]


async def _went_back(ctx: CommandContext, session: Session) -> str:
    """Return a line about the present end of the conversation, with its last exchange."""
    if session.key != ctx.key:
        return f"This is a copy of {await _described(ctx, session)}, which stays as it is."
    ends = last_exchange(await ctx.messages(session))
    where = f"I went back to {await _described(ctx, session)}."
    return "\n".join([f"{where} The session ended with:", *ends]) if ends else where


@command("branch [title]", "Sessions", "go on in a copy of this session", elsewhere=("fork",))
async def branch(ctx: CommandContext) -> str:
    """Go on in a copy, so that the original stays as it is."""
    if await ctx.opened_before() is None:
        present = await ctx.present()
        if present is None or present.message_count == 0:
            raise UserError("There is nothing to copy yet. Send a message first.")
        await ctx.switch(
            present, present, await ctx.messages(present), "switched", shown_in_a_list(ctx.argument) or None
        )
    return "You are now in a copy of the session. /sessions still lists the original."


@command("undo [n]", "Conversation", "undo your last message and my answer")
async def undo(ctx: CommandContext) -> str:
    """Take the last exchanges back."""
    count = _number(ctx.argument or "1", "Say how many of your messages I should undo, for example: /undo 2")
    opened = await ctx.opened_before()
    done = opened is not None and opened.parent_id is not None
    present = await ctx.store.session(opened.parent_id) if opened and opened.parent_id else await ctx.present()
    messages = await ctx.messages(present)
    requests = last_requests(messages, count)
    if present is None or not requests:
        raise UserError("There is nothing to undo here. /resume goes back to an earlier session.")
    if not done:
        await ctx.switch(present, present, messages[: requests[0]], "undone")
    taken = "the last exchange" if len(requests) == 1 else f"the last {len(requests)} exchanges"
    begins = "" if len(requests) == 1 else ", which began with"
    return f"I undid {taken}{begins}: “{quoted(said_in(messages[requests[0]]))}”. To go back, see /sessions."


@command("title [name]", "Sessions", "show or set this session's name", elsewhere=("rename",))
async def title(ctx: CommandContext) -> str:
    """Name the present session."""
    present = await ctx.present()
    if present is None:
        raise UserError("There is no session to name yet. Send a message first.")
    name = shown_in_a_list(ctx.argument)
    if not name and not present.title and not present.message_count:
        return "This session has no name yet. To name this session, send /title <name>."
    if not name:
        return f"This session is “{await heading(ctx.store, present)}”. /title <name> changes its name."
    await ctx.store.update_session(ctx.owned().lease, present.ref, title=name)
    return f"This session is now “{name}”."


async def earlier(ctx: CommandContext, most: int = _LISTED) -> list[Session]:
    """The sessions that the caller can go back to."""
    return can_go_back_to(await ctx.store.sessions(ctx.key, _LOOKED_AT), await ctx.present())[:most]


def can_go_back_to(found: Sequence[Session], present: Session | None) -> list[Session]:
    """The last session of each lineage but the present, without temporary chats, and without those from which /resume
    went on, because all of such a session is in the later one."""
    ended = {session.id: session.ended_at for session in found if session.ended_at is not None}
    resumed = {each.parent_id for each in found if each.started_at > ended.get(each.parent_id or "", each.started_at)}
    return [
        session
        for session in found
        if session.message_count
        and not session.temporary
        and session.end_reason != "compression"
        and session.id not in resumed
        and session.id != (present and present.id)
    ]


async def given_name(store: Documents, session: Session) -> str:
    """The name that a person gave to a conversation in a list of theirs; "": none."""
    return (await store.notes(under(session.key.owner, SHELF))).get(f"{NAMED}{session.id}", "")


async def heading(store: Store, session: Session) -> str:
    """A session's name, its title, or what it is about in a few words; a temporary chat says nothing of that."""
    if session.temporary:
        return TEMPORARY
    named = await given_name(store, session) or session.title
    return named or title_of(await store.transcript(session)) or "untitled"


async def greeting(store: Store, key: SessionKey) -> str:
    """The welcome for a person who comes back: the session that goes on, and open questions. "": no session."""
    session = await store.tip(key)
    if session is None or not session.message_count:
        return ""
    text = f"We go on with “{await heading(store, session)}”. /new starts a fresh session."
    asked = [each for each in await store.approvals(key.address) if each.key == key and each.is_open]
    how = "/answer and your words" if asked and asked[-1].wants_words else "/approve or /deny"
    return f"{text}\nI am still waiting for your {how}:\n{listed(asked)}" if asked else text


async def farewell(store: Store, key: SessionKey) -> str:
    """The last line for a person who leaves: what the session has cost so far, and how to come back. "": no session."""
    session = await store.tip(key)
    if session is None or not session.message_count:
        return ""
    whole = {each.id for each in await store.lineage(session.id)}
    spent = sum((each for each in await store.usage(0.0, "session", key=key) if each.label in whole), UsageTotal())
    cost = f", {written(round(1_000_000 * spent.cost_usd))}" if spent.cost_usd else ""
    tokens = f", {spent.usage.total_tokens:,} tokens" if spent.calls else ""  # none since /resume
    said = f"{counted(session.message_count, 'message')}{tokens}{cost}"
    return (
        f"“{await heading(store, session)}”: {said}. Run `legato chat` to go on from here. "
        f"From another session, send /resume {session.id} to come back to this session."
    )


async def _line(ctx: CommandContext, number: int, session: Session, names: Sequence[str]) -> str:
    """One session of the list `names`, whose name is the `number`th. Of two with one name the last words tell."""
    name = names[number - 1]
    last = last_words(await ctx.messages(session)) if names.count(name) > 1 else ""
    since = ago(session.last_active_at, ctx.clock.now(), ctx.sessions.policy.zone)
    detail = f"{counted(session.message_count, 'message')}, {since}"
    return f"{number}. {name} ({detail})" + (f"\n   last: {last}" if last else "")


async def _described(ctx: CommandContext, session: Session) -> str:
    return f"“{await heading(ctx.store, session)}” ({counted(session.message_count, 'message')})"


def ago(at: float, now: float, zone: tzinfo | None) -> str:
    """Return the time since `at` in words, or the date after a month. Both are seconds since the epoch; `zone` None:
    this machine's."""
    minutes = max(0, int((now - at) / 60))
    if minutes < 1:
        return "just now"
    if minutes < _HOUR:
        return f"{minutes} min ago"
    if minutes < 2 * _DAY:
        return f"{minutes // _HOUR} h ago"
    if minutes < _MONTH:
        return f"{minutes // _DAY} days ago"
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d")


async def _find(ctx: CommandContext, wanted: str) -> Session:
    if wanted.isdecimal() and len(wanted) <= _DIGITS:
        listed = await earlier(ctx)
        if not 1 <= int(wanted) <= len(listed):
            raise UserError(f"There is no session number {wanted}. /sessions lists your sessions.")
        return listed[int(wanted) - 1]
    try:
        lineage = await ctx.store.lineage(wanted)
    except SessionNotFound:
        lineage = []
    if not lineage or lineage[-1].key.owner != ctx.key.owner:
        # The same sentence for no session and for another person's: ids reveal nothing.
        raise UserError(f"There is no session {wanted[:40]} here. /sessions lists your sessions.")
    return lineage[-1]


def _number(text: str, otherwise: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or not 1 <= int(text) <= 1_000:
        raise UserError(otherwise)
    return int(text)


COMMANDS = (new, temporary, undo, sessions, resume, branch, title)
