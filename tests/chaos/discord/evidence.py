"""The traces of a run: the messages of people, the calls to Discord, and the outbox after every death."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from tests.chaos.bots.run import Record
from tests.chaos.bots.script import Place, Said
from tests.chaos.discord.script import PLACES, SLASH, Schedule
from tests.emulators.discord import Channel, DiscordServer, Message, User
from tests.emulators.discord.interactions import Interaction
from tests.emulators.discord.world import LOADING


def number_of(event: str | None) -> int:
    """The message that an event brought."""
    parts = (event or "").split(":")
    return int(parts[3]) if len(parts) > 3 and parts[3].isdecimal() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something that was said, and the message that it became."""

    said: Said
    message: Message

    @property
    def chat(self) -> str:
        """Return the channel or thread."""
        return str(self.message.channel.id)

    @property
    def channel(self) -> str:
        """Return the name of the channel or thread in events."""
        return self.chat if self.message.channel.guild is not None else "alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A slash command, and what became of it. `process`: the one that was connected then."""

    said: Said
    interaction: Interaction
    process: int

    @property
    def name(self) -> str:
        """Without its slash."""
        return self.said.kind.removeprefix(SLASH)

    @property
    def waits(self) -> bool:
        """Say whether Discord shows the person that the bot thinks."""
        return any(message.flags & LOADING for message in self.interaction.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A yes by a button. `process`: the one that was connected then."""

    message: Message
    interaction: Interaction
    process: int


@dataclass(slots=True, kw_only=True)
class Town:
    """The people of a run and where they meet. `heard`, `given` and `presses` grow; `begun`: by Discord's clock."""

    discord: DiscordServer
    people: dict[str, User]
    places: dict[Place, Channel]
    begun: float
    heard: list[Heard] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    presses: list[Press] = field(default_factory=list)

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

    def give(self, said: Said, process: int) -> None:
        """Let a slash command be given."""
        channel, speaker = self.places[said.place], self.people[said.speaker]
        interaction = self.discord.people.command(channel, speaker, said.kind.removeprefix(SLASH))
        self.given.append(Given(said=said, interaction=interaction, process=process))

    def question(self) -> Message | None:
        """One that waits for a yes; again, if the last press of its button had no effect."""
        last = {press.message.id: press.interaction for press in self.presses}
        for channel in self.places.values():
            for message in self.discord.shown(channel) if self.discord.connected else ():
                pressed = last.get(message.id)
                if message.buttons and (pressed is None or self.discord.people.failed(pressed)):
                    return message
        return None

    def press(self, message: Message, process: int) -> None:
        """Let the person who is asked press yes."""
        asked = (each for each in self.heard if each.said.token and each.said.token in message.content)
        interaction = self.discord.people.press(message, next(asked).message.author, "Approve")
        self.presses.append(Press(message=message, interaction=interaction, process=process))

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
                if not message.flags & LOADING:
                    yield str(channel.id), message


@dataclass(slots=True, kw_only=True)
class Evidence(Record):
    """One run as it went. `stored`: the events in the store at its end; `paid`: what the tool did, in its order."""

    schedule: Schedule
    town: Town
    stored: frozenset[str] = frozenset()
    paid: tuple[str, ...] = ()
