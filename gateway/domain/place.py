"""Places that config.yaml and commands can set rules for, such as a chat, a topic in it or a whole platform.

A place is written as PLATFORM:NAME. A name is one of those that `names` gives, or `*` for everything on the platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from gateway.domain.chat import ENDED, EVENT, ChatAddress, ChatType, Outbound, SessionKey, Source

Listen = Literal["mention", "free", "thread", "off"]
"""When the bot answers in a group or channel: to mentions and replies; to everything; to everything, each time in a new
thread; never."""

EVERYWHERE: Final = "*"
HOME: Final = "home"  # in a setting that names a chat: the home chat, whichever that is

T = TypeVar("T")


class PlaceValue(NamedTuple, Generic[T]):
    """A rule, and the place that has it."""

    value: T
    place: str


def names(source: Source) -> tuple[str, ...]:
    """Return the names of a speaker's place, narrowest first: topic, chat, the person of a direct chat, the
    surroundings of the chat. A chat that was renamed goes by either name."""
    chats = (*([source.renamed] if source.renamed else []), source.chat)
    topics = (f"{chat}/{source.thread}" for chat in chats) if source.thread else ()
    person = (source.user,) if source.chat_type == "direct" else ()
    return tuple(dict.fromkeys((*topics, *chats, *person, *source.within)))


def address_named(text: str | None) -> ChatAddress | None:
    """The chat that a setting names as PLATFORM:CHAT. None: it names none, or the home chat."""
    platform, _, chat = (text or "").partition(":")
    return ChatAddress(platform=platform, chat=chat) if platform and chat else None


def is_person(name: str, *, mail_ids: bool) -> bool:
    """Whether this name, which follows a platform's in a list, is only a person's (or a role's) id, and not
    PERSON@CHAT. An `@` at its beginning belongs to the id and, if ids are like e-mail addresses, so does the next
    one."""
    return name.removeprefix("@").count("@") <= (1 if mail_ids and not name.startswith("@") else 0)


def names_of(key: SessionKey) -> tuple[str, ...]:
    """The same, as far as a key tells."""
    return (*([f"{key.chat}/{key.thread}"] if key.thread else []), key.chat)


def person_of(key: SessionKey, named: Sequence[str]) -> str:
    """The person of a direct chat with these names."""
    after = named[named.index(key.chat) + 1 :] if key.chat in named else ()
    return after[0] if after else key.chat


def places(platform: str, named: Sequence[str]) -> list[str]:
    """The places with these names, and the platform as a whole."""
    return [f"{platform}:{name}" for name in (*named, EVERYWHERE)]


def narrowest(rules: Mapping[str, T], platform: str, named: Sequence[str]) -> PlaceValue[T] | None:
    """The rule of the first place that has one."""
    if rules:  # nearly always there are none, and every message asks a dozen times
        for place in places(platform, named):
            if place in rules:
                return PlaceValue(rules[place], place)
    return None


def choosing(key: SessionKey, chat_type: ChatType, named: Sequence[str]) -> tuple[str, ...]:
    """The places whose commands choose for a conversation: its chat; or its topic, and the chat around that."""
    if chat_type != "thread" and not key.thread:
        return (f"{key.platform}:{key.chat}",)
    around = key.chat if key.thread else next((name for name in named if name != key.chat), None)
    own = f"{key.chat}/{key.thread}" if key.thread else key.chat
    return tuple(f"{key.platform}:{name}" for name in (own, around) if name is not None)


class ListenRules(Struct, frozen=True):
    """The rules of one platform about the messages that the bot answers, by the names of places. `talk`: what is said
    in a group to others is handed over, too, as `overheard`; `called`: the places where such a message may be for the
    bot all the same, or it may speak unasked."""

    rules: Mapping[str, Listen] = field(default_factory=dict)
    talk: bool = False
    called: frozenset[str] = frozenset()

    def of(self, *named: str) -> Listen | None:
        """The rule of the first of these names that has one."""
        return next((self.rules[name] for name in named if name in self.rules), None)


NOT_SAID: Final = ListenRules()


class ShowRules(Struct, frozen=True, kw_only=True):
    """How messages of one platform are shown in places with their own rules. `reply`: an answer points at what it
    answers; `silent`: messages that nobody waits for make no sound; `previews`: links have a preview."""

    reply: Mapping[str, bool] = field(default_factory=dict)
    silent: Mapping[str, bool] = field(default_factory=dict)
    previews: Mapping[str, bool] = field(default_factory=dict)

    def silences(self, outbound: Outbound, within: Sequence[str] = (), *, group: bool) -> bool:
        """Whether a message makes no sound: without a rule, in a group, one that people do not wait for."""
        rule = rule_of(self.silent, outbound.to, within)
        if rule is None:
            return group and outbound.beside
        unasked = outbound.unasked or (outbound.answers or "").startswith((ENDED, EVENT))
        return rule and (unasked or outbound.beside or outbound.kind == "notice")


def rule_of(rules: Mapping[str, T], to: ChatAddress, within: Sequence[str] = ()) -> T | None:
    """The rule of the narrowest place around an address that has one; `within`: what its chat lies in."""
    if not rules:
        return None
    named = (f"{to.chat}/{to.thread}", to.chat, *within, EVERYWHERE)
    return next((rules[name] for name in named if name in rules), None)


AS_USUAL: Final = ShowRules()
