"""The rates of a bot's requests, and the punishment of a bot that exceeds them.

Source: https://discord.com/developers/docs/topics/rate-limits: buckets by route and major parameter, told in headers;
50 requests a second over all, of which interactions are free; and 10,000 refused requests in ten minutes lock a bot out
for a while. The sizes of the buckets are not published: these are what bots meet.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.runtime.clock import Clock

USUAL: Final[Mapping[str, tuple[int, float]]] = {
    "POST /channels/{channel}/messages": (5, 5.0),
    "PATCH /channels/{channel}/messages/{message}": (5, 5.0),
    "DELETE /channels/{channel}/messages/{message}": (5, 1.0),
    "GET /channels/{channel}/messages": (5, 1.0),
    "POST /channels/{channel}/typing": (5, 5.0),
    "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": (1, 0.25),
    "POST /channels/{channel}/messages/{message}/threads": (50, 300.0),
    "POST /users/@me/channels": (10, 600.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`routes`: route → (requests, seconds); `usual`: for all others; `overall`: requests a second over all;
    `invalid`: 401, 403 and 429 in ten minutes, after which Cloudflare bans the bot for `ban` seconds."""

    routes: Mapping[str, tuple[int, float]] = field(default_factory=lambda: USUAL)
    usual: tuple[int, float] = (5, 1.0)
    overall: int = 50
    invalid: int = 10_000
    ban: float = 600.0


GLOBAL: Final = {"X-RateLimit-Global": "true"}  # headers of what is asked of all requests
_BOUNDLESS: Final = (1_000_000, 1.0)


@dataclass(slots=True)
class _Bucket:
    """`left` of `most` until `until` (monotonic)."""

    most: int
    span: float
    left: int
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The fate of a request, and the headers of its answer. `wait`: 0, or the seconds of a 429; `banned`: that one
    comes from Cloudflare."""

    wait: float = 0.0
    scope: str = "user"
    banned: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of a 429."""
        text = "You are being rate limited."
        return {"message": text, "retry_after": round(self.wait, 3), "global": self.scope == "global", "code": 0}


class Buckets:
    """Counts requests. `limits`: None lets all through; the headers then tell of buckets without a bottom."""

    def __init__(self, clock: Clock, limits: Limits | None) -> None:
        self.limits = limits
        self._clock = clock
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._overall: deque[float] = deque()
        self._invalid: deque[float] = deque()
        self._banned_until = 0.0
        self._resting_until = 0.0

    def take(self, route: str, major: str, *, free: bool = False) -> Verdict:
        """Count one request. `free`: the limit over all does not count it."""
        now = self._clock.monotonic()
        if now < self._banned_until:
            return Verdict(wait=self._banned_until - now, banned=True)
        if not free and (wait := self._overall_wait(now)):
            return Verdict(wait=wait, scope="global", headers=GLOBAL)
        bucket = self._bucket(route, major, now)
        over = bucket.left <= 0
        bucket.left = max(0, bucket.left - 1)
        headers = self._headers(route, bucket, now)
        return Verdict(wait=bucket.until - now if over else 0.0, headers=headers)

    def refused(self, status: int) -> None:
        """Count an answer against the ban of Cloudflare."""
        if self.limits is None or status not in (401, 403, 429):
            return
        now = self._clock.monotonic()
        self._invalid.append(now)
        while self._invalid[0] < now - 600:
            self._invalid.popleft()
        if len(self._invalid) >= self.limits.invalid:
            self.ban(self.limits.ban)

    def ban(self, seconds: float) -> None:
        """Lock the bot out."""
        self._invalid.clear()
        self._banned_until = self._clock.monotonic() + seconds

    def rest(self, seconds: float) -> None:
        """Refuse all that is not free."""
        self._resting_until = self._clock.monotonic() + seconds

    def _overall_wait(self, now: float) -> float:
        if now < self._resting_until:
            return self._resting_until - now
        if self.limits is None:
            return 0.0
        while self._overall and self._overall[0] <= now - 1:
            self._overall.popleft()
        if len(self._overall) >= self.limits.overall:
            return self._overall[0] + 1 - now
        self._overall.append(now)
        return 0.0

    def _bucket(self, route: str, major: str, now: float) -> _Bucket:
        found = self._buckets.get((route, major))
        if found is None or found.until <= now:
            most, span = self.limits.routes.get(route, self.limits.usual) if self.limits else _BOUNDLESS
            found = self._buckets[route, major] = _Bucket(most, span, most, now + span)
        return found

    def _headers(self, route: str, bucket: _Bucket, now: float) -> dict[str, str]:
        left = max(0.0, bucket.until - now)
        return {
            "X-RateLimit-Limit": str(bucket.most),
            "X-RateLimit-Remaining": str(bucket.left),
            "X-RateLimit-Reset": f"{self._clock.now() + left:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": hashlib.blake2s(route.encode(), digest_size=16).hexdigest(),
        }
