"""The rules that decide whether a message is for the bot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from adapters.discord.codec import Me, Place, is_named
from adapters.discord.platform import DiscordSettings
from gateway.domain.place import EVERYWHERE, NOT_SAID, Listen, ListenRules
from gateway.domain.reading import OtherBots

_MESSAGES: Final = (0, 19)  # https://discord.com/developers/docs/resources/message#message-object-message-types


class Listening(Struct):
    """The rules of the configuration: `places` are those of `chats`, which come before the platform's own."""

    settings: DiscordSettings
    places: ListenRules = NOT_SAID
    _bots: OtherBots = field(default_factory=lambda: OtherBots(0))
    _rules: dict[str, Listen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bots = OtherBots(self.settings.bots)
        named: tuple[tuple[Listen, tuple[str, ...]], ...] = (
            ("mention", self.settings.mention),
            ("free", self.settings.free),
            ("thread", self.settings.thread),
            ("off", self.settings.off),
        )
        for rule, channels in named:
            self._rules |= dict.fromkeys(channels, rule)
        self._rules |= self.places.rules

    def mode(self, place: Place) -> Listen:
        """The rule of a place: its own, else of what it lies in, else the general one."""
        for each in self._names(place):
            if each in self._rules:
                return self._rules[each]
        return self.places.of(EVERYWHERE) or self.settings.listen

    @staticmethod
    def _names(place: Place) -> tuple[str, ...]:
        return (place.channel, *place.within, *((f"guild-{place.guild}",) if place.guild else ()))

    @property
    def reads_content(self) -> bool:
        """Whether some channel is listened to as a whole, for which Discord must show messages' content."""
        named = {self.settings.listen, *self.places.rules.values()}
        return bool(named & {"free", "thread"} or self.settings.free or self.settings.thread or self.places.called)

    def hears(self, message: Mapping[str, Any], place: Place, me: Me) -> bool:
        """Whether the bot answers this message."""
        author = message["author"]
        if author["id"] == me.id or message.get("webhook_id") or message.get("type") not in _MESSAGES:
            return False
        mode = "free" if place.guild is None else self.mode(place)
        if mode == "off":
            return False
        if author.get("bot"):
            return self._bots.hears(place.channel, author["id"], named=is_named(message, me))
        self._bots.person_spoke(place.channel)
        return (
            place.guild is None
            or self._is_meant(message, place, me)
            or ((mode != "mention" or place.own) and not _is_for_others(message))
        )

    def overhears(self, message: Mapping[str, Any], place: Place, me: Me) -> bool:
        """Whether a message that is not for the bot, as far as Discord knows, may still be for it."""
        names = (*self._names(place), EVERYWHERE)
        if place.guild is None or self.places.called.isdisjoint(names) or self.mode(place) == "off":
            return False
        author = message["author"]
        by_a_person = not (author.get("bot") or message.get("webhook_id") or author["id"] == me.id)
        return by_a_person and message.get("type") in _MESSAGES

    def _is_meant(self, message: Mapping[str, Any], place: Place, me: Me) -> bool:
        answered = message.get("referenced_message") or {}
        return (
            any(each["id"] == me.id for each in message.get("mentions") or ())
            or (place.my_role is not None and place.my_role in (message.get("mention_roles") or ()))
            or (answered.get("author") or {}).get("id") == me.id
        )

    def opens_thread(self, place: Place) -> bool:
        """Whether an answer here gets a thread of its own."""
        return place.guild is not None and not place.is_thread and self.mode(place) == "thread"


def _is_for_others(message: Mapping[str, Any]) -> bool:
    """Whether a message which does not mean the bot names or answers someone else."""
    author, answered = message["author"]["id"], (message.get("referenced_message") or {}).get("author")
    return bool(message.get("mentions")) or (answered is not None and answered["id"] != author)
