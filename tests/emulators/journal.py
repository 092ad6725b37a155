"""The journal of a server: the requests, the answers, and the requests that nobody should have made."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.runtime.clock import Clock

_NOW_AND_THEN: Final = 0.1  # seconds


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a method.

    `at`: monotonic seconds; `chat_id`: the chat it names, as the caller wrote it; `done`: it had its effect;
    `answered`: its answer was written (whether it arrived is another matter); `fault`: what was done to it on purpose;
    `status`: 0 until there is one; `result`: what a successful call gave.
    """

    number: int
    at: float
    method: str
    chat_id: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    status: int = 0
    description: str = ""
    fault: str = ""
    done: bool = False
    answered: bool = False
    result: Any = None

    @property
    def ambiguous(self) -> bool:
        """Say whether the call was done without a word to its caller."""
        return self.done and not self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A call that a bot which keeps to the rules does not make."""

    at: float
    method: str
    chat_id: str
    text: str

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.method} {self.chat_id}: {self.text}"


class Journal:
    """The newest `keep` calls and all violations. Whoever waits for something is woken by every change."""

    def __init__(self, clock: Clock, *, keep: int) -> None:
        self.calls: deque[Call] = deque(maxlen=keep)
        self.violations: list[Violation] = []
        self._clock = clock
        self._number = 0
        self._changed = asyncio.Event()

    def open(self, method: str, chat_id: str, parameters: dict[str, Any]) -> Call:
        """Note a call as it comes in."""
        self._number += 1
        at = self._clock.monotonic()
        call = Call(number=self._number, at=at, method=method, chat_id=chat_id, parameters=parameters)
        self.calls.append(call)
        self.changed()
        return call

    def violation(self, method: str, chat_id: str, text: str) -> None:
        """Note what should not have happened."""
        self.violations.append(Violation(at=self._clock.monotonic(), method=method, chat_id=chat_id, text=text))

    def of(self, method: str, chat_id: int | str | None = None) -> Iterator[Call]:
        """The calls of a method, of one chat if it is given."""
        for call in self.calls:
            if call.method.lower() == method.lower() and (chat_id is None or call.chat_id == str(chat_id)):
                yield call

    def changed(self) -> None:
        """Wake those who wait."""
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Return the value of `condition()` once that is true; the server asks after every call, after every change of
        a chat, and now and then: what is waited for may follow the last of them."""
        while not (value := condition()):
            with suppress(TimeoutError):
                async with asyncio.timeout(_NOW_AND_THEN):
                    await self.change()
        return value

    async def change(self) -> None:
        """Return when something has changed since this was called."""
        self._changed.clear()
        await self._changed.wait()
