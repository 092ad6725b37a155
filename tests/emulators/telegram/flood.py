"""The rates of a bot's messages, and the punishment of a bot that exceeds them.

Source: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this: about one message a second in
a chat, with short bursts; 20 a minute in a group; about 30 a second over all. Telegram does not publish the size of a
burst nor how `retry_after` is chosen: here it is the time until the message would be let through, in whole seconds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from gateway.runtime.clock import Clock
from tests.emulators.telegram.refusals import Refusal, too_many


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`chat_rate`: messages a second in one chat, of which `chat_burst` may come at once; `group_minute` and
    `overall_second`: most in a minute of a group, and in a second over all chats. `slack` seconds are forgiven, because
    messages that left in time do not arrive in step."""

    chat_rate: float = 1.0
    chat_burst: int = 3
    group_minute: int = 20
    overall_second: int = 30
    slack: float = 0.1


class FloodControl:
    """Counts messages and edits against the limits; keeps refused chats resting. `limits`: None switches them off, and
    only rests that were asked for (`rest`) are left."""

    def __init__(self, clock: Clock, limits: Limits | None) -> None:
        self.limits = limits
        self._clock = clock
        self._tokens: dict[int, tuple[float, float]] = {}  # chat → (tokens, when)
        self._groups: dict[int, deque[float]] = {}
        self._overall: deque[float] = deque()
        self._resting: dict[int, float] = {}
        self._asked: dict[int, float] = {}  # when a chat was last asked to be left alone

    def resting(self, chat: int) -> int:
        """For how many seconds a chat must still be left alone; 0 if it need not."""
        left = self._resting.get(chat, 0.0) - self._clock.monotonic()
        return math.ceil(left - 1e-9) if left > 1e-9 else 0

    def asked_after(self, chat: int, moment: float) -> bool:
        """Say whether the rest was asked for after `moment`: a call that came then could not know."""
        return self._asked.get(chat, moment) > moment

    def rest(self, chat: int, seconds: int) -> Refusal:
        """Let a chat rest; the refusal to answer with."""
        self._asked[chat] = self._clock.monotonic()
        self._resting[chat] = self._asked[chat] + seconds
        return too_many(seconds)

    def still(self, seconds: int) -> Refusal:
        """The refusal of a call to a chat that rests already; it does not make the rest longer."""
        return too_many(seconds)

    def take(self, chat: int, *, group: bool) -> None:
        """Count one message to a chat. Raises the refusal if it is one too many."""
        if self.limits is None:
            return
        now = self._clock.monotonic()
        tokens = self._tokens_of(chat, now, self.limits)
        group_times = self._groups.setdefault(chat, deque()) if group else None
        wait = (1 - tokens) / self.limits.chat_rate if tokens < 1 else 0.0
        if group_times is not None:
            wait = max(wait, _until_free(group_times, self.limits.group_minute, 60 - self.limits.slack, now))
        wait = max(wait, _until_free(self._overall, self.limits.overall_second, 1 - self.limits.slack, now))
        if wait > 0:
            raise self.rest(chat, max(1, math.ceil(wait)))
        self._tokens[chat] = (tokens - 1, now)
        self._overall.append(now)
        if group_times is not None:
            group_times.append(now)

    def _tokens_of(self, chat: int, now: float, limits: Limits) -> float:
        tokens, since = self._tokens.get(chat, (float(limits.chat_burst), now))
        return min(float(limits.chat_burst), tokens + (now - since) * limits.chat_rate)


def _until_free(times: deque[float], most: int, seconds: float, now: float) -> float:
    """Return the seconds until fewer than `most` of the times lie within the last `seconds`."""
    while times and times[0] <= now - seconds:
        times.popleft()
    return times[-most] + seconds - now if len(times) >= most else 0.0
