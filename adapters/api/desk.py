"""Takes messages, once each, and follows their answers.

    the same question as before, whose answer its client never got to the end of      the same message: one turn
    the same question, whose answer was handed over                                   asked anew: a branch
    an `Idempotency-Key` that is known                                                the same message, however late

A message is accepted before anything is answered, so a client that goes away ends nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Final

from msgspec import Struct, field

from adapters.api.answers import Answer, Answers
from adapters.api.answers import Piece as Part
from adapters.api.history import Exchange, hashed
from adapters.api.shapes import ApiError, Piece, busy, forbidden, invalid
from gateway.domain.adapter import Accept
from gateway.domain.approval import command_meant
from gateway.domain.chat import BEGINNING, ERRANDS, NO_TERMS, Attachment, ChatAddress, Inbound, Outbound, Source, Terms
from gateway.domain.command import parse_command
from gateway.domain.reading import Recent
from gateway.domain.views import Histories, Views
from gateway.runtime.clock import Clock
from gateway.runtime.errors import FileRefused, StoreUnavailable
from gateway.runtime.structs import replace

_SAME: Final = 60.0  # seconds within which a question that is asked again is the same one
_MOST_RECENT: Final = 10_000  # questions in memory
_LOOKED_AT: Final = 60  # rows of a conversation
_FULL_FOR: Final = 5.0  # seconds after which a full lane may have room
_DECIDES: Final = ("approve", "deny", "answer")
_LARGEST_FILE: Final = 20_000_000  # bytes, as on other platforms
_MOST_FILES: Final = 32  # of a message
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f/\\\ud800-\udfff]")
_CROWDED: Final = "Too many requests are waiting for an answer. Send your request again in a moment."
_FULL: Final = "Too many messages in this conversation are waiting for an answer. Send your message again in a moment."
MORE: Final = "({count:,} more messages come with your next answers.)"
TOGETHER: Final = "I answered this message together with another message in this conversation."


class Asked(Struct, frozen=True, kw_only=True):
    """A message for the bot. `name`: of its place in its conversation, so that the same question has the same one.
    `past`: what its client shows of the conversation before it, the newest first; `anew`: with nothing there it begins
    anew, instead of going on wherever the conversation is. `system`: the client's instructions; None: this is none of
    its conversation's turns. `once`: the caller's name for this very request, "" for none; `again`: the caller says
    that it repeats one. `param`: the field that its words stand in."""

    source: Source
    name: str
    text: str
    terms: Terms = NO_TERMS
    pieces: Sequence[Piece] = ()
    past: Iterable[Exchange] = ()
    anew: bool = False
    system: str | None = None
    once: str = ""
    again: bool = False
    param: str = "messages"


class _Recent(Struct):
    """The last time that a question was asked, and how often it was asked anew. `got`: its client was given all of the
    answer. `then`: the event of the turn that went on because of it, whose question it answered."""

    event: str
    at: float
    times: int
    got: bool = False
    then: str = ""


class Desk(Struct, kw_only=True):
    """Where the API's messages are handed over. `_recent`, by the conversation and the name of a question, and
    `_instructed` change."""

    accept: Accept
    views: Views
    histories: Histories
    clock: Clock
    answers: Answers
    _recent: Recent[tuple[ChatAddress, str], _Recent] = field(default_factory=lambda: Recent(_MOST_RECENT))
    _instructed: Recent[ChatAddress, str] = field(default_factory=lambda: Recent(_MOST_RECENT))

    async def ask(self, asked: Asked) -> Answer:
        """Hand a message over. The caller must follow its answer, and then forget it. Raises ApiError,
        StoreUnavailable."""
        if not self.answers.has_room(asked.source.user):
            raise busy(_CROWDED, _FULL_FOR)
        after, asked = await self._place(asked)
        await self._instruct(asked)
        question = await self._question_before(asked)
        if question is not None:  # it may have instructions forgotten, wherever they hold
            for to in [to for to in self._instructed if to.chat == asked.source.chat]:
                del self._instructed[to]
            after = after if question.to == asked.source.address else None
            asked = replace(asked, source=replace(asked.source, thread=question.to.thread))
        return await self._handed_over(asked, after, (question and question.answers) or "")

    async def _instruct(self, asked: Asked) -> None:
        """Have the conversation follow its client's instructions, where these are others than before."""
        to, system = asked.source.address, asked.system
        if system is not None and system != self._instructed.get(to):
            if system or asked.past or not asked.anew:  # a conversation that begins has none
                await self.histories.instruct(asked.source, system)
            self._instructed[to] = system

    async def _place(self, asked: Asked) -> tuple[str | None, Asked]:
        """Behind which exchange the message goes on, as `Inbound.after` has it, and the message in its conversation.
        What of the history is not known here is taken. Raises StoreUnavailable."""
        places: list[str] = []
        past = iter(asked.past)
        for each in past:
            if each.moves:
                return " ".join(places) or None, asked  # the command has led it elsewhere
            places.append(each.after)
            recent = self._recent.get((asked.source.address, each.name))
            if not each.may_be_aside and not (recent is not None and recent.then):
                place = await self._take(asked.source, [*reversed([*past]), each]) if recent is None else None
                if place is not None:
                    return place[1], replace(asked, source=replace(asked.source, thread=place[0]))
                return " ".join(places), asked
        return " ".join([*places, BEGINNING]) if places or asked.anew else None, asked

    async def _take(self, source: Source, past: Sequence[Exchange]) -> tuple[str | None, str] | None:
        """Keep what of a history is not known here, unless it is only the end of one that is: then return its thread
        and place."""
        moved = max((at for at, each in enumerate(past) if each.moves), default=-1)
        told = [each for each in past[moved + 1 :] if not each.is_command]
        known = await self.histories.known(source, [each.name for each in told])
        if told and not known:
            ends = [(each.text, each.told[-1].text if each.told else "", each.may_be_aside) for each in reversed(told)]
            elsewhere = (source.thread or "").startswith("h-")
            if (place := await self.histories.overlapping(source, ends, elsewhere=elsewhere)) is not None:
                return place
        if known < len(told):
            before = told[known - 1].after if known else ""
            messages = [message for each in told[known:] for message in each.messages()]
            await self.histories.take(source, before, messages)
        return None

    async def _handed_over(self, asked: Asked, after: str | None, then: str) -> Answer:
        place, now = (asked.source.address, asked.name), self.clock.now()
        known = self._recent.pop(place, None)
        if asked.once:
            event = f"{asked.name}-{hashed(asked.once)}"
            same = known if known is not None and known.event == event else None
            recent = self._recent[place] = same or _Recent(event=event, at=now, times=0, got=True)
            return (await self._offer(asked, recent, after, then))[0]
        if known is not None and now - known.at <= _SAME and (asked.again or not known.got):
            self._recent[place] = known
            return (await self._offer(asked, known, after, then))[0]
        for times in count(0 if known is None else known.times + 1):
            event = f"{asked.name}-{times}" if times else asked.name
            recent = self._recent[place] = _Recent(event=event, at=now, times=times)
            answer, at = await self._offer(asked, recent, after, then, anew=f"{asked.name}-{times + 1}")
            if now - at <= _SAME:  # new, or it was asked, and not asked anew since, before this process began
                return answer
            self.answers.forget(answer)
        raise AssertionError("there is no last number")

    async def _offer(
        self, asked: Asked, recent: _Recent, after: str | None, then: str, anew: str = ""
    ) -> tuple[Answer, float]:
        """Hand a message over under an event: its answer, caught up if it is not new, and when it came; long ago if it
        was asked `anew` since. `then`: the event of the turn whose question it answers, as far as that is known."""
        event, at = recent.event, self.clock.now()
        answer = self.answers.begin(asked.source.address, event)
        try:
            recent.then = recent.then or then
            self._follow(answer, recent.then)
            if self.answers.missed:
                await self._begin(asked, answer)
            inbound = Inbound(event_id=event, source=asked.source, text=asked.text, can_wait=True, after=after)
            if not then and command_meant(asked.text) is not None:
                inbound = replace(inbound, own=asked.text)  # it decides nothing that another conversation asks
            files = await _kept(self.views, asked.source, asked.pieces) if asked.pieces else ()
            inbound = replace(inbound, attachments=files, terms=asked.terms)
            (accepted,) = await self.accept([inbound])
            if accepted.status == "full":
                raise busy(_FULL, _FULL_FOR)
            if accepted.status == "refused":
                raise forbidden(accepted.told or "This key does not let you talk to the bot.")
            if accepted.answers:
                recent.then = accepted.answers
                self._follow(answer, recent.then)
            if accepted.status == "duplicate":
                said = await self.views.said(asked.source, _LOOKED_AT)
                came = {each.event_id: each.at for each in said}
                at = 0.0 if anew in came else came.get(event, 0.0)
            if accepted.status == "duplicate" or accepted.answers:
                await self._caught_up(asked.source, answer)
            if accepted.answers or (answer.then is not None and answer.then.over):
                answer.end()  # it has no answer of its own
        except BaseException:
            self.answers.forget(answer)
            raise
        return answer, at

    def _follow(self, answer: Answer, event: str) -> None:
        """Put the answer of a continuing turn after an answer."""
        if event and (answer.then is None or answer.then.event != event):
            answer.then = self.answers.begin(answer.to, event)

    async def _begin(self, asked: Asked, answer: Answer) -> None:
        """Have an answer begin with what its person has missed, unless a program reads it."""
        if asked.source.thread == ERRANDS or "response_format" in asked.terms.settings:
            return
        answer.missed, left = self.answers.missed.take(asked.source.chat)
        rows = await self.views.rows(asked.source, answer.missed)
        answer.begin([*(row.text for row in rows), *([MORE.format(count=left)] if left else [])])

    async def _caught_up(self, source: Source, answer: Answer) -> None:
        """Show an answer everything of it that is in the store, after the questions that were decided. Raises
        StoreUnavailable."""
        shown = await self.views.shown(replace(source, thread=answer.to.thread), _LOOKED_AT)
        following: Answer | None = answer
        while following is not None:
            rows = [row for row in reversed(shown) if row.answers == following.event]
            decided = max(
                (at for at, row in enumerate(rows, 1) if row.kind == "question" and not row.buttons), default=0
            )
            for row in rows[decided:]:
                following.show(row)
            following = following.then

    async def _question_before(self, asked: Asked) -> Outbound | None:
        """The open question, here or of what was told to the person themselves, that this may be a yes or no to."""
        call = parse_command(asked.text)
        if command_meant(asked.text) is None and (call is None or call.name not in _DECIDES):
            return None
        for source in (asked.source, replace(asked.source, thread=None)):
            for row in await self.views.shown(source, _LOOKED_AT):
                if row.kind == "question" and row.buttons and not self.answers.missed.waits(row):
                    return row
        return None

    async def pieces(self, asked: Asked, answer: Answer, *, whole: bool = False) -> AsyncIterator[Sequence[Part]]:
        """The answer as it comes, or `whole`, to its end; nothing now and then, while nothing comes."""
        while True:
            answer.quiet = whole
            found = await answer.news()
            over = answer.over  # what comes from here on, while a client or the store is slow, is yet to be given
            if not found and not over and not answer.works:
                await self._look(asked.source, answer)
                found = answer.left()
            yield found
            if over:
                if answer.then is None:
                    return
                answer = answer.then

    async def _look(self, source: Source, answer: Answer) -> None:
        """Look for what did not come here: another process may have shown it, or the message has no answer of its
        own."""
        with suppress(StoreUnavailable):
            ended = await self.views.ended(replace(source, thread=answer.to.thread), answer.event)
            await self._caught_up(source, answer)
            if ended and not answer.over:
                answer.grow("", "" if answer.said or answer.then else answer.note or TOGETHER)
                answer.end()
            elif answer.note:
                answer.think(answer.note)
                answer.note = ""

    async def given(self, asked: Asked, answer: Answer, *, begun: bool = True) -> None:
        """Its client was given all of an answer; of what it `begun` with, its person missed nothing."""
        self.got(asked, answer)
        if begun and answer.missed:
            await self.answers.missed.shown(asked.source.chat, answer.missed)

    def got(self, asked: Asked, answer: Answer) -> None:
        """Its client was given all of an answer."""
        known = self._recent.get((answer.to, asked.name))
        if known is not None and known.event == answer.event:
            known.got = True


async def _kept(views: Views, source: Source, pieces: Sequence[Piece]) -> tuple[Attachment, ...]:
    """Keep the files of a message. Raises ApiError, StoreUnavailable."""
    if len(pieces) > _MOST_FILES:
        raise invalid(
            "messages", f"A message may hold at most {_MOST_FILES} files, but this message has {len(pieces):,}."
        )
    return tuple([await _kept_one(views, source, piece) for piece in pieces])


async def _kept_one(views: Views, source: Source, piece: Piece) -> Attachment:
    mime, content = await asyncio.to_thread(piece.content)
    if len(content) > _LARGEST_FILE:
        text = f"A file may have at most {_LARGEST_FILE:,} bytes, but this file has {len(content):,}."
        raise ApiError(413, text, code="file_too_large", param=piece.param)
    name = _NO_NAME.sub("_", piece.name)[:200]
    ref = (await asyncio.to_thread(sha256, content)).hexdigest()[:24]
    try:
        await views.keep(source, ref, name, mime, content)
    except FileRefused as error:
        raise ApiError(413, f"Legato cannot keep the file: {error}.", code="file_refused", param=piece.param) from error
    return Attachment(kind=piece.kind, ref=ref, name=name, mime=mime, size=len(content))
