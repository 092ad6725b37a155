"""Commands that begin, end, name and revisit sessions."""

from __future__ import annotations

from datetime import UTC, datetime

from gateway.commands.base import Answer, Command, CommandContext
from gateway.commands.transcript import last_requests
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.domain.message import is_request, said_in
from gateway.domain.session import Session
from gateway.domain.wording import counted
from gateway.people.approvals import listed
from gateway.runtime.errors import SessionNotFound, UserError
from gateway.store.port import Store

_LISTED = 10
_LOOKED_AT = 500
_DIGITS = 9  # of a number that somebody means; Python refuses to read thousands of them
_HOUR, _DAY, _MONTH = 60, 1_440, 43_200  # minutes
_HEADING = 60  # characters of a session's first words


async def new(ctx: CommandContext) -> Answer:
    """End the present session and start an empty one."""
    services = ctx.services
    present = await services.store.tip(ctx.key)
    if await ctx.opened_before() is None:
        if present is None or present.message_count == 0:
            return Answer(text="This is already a fresh session.")
        await services.sessions.reset(ctx.owned(), present, session_id=ctx.session_id)
    return Answer(text="Started a fresh session. The one before is kept: /sessions lists it, /resume goes back.")


async def sessions(ctx: CommandContext) -> Answer:
    """The caller's earlier conversations, newest first."""
    listed = await earlier(ctx)
    if not listed:
        return Answer(text="There are no earlier sessions yet.")
    lines = [await _line(ctx, number, session) for number, session in enumerate(listed, 1)]
    return Answer(text="\n".join([*lines, "/resume <number> goes on from one of them, as in /resume 1."]))


async def resume(ctx: CommandContext) -> Answer:
    """Go on from an earlier conversation, in a new session that refers to its messages."""
    services = ctx.services
    if not ctx.argument:
        return await sessions(ctx)
    opened = await ctx.opened_before()
    if opened is not None:
        return Answer(text=f"Went back to “{await heading(services.store, opened)}”.")
    present = await services.store.tip(ctx.key)
    target = await _find(ctx, ctx.argument)
    if present is not None and target.id == present.id:
        raise UserError("You are in that session already; just write on.")
    messages = (await services.store.transcript(target)).messages
    await services.sessions.switch(ctx.owned(), present, target, messages, "switched", session_id=ctx.session_id)
    return Answer(text=f"Went back to “{await heading(services.store, target)}” ({target.message_count} messages).")


async def branch(ctx: CommandContext) -> Answer:
    """Go on in a copy, so that the original stays as it is."""
    services = ctx.services
    if await ctx.opened_before() is None:
        present = await services.store.tip(ctx.key)
        if present is None or present.message_count == 0:
            raise UserError("There is nothing to branch from yet; send a message first.")
        messages = (await services.store.transcript(present)).messages
        await services.sessions.switch(
            ctx.owned(),
            present,
            present,
            messages,
            "switched",
            title=ctx.argument or None,
            session_id=ctx.session_id,
        )
    return Answer(text="You are in a branch now. The original is kept: /sessions lists it.")


async def undo(ctx: CommandContext) -> Answer:
    """Take the last exchanges back."""
    services = ctx.services
    count = _number(ctx.argument or "1", "Say how many exchanges to take back, for example: /undo 2")
    present = await services.store.tip(ctx.key)
    if await ctx.opened_before() is not None:
        return Answer(text="Took the last exchange back." if count == 1 else f"Took {count} exchanges back.")
    messages = (await services.store.transcript(present)).messages if present else ()
    requests = last_requests(messages, count)
    if present is None or not requests:
        raise UserError("There is nothing to take back here; /resume goes back to an earlier session.")
    cut = requests[0]
    await services.sessions.switch(ctx.owned(), present, present, messages[:cut], "undone", session_id=ctx.session_id)
    taken = "the last exchange" if len(requests) == 1 else f"{len(requests)} exchanges"
    return Answer(text=f"Took {taken} back. The original is kept: /sessions lists it.")


async def title(ctx: CommandContext) -> Answer:
    """Name the present session."""
    services = ctx.services
    present = await services.store.tip(ctx.key)
    if present is None:
        raise UserError("There is no session to name yet; send a message first.")
    name = " ".join(ctx.argument.split())[:100]
    if not name and not present.title and not present.message_count:
        return Answer(text="This session has no name yet; /title <name> gives it one.")
    if not name:
        return Answer(text=f"This session is “{await heading(services.store, present)}”. /title <name> changes that.")
    await services.store.update_session(ctx.owned(), present.ref, title=name)
    return Answer(text=f"This session is now “{name}”.")


async def earlier(ctx: CommandContext) -> list[Session]:
    """The caller's conversations to go back to: the tips of their lineages but the present one."""
    services = ctx.services
    present = await services.store.tip(ctx.key)
    found = await services.store.sessions(ctx.key, _LOOKED_AT)
    kept = [
        session
        for session in found
        if session.message_count and session.end_reason != "compression" and session.id != (present and present.id)
    ]
    return kept[:_LISTED]


async def heading(store: Store, session: Session) -> str:
    """A session's title, or the first words that were said in it."""
    if session.title:
        return session.title
    messages = (await store.transcript(session)).messages
    first = next((said_in(message) for message in messages if is_request(message)), "")
    words = " ".join(first.split())
    return f"{words[:_HEADING]}…" if len(words) > _HEADING else words or "untitled"


async def greeting(store: Store, key: SessionKey) -> str:
    """What somebody who comes back finds: one sentence, empty if there was nothing before, and what they are
    asked."""
    session = await store.tip(key)
    if session is None or not session.message_count:
        return ""
    text = f"Going on with “{await heading(store, session)}”; /new starts fresh."
    chat = ChatAddress(platform=key.platform, chat=key.chat, thread=key.thread)
    asked = [each for each in await store.approvals(chat) if each.key == key and each.is_open]
    return f"{text}\nI still wait for your /approve or /deny:\n{listed(asked)}" if asked else text


async def _line(ctx: CommandContext, number: int, session: Session) -> str:
    count = counted(session.message_count, "message")
    when = ago(session.last_active_at, ctx.services.clock.now())
    return f"{number}. {await heading(ctx.services.store, session)} ({count}, {when})"


def ago(at: float, now: float) -> str:
    """How long ago `at` was, which needs nobody's time zone; the date (UTC) of what is weeks back. Both in seconds
    since the epoch."""
    minutes = max(0, int((now - at) / 60))
    if minutes < 1:
        return "just now"
    if minutes < _HOUR:
        return f"{minutes} min ago"
    if minutes < 2 * _DAY:
        return f"{minutes // _HOUR} h ago"
    if minutes < _MONTH:
        return f"{minutes // _DAY} days ago"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


async def _find(ctx: CommandContext, wanted: str) -> Session:
    if wanted.isdecimal() and len(wanted) <= _DIGITS:
        listed = await earlier(ctx)
        if not 1 <= int(wanted) <= len(listed):
            raise UserError(f"There is no session number {wanted}; /sessions lists them.")
        return listed[int(wanted) - 1]
    try:
        lineage = await ctx.services.store.lineage(wanted)
    except SessionNotFound:
        lineage = []
    if not lineage or lineage[-1].key != ctx.key:
        # The same sentence whether it does not exist or is somebody else's: ids reveal nothing.
        raise UserError(f"There is no session {wanted[:40]} here; /sessions lists yours.")
    return lineage[-1]


def _number(text: str, otherwise: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or not 1 <= int(text) <= 1_000:
        raise UserError(otherwise)
    return int(text)


COMMANDS = (
    Command(name="new", group="Conversation", aliases=("reset",), help="start a fresh session", run=new),
    Command(
        name="undo", group="Conversation", argument="[n]", help="take back what you said last, and my answer", run=undo
    ),
    Command(name="sessions", group="Sessions", help="list earlier sessions", run=sessions),
    Command(name="resume", group="Sessions", argument="[n]", help="go back to an earlier session", run=resume),
    Command(name="branch", group="Sessions", argument="[title]", help="go on in a copy of this session", run=branch),
    Command(name="title", group="Sessions", argument="[name]", help="show or set this session's name", run=title),
)
