"""The rules of turns: the people who share a conversation, a message's effect on a running turn, and the limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct, field
from pydantic import Field

from gateway.domain.chat import SessionKey, Sharing, Source, session_key
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.place import names, narrowest
from gateway.domain.settings import Count, Flag, Seconds, Section

BusyMode = Literal["queue", "collect", "steer", "interrupt"]

STOPPED: Final = "Stopped before the answer was finished."  # then a person can have it go on
BUSY: Final = "I am still working on your earlier message. Your new message comes next."
OVERHEARD: Final = 50  # messages of a group that the model is shown with one to the bot, where no rule says otherwise
_READ: Final = 4_000  # characters of a message in which the bot's names are looked for
# Part of a word, as far as one can see: Chinese, Japanese, Thai and their neighbours put no spaces between words, and
# Korean hangs particles on names.
_LETTER: Final = (
    r"[^\W\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class SessionSettings(Section):
    """`sessions` says who shares a conversation, what a new message does to a running turn, and when a quiet session
    ends."""

    groups: Sharing = Field("per_user", description="in a group, each person has a conversation, or all share one")
    threads: Sharing = Field("shared", description="in a thread or topic, each person has one, or all share it")
    busy_mode: BusyMode = Field(
        "queue",
        description="what a message does during an answer: waits, is answered with others, joins in, or ends it",
    )
    reactions: Flag = Field(
        False, description="react with 👀 while the bot answers, and show at the end whether it worked"
    )
    titles: Flag = Field(True, description="a model names each conversation, once, after its second exchange")
    suggestions: Flag = Field(False, description="offer up to three things to say next, as buttons below an answer")
    expiry: ExpiryPolicy = ExpiryPolicy()


class TurnSettings(Section):
    """`turns` says how long a turn may take, and how many messages may wait."""

    concurrent: Count = Field(256, description="turns at the same time, in all chats together")
    deadline: Seconds = Field(1_800, description="seconds a turn may take")
    inactivity: Seconds = Field(600, description="seconds a turn may take without any sign of life")
    max_steps: Count = Field(90, description="model calls in one turn")
    lane_cap: Count = Field(100, description="messages that may wait in a conversation")


class TurnRules(Struct, frozen=True, kw_only=True):
    """The configured behaviour of turns. The mappings hold places with rules of their own. `context`: how many messages
    of a group the model sees with one to the bot. `names`: what people call the bot there. `joins`: how often an hour
    it may look whether to speak unasked."""

    sessions: SessionSettings
    turns: TurnSettings
    groups: Mapping[str, Sharing] = field(default_factory=dict)
    threads: Mapping[str, Sharing] = field(default_factory=dict)
    busy_mode: Mapping[str, BusyMode] = field(default_factory=dict)
    reactions: Mapping[str, bool] = field(default_factory=dict)
    context: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    joins: Mapping[str, int] = field(default_factory=dict)

    def key(self, source: Source) -> SessionKey:
        """Return the key of a conversation in which somebody speaks."""
        if not self.groups and not self.threads:
            return session_key(source, groups=self.sessions.groups, threads=self.sessions.threads)
        named = names(source)
        groups = narrowest(self.groups, source.platform, named)
        threads = narrowest(self.threads, source.platform, named)
        return session_key(
            source,
            groups=groups.value if groups else self.sessions.groups,
            threads=threads.value if threads else self.sessions.threads,
        )

    def busy(self, source: Source) -> BusyMode:
        """Return a message's effect on a running turn."""
        found = narrowest(self.busy_mode, source.platform, names(source)) if self.busy_mode else None
        return found.value if found else self.sessions.busy_mode

    def shows_signs(self, source: Source) -> bool:
        """Whether the bot reacts to the messages that it answers there; where it listens quietly, only if that is
        said of the place."""
        found = narrowest(self.reactions, source.platform, names(source))
        return found.value if found else self.sessions.reactions and not self.looks(source)

    def overheard(self, source: Source) -> int:
        """How many messages of this group the model is shown with one to the bot."""
        found = narrowest(self.context, source.platform, names(source)) if self.context else None
        return OVERHEARD if found is None else found.value

    def hears_everybody(self, source: Source) -> bool:
        """Whether the setting names this group, so that the words of people who may not talk count, too."""
        return bool(self.context) and narrowest(self.context, source.platform, names(source)) is not None

    def calls_bot(self, source: Source, text: str) -> bool:
        """Whether a text of a group has a name that people call the bot by."""
        found = narrowest(self.names, source.platform, names(source))
        return found is not None and _pattern(tuple(found.value)).search(text[:_READ]) is not None

    def looks(self, source: Source) -> int:
        """How often in an hour the bot may look whether to speak unasked in this group."""
        found = narrowest(self.joins, source.platform, names(source))
        return 0 if found is None else found.value


@lru_cache(maxsize=256)
def _pattern(called: tuple[str, ...]) -> re.Pattern[str]:
    """Finds these words: not inside a longer word, an address or someone else's mention. Every part is a plain text,
    so no message makes the search slow."""
    words = "|".join(r"\s".join(map(re.escape, each.split())) for each in called) or r"(?!)"
    return re.compile(rf"(?<!{_LETTER})(?<![@./-])(?:{words})(?!{_LETTER}|[@./-]{_LETTER})", re.IGNORECASE)
