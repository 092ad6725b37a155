"""What people in groups said, but not to the bot: each group's last messages, as long as this process runs.

They appear beside a message to the bot in the requests of its turn, as quotes do (`gateway.agent.quotes`), and nowhere
else: they are not stored, searched or remembered. Only words of people who may talk to the bot there are kept, unless
the settings name the group. If somebody has anything forgotten, all of their words here go; that they wished so is
noted, since a platform where the words are looked up has them still.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field

from gateway.context.prompts import neutralise
from gateway.domain.chat import Inbound, Said, SessionKey, Source, readable, speaker
from gateway.domain.quoting import clipped, flat
from gateway.domain.turn import TurnRules
from gateway.store.port import Documents
from gateway.store.records import Arrival

_GROUPS: Final = 500  # those in which somebody spoke last
_LONGEST: Final = 600  # characters of a message; twice what is shown, because a secret in it may go
_LONGEST_NAME: Final = 60
_WHILE_WAITING: Final = 50  # messages beyond those that are shown: so many may come while a message waits for its turn

_FORGOTTEN: Final = "forgotten talk "  # before a platform's name, a folder of notes: people, and until when

_Place = tuple[str, str, str | None]


class _Heard(Struct, frozen=True):
    said: Said
    key: SessionKey | None = None  # the conversation that holds it, of a message to the bot


class Overheard(Struct, kw_only=True):
    """Hears the groups. `redact` removes secrets from what the model sees. Only `_talks` changes. That words are to be
    forgotten is read from the store each time, because another process may have been told so."""

    rules: TurnRules
    redact: Callable[[str], str]
    notes: Documents
    _talks: OrderedDict[_Place, deque[_Heard]] = field(default_factory=OrderedDict)

    def hear(self, inbound: Inbound, key: SessionKey | None = None) -> None:
        """Remember a message of a group; `key` is its conversation's. A new wording replaces the old one."""
        shown = self.rules.overheard(inbound.source)
        if not shown:
            return
        said = Said(source=inbound.source, text=readable(inbound)[:_LONGEST], at=inbound.sent_at, place=inbound.place)
        talk = self._talk(inbound.source, shown)
        for each in [each for each in talk if inbound.place is not None and each.said.place == inbound.place]:
            talk.remove(each)
        talk.append(_Heard(said, key))

    async def look_back(self, inbound: Inbound, may_talk: Callable[[Source], Awaitable[bool]]) -> None:
        """Replace what was heard with what an adapter has looked up before a message, commands left out. Raises
        StoreUnavailable."""
        forgotten = await self._gone(inbound.source.platform)
        talk = self._talk(inbound.source, self.rules.overheard(inbound.source))
        held = {each.said.place: each.key for each in talk}
        found = [
            _Heard(each, held.get(each.place))
            for each in inbound.before
            if each.at > forgotten.get(each.source.user, 0.0)
            and not each.text.startswith("/")
            and (not each.source.user or await may_talk(each.source))
        ]
        talk.clear()
        talk.extend(found)

    def _talk(self, source: Source, shown: int) -> deque[_Heard]:
        place = source.platform, source.chat, source.thread
        talk = self._talks.get(place)
        if talk is None:
            talk = self._talks[place] = deque(maxlen=shown + _WHILE_WAITING)
            while len(self._talks) > _GROUPS:
                self._talks.popitem(last=False)
        self._talks.move_to_end(place)
        return talk

    async def _gone(self, platform: str) -> dict[str, float]:
        """Until when each person's words are to be forgotten (seconds since the epoch)."""
        noted = await self.notes.notes(f"{_FORGOTTEN}{platform}")
        return {person: float(at) for person, at in noted.items()}

    async def note(self, arrival: Arrival) -> None:
        """Note a message to the bot: others may ask about it, or its writer may want to be forgotten. Raises
        StoreUnavailable."""
        inbound, call = arrival.inbound, arrival.inbound.command
        if call is not None:
            if call.name == "forget" and (call.argument or inbound.reply_to):
                await self._forget(inbound.source, inbound.sent_at)
        elif inbound.kind == "message" and inbound.source.chat_type != "direct":
            self.hear(inbound, arrival.key)

    async def _forget(self, person: Source, at: float) -> None:
        """Forget everything that a person said, in all groups of their platform."""
        for (platform, *_), talk in self._talks.items():
            if platform == person.platform:
                for each in [each for each in talk if each.said.source.user == person.user]:
                    talk.remove(each)
        until = max(at, (await self._gone(person.platform)).get(person.user, 0.0))  # an older wish may come again
        await self.notes.set_notes(f"{_FORGOTTEN}{person.platform}", {person.user: str(until)})

    def leave(self, platform: str, chat: str) -> None:
        """Forget a group that the bot has left."""
        for place in [place for place in self._talks if place[:2] == (platform, chat)]:
            del self._talks[place]

    def lines(self, inbound: Inbound, key: SessionKey | None, *, whole: bool = False) -> list[str]:
        """What was said before a message, oldest first, one line each, without what the conversation `key` holds.
        `whole`: with the message itself."""
        source = inbound.source
        shown = self.rules.overheard(source)
        talk: Iterable[_Heard] = self._talks.get((source.platform, source.chat, source.thread), ()) if shown else ()
        heard = [
            each.said
            for each in talk
            if (each.key is None or each.key != key)
            and (whole or each.said.place != inbound.place)
            and each.said.at <= inbound.sent_at
        ]
        return [self._line(each) for each in heard[-shown:]]

    def _line(self, said: Said) -> str:
        moment = datetime.fromtimestamp(said.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        who, text = flat(speaker(said.source))[:_LONGEST_NAME], flat(clipped(self.redact(said.text)))
        return f"- {moment}, {neutralise(who)}: “{neutralise(text)}”"
