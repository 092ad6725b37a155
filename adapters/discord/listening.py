"""Whether a message is for the bot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.discord.codec import Me, Place, is_named
from adapters.discord.platform import DiscordSettings, Listen

_MESSAGES: Final = (0, 19)  # https://discord.com/developers/docs/resources/message#message-object-message-types


@dataclass(slots=True)
class Listening:
    """The rules of the configuration. Only `_bots` changes: how many mentions of each bot were answered in each channel
    since a person spoke there."""

    settings: DiscordSettings
    _bots: dict[tuple[str, str], int] = field(default_factory=dict)

    def mode(self, place: Place) -> Listen:
        """The rule of a place: its own, else of what it lies in, else the general one."""
        rules: dict[str, Listen] = {}
        named: tuple[tuple[Listen, tuple[str, ...]], ...] = (
            ("mention", self.settings.mention),
            ("free", self.settings.free),
            ("thread", self.settings.thread),
            ("off", self.settings.off),
        )
        for rule, channels in named:
            rules |= dict.fromkeys(channels, rule)
        return next((rules[each] for each in (place.channel, *place.within) if each in rules), self.settings.listen)

    def hears(self, message: Mapping[str, Any], place: Place, me: Me) -> bool:
        """Whether the bot answers this message."""
        author = message["author"]
        if author["id"] == me.id or message.get("webhook_id") or message.get("type") not in _MESSAGES:
            return False
        mode = "free" if place.guild is None else self.mode(place)
        if mode == "off":
            return False
        if author.get("bot"):
            return self._hears_bot(message, place, me)
        for pair in [pair for pair in self._bots if pair[0] == place.channel]:
            del self._bots[pair]  # a person spoke, so nobody talks in circles
        return mode != "mention" or place.own or self._is_meant(message, place, me)

    def _hears_bot(self, message: Mapping[str, Any], place: Place, me: Me) -> bool:
        """Two bots that answer each other would never end."""
        if not is_named(message, me):
            return False
        pair = (place.channel, message["author"]["id"])
        answered = self._bots.get(pair, 0)
        if answered >= self.settings.bots:
            return False
        self._bots[pair] = answered + 1
        return True

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
