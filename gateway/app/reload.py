"""Settings that hold without a new start: at SIGHUP of `legato run`, and by `legato reload`.

`taken_up` is the list of them. All others wait for the next start, and are named. A configuration that would not load
changes nothing. What lets somebody do more is taken up only where a person asks by the command, in a shell outside:
whatever runs on this machine can write the file and send the signal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import structlog
from msgspec import Struct, field

from gateway.app.config import Config
from gateway.app.config.models import Chat
from gateway.app.config.rules import contradictions
from gateway.app.config.source import KeyPath, dotted
from gateway.app.plugins import platforms
from gateway.domain.platform import AdapterSettings
from gateway.domain.settings import Section
from gateway.runtime.errors import ConfigError
from gateway.runtime.redaction import Redactor
from gateway.runtime.tasks import best_effort

log = structlog.get_logger(__name__)

RELOAD: Final = "/reload"  # the page of `legato reload` at monitor.address
OWN: Final = "X-Legato"  # the header of a request by Legato's own command
HELD: Final = (
    "They give more rights, so they take effect with `legato reload` in a shell of your own, or at the next start"
)
_SECTIONS: Final = ("model", "fallback_models", "auxiliary", "access", "budgets", "prompt", "alerts", "home_chat")
_OF_CHATS: Final = ("persona", "model", "tools", "daily_usd")


def taken_up(held: Config, wanted: Config) -> Config:
    """The settings in force once the `wanted` ones were taken up as far as possible."""
    return held.replace(
        **{name: getattr(wanted, name) for name in _SECTIONS},
        tools=wanted.tools.model_copy(update={"mcp": held.tools.mcp}),
        chats=dict(_chats(held, wanted)),
        adapters=dict(_adapters(held, wanted)),
        log=held.log.model_copy(update={"level": wanted.log.level}),
    )


def _chats(held: Config, wanted: Config) -> Iterator[tuple[str, Chat]]:
    for place in {**held.chats, **wanted.chats}:
        before, after = held.chats.get(place, Chat()), wanted.chats.get(place, Chat())
        chat = before.model_copy(update={key: getattr(after, key) for key in _OF_CHATS})
        if chat != Chat():
            yield place, chat


def _adapters(held: Config, wanted: Config) -> Iterator[tuple[str, AdapterSettings]]:
    for name in {**held.adapters, **wanted.adapters}:
        platform = platforms().get(name)
        if platform is None or platform.settings is None or not platform.at_once:
            if name in held.adapters:
                yield name, held.adapters[name]
            continue
        usual = platform.settings()
        before, after = held.adapters.get(name, usual), wanted.adapters.get(name, usual)
        section = before.model_copy(update={key: getattr(after, key) for key in platform.at_once})
        if name in wanted.adapters or section != usual:
            yield name, section


def differences(before: Config, after: Config) -> list[str]:
    """Return the keys whose values differ."""
    return [dotted(path) for path in _differing((), before, after)]


def _differing(path: KeyPath, before: Any, after: Any) -> Iterator[KeyPath]:
    if isinstance(before, Section) and type(before) is type(after):
        for name in type(before).model_fields:
            yield from _differing((*path, name), getattr(before, name), getattr(after, name))
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _differing((*path, name), before.get(name), after.get(name))
    elif before != after:
        yield path


def _widening(held: Config, wanted: Config) -> list[KeyPath]:
    """The paths by which others could talk or decide, or the model could do more, or more without asking. Everything
    counts that does not clearly take something away."""
    places = {**held.chats, **wanted.chats}
    before, after = (
        {
            "access": each.access,
            "tools": each.tools,
            "chats": {place: _tools(each, place) for place in places},
            "adapters": each.adapters,  # what is taken up of them says who may log in
        }
        for each in (held, wanted)
    )
    paths = _differing((), before, after)
    return [path for path in paths if not _takes_away(path, _at(before, path), _at(after, path))]


def _tools(config: Config, place: str) -> dict[str, Any]:
    return {"tools": config.chats.get(place, Chat()).tools}


def _takes_away(path: KeyPath, before: Any, after: Any) -> bool:
    if isinstance(after, bool):
        return after == (path[-1] == "admins_only")
    if path[0] in ("chats", "adapters") or "offered" in path or not isinstance(before, tuple):
        return isinstance(after, int | float)  # a limit
    return set(before) <= set(after) if path[-1] == "admins_only" else set(after) <= set(before)


def _at(settings: Any, path: KeyPath) -> Any:
    for name in path:
        settings = settings.get(name) if isinstance(settings, dict) else getattr(settings, str(name))
    return settings


def _held_back(held: Config, wanted: Config, paths: Sequence[KeyPath]) -> Config:
    """The wanted settings, except the sections of these paths."""
    sections = {str(path[0]): getattr(held, str(path[0])) for path in paths}
    chats = dict(wanted.chats)
    for place in (str(path[1]) for path in paths if path[0] == "chats"):
        chats[place] = chats.get(place, Chat()).model_copy(update=_tools(held, place))
    return wanted.replace(**{**sections, "chats": chats})


class Reloaded(Struct, frozen=True, kw_only=True):
    """`changed`: the keys with values that hold from now on. `waiting`: those that wait for the next start. `held`:
    those that wait for a person in a shell, or for the next start: somebody may do more by them."""

    changed: tuple[str, ...]
    waiting: tuple[str, ...]
    held: tuple[str, ...] = ()


class InForce(Struct, frozen=True, kw_only=True):
    """The settings in force. `take_up` has the parts keep to others, of those that are taken up without a new start;
    raises ConfigError with nothing changed. `redact` knows their secrets, and `close` are the connections to what they
    name."""

    redact: Redactor
    take_up: Callable[[Config], Awaitable[None]]
    close: list[Callable[[], Awaitable[None]]]

    async def aclose(self) -> None:
        """End the connections; one that fails does not keep the others open."""
        for close in self.close:
            await best_effort(close(), what="closing a resource")


class Reloader(Struct, kw_only=True):
    """`config` is in force. `read` gives the settings as they are written now, and raises ConfigError. `reconfigure`
    puts settings into the parts that keep to them, and raises ConfigError with nothing changed; `relog` into the
    log."""

    config: Config
    read: Callable[[], Config]
    reconfigure: Callable[[Config], Awaitable[None]]
    relog: Callable[[Config], None]
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reload(self, *, widens: bool = True) -> Reloaded:
        """Take up what can be, and log what was and what was not. `widens`: a person asks, so it may let somebody do
        more. Raises ConfigError, logged, with nothing changed."""
        async with self._one:
            try:
                done = await self._reload(widens=widens)
            except ConfigError as error:
                log.error("settings_not_reloaded", problems=error.problems)
                raise
            log.warning("settings_reloaded", changed=done.changed, next_start=done.waiting)
            if done.held:
                log.warning("settings_held", keys=done.held, advice=HELD)
            return done

    async def _reload(self, *, widens: bool) -> Reloaded:
        wanted = await asyncio.to_thread(self.read)
        config = taken_up(self.config, wanted)
        if held := () if widens else tuple(_widening(self.config, config)):
            config = taken_up(self.config, _held_back(self.config, config, held))
        changed, kept = differences(self.config, config), tuple(map(dotted, held))
        waiting = [
            key for key in differences(config, wanted) if not any(f"{each}.".startswith(f"{key}.") for each in kept)
        ]
        if clashes := [text for _, text in contradictions((), config)]:
            raise ConfigError(
                [f"{text} (until the next start, which takes up {', '.join(waiting)})" for text in clashes]
            )
        if changed or widens:  # a person's own files may have changed, too
            await self.reconfigure(config)
            self.config = config
            self.relog(config)
        return Reloaded(changed=tuple(changed), waiting=tuple(waiting), held=kept)
