"""The room's parts together, as the rooms above are given them; and the home chat, for news that has no chat of its
own: hooks, looks and alerts. An admin makes a chat the home with /home; else config.yaml may name one."""

from __future__ import annotations

from typing import Final

from msgspec import MsgspecError, Struct, json

from gateway.domain.approval import Lasts
from gateway.domain.chat import ChatAddress, Source
from gateway.domain.place import address_named
from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.firing import ReminderFiring
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders
from gateway.people.welcome import Welcome
from gateway.runtime.errors import UserError
from gateway.store.port import Documents

_NOTES, _CHAT = "home", "chat"
NO_HOME: Final = "There is no home chat yet. An admin can choose one with /home, or set `home_chat` in config.yaml."


class Place(Struct, frozen=True, kw_only=True):
    """A chat, and in a group the `person` who chose it: where each person has their own conversation, it is theirs."""

    to: ChatAddress
    person: str | None = None


class Home(Struct, kw_only=True):
    """`said`: the chat of config.yaml, as PLATFORM:CHAT."""

    store: Documents
    said: str | None

    async def place(self) -> Place | None:
        """The home; None if there is none. Raises StoreUnavailable."""
        noted = (await self.store.notes(_NOTES)).get(_CHAT)
        if noted:
            try:
                return json.decode(noted, type=Place)
            except MsgspecError:  # a later release wrote it
                pass
        to = address_named(self.said)
        return None if to is None else Place(to=to)

    async def needed(self) -> Place:
        """The home. Raises UserError if there is none, StoreUnavailable."""
        place = await self.place()
        if place is None:
            raise UserError(NO_HOME)
        return place

    async def move(self, place: Place | None) -> None:
        """Make it the home. None: it is again as config.yaml says. Raises StoreUnavailable."""
        await self.store.set_notes(_NOTES, {_CHAT: None if place is None else json.encode(place).decode()})


def place_at(source: Source, access: Access) -> Place:
    """The place of a speaker. Who talks by a key is told in whichever conversation they write next."""
    to = source.address
    if source.platform in access.keyed:
        to = ChatAddress(platform=to.platform, chat=to.chat)
    return Place(to=to, person=None if source.chat_type == "direct" else source.user)


class People(Struct, frozen=True, kw_only=True):
    """Who may talk, who is asked and greeted, who is reminded, and where the home is. `firing` fires reminders that are
    due."""

    pairing: Pairing
    approvals: Approvals
    welcome: Welcome
    reminders: Reminders
    firing: ReminderFiring
    home: Home

    def take_up(self, access: Access, *, deadline: float, lasts: Lasts, home: str | None) -> None:
        """Keep to other settings: who may do what, how long a question waits and its answer lasts, the home chat."""
        self.pairing.access = self.approvals.access = self.reminders.access = access
        self.approvals.seconds, self.approvals.lasts = deadline, lasts
        self.home.said = home
