"""The agent's loop: fit the window, ask the model, run its tools, store the step, again.

Everything that must survive goes through the `TranscriptWriter`, and everything that a person may watch goes through
the `Observer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from gateway.agent.asking import Asking
from gateway.agent.caps import millionths, written
from gateway.agent.conversation import Conversation
from gateway.agent.fitting import Fitting
from gateway.agent.quotes import Holding, Quoting, marked, with_talk
from gateway.agent.steps import ToolSteps, close_open_calls, open_calls
from gateway.agent.tools.web_fetch import SEARCH
from gateway.domain.chat import Finish, Returns
from gateway.domain.message import Message, assistant, is_request, note_of, noted, text_of
from gateway.domain.turn import TurnSettings
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import StopReason
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ContentRefused, StoreUnavailable, UserError
from gateway.runtime.plugins import imported
from gateway.store.records import ToolIntent

DECLINED = (
    "The model or its provider's content filter refused your message, so I will not send it again. Word it "
    "differently, or choose another model with /model. If the next message is refused, too, /undo removes what was "
    "said before."
)
DECLINED_LATER = (
    "The model or its provider's content filter refused to go on. /undo removes your message and my work on it. Then "
    "word the message differently, or choose another model with /model."
)
_FINISHES: Final[Mapping[StopReason, Finish]] = {"length": "length", "refused": "content_filter"}
TALKED: Final = "what others said in the group"
NOT_SENT = "[The model's provider refused this message of the person, so the model is not shown it.]"


class Agent(Struct, frozen=True, kw_only=True):
    """One turn over one conversation. It is cheap to build: it holds references and counters."""

    fitting: Fitting
    asking: Asking
    steps: ToolSteps
    steer: Callable[[Conversation], Awaitable[None]]  # adds a person's messages for the running turn
    quoting: Quoting | None  # automatic recall; None: switched off
    holding: Holding
    servers_tried: Callable[[], Awaitable[None]]  # waits a little for servers that are being started
    settings: TurnSettings
    clock: Clock
    talk: Sequence[str] = ()  # lines of what was said in the group around the message

    async def run(self, conversation: Conversation, intents: Collection[ToolIntent] = ()) -> str:
        """Carry the turn to its final text; the person's message is already in `conversation`.

        An earlier process may have left tool calls without a result, and `intents`. The final assistant message is left
        in `conversation.fresh.messages`, for the end of the turn to store.
        Raises ProviderError, and UserError when the window cannot be met.
        """
        try:
            return await self._run(conversation, intents)
        except ContentRefused as error:
            raise UserError(DECLINED if _withheld(conversation) else DECLINED_LATER) from error
        finally:
            await self.asking.use_own_model(conversation)

    async def _run(self, conversation: Conversation, intents: Collection[ToolIntent]) -> str:
        if not conversation.fresh.tools:  # the session's first turn, which a person expects to have its tools
            await self.servers_tried()
        new = conversation.fresh.messages
        if not new or new[-1]["role"] != "user":  # it goes on with a turn that an earlier process began
            self.steps.offer(conversation)
            if await self.steps.resume(conversation, intents):
                return text_of(next(each for each in conversation.newest_first() if each.get("tool_calls")))
        for step in range(1, self.settings.max_steps + 1):
            await self.steer(conversation)
            self.steps.offer(conversation)
            await self.fitting.fit(conversation)
            if step == 1 and self.quoting is not None:
                quotes = await self.quoting.find(conversation, self.holding)
                if quotes is not None or conversation.fresh.announced:
                    conversation.quote(quotes, marked(conversation.fresh.announced, quotes))
            if step == 1 and self.talk:
                conversation.quote(with_talk(self.talk, conversation), conversation.fresh.announced)
                self.steps.has_read(TALKED)
            completed = await self.asking.answer(conversation, step, last=step == self.settings.max_steps)
            if not completed.tool_calls or await self.steps.run(conversation, completed.tool_calls, step):
                return completed.text
        raise AssertionError("the last step is asked for text only")

    async def interrupt(self, conversation: Conversation) -> str:
        """Make a conversation whole again after its turn was cut short: the text so far is kept and returned, and a
        call without a result gets one that says so."""
        text, now = self.asking.partial_text, self.clock.now()
        if text:
            conversation.add(await conversation.measured_aside(assistant(text)), now)
        close_open_calls(conversation, now)
        return text

    def sources(self, conversation: Conversation, reply: str) -> str:
        """The lines after the reply that link what it cites."""
        searched = SEARCH in conversation.fresh.tools
        return imported("gateway.agent.search.results:sources")(reply, conversation.newest_first()) if searched else ""

    def footer(self, conversation: Conversation, reply: str) -> str:
        """The lines after the turn's reply: the sources that it cites, and the turn's tokens and cost if that is
        wanted."""
        if self.asking.terms.words_alone:
            return ""
        sources = self.sources(conversation, reply) if "[" in reply else ""
        if not self.asking.metering.caps.footer or not self.asking.spent:
            return sources
        usage = self._usage()
        costs = [entry.cost_usd for entry in self.asking.spent]
        known = sum(cost for cost in costs if cost is not None)
        cost = written(millionths(known)) if None not in costs else "no price known"
        return f"{sources}\n\n({usage.prompt_tokens:,} tokens in, {usage.output_tokens:,} out, {cost})"

    def returns(self, conversation: Conversation) -> Returns:
        """What the program behind the message is told besides the reply."""
        calls = open_calls(conversation)
        finish = "tool_calls" if calls else _FINISHES.get(self.asking.stop, "stop")
        return Returns(finish=finish, calls=tuple(calls), usage=self._usage())

    def _usage(self) -> CanonicalUsage:
        return sum((entry.usage for entry in self.asking.spent), CanonicalUsage())

    async def remarks(self, conversation: Conversation) -> list[str]:
        """Return the lines about the reply, with the news of spend caps that are nearly used up; each is told once."""
        metering, remarks = self.asking.metering, [*self.asking.remarks]
        if not metering.has_caps or not any(entry.cost_usd for entry in self.asking.spent):
            return remarks
        try:
            another = metering.short_answer(conversation.spec, conversation.prompt_tokens())
            session, announced = conversation.stored.session, conversation.fresh.announced
            news, marks = await metering.warnings(session, announced, another=another)
        except StoreUnavailable:
            return remarks  # a warning is not worth the turn that it follows
        conversation.announce(marks)
        return [*remarks, *news]


def _withheld(conversation: Conversation) -> bool:
    """Replace a person's words that a model refused by a sentence, so that the next request is not refused again. The
    words stay in the note, where a search and /retry find them. False if they are already stored, because stored
    messages do not change."""

    def withheld(message: Message) -> Message:
        if not is_request(message):
            return message
        stub = noted({**message, "content": NOT_SENT}, **{"said": text_of(message), **note_of(message)}, withheld=True)
        return noted(conversation.measured(stub), instructions=[])

    said = any(map(is_request, conversation.fresh.messages))
    conversation.reword(withheld)
    return said
