"""Commands in a chat of Anna's, on a store in memory; what else they use is a test's to say."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.running import RunningTurns
from gateway.app.plugins import all_commands
from gateway.commands.base import Answer, CommandContext, HeldLane, Program
from gateway.domain.chat import Inbound, Source
from gateway.domain.command import parse_command
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.people.access import Access
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Claim, InboxItem
from tests.support.fakes import ManualClock
from tests.support.store_kit import in_session, key


class Calling:
    """`await call("/pin list")`: what the chat is told. The boss is an admin. `yes`: how `questions` are answered."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self.sessions, self.agents, self.people = Mock(), Mock(), Mock()
        self.sessions.policy.zone = None
        self.sessions.counter.text.side_effect = len
        self.sessions.show_anew = AsyncMock()
        self.sessions.helpers = Mock(stop=AsyncMock(return_value=[]), of=AsyncMock(return_value=[]))
        self.background = Mock(running=AsyncMock(return_value=[]), end_all=AsyncMock())
        self.agents.mcp = Mock(servers=[], troubled=Mock(return_value=[]), states=Mock(return_value=[]))
        self.people.pairing.access = Access(admins={"test:boss"})
        self.people.approvals.answerable = AsyncMock(return_value=[])
        self.running = RunningTurns(background=self.background)
        self.program = Program(registry=all_commands(), chats={}, automatic=True, started_at=0.0)
        self.files = Mock(send=AsyncMock(), show=AsyncMock())
        self.yes, self.questions = True, list[str]()
        self.claim: Claim | None = None
        self.attempts, self.item = 1, "i"

    async def talk(self, *messages: Message) -> Session:
        """A session with these messages is going on."""
        self.claim, session = await in_session(self.store, *messages)
        return session

    async def _confirm(self, question: str, _: object) -> bool:
        self.questions.append(question)
        return self.yes

    def context(self, text: str, user: str = "anna", chat_type: Any = "direct", **more: Any) -> CommandContext:
        """The call of a command."""
        source = Source(platform="test", chat="1", chat_type=chat_type, user=user, user_name=user.title())
        inbound = Inbound(**{"event_id": "e", "source": source, "text": text, **more})
        at = key() if chat_type == "direct" else replace(key(), user=None)
        item = InboxItem(id=self.item, key=at, inbound=inbound, accepted_at=0.0, attempts=self.attempts)
        call = inbound.command
        lease: Any = self.claim.lease if self.claim else None
        facts: dict[str, Any] = {"people": self.people, "agents": self.agents, "running_turns": self.running}
        return CommandContext(
            item=item,
            argument=call.argument if call else "",
            lane=HeldLane(lease=lease, confirm=self._confirm, compress=AsyncMock()),
            program=self.program,
            store=self.store,
            sessions=self.sessions,
            clock=self.clock,
            files=lambda _: self.files,
            redact=lambda said: said.replace("s3cret", "…"),
            **facts,
        )

    async def answer(self, text: str, user: str = "anna", chat_type: str = "direct", **more: Any) -> Answer:
        """What a command answers; an error is told as its sentence."""
        call = parse_command(text)
        assert call is not None
        command = self.program.registry.get(call.name)
        assert command is not None
        try:
            said = await command.run(self.context(text, user, chat_type, **more))
        except UserError as error:
            return Answer(kind="error", text=str(error))
        return said if isinstance(said, Answer) else Answer(text=said)

    async def __call__(self, text: str, user: str = "anna", chat_type: str = "direct", **more: Any) -> str:
        """The text of that."""
        return (await self.answer(text, user, chat_type, **more)).text


@pytest.fixture
def call(store: Store, clock: ManualClock) -> Calling:
    """Nothing was said yet."""
    return Calling(store, clock)
