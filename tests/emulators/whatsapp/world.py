"""The state of the emulated WhatsApp: people, messages, files."""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

DAY: Final = 86_400.0


@dataclass(slots=True, kw_only=True)
class Settings:
    """A bot's app. `retries`: pauses before a webhook that was not taken comes again; the last one goes on. `verified`:
    Meta asks the address before it calls it."""

    token: str = "EAAGlegatotoken"
    secret: str = "0123456789abcdef0123456789abcdef"
    app: str = "700000000000001"
    business: str = "800000000000001"
    numbers: tuple[str, ...] = ("900000000000001",)
    scopes: tuple[str, ...] = ("whatsapp_business_messaging", "whatsapp_business_management")
    expires_at: int = 0
    templates: tuple[tuple[str, str, str], ...] = (("news", "en", "APPROVED"),)
    retries: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    statuses: bool = True
    callback_url: str = ""
    verify_token: str = ""
    fields: tuple[str, ...] = ()
    subscribed: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True, kw_only=True)
class Person:
    """Somebody with WhatsApp. `hidden`: their number is not told, as they have a name; `wrote`: when they wrote last,
    by number of the bot; `failing`: the errors by which the next messages to them fail, as statuses tell."""

    name: str
    number: str
    id: str
    hidden: bool = False
    blocked: bool = False
    wrote: dict[str, float] = field(default_factory=dict)
    failing: list[int] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The id by which a bot knows them."""
        return self.id if self.hidden else self.number


@dataclass(eq=False, slots=True, kw_only=True)
class Message:
    """One message between a person and a number of the bot. `body`: as it was sent; `by_bot`; `row`: what its statuses
    name; `signs`: reactions, by who put them."""

    id: str
    person: Person
    number: str
    at: float
    body: Json
    by_bot: bool = False
    row: str = ""
    read: bool = False
    failed: int = 0
    signs: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Its type."""
        return str(self.body["type"])

    @property
    def quotes(self) -> str:
        """The id of the message that it answers."""
        return str((self.body.get("context") or {}).get("message_id") or "")

    @property
    def text(self) -> str:
        """Its words as they were sent."""
        part = self.body[self.kind]
        if self.kind == "interactive":
            return str(part["body"]["text"])
        if self.kind == "template":
            return str(part["components"][0]["parameters"][0]["text"])
        return str(part.get("body") or part.get("caption") or "")

    @property
    def buttons(self) -> dict[str, str]:
        """The ids of its buttons or rows, by what stands on them."""
        if self.kind != "interactive":
            return {}
        action = self.body["interactive"]["action"]
        rows = [row for section in action.get("sections", ()) for row in section["rows"]]
        return {each["title"]: each["id"] for each in [*(one["reply"] for one in action.get("buttons", ())), *rows]}


@dataclass(eq=False, slots=True, kw_only=True)
class Media:
    """A file. `until`: when the address that was given out ends."""

    id: str
    content: bytes
    mime: str
    until: float = 0.0


class World:
    """All of it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.people: dict[str, Person] = {}
        self.messages: list[Message] = []
        self.media: dict[str, Media] = {}
        self._numbers = itertools.count(1)

    def new_message_id(self) -> str:
        """A message id of Meta's shape."""
        return "wamid." + base64.b64encode(f"{next(self._numbers):012d}".encode()).decode()

    def new_id(self) -> str:
        """An id of anything else."""
        return f"{next(self._numbers):015d}"

    def message(self, message_id: str) -> Message | None:
        """The message of an id."""
        return next((each for each in reversed(self.messages) if each.id == message_id), None)

    def known(self, address: str) -> Person | None:
        """The person of a telephone number or an id."""
        return self.people.get(address) or next((each for each in self.people.values() if each.id == address), None)
