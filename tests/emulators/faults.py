"""Faults for the calls of an emulated platform.

    server.faults.add(LoseAnswer(), method="sendMessage", chat_id=chat.id, nth=2)
    server.faults.schedule = Seeded(7, share=0.1, among=(LoseAnswer(), Refuse(), Disconnect(), Flood(seconds=3)))

A fault is chosen when a call comes in; `Call.fault` names it. A platform may know more kinds than these.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from aiohttp import web

from tests.emulators.journal import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAnswer:
    """The call is done; its answer never comes. After `seconds` (None: never) the connection is closed."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An error of the server's own; the call is not done. Without a `body`, 502 and above come as the HTML of a proxy,
    and the rest as JSON."""

    status: int = 502
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """The call is done after `seconds`, whether its caller is still there or not."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnect:
    """The connection breaks: before the call is done, or after; of a download that is `done`, half comes."""

    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """A 429; the call is not done, and its chat must rest for `seconds`."""

    seconds: int = 3


Fault = LoseAnswer | Refuse | Slow | Disconnect | Flood


F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)


class Schedule(Protocol[F_co]):
    """The choice of a fault, if any, for each call."""

    def __call__(self, call: Call) -> F_co | None: ...


class Seeded(Generic[F]):
    """One call in `1 / share` has a fault, chosen by the seed and the call's place among the calls of its method and
    chat, so that the order in which chats come does not matter. `methods` keeps all others out."""

    def __init__(
        self,
        seed: int,
        *,
        share: float,
        among: Sequence[F],
        methods: Sequence[str] = ("sendMessage", "editMessageText"),
    ) -> None:
        self._seed, self._share, self._among = seed, share, tuple(among)
        self._methods = {method.lower() for method in methods}
        self._seen: dict[tuple[str, str], int] = {}

    def __call__(self, call: Call) -> F | None:
        name = (call.method.lower(), call.chat_id)
        if name[0] not in self._methods:
            return None
        place = self._seen[name] = self._seen.get(name, 0) + 1
        dice = random.Random(f"{self._seed} {name[0]} {name[1]} {place}")
        return dice.choice(self._among) if dice.random() < self._share else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule(Generic[F]):
    fault: F
    method: str
    chat_id: str
    skip: int
    times: int

    def fits(self, call: Call) -> bool:
        return self.method in ("", call.method.lower()) and self.chat_id in ("", call.chat_id)


class Faults(Generic[F]):
    """The faults of one server: rules, which come first, and a schedule."""

    def __init__(self) -> None:
        self.schedule: Schedule[F] | None = None
        self._rules: list[_Rule[F]] = []

    def add(self, fault: F, *, method: str = "", chat_id: int | str = "", nth: int = 1, times: int = 1) -> None:
        """Do this to the `nth` call from now of a method to a chat (empty: any), and to the `times - 1` after it."""
        rule = _Rule(fault=fault, method=method.lower(), chat_id=str(chat_id), skip=nth - 1, times=times)
        self._rules.append(rule)

    def clear(self) -> None:
        """No faults any more."""
        self.schedule = None
        self._rules.clear()

    def befalling(self, call: Call) -> F | None:
        """The fault of this call, which then names it; asking uses it up."""
        chosen: F | None = None
        rules = []
        for rule in self._rules:
            if rule.fits(call):
                if rule.skip:
                    rule = replace(rule, skip=rule.skip - 1)
                elif chosen is None:
                    chosen = rule.fault
                    rule = replace(rule, times=rule.times - 1)
            if rule.times:
                rules.append(rule)
        self._rules = rules
        fault = chosen or (self.schedule(call) if self.schedule else None)
        call.fault = type(fault).__name__ if fault else ""
        return fault


def cut(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
