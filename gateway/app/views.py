"""What a page may show of the store: a person's own conversations, and the gateway as its operator sees it. Commands
and `legato` in a shell show the same as text, by the same functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from heapq import nlargest
from importlib import import_module
from itertools import chain, pairwise
from math import inf
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

from gateway.agent.caps import of_key
from gateway.agent.files.quota import FileQuotas
from gateway.agent.holding import SHELF
from gateway.agent.models import Models
from gateway.agent.projects import drop_project, keep_project, project, projects
from gateway.agent.tools.offer import Caller
from gateway.agent.tools.web_fetch import SEARCH
from gateway.app.config import Config
from gateway.app.config.shown import shown
from gateway.app.health import Health
from gateway.app.models import answering
from gateway.app.orders import Order, carry_out, dead_of
from gateway.app.plugins import platforms
from gateway.commands.base import CommandContext
from gateway.commands.export import originals
from gateway.commands.files import has_workspace, workspace_view
from gateway.commands.projects import move, named, save
from gateway.commands.runner import CommandRunner
from gateway.commands.sessions import NAMED, TEMPORARY, can_go_back_to, heading
from gateway.commands.skills import skill_lines
from gateway.commands.status import shares_of
from gateway.delivery.markdown.characters import split_text
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import MenuEntry
from gateway.domain.chat import OWN, Inbound, KeptFile, Outbound, OutboundKind, OutboundState, SessionKey, Source
from gateway.domain.memory import scope_of
from gateway.domain.message import (
    Message,
    is_summary,
    last_requests,
    note_of,
    said_in,
    summaries_in,
    text_of,
)
from gateway.domain.place import names
from gateway.domain.platform import Bubble, Stage
from gateway.domain.reminder import next_moments
from gateway.domain.session import Compaction, Project, Session, families
from gateway.domain.titles import shown_in_a_list
from gateway.domain.turn import TurnRules
from gateway.domain.usage import CanonicalUsage, UsageTotal, usage_of
from gateway.domain.views import (
    Coming,
    Cost,
    Filled,
    Hour,
    LineageLink,
    Memo,
    ModelLine,
    Pass,
    Running,
    Said,
    SessionLine,
    SkillLine,
    Spent,
    Story,
    Stuck,
    WindowShares,
    Word,
    WorkspaceView,
)
from gateway.domain.wording import utc
from gateway.providers.base import ModelSpec, OfferedModel
from gateway.runtime.aside import RunsAside
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import ProviderError, SessionNotFound, TookTooLong, ToolError, UserError
from gateway.runtime.plugins import imported
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.store.port import ReportStore, Store, under
from gateway.store.records import InboxItem, Opening, UsageBy

A = TypeVar("A")
B = TypeVar("B")

_SPOKEN: Final = ("message", "queue", "steer")  # kinds of items that are a person's words
_MOST_HITS: Final = 30
_MOST_PASSES: Final = 20
_MOST_FILES: Final = 1_000  # of a workspace
_MOST_STUCK: Final = 100
_UNDER_WAY: Final = 10.0  # seconds for which a row that was tried once is not called stuck
_LOOKED_AT: Final = 150  # sessions, newest first: more take longer than a page may
_MOST_OWN: Final = 500  # sessions of which some are listed
_MOST_TOLD: Final = 24  # sessions that a page tells of
_OF_ANSWERS: Final = ("turn", "delegate", "broken off")  # purposes of calls
_LISTED: Final = 30  # conversations
_TELLS: Final = "gateway.app.story"  # loaded when a page is open
_PINNED: Final = "pinned "
_FOLDER: Final = "folder "
_SEEN: Final = "seen "  # begins the note of when a person last saw a chat, before its key
_DAY: Final = 86_400
_COSTLY: Final[tuple[UsageBy, ...]] = ("model", "platform")
_HIDDEN: Final = (OutboundState.STREAMING,)
_DEAD_VERBS: Final = ("replay", "bury")
_NOTHING: Final[tuple[str, ...]] = ()


class StoreViews(Struct, frozen=True, kw_only=True):
    """`Views` of everybody who talks on a platform. Each only asks under the key of its source."""

    store: Store
    runner: CommandRunner
    rules: TurnRules
    quotas: FileQuotas
    clock: Clock
    aside: RunsAside

    async def said(self, source: Source, limit: int) -> Sequence[Said]:
        return await _newest(partial(self.store.heard, self.rules.key(source)), _spoken, limit)

    async def shown(self, source: Source, limit: int) -> Sequence[Outbound]:
        return await _newest(partial(self.store.outbox, source.address), _standing, limit)

    async def rows(self, source: Source, ids: Sequence[str]) -> Sequence[Outbound]:
        found = await self.store.rows(source.address, ids)
        asked = {row.id: row for row in found if row.kind == "question"}
        for to in {row.to for row in asked.values()}:  # what was decided stands in rows behind it
            found += [row for row in await self.store.outbox(to, _LOOKED_AT) if row.edits in asked]
        made_at = attrgetter("created_at")
        return sorted(_standing(sorted(found, key=made_at, reverse=True)), key=made_at)

    async def story(self, source: Source, since: float) -> Story:
        tells: Any = import_module(_TELLS)
        found = await self.store.sessions(self.rules.key(source), _LOOKED_AT)
        told = [family for family in tells.families(found) if max(each.last_active_at for each in family) >= since]
        newest = nlargest(_MOST_TOLD, chain.from_iterable(told), key=attrgetter("started_at"))
        transcripts = {each.id: await self.store.transcript(each) for each in newest}
        story: Story = tells.story_of(newest, transcripts, self._context(source).redact)
        return story

    async def spent(self, source: Source, event_id: str) -> Spent | None:
        owner = self.rules.key(source).owner
        named = await self.store.named(event_id, [source.platform])
        item = next((each.item for each in named.fates if each.item.key.owner == owner), None)
        if item is None:
            return None
        key, begun = item.key, item.accepted_at
        rows = [row for row in await self.store.outbox(key.address, _LOOKED_AT) if row.answers == event_id]
        if not rows:
            return None
        ended = max(row.created_at for row in rows)
        calls = [each.entry for each in await self.store.calls(key, begun, ended) if each.entry.purpose in _OF_ANSWERS]
        usage, costs = usage_of(calls), [each.cost_usd for each in calls]
        return Spent(
            models=tuple(dict.fromkeys(each.model for each in calls)),
            calls=len(calls),
            read=usage.prompt_tokens,
            cached=usage.cache_read_tokens,
            written=usage.output_tokens,
            usd=None if None in costs else sum(filter(None, costs)),
            seconds=ended - begun,
        )

    async def since(self, source: Source, event_id: str) -> int:
        ctx = self._context(source)
        messages = await ctx.messages(await ctx.present())
        asked = [note_of(messages[at]).get("event") for at in last_requests(messages, len(messages))]
        return len(asked) - asked.index(event_id) if event_id in asked else 0

    async def ended(self, source: Source, event_id: str) -> bool:
        named = await self.store.named(event_id, [source.platform])
        return any(each.outcome is not None for each in named.fates if each.item.key == self.rules.key(source))

    async def sessions(self, source: Source) -> Sequence[SessionLine]:
        owner, turns = self.rules.key(source).owner, self._context(source).running_turns
        found, shelf = await self.store.own_sessions(owner, _MOST_OWN), await self.store.notes(under(owner, SHELF))
        asking = {each.key for each in await self.store.approvals(source.address) if each.is_open}
        roots = _roots(found)
        if old := {note: name for note, name in shelf.items() if note.startswith(_FOLDER)}:
            await self._adopt(owner, old, roots)
            return await self.sessions(source)
        begun = {
            each.id: await self._begun(each)
            for each in found
            if each.ended_at is None and not each.message_count and (not each.rewritten or turns.of(each.key))
            if not each.temporary
        }  # of deleted chats only where somebody works in them again
        listed = {each.id for each in can_go_back_to(found, None)} | begun.keys()
        kept = [each for each in found if each.id in listed and (each.project or begun.get(each.id) != "")]
        lines: dict[str, SessionLine] = {}  # by their roots: the versions of a conversation have arrows in the chat
        for each in sorted(kept, key=lambda each: (each.ended_at is not None, -each.last_active_at)):
            root = roots.get(each.id, each.id)
            pinned = f"{_PINNED}{root}" in shelf
            if root not in lines and (pinned or each.project or len(lines) < _LISTED):
                rows = await self.store.outbox(each.key.address, 1) if each.ended_at is None else ()
                seen = shelf.get(f"{_SEEN}{each.key}")
                named = shelf.get(f"{NAMED}{each.id}") or shelf.get(f"{NAMED}{root}") or each.title
                lines[root] = SessionLine(
                    id=each.id,
                    title=named or (begun[each.id] if each.id in begun else await heading(self.store, each)),
                    messages=each.message_count,
                    last_active_at=max([each.last_active_at, *(row.created_at for row in rows)]),
                    present=each.ended_at is None,
                    thread=each.key.thread,
                    works=each.ended_at is None and turns.of(each.key) is not None,
                    waits=each.ended_at is None and each.key in asking,
                    seen_at=None if seen is None else float(seen),
                    pinned=pinned,
                    project=each.project,
                    model=each.model,
                )
        for each in found:
            if each.temporary and each.ended_at is None:
                lines[each.id] = SessionLine(
                    id=each.id,
                    title=TEMPORARY,
                    messages=each.message_count,
                    last_active_at=each.last_active_at,
                    present=True,
                    thread=each.key.thread,
                    works=turns.of(each.key) is not None,
                    waits=each.key in asking,
                    model=each.model,
                    until=each.expires_at,
                )
        return sorted(lines.values(), key=lambda each: (not each.pinned, -each.last_active_at))

    async def _adopt(self, owner: SessionKey, folders: Mapping[str, str], roots: Mapping[str, str]) -> None:
        """Make projects of the folders in which earlier versions kept conversations, by their roots."""
        for note, name in folders.items():
            made = Project(id=lasting_id("p", owner, name), name=name)
            await keep_project(self.store, owner, await project(self.store, owner, made.id) or made)
            family = [each for each, root in roots.items() if f"{_FOLDER}{root}" == note]
            await self.store.set_project(owner, family, made.id)
        await self.store.set_notes(under(owner, SHELF), dict.fromkeys(folders))

    async def _begun(self, session: Session) -> str:
        """The words that a session begins with, which it does not hold yet; "": none."""
        running = await self.store.running(session.key)
        return "" if running is None else shown_in_a_list(running.inbound.text)

    async def seen(self, source: Source, at: float | None) -> None:
        key = self.rules.key(source)
        note = None if at is None else f"{at:.3f}"
        await self.store.set_notes(under(key.owner, SHELF), {f"{_SEEN}{key}": note})

    async def shelve(
        self,
        source: Source,
        session_id: str,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        project: str | None = None,
    ) -> None:
        key = self.rules.key(source).owner
        found = {each.id: each for each in await self.store.own_sessions(key, _MOST_OWN)}
        if session_id not in found:
            raise SessionNotFound(f"There is no session {session_id[:40]}.")
        roots = _roots([*found.values()])
        root = roots[session_id]
        changes: dict[str, str | None] = {}
        if title is not None:
            family = [each for each in found if roots[each] == root]  # each version has the name
            changes |= dict.fromkeys((f"{NAMED}{each}" for each in family), shown_in_a_list(title) or None)
        if pinned is not None:
            changes[f"{_PINNED}{root}"] = "yes" if pinned else None
        await self.store.set_notes(under(key, SHELF), changes)
        if project is not None:
            ctx = self._context(source)
            into = (await named(ctx, project) or await save(ctx, None, project, "")).id if project.strip() else ""
            await move(ctx, found[session_id], into)

    async def projects(self, source: Source) -> Sequence[Project]:
        return await projects(self.store, self.rules.key(source).owner)

    async def keep_project(self, source: Source, project_id: str, name: str, instructions: str) -> Project:
        known = await project(self.store, self.rules.key(source).owner, project_id) if project_id else None
        if project_id and known is None:
            raise UserError("This project was deleted. You can make a new one.")
        return await save(self._context(source), known, name, instructions)

    async def drop_project(self, source: Source, project_id: str) -> None:
        await drop_project(self.store, self.rules.key(source).owner, project_id)

    async def zoned(self, source: Source, zone: str) -> None:
        reminders = self._context(source).people.reminders
        if await reminders.own_zone(source) is None:
            with suppress(UserError):  # a browser may know zones that this machine does not
                await reminders.set_zone(source, zone)

    async def title(self, source: Source, session_id: str) -> str | None:
        with suppress(SessionNotFound):
            return await heading(self.store, await self._own(source, session_id))
        return None

    async def thread(self, source: Source, session_id: str) -> str | None:
        return (await self._own(source, session_id)).key.thread

    async def _own(self, source: Source, session_id: str) -> Session:
        """The end of one of the person's conversations. Raises SessionNotFound."""
        *_, tip = await self.store.lineage(session_id)
        if tip.key.owner != self.rules.key(source).owner:
            raise SessionNotFound(f"There is no session {session_id[:40]}.")
        return tip

    async def words(self, source: Source, session_id: str) -> tuple[str, Sequence[Word]]:
        ctx, tip = self._context(source), await self._own(source, session_id)
        return await heading(self.store, tip), [_word(ctx, each, tip.id) for each in await originals(ctx, tip)]

    async def search(self, source: Source, words: str) -> Sequence[Word]:
        ctx = self._context(source)
        hits = [each.hit for each in await self.store.search(words, ctx.key, _MOST_HITS)]
        return [_word(ctx, each.message, each.session_id) for each in hits]

    async def shares(self, source: Source) -> WindowShares | None:
        ctx = self._context(source)
        session = await ctx.present()
        return None if session is None else await shares_of(ctx, await ctx.sessions.glance(session))

    async def passes(self, source: Source) -> Sequence[Pass]:
        ctx = self._context(source)
        present = await ctx.present()
        chain = (await self.store.lineage(present.id))[-_MOST_PASSES - 1 :] if present is not None else []
        made = [await self._pass(ctx, parent, child, last=child is chain[-1]) for parent, child in pairwise(chain)]
        return [each for each in reversed(made) if each is not None]

    async def _pass(self, ctx: CommandContext, parent: Session, child: Session, *, last: bool) -> Pass | None:
        made = await _opening(self.store, child)
        if made is None:
            return None
        before = await self.store.transcript(parent)
        after = (await self.store.transcript(child))[: made.messages_after]
        left = {note_of(each).get("id") for each in after}
        originals_before = [each for each in before if not is_summary(each)]
        return Pass(
            at=made.at,
            trigger=made.trigger,
            messages=(made.messages_before, made.messages_after),
            tokens=(made.tokens_before, made.tokens_after),
            work=made.work.told if made.work else "",
            notes="\n\n".join(text_of(each) for each in after if is_summary(each)),
            corrected=tuple(line for each in summaries_in(after) for line in note_of(each).get("corrected", ())),
            kept=tuple(_word(ctx, each, child.id) for each in originals_before if note_of(each).get("id") in left),
            dropped=tuple(
                _word(ctx, each, parent.id) for each in originals_before if note_of(each).get("id") not in left
            ),
            last=last,
        )

    async def memory(self, source: Source) -> Sequence[Memo]:
        ctx = self._context(source)
        facts = (await ctx.sessions.memories.of(scope_of(ctx.key, source.chat_type))).listed()
        return [
            Memo(
                number=fact.number,
                text=fact.text,
                said_at=fact.said_at,
                said_by=f"the words of {fact.origin}" if fact.origin else fact.said_by_name or fact.said_by,
            )
            for fact in facts
        ]

    async def reminders(self, source: Source) -> Sequence[Coming]:
        ctx = self._context(source)
        own = ctx.people.reminders.of(ctx.item)
        zone = await own.zone()
        open_ = [each for each in await own.listed() if each.is_open]
        return [
            Coming(
                number=each.number,
                text=f"{'(prompt) ' if each.kind == 'ask' else ''}{each.brief}",
                # what comes once is told in the person's zone, wherever it was made
                when="paused"
                if each.state == "paused"
                else next_moments(each if each.rule else replace(each, zone=zone)),
                made_by=each.source.user_name or each.source.user,
            )
            for each in sorted(open_, key=lambda each: each.due_at or inf)
        ]

    async def pins(self, source: Source) -> Sequence[str]:
        return [each.signed for each in (await self.store.pins(self.rules.key(source))).rules]

    async def keep(self, source: Source, ref: str, name: str, mime: str, content: bytes) -> None:
        async def tell(_: str) -> None:
            """The page says how full the room is when it is full."""

        key, ref = self.rules.key(source), f"{source.platform}:{ref}"
        if await self.store.kept_file(key, ref) is None:
            await self.quotas.take(key, source, ref, len(content), tell)
        digest = await asyncio.to_thread(lambda: sha256(content).hexdigest())
        kept = KeptFile(ref=ref, digest=digest, name=name, mime=mime, size=len(content), at=self.clock.now())
        await self.store.keep_file(key, kept, content)

    async def file(self, source: Source, ref: str) -> tuple[KeptFile, bytes] | None:
        key = self.rules.key(source)
        kept = await self.store.kept_file(key, ref)
        content = None if kept is None else await self.store.file_content(key, kept.digest)
        return None if kept is None or content is None else (kept, content)

    async def workspace(self, source: Source) -> WorkspaceView | None:
        ctx = self._context(source)
        return await workspace_view(ctx, _MOST_FILES) if has_workspace(ctx) else None

    async def workspace_file(self, source: Source, path: str) -> tuple[KeptFile, bytes] | None:
        ctx = self._context(source)
        if not has_workspace(ctx):
            return None
        with suppress(ToolError):
            content = await asyncio.to_thread(ctx.agents.workspaces.of(ctx.key).content, path, 0.0)
            if content is not None:
                name, now = path.rpartition("/")[2], self.clock.now()
                return KeptFile(ref="", digest="", name=name, mime="", size=len(content), at=now), content
        return None

    async def skills(self, source: Source) -> Sequence[SkillLine] | None:
        return await skill_lines(self._context(source))

    def stages(self) -> Mapping[str, str]:
        return {name: each.title for name, each in platforms().items() if each.rehearse}

    async def rehearsed(
        self, platform: str, text: str, kind: OutboundKind = "reply", file: KeptFile | None = None
    ) -> Sequence[Bubble]:
        stage: Stage = imported(platforms()[platform].rehearse)
        kind = "reply" if file is not None else kind  # a caption is Markdown
        try:
            return await self._laid_out(stage, text, kind, file)
        except TookTooLong:  # it is shown plainly, as by the outbox
            parts = split_text(text, stage.limits.text_units, stage.limits.unit)
            return [stage.bubble(part, "notice") for part in parts]

    async def _laid_out(self, stage: Stage, text: str, kind: OutboundKind, file: KeptFile | None) -> Sequence[Bubble]:
        limits = stage.limits
        parts: Sequence[str] = ()
        if text.strip() and kind in ("reply", "remark") and limits.split_reply is not None:
            parts = await self.aside(limits.split_reply, text)
        elif text.strip():
            parts = split_text(text, limits.text_units, limits.unit)
        found = [await self.aside(partial(stage.bubble, kind=kind), part) for part in parts]
        if file is None:
            return found
        told = f"{file.name} ({max(1, file.size // 1000):,} kB)"
        if limits.file_bytes is not None and file.size > limits.file_bytes:
            told += f", too large: {limits.file_bytes // 1_000_000} MB are taken"
        if len(found) == 1 and (limits.fits_caption is None or await self.aside(limits.fits_caption, text)):
            return [replace(found[0], file=told)]
        return [Bubble(text="", units=0, most=0, file=told), *found]

    async def commands(self, source: Source) -> Sequence[MenuEntry]:
        admin = await self.role(source) == "admin"
        entries = [each.entry for each in self.runner.registry.commands]
        return [each for each in entries if admin or each.audience != "admins"]

    async def embed(self, source: Source, texts: Sequence[str]) -> tuple[str, Sequence[Sequence[float]], int] | None:
        ctx, now = self._context(source), self.clock.now()
        if (embeddings := ctx.agents.embeddings) is None:
            return None
        # No message is said here, so no conversation pays: a session that has ended does.
        session = Session(
            id=lasting_id("s", "embeddings", ctx.key),
            key=ctx.key,
            chat_type=source.chat_type,
            parent_id=None,
            started_at=now,
            ended_at=now,
            end_reason="reset",
            hook="done",
            model=embeddings.spec.name,
            system_prompt="",
        )
        await self.store.import_sessions([Opening(session=session, transcript=[])])
        metering = embeddings.metering.answering(source.user)
        if source.cap is not None:
            metering = metering.within(of_key(source.cap, now))
        answer = await embeddings.paid(texts, session, metering)
        return embeddings.spec.name, answer.vectors, answer.tokens

    async def model(self, source: Source) -> tuple[str, bool]:
        ctx, key = self._context(source), self.rules.key(source)
        models = ctx.agents.metering.models
        if await ctx.present() is None:  # it may be chosen before the first message
            spec = models.of(await ctx.sessions.first(key, source))
        else:
            spec = await answering(models, self.store, key, source)
        embedded = models.plugins[spec.provider].only_model
        return spec.name or embedded, bool(embedded)

    async def hears(self, source: Source) -> bool:
        ctx = self._context(source)
        spec = await answering(ctx.agents.metering.models, self.store, ctx.key, source)
        return ctx.program.writes_down or bool(spec.sounds)

    async def web(self, source: Source) -> Literal["", "on", "off", "auto"]:
        ctx = self._context(source)
        if not ctx.sessions.toolbox.has(SEARCH, Caller(source=source, admin=await self.role(source) == "admin")):
            return ""
        session = await ctx.present() or await ctx.sessions.first(ctx.key, source)
        chosen = ctx.sessions.web(session, await ctx.sessions.choices(session))
        return "on" if chosen == "on" else "off" if chosen else "auto"

    async def models(self, source: Source) -> Sequence[ModelLine]:
        models = self._context(source).agents.metering.models
        home = models.home_of(source.platform, names(source))
        found = {home.name: OfferedModel(name=home.name)}
        with suppress(ProviderError, TimeoutError):
            found |= {each.name: each for each in await models.offered(home)}
        # The table of windows and prices is looked through for each that it does not know.
        return await asyncio.to_thread(lambda: [_model_line(models, home, each) for each in found.values()])

    def takes(self, source: Source) -> Collection[str]:
        models = self._context(source).agents.metering.models
        return models.plugins[models.home_of(source.platform, names(source)).provider].takes

    async def role(self, source: Source) -> Literal["reader", "person", "admin"]:
        ctx = self._context(source)
        if ctx.people.pairing.access.is_admin(source):
            return "admin"
        return "person" if await ctx.people.pairing.lets_in(source) else "reader"

    def _context(self, source: Source) -> CommandContext:
        """The context of a command that the person gives at this moment, outside their lane."""
        key, inbound = self.rules.key(source), Inbound(event_id="", source=source, text="")
        item = InboxItem(id="", key=key, inbound=inbound, accepted_at=self.clock.now(), attempts=1)
        return self.runner.context(item=item, argument="", lane=None)


async def _newest(
    read: Callable[[int], Awaitable[Sequence[A]]], choose: Callable[[Sequence[A]], list[B]], limit: int
) -> list[B]:
    """The newest `limit` of what is chosen, however much lies between."""
    most = limit
    while len(chosen := choose(found := await read(most))) < limit and len(found) == most:
        most *= 2
    return chosen[:limit]


def _spoken(items: Sequence[InboxItem]) -> list[Said]:
    return [
        Said(event_id=said.event_id, text=said.typed, at=item.accepted_at, files=said.attachments)
        for item in items
        if (said := item.inbound).kind in _SPOKEN and (said.text.strip() or said.attachments)
    ]


def _standing(rows: Sequence[Outbound]) -> list[Outbound]:
    """The rows, newest first; those that edit an earlier one are in its place, and those that nobody should see are
    left out."""
    by_id = {row.id: row for row in rows if row.state not in _HIDDEN and (row.text.strip() or row.file or row.returns)}
    for row in list(reversed(by_id.values())):  # oldest first: the last edit stands
        if row.edits in by_id:
            edited = by_id[row.edits]
            by_id[row.edits] = replace(edited, text=row.text, buttons=row.buttons, code_at=row.code_at)
            del by_id[row.id]
    return [row for row in by_id.values() if row.state != OutboundState.REFUSED]


def _roots(sessions: Sequence[Session]) -> Mapping[str, str]:
    return {each.id: family[0].id for family in families(sessions) for each in family}


def _model_line(models: Models, home: ModelSpec, offered: OfferedModel) -> ModelLine:
    spec, million = models.spec(offered.name, home), 1_000_000
    read, write = offered.read_usd, offered.write_usd
    if read is None or write is None:
        read = models.prices.cost_usd(spec, CanonicalUsage(input_tokens=million))
        write = models.prices.cost_usd(spec, CanonicalUsage(output_tokens=million))
    window = None if models.is_assumed(spec) else spec.context_length
    return ModelLine(name=offered.name, window=window, read_usd=read, write_usd=write)


def _word(ctx: CommandContext, message: Message, session_id: str) -> Word:
    note = note_of(message)
    role = message["role"]
    if role == "tool":
        text = ctx.redact(text_of(message))
    else:
        text = said_in(message) or text_of(message)
        calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
        text = "\n\n".join(filter(None, [text, f"→ {', '.join(calls)}" if calls else ""]))
    return Word(
        id=note.get("id", ""),
        session_id=session_id,
        role="note" if is_summary(message) or role == "system" else role,
        text=text,
        at=note.get("at", 0.0),
        event=note.get("event") or "",
    )


def _cost(total: UsageTotal) -> Cost:
    return Cost(label=total.label, calls=total.calls, tokens=total.usage.total_tokens, usd=total.cost_usd)


async def _opening(store: ReportStore, session: Session) -> Compaction | None:
    return next((each for each in await store.compactions(session.id) if each.child_id == session.id), None)


class OperatorView(Struct, kw_only=True):
    """`Inside` of this gateway."""

    store: Store
    health: Health
    outbox: Outbox
    clock: Clock
    redact: Redact
    config: Config  # in force

    def hours(self) -> Sequence[Hour]:
        return self.health.hours()

    async def report(self) -> dict[str, Any]:
        return await self.health.report()

    async def stuck(self) -> Sequence[Stuck]:
        states = (OutboundState.PENDING, OutboundState.SENDING, OutboundState.REFUSED, OutboundState.WITHHELD)
        rows = await self.store.outbox(None, _MOST_STUCK, states)
        verbs = {
            OutboundState.PENDING: ("drop",),
            OutboundState.REFUSED: ("retry",),
            OutboundState.WITHHELD: ("retry",),
        }
        found = [
            Stuck(
                id=row.id,
                platform=row.to.platform,
                chat=row.to.chat,
                state=row.state,
                text=row.text,
                reason=row.error or "",
                at=row.created_at,
                verbs=verbs.get(row.state, _NOTHING),
            )
            for row in rows
            if row.error or row.attempts > 1 or self.clock.now() - row.created_at > _UNDER_WAY
        ]
        found += [
            Stuck(
                id=item.id,
                platform=item.key.platform,
                chat=item.key.chat,
                state="dead",
                text=item.inbound.text,
                reason=f"given up after {item.attempts} attempts",
                at=item.accepted_at,
                verbs=_DEAD_VERBS if item.inbound.kind in _SPOKEN else _DEAD_VERBS[1:],
            )
            for item in await self.store.dead(_MOST_STUCK)
        ]
        return sorted(found, key=lambda each: -each.at)

    async def order(self, verb: str, id_: str) -> bool:
        stuck = next((each for each in await self.stuck() if each.id == id_ and verb in each.verbs), None)
        if stuck is None:
            return False
        order = Order(verb=verb, id=id_, platform=stuck.platform, chat=stuck.chat)  # type: ignore[arg-type]
        self.outbox.deliver(await carry_out(self.store, order, self.clock, await dead_of(self.store, [order])))
        return True

    async def turns(self) -> Sequence[Running]:
        now = self.clock.monotonic()
        running = [
            Running(
                key=await self._named(each.key, await self.store.tip(each.key)),
                doing=each.phase,  # what a tool is given is its person's own
                step=each.step,
                seconds=now - each.started_at,
                asks=each.phase == "waiting for your yes or no",
            )
            for each in self.health.running_turns.all()
        ]
        return sorted(running, key=lambda each: -each.seconds)

    async def filled(self, most: int) -> Sequence[Filled]:
        sessions = {each.id: each for each in await self.store.sessions(None, _LOOKED_AT)}
        found = [
            Filled(
                key=str(each.key),
                id=each.id,
                used=each.last_prompt_tokens,
                window=self.health.models.of(each).context_length,
                messages=each.message_count,
                last_active_at=each.last_active_at,
            )
            for each in sessions.values()
            if each.ended_at is None and each.last_prompt_tokens and each.key.helper is None
        ]
        fullest = sorted(found, key=lambda each: -each.used / each.window)[:most]
        return [replace(each, key=await self._named(sessions[each.id].key, sessions[each.id])) for each in fullest]

    async def _named(self, key: SessionKey, session: Session | None) -> str:
        """The key of a chat; of one that has only an id of our own, with its title in place of that."""
        if session is None or key.thread is None or not key.thread.startswith(OWN):
            return str(key)
        return str(replace(key, thread=await heading(self.store, session)))

    async def settings(self) -> Sequence[tuple[str, str]]:
        return shown(self.config, self.redact)

    async def costs(self, days: int) -> tuple[Sequence[Cost], Sequence[Cost], Sequence[Cost]]:
        today = self.clock.now() // _DAY * _DAY
        shown = [today - ago * _DAY for ago in reversed(range(days))]
        found = {total.label: total for total in await self.store.usage(shown[0], "day")}
        per_day = [replace(_cost(found.get(utc(day)[:10], UsageTotal())), label=str(day)) for day in shown]
        models, platforms = [await self.store.usage(shown[0], by) for by in _COSTLY]
        return per_day, [*map(_cost, models)], [*map(_cost, platforms)]

    async def daily_budget(self) -> float | None:
        return self.config.budgets.daily_usd

    async def lineages(self, most: int) -> Sequence[tuple[str, Sequence[LineageLink]]]:
        tips = [
            each
            for each in await self.store.sessions(None, _LOOKED_AT)
            if each.compaction_count and each.end_reason != "compression" and each.key.helper is None
        ]
        return [(await self._named(tip.key, tip), await self._links(tip)) for tip in tips[:most]]

    async def _links(self, tip: Session) -> Sequence[LineageLink]:
        links = []
        for each in await self.store.lineage(tip.id):
            made = await _opening(self.store, each)
            before, after = (made.tokens_before, made.tokens_after) if made is not None else (0, 0)
            link = LineageLink(
                id=each.id, started_at=each.started_at, messages=each.message_count, before=before, after=after
            )
            links.append(link)
        return links
