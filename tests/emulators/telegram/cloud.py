"""Everything behind the server's door, in one place: what the methods of the Bot API and the people work on."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gateway.runtime.clock import Clock
from tests.emulators.faults import Fault, Faults
from tests.emulators.journal import Journal
from tests.emulators.telegram.files import Files
from tests.emulators.telegram.flood import FloodControl, Limits
from tests.emulators.telegram.units import length
from tests.emulators.telegram.updates import UpdateQueue
from tests.emulators.telegram.webhook import Webhook
from tests.emulators.telegram.world import Chat, Draft, Message, User, World

CALLBACK_ANSWERED_WITHIN: Final = 60.0  # seconds; Telegram does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that may differ from bot to bot and from test to test.

    `privacy`: in groups the bot sees only what is meant for it. `pacing`: polls that are repeated and fights between
    two pollers are slowed down as Telegram does, by up to 3 seconds. `text_unit`: in what the 4,096 of a text are
    counted; the documentation says characters, and UTF-16 units are the stricter reading.
    """

    token: str = "4242424242:EMULATED_and_opens_nothing_anywhere"
    bot_name: str = "Legato"
    bot_username: str = "legato_bot"
    privacy: bool = True
    pacing: bool = False
    text_unit: Literal["utf16", "characters"] = "utf16"

    def measure(self, text: str) -> int:
        """The length of a text as it is held against a limit."""
        return length(text) if self.text_unit == "utf16" else len(text)


@dataclass(slots=True, kw_only=True)
class Press:
    """A press of a button, which the bot should answer. `answer` is what the person was shown: None until then."""

    id: str
    user: User
    message: Message
    data: str
    at: float
    answer: dict[str, Any] | None = None


@dataclass(slots=True, kw_only=True)
class Cloud:
    """The state of one emulated Telegram."""

    settings: Settings
    clock: Clock
    world: World
    updates: UpdateQueue
    webhook: Webhook
    flood: FloodControl
    files: Files
    journal: Journal
    faults: Faults[Fault]
    commands: dict[tuple[str, str], list[dict[str, str]]] = field(default_factory=dict)  # (scope, language) → commands
    presses: dict[str, Press] = field(default_factory=dict)
    menu_button: dict[str, Any] = field(default_factory=lambda: {"type": "default"})
    poll_offset: int = 0
    poll_at: float = -100.0
    conflict_at: float = -100.0
    webhook_set_at: float = -100.0
    _callback_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(4_382_000_001))

    @classmethod
    def make(cls, settings: Settings, clock: Clock, limits: Limits | None, *, seed: int, keep: int) -> Cloud:
        """A new one, without people. The seed chooses what is random at Telegram: where update ids begin."""
        updates = UpdateQueue(clock, first_id=random.Random(seed).randrange(100_000_000, 900_000_000))
        bot_id = int(settings.token.partition(":")[0])
        return cls(
            settings=settings,
            clock=clock,
            world=World(clock, bot_id=bot_id, bot_username=settings.bot_username, bot_name=settings.bot_name),
            updates=updates,
            webhook=Webhook(updates, clock),
            flood=FloodControl(clock, limits),
            files=Files(),
            journal=Journal(clock, keep=keep),
            faults=Faults(),
        )

    def show(self, chat: Chat, content: dict[str, Any], **details: Any) -> Message:
        """Post a message of the bot. Raises the refusal if it is one too many."""
        self.flood.take(chat.id, group=chat.grouplike)
        message = self.world.post(chat, self.world.bot, content, **details)
        self.journal.changed()
        return message

    def drafts(self, chat: Chat) -> dict[int | None, Draft]:
        """Return a person's view of messages that the bot is still writing, by topic."""
        now = self.clock.monotonic()
        return {topic: draft for topic, draft in chat.drafts.items() if draft.until > now}

    def press(self, user: User, message: Message, data: str) -> Press:
        """Note that somebody pressed a button, and tell the bot."""
        press = Press(
            id=str(next(self._callback_ids)), user=user, message=message, data=data, at=self.clock.monotonic()
        )
        self.presses[press.id] = press
        # Of a message that is not there any more, a bot is told only where it was: `InaccessibleMessage`.
        gone = {"chat": message.chat.as_json(), "message_id": message.id, "date": 0}
        shown = gone if message.deleted else message.as_json()
        body = {"id": press.id, "from": user.as_json(), "message": shown, "data": data}
        self.updates.put("callback_query", {**body, "chat_instance": str(message.chat.id * 7919)}, lane=user.id)
        self.journal.changed()
        return press
