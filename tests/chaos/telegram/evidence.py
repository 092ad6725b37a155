"""The traces of a run: the messages of people, the calls to Telegram, and the outbox after every death."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from tests.chaos.bots.run import Record
from tests.chaos.bots.script import Place, Said
from tests.chaos.telegram.script import MOVE, Schedule
from tests.emulators.journal import Call
from tests.emulators.telegram import Chat, Message, TelegramServer, User


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something that was said, and the message that it became. `chat`: what its chat was called first."""

    said: Said
    message: Message
    chat: str

    @property
    def where(self) -> tuple[str, str | None]:
        """Return the chat, and the topic in a forum."""
        return self.chat, str(self.message.topic) if self.message.topic else None

    @property
    def place(self) -> tuple[str, int]:
        """Return the name of the message in events: its chat's number by then, and its own in the chat."""
        return str(self.message.chat.id), self.message.id


@dataclass(slots=True, kw_only=True)
class Street:
    """The people of a run and where they meet. `heard` grows as they talk; `begun`: when Telegram's clock said so;
    `chats`: all that there were, by number, and what each was called first."""

    telegram: TelegramServer
    people: dict[str, User]
    places: dict[Place, tuple[Chat, int | None]]
    begun: float
    chats: dict[str, str]
    heard: list[Heard] = field(default_factory=list)

    @classmethod
    def of(cls, telegram: TelegramServer, *, moves: bool) -> Self:
        """Anna and Bob, a group of both and a forum with two topics; the bot is in all of them."""
        anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
        group = telegram.people.group("Team", anna, bob, bot="administrator", kind="group" if moves else "supergroup")
        forum = telegram.people.group("Forum", anna, forum=True, bot="administrator")
        places: dict[Place, tuple[Chat, int | None]] = {
            "anna": (telegram.people.private(anna), None),
            "bob": (telegram.people.private(bob), None),
            "group": (group, None),
            "one": (forum, telegram.people.topic(forum, anna, "One")),
            "two": (forum, telegram.people.topic(forum, anna, "Two")),
        }
        return cls(
            telegram=telegram,
            people={"anna": anna, "bob": bob},
            places=places,
            begun=telegram.cloud.clock.monotonic(),
            chats={str(chat.id): str(chat.id) for chat, _ in places.values()},
        )

    def hear(self, said: Said) -> None:
        """Let it be said; where many are, the bot is named."""
        if said.kind == MOVE:
            self._move(said)
            return
        chat, topic = self.places[said.place]
        name = f"@{self.telegram.bot.username}"
        text = said.text
        if chat.grouplike:
            text = f"{text}{name}" if text.startswith("/") else f"{name} {text}"
        message = self.telegram.people.say(chat, self.people[said.speaker], text, topic=topic)
        self.heard.append(Heard(said=said, message=message, chat=self.chats[str(chat.id)]))

    def _move(self, said: Said) -> None:
        group, topic = self.places[said.place]
        moved = self.telegram.people.migrate(group, self.people[said.speaker])
        self.places[said.place] = moved, topic
        self.chats[str(moved.id)] = self.chats[str(group.id)]

    def noted(self, call: Call) -> tuple[str, str]:
        """The chat of a message that a call made, by its first name, and what the outbox calls the message."""
        home, number = self.chats[call.chat_id], str(call.result["message_id"])
        return home, number if home == call.chat_id else f"{call.chat_id}:{number}"

    @property
    def all_taken(self) -> bool:
        """Say whether the bot has confirmed all updates."""
        return not len(self.telegram.cloud.updates)


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    street: Street
