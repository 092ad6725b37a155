"""`legato import`: the conversations of another program become sessions of a person, found by /recall and /resume.

A session's id is made of its conversation's own name, so each comes once however often a file is read, and wherever an
earlier run was killed. A conversation that has grown or changed since comes as one more session, which shares what was
there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as RichProgress

from gateway.app.config import Config
from gateway.app.imports import Past, Tally, measured, read, size_of
from gateway.app.plugins import platforms
from gateway.app.store import configured_store, make_folders
from gateway.cli.purge import person_named
from gateway.context.summary import as_ours
from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, note_of, same
from gateway.domain.session import Session
from gateway.domain.wording import counted
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import SessionNotFound, UserError
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import ForgettingStore, SessionStore
from gateway.store.records import Opening

_AT_ONCE: Final = 128  # conversations that are stored in one go
_AT_ONCE_TEXT: Final = 2_000_000  # characters of these

Tell = Callable[[int, int], None]
"""Given the bytes that are read, and the messages that came so far."""


class Owner(Struct, frozen=True, kw_only=True):
    """Whose the conversations are to be."""

    key: SessionKey
    user: str


class ImportReport(Struct, kw_only=True):
    """The result: how many conversations and messages came, were there already, had grown or changed, or were left out,
    by reason. `ended`: why the reading ended before the file's end; "" if it did not."""

    owner: str
    sessions: int = 0
    messages: int = 0
    known: int = 0
    grown: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    ended: str = ""
    seconds: float = 0.0
    dry_run: bool = False


async def owner_named(store: ForgettingStore, name: str) -> Owner:
    """The person PLATFORM:USER, in their direct chat with the bot; "": the one of this terminal. Raises UserError."""
    if not name:
        for each in platforms().values():
            limits = each.limits
            if each.in_shell and limits and limits.operator and limits.direct_chat:
                key = SessionKey(platform=each.name, chat=limits.direct_chat(limits.operator))
                return Owner(key=key, user=limits.operator)
        raise UserError("say who gets the conversations: --for PLATFORM:USER")
    platform, user = person_named(name)
    if platform not in platforms():
        raise UserError(f"there is no platform {platform}; `legato access list` names people as PLATFORM:USER")
    if problem := platforms()[platform].person_problem(user):
        raise UserError(f"{name} {problem}")
    for talk in await store.talks(platform, user):
        if talk.chat_type == "direct" and talk.key.helper is None:
            return Owner(key=talk.key, user=user)
    # A platform may have another name for the chat than the one by which a person can be written to.
    raise UserError(f"{name} has not written to the bot in a direct chat yet: have them do so once, then try again")


async def import_file(
    settings: Config, form: str, path: Path, name: str, clock: Clock, *, dry_run: bool, tell: Tell
) -> ImportReport:
    """Read a file, and store what is new. Nobody else may use a SQLite store meanwhile. Raises UserError, and
    StoreError."""
    database = settings.database
    looks = dry_run and (database is None or database.exists())
    if not dry_run:
        make_folders(settings, home=False)
    async with aclosing(configured_store(settings, waits=False, read_only=dry_run)) as store:
        store.serve(runs=(), sends=())
        if looks or not dry_run:
            await store.open()
        elif name:
            raise UserError(f"there is no store yet: have {name} write to the bot once, then try again")
        owner = await owner_named(store, name)
        run = _Import(store=store, owner=owner, form=form, stores=not dry_run, looks=looks or not dry_run, tell=tell)
        run.undated = clock.now()
        started = clock.monotonic()
        await run.all_of(path)
    report = run.report
    report.seconds, report.dry_run = round(clock.monotonic() - started, 3), dry_run
    return report


class _Wanted(Struct, frozen=True, kw_only=True):
    """A conversation that is to be stored. `before`: the session that it goes on from, and `stored`: its messages."""

    session_id: str
    past: Past
    before: Session | None
    stored: Sequence[Message]


class _Import:
    """One reading of a file. `looks`: there is a store, which may know some of it; `stores`: new ones are stored."""

    def __init__(self, *, store: SessionStore, owner: Owner, form: str, stores: bool, looks: bool, tell: Tell) -> None:
        self._store, self._owner, self._form = store, owner, form
        self._stores, self._looks, self._tell = stores, looks, tell
        self._counter = TokenCounter()
        self.undated = 0.0  # the time of what has none
        self._tally = Tally()
        self.report = ImportReport(owner=f"{owner.key.platform}:{owner.user}")

    async def all_of(self, path: Path) -> None:
        """Read it to its end, or to where it breaks off; what came before is kept."""
        pasts, ended = read(self._form, path, self._tally), None
        # One thing after the other: threads of Python that have much to do wait for each other all the time.
        while ended is None:
            batch, ended = await asyncio.to_thread(_batch, pasts)
            left: Sequence[Past] = batch
            while left:
                wanted = list(filter(None, await asyncio.gather(*map(self._wanted, left))))
                left = await self._store_all(wanted, await asyncio.to_thread(self._openings, wanted))
            self._tell(self._tally.read, self.report.messages)
        if ended and not (self.report.sessions or self.report.known):
            raise UserError(ended)
        self.report.ended = ended
        self.report.left_out = dict(self._tally.left_out.most_common())

    async def _wanted(self, past: Past) -> _Wanted | None:
        """What is to be stored of a conversation; None: its words are there."""
        past = replace(past, messages=tuple(as_ours(past.messages)))
        session_id = lasting_id("s", "import", self._form, self._owner.key, past.source)
        before: Session | None = None
        stored: Sequence[Message] = ()
        while (known := await self._known(session_id)) is not None:
            # It may have grown since, or have gone another way: what is shared is stored once.
            held = await self._store.transcript(known)
            shared = sum(1 for _ in takewhile(bool, map(same, held, past.messages)))
            if known.rewritten or shared == len(past.messages):
                self.report.known += 1  # what was forgotten of it does not come back
                return None
            if before is None or shared >= len(stored):
                before, stored = known, held[:shared]
            session_id = lasting_id("s", "import", known.id, known.message_count)
        return _Wanted(session_id=session_id, past=past, before=before, stored=stored)

    async def _store_all(self, wanted: Sequence[_Wanted], openings: Sequence[Opening]) -> list[Past]:
        """Store them. Those that were there already, by another run or twice in the file, are to be looked at again."""
        news = [True] * len(openings)
        if self._stores:
            news = await self._store.import_sessions(openings)
        for new, each, opening in zip(news, wanted, openings, strict=True):
            if new:
                self.report.sessions += 1
                self.report.grown += each.before is not None
                self.report.messages += len(opening.transcript) - len(each.stored)
        return [each.past for new, each in zip(news, wanted, strict=True) if not new]

    async def _known(self, session_id: str) -> Session | None:
        if not self._looks:
            return None
        try:
            return await self._store.session(session_id, self._owner.key)
        except SessionNotFound:
            return None

    def _openings(self, wanted: Sequence[_Wanted]) -> list[Opening]:
        openings = []
        for each in wanted:
            first = next(filter(None, (note_of(message).get("at") for message in each.past.messages)), self.undated)
            began = each.past.started_at or first
            new = measured(each.past.messages, self._owner.user, began, self._counter)[len(each.stored) :]
            session = self._session(each.session_id, each.past, each.before, began, new)
            openings.append(Opening(session=session, transcript=[*each.stored, *new]))
        return openings

    def _session(
        self, session_id: str, past: Past, before: Session | None, began: float, new: Sequence[Message]
    ) -> Session:
        times = [note_of(message).get("at", 0.0) for message in new]
        ended = max([began, *times])
        if before is not None and before.ended_at is not None:
            began = before.ended_at + 0.001  # it goes on where the other one ended
        return Session(
            id=session_id,
            key=self._owner.key,
            chat_type="direct",
            parent_id=before.id if before else None,
            started_at=began,
            ended_at=max(began, ended),
            end_reason="reset",
            hook="done",
            model=past.model,
            system_prompt="",
            title=past.title or None,
            last_active_at=max(began, ended),
            flushed_messages=len(past.messages),
        )


def _batch(pasts: Iterator[Past]) -> tuple[list[Past], str | None]:
    """The next few conversations, as many as are stored in one go; and why there are no more: "" at the end of the
    file, None if there may be more."""
    batch: list[Past] = []
    size = 0
    try:
        for past in pasts:
            batch.append(past)
            size += sum(len(str(message.get("content"))) for message in past.messages)
            if len(batch) == _AT_ONCE or size >= _AT_ONCE_TEXT:
                return batch, None
    except UserError as error:
        return batch, str(error)
    return batch, ""


# -- what people see -------------------------------------------------------------------------


@contextmanager
def shown_progress(form: str, path: Path) -> Iterator[Tell]:
    """Shows it on stderr as it goes, if that is a terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.fields[messages]:,} messages"), BarColumn(), DownloadColumn())
    with RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=size_of(form, path), messages=0)
        yield lambda read, messages: shown.update(task, completed=read, messages=messages)


def report_text(report: ImportReport) -> str:
    """The result to be read."""
    verb = "would import" if report.dry_run else "imported"
    lines = [
        f"Legato {verb} {counted(report.sessions, 'conversation')} with {counted(report.messages, 'message')} "
        f"for {report.owner}."
    ]
    if report.grown:
        lines.append(f"{counted(report.grown, 'conversation')} had grown or changed since the last import.")
    if report.known:
        lines.append(f"{counted(report.known, 'conversation')} had been imported before.")
    if report.left_out:
        lines += ["Left out:", *(f"{count:>9,}  {why}" for why, count in report.left_out.items())]
    if report.sessions and not report.dry_run:
        lines.append(
            "/recall finds what was said in the imported conversations; `legato sessions list` has the ids for "
            "/resume ID."
        )
    return "\n".join(lines)
