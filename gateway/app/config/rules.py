"""The rules about a configuration as a whole.

Each rule names the keys it is about: where one of them is already known to be wrong, the rule has nothing to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.app.config.models import Auxiliary, Config
from gateway.app.config.sentences import choice, did_you_mean
from gateway.app.config.shape import may_be_secret
from gateway.app.config.source import KeyPath, dotted
from gateway.domain.platform import Platform
from gateway.domain.settings import Section
from gateway.runtime.plugins import imported

Finding = tuple[tuple[KeyPath, ...], str]


def contradictions(path: KeyPath, section: Section) -> Iterator[Finding]:
    """Yield the contradictions of a section and of the sections in it: the keys involved, the one to blame first, and
    the sentence."""
    for names, text in section.contradictions():
        keys: tuple[KeyPath, ...] = tuple((*path, *name.split(".")) for name in names)
        yield keys, f"{dotted(keys[0])} {text}"
    if isinstance(section, Auxiliary) and section.mode != "custom":
        return  # its models are of no use
    for name in type(section).model_fields:
        value = getattr(section, name)
        for inner, each in _inside(value):
            if isinstance(each, Section):
                yield from contradictions((*path, name, *inner), each)


def _inside(value: Any) -> Iterable[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        return (((name,), each) for name, each in value.items())
    if isinstance(value, tuple):
        return (((index,), each) for index, each in enumerate(value))
    return [((), value)]


def nobody(config: Config, platforms: Mapping[str, Platform]) -> Iterator[Finding]:
    """Entries of `access` that would never match anybody."""
    for key in ("allow", "admins"):
        for index, entry in enumerate(getattr(config.access, key)):
            path: KeyPath = ("access", key, index)
            platform, _, person = entry.partition(":")
            but = "" if may_be_secret(entry) else f", not {entry!r}"
            if not re.fullmatch(r"[a-z][a-z0-9_-]*:\S+", entry):
                yield (path,), f"{dotted(path)} must name a platform and a person, as in {_example(platforms)}{but}"
            elif platform not in platforms:
                hint = did_you_mean(platform, platforms)
                yield (path,), f"{dotted(path)} names the platform {platform!r}, which is not installed{hint}"
            elif problem := platforms[platform].person_problem(person):
                text = f"{problem}{but}; `legato access list` has those who wrote to the bot"
                yield (path,), f"{dotted(path)} {text}"


def nowhere(config: Config, platforms: Mapping[str, Platform]) -> Iterator[Finding]:
    """Entries of `chats` that would never fit any chat, and rules that a platform does not know."""
    for place, chat in config.chats.items():
        path: KeyPath = ("chats", place)
        name, _, where = place.partition(":")
        platform = platforms.get(name)
        if not re.fullmatch(r"[a-z][a-z0-9_-]*:\S+", place):
            yield (path,), f"{dotted(path)} must name a platform and a chat, as in {_example(platforms)}"
        elif platform is None:
            hint = did_you_mean(name, platforms)
            yield (path,), f"{dotted(path)} names the platform {name!r}, which is not installed{hint}"
        elif problem := platform.place_problem(where):
            yield (path,), f"{dotted(path)} {problem}"
        elif chat.listen is not None and chat.listen not in platform.listens:
            said = choice(platform.listens, chat.listen) if platform.listens else "has no effect here"
            text = (
                f"{said}; that is what {platform.title} knows" if platform.listens else f"{said}: there are no groups"
            )
            yield ((*path, "listen"),), f"{dotted((*path, 'listen'))} {text}"


def unsearchable(config: Config) -> Iterator[Finding]:
    """Keys of the search of the web that do not do."""
    if config.tools.search.provider is not None:
        for key, text in imported("gateway.agent.search.plugin:lacking")(config.tools.search):
            path: KeyPath = ("tools", "search", key)
            yield (path, path[:-1]), f"{dotted(path)} {text}"


def _example(platforms: Mapping[str, Platform]) -> str:
    named = next((each for each in platforms.values() if each.lists_people), None)
    return f'"{named.name}:{named.person}"' if named else '"PLATFORM:PERSON"'
