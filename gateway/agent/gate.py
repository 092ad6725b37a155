"""The gate before the tool calls of a step in which a person is asked.

Without a question, a step's intents are stored at once and its tools run. With a question, one call may begin minutes
after another. So a call is noted as begun only when it begins, and results are stored before anybody waits. A crash in
between loses no result, and takes no waiting call for one that had begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from gateway.agent.conversation import Conversation
from gateway.agent.ports import Observer, Questions, Reply, TranscriptWriter
from gateway.agent.provenance import turn_in
from gateway.agent.tools.base import Question
from gateway.domain.message import Message, ToolCall, note_of, text_of, tool_result
from gateway.runtime.errors import ToolDenied
from gateway.store.records import ToolIntent

DENIED: Final = (
    "The person said no to this, so it was not done. Do not try to reach the same by another way; "
    "say what you wanted to do, or ask what they would like instead."
)
UNANSWERED: Final = (
    "Nobody said yes in time, which counts as a no, so it was not done. Do not try to reach the same by another "
    "way; say that you needed their yes."
)
NOT_RUN: Final = "The turn was ended before this call was allowed, so it was not done."


class Gate(Struct, frozen=True, kw_only=True):
    """The calls of one step. `asked`: the questions by call id. `intents`: the calls that must not be repeated after a
    crash, all of them as waiting. `results` fills as calls end."""

    conversation: Conversation
    calls: Sequence[ToolCall]
    results: dict[str, Message]
    asked: Mapping[str, Question]
    intents: Sequence[ToolIntent]
    repeatable: Callable[[ToolCall], bool]
    questions: Questions
    writer: TranscriptWriter
    observer: Observer
    reply: Reply
    add: Callable[[Message], None]
    _begun: set[str] = field(default_factory=set)
    _kept: set[str] = field(default_factory=set)

    async def ask(self) -> None:
        """Put all questions of the step to the person at once."""
        names = {
            call_id: self._name(call_id)
            for call_id, question in self.asked.items()  # which is put for this call, and not for another one
            if call_id not in self.results and question.of in ("", call_id)
        }
        turn = map(note_of, turn_in(self.conversation.newest_first()))
        people = {str(note["person"]) for note in turn if "person" in note}
        allowed = await self.questions.allowed({names[each]: self.asked[each].deed for each in names}, people)
        names = {each: name for each, name in names.items() if name not in allowed}
        resumed = any(map(self.questions.has_asked, names.values()))
        said = "" if resumed else text_of(holder(self.conversation)).strip() or self.reply.standing_in()
        for call_id, name in names.items():
            if not self.questions.has_asked(name):
                said_as = await self.reply.set_aside() if said else None
                await self.questions.ask(name, self.asked[call_id], said, said_as)
                said = ""

    async def open(self, call: ToolCall) -> None:
        """Return when the call may take effect, and that is on record. Raises ToolDenied."""
        if call["id"] in self.asked:
            await self._allowed(call["id"])
        if not self.repeatable(call):
            self._begun.add(call["id"])
            await self._store()

    def keep(self) -> bool:
        """Add finished results to the conversation in the order of the calls; whether there were any."""
        ended = [call["id"] for call in self.calls if call["id"] in self.results and call["id"] not in self._kept]
        for call_id in ended:
            self._kept.add(call_id)
            self.add(self.results[call_id])
        return bool(ended)

    async def _allowed(self, call_id: str) -> None:
        if self.keep():
            await self._store()
        try:
            async with self.observer.asking():
                verdict = await self.questions.answer(self._name(self.asked[call_id].of or call_id))
        except asyncio.CancelledError:
            for call in self.calls:  # the calls behind this one did not begin either
                if call["id"] not in self._begun and call["id"] not in self.results:
                    self.results[call["id"]] = tool_result(call["id"], NOT_RUN)
            raise
        if verdict != "approved":
            raise ToolDenied(DENIED if verdict == "denied" else UNANSWERED)

    async def _store(self) -> None:
        left = [
            ToolIntent(call_id=intent.call_id, tool=intent.tool, waits=intent.call_id not in self._begun)
            for intent in self.intents
            if intent.call_id not in self._kept
        ]
        self.keep()
        await self.writer.begin_tools(self.conversation, left)

    def _name(self, call_id: str) -> str:
        """Return the call's name among all calls of its turn, because servers repeat ids in later steps."""
        return f"{note_of(holder(self.conversation))['id']}/{call_id}"


def holder(conversation: Conversation) -> Message:
    """The message with the calls of the present step, which is stored by now."""
    return next(message for message in conversation.newest_first() if message.get("tool_calls"))
