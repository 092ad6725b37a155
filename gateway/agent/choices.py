"""What people chose for a chat with a command: its persona, its model, whether answers are said aloud, and whether the
web is searched. A choice belongs to the chat or topic in which it was made, and to no session, so it outlives resets,
expiry and restarts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import structlog
from msgspec import Struct, field
from msgspec.structs import asdict

from gateway.domain.chat import ChatType, SessionKey
from gateway.domain.place import choosing, places
from gateway.store.port import Documents

log = structlog.get_logger(__name__)

What = Literal["persona", "model", "voice", "search"]
WHATS: Final[tuple[What, ...]] = ("persona", "model", "voice", "search")


class Choice(Struct, frozen=True, kw_only=True):
    """`value` None: as it is configured, whatever was chosen around this place. `provider`: of a model; of a persona,
    the platform whose client gave it. `by` and `at`:
    who chose it, and when (seconds since the epoch)."""

    value: str | None
    by: str
    at: float
    provider: str = ""


class Choices(Struct, frozen=True, kw_only=True):
    """The choices made for one conversation, by place, the narrowest first."""

    persona: Mapping[str, Choice] = field(default_factory=dict)
    model: Mapping[str, Choice] = field(default_factory=dict)
    voice: Mapping[str, Choice] = field(default_factory=dict)
    search: Mapping[str, Choice] = field(default_factory=dict)


class Held(NamedTuple):
    """The value that holds for a conversation: a setting of `place`, or the `choice` that was made there."""

    value: str
    place: str
    choice: Choice | None = None


def held(
    chosen: Mapping[str, Choice], configured: Mapping[str, str], platform: str, named: Sequence[str]
) -> Held | None:
    """The choice or setting of the narrowest place that has one; if a place has both, the choice. None if there is
    none."""
    free = True
    if not chosen and not configured:  # as nearly everywhere
        return None
    for place in places(platform, named):
        choice = chosen.get(place) if free else None
        if choice is not None and choice.value is not None:
            return Held(choice.value, place, choice)
        free = free and choice is None
        if place in configured:
            return Held(configured[place], place)
    return None


def folder_of(place: str) -> str:
    """The folder of the choices made for a place."""
    return f"chat {place}"


async def choices(store: Documents, key: SessionKey, chat_type: ChatType, named: Sequence[str]) -> Choices:
    """Return the choices made for a conversation. Raises StoreUnavailable."""
    found: dict[What, dict[str, Choice]] = {}
    for place in choosing(key, chat_type, named):
        noted = await store.notes(folder_of(place))
        for what in WHATS:
            if what in noted and (made := _read(noted[what])) is not None:
                found.setdefault(what, {})[place] = made
    return Choices(**found)


async def choose(store: Documents, place: str, what: What, choice: Choice) -> None:
    """Keep a choice for a place. Raises StoreUnavailable."""
    await store.set_notes(folder_of(place), {what: json.dumps(asdict(choice), ensure_ascii=False)})


def _read(text: str) -> Choice | None:
    try:
        return Choice(**json.loads(text))
    except (TypeError, ValueError) as error:  # of a later release, or damaged
        log.warning("choice_unreadable", error=str(error))
        return None


async def forget_choices(store: Documents, key: SessionKey) -> None:
    """Forget what a person chose for the chat in which they are alone with the bot."""
    for place in choosing(key, "direct", ()):
        await store.set_notes(folder_of(place), dict.fromkeys(WHATS))
