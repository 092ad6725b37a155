"""What a run leaves behind: who said what, what Discord saw, and the outbox after every death."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from tests.chaos.bots.run import Record
from tests.chaos.bots.script import Place, Said
from tests.chaos.discord.script import PLACES, Schedule
from tests.emulators.discord import Channel, DiscordServer, Message, User


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something that was said, and the message that it became."""

    said: Said
    message: Message

    @property
    def chat(self) -> str:
        """Its channel or thread."""
        return str(self.message.channel.id)

    @property
    def channel(self) -> str:
        """What the names of events call that."""
        return self.chat if self.message.channel.guild is not None else "alone"


@dataclass(slots=True, kw_only=True)
class Town:
    """The people of a run and where they meet. `heard` grows as they talk; `begun`: when Discord's clock said so."""

    discord: DiscordServer
    people: dict[str, User]
    places: dict[Place, Channel]
    begun: float
    heard: list[Heard] = field(default_factory=list)

    @classmethod
    def of(cls, discord: DiscordServer) -> Self:
        """Anna and Bob in a guild with the bot: their DMs, a channel and two threads of another one."""
        people = discord.people
        anna, bob = people.person("Anna"), people.person("Bob")
        guild = people.guild("Team", anna, bob)
        harbour = people.channel(guild, "harbour")
        places: dict[Place, Channel] = {
            "anna": people.direct(anna),
            "bob": people.direct(bob),
            "group": people.general(guild),
            "one": people.thread(harbour, anna, "One"),
            "two": people.thread(harbour, anna, "Two"),
        }
        begun = discord.cloud.clock.monotonic()
        return cls(discord=discord, people={"anna": anna, "bob": bob}, places=places, begun=begun)

    def hear(self, said: Said) -> None:
        """Let it be said; where many are, the bot is named."""
        channel = self.places[said.place]
        text = said.text if channel.guild is None else f"@{self.discord.bot.name} {said.text}"
        message = self.discord.people.say(channel, self.people[said.speaker], text)
        self.heard.append(Heard(said=said, message=message))

    def warm(self) -> list[Said]:
        """One message in each place, from before the run."""
        return [
            Said(
                process=0,
                at=0.0,
                down=False,
                place=place,
                speaker="bob" if place == "bob" else "anna",
                kind="say",
                token=f"tok99{number:05x}",
            )
            for number, place in enumerate(PLACES)
        ]

    def shown(self) -> Iterator[tuple[str, Message]]:
        """All that is to be seen of the bot, with the channel it is in."""
        for channel in self.places.values():
            for message in self.discord.shown(channel):
                yield str(channel.id), message


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went."""

    schedule: Schedule
    town: Town
