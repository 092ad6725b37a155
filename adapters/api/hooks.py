"""Hooks: other programs tell a chat something.

request                                             answer
--------------------------------------------------  ----------------------------------------------------------
to a hook that does not exist                       404
too large, packed, not signed, no text              413, 415, 401, 400
GitHub's ping, Slack's challenge                    200, and nothing is told
more than `per_minute`, or its chat's lane is full  429 with Retry-After: senders try again
any other                                           200 once it is stored, `new` or a `duplicate`
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import structlog
from aiohttp import web
from msgspec import Struct, field

from adapters.api.platform import HookSettings
from adapters.api.server import body_of, parts_of
from adapters.api.shapes import ApiError
from adapters.api.signing import Unsigned, check, data_in, names_of
from adapters.api.templates import filled
from gateway.domain.adapter import Event, Finding, TakeEvent
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError

log = structlog.get_logger(__name__)

LARGEST: Final = 1_000_000  # bytes
_MINUTE: Final = 60.0
_FULL_FOR: Final = 10.0  # seconds until a full lane is worth another try


class Hooks(Struct, kw_only=True):
    """Takes deliveries. `_since` and `_taken`: the running minute of each hook (monotonic), and its deliveries;
    `_refused`: those that were not signed."""

    hooks: Mapping[str, HookSettings]
    take_event: TakeEvent
    clock: Clock
    _since: dict[str, float] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Take a delivery. Raises ApiError, StoreUnavailable."""
        name = parts_of(request)["name"]
        if (hook := self.hooks.get(name)) is None:
            raise ApiError(404, "There is no hook with this name. adapters.api.hooks in config.yaml names the hooks.")
        body = await body_of(request, self.clock, most=LARGEST)

        def header(title: str) -> str | None:
            given = request.headers.getall(title, [])
            return given[0] if len(given) == 1 else None

        now = self.clock.now()
        try:
            check(hook.signature, hook.secret.get_secret_value(), header, body, now)
        except Unsigned as problem:
            self._count_refused(name, str(problem), request.remote)
            raise ApiError(401, str(problem)) from None
        try:
            data = data_in(body)
        except ValueError as error:
            raise ApiError(400, f"The body cannot be read: {error}.") from None
        if (at_once := _at_once(hook, header("X-GitHub-Event"), data)) is not None:
            return web.json_response(at_once)
        self._count(name, hook.per_minute)
        own, *also = names_of(hook.signature, name, header, body, data, now)
        event = Event(
            what=f"an event came from {name}",
            id=own,
            also=tuple(also),
            to=hook.to,
            text=filled(hook.template, data),
            task=None if hook.do == "show" else hook.task or "",
            person=hook.person,
            lets=hook.tools,
        )
        return web.json_response({"ok": True, "id": own, "status": await self._taken_as(event)})

    async def _taken_as(self, event: Event) -> str:
        try:
            status = await self.take_event(event)
        except UserError as error:
            log.error("hook_leads_nowhere", what=event.what, error=str(error))
            raise ApiError(409, str(error)) from None
        if status == "full":
            raise ApiError(
                429,
                "Too many messages are waiting in this chat. Send the event again later.",
                retry_after=_FULL_FOR,
            )
        return status

    def _count(self, name: str, most: int) -> None:
        """Count a delivery. Raises ApiError beyond the hook's limit."""
        now = self.clock.monotonic()
        if now - self._since.get(name, -_MINUTE) >= _MINUTE:
            self._since[name], self._taken[name] = now, 0
        if self._taken[name] >= most:
            left = self._since[name] + _MINUTE - now
            raise ApiError(
                429, f"This hook takes at most {most} events a minute. Send the event again later.", retry_after=left
            )
        self._taken[name] += 1

    def _count_refused(self, name: str, why: str, remote: str | None) -> None:
        """Only the 1st, 2nd, 4th, 8th… is logged, so that nobody can fill the log."""
        count = self._refused[name] = self._refused.get(name, 0) + 1
        if count & (count - 1) == 0:
            log.warning("hook_refused", hook=name, why=why, count=count, remote=remote)


def _at_once(hook: HookSettings, event: str | None, data: Any) -> Mapping[str, object] | None:
    """The answer to a sender that only asks whether the hook is there."""
    if hook.signature == "github" and event == "ping":
        return {"ok": True, "status": "pong"}
    if hook.signature == "slack" and isinstance(data, dict) and data.get("type") == "url_verification":
        return {"challenge": str(data.get("challenge", ""))[:1_000]}
    return None


def routes(hooks: Mapping[str, HookSettings], take_event: TakeEvent, clock: Clock) -> Sequence[web.RouteDef]:
    """The routes of these hooks."""
    return [web.post("/hook/{name}", Hooks(hooks=hooks, take_event=take_event, clock=clock).answer)]


def findings(hooks: Mapping[str, HookSettings], where: str, served: Collection[str]) -> Iterator[Finding]:
    """What `legato check` says of hooks. `served`: the platforms that are enabled."""
    for name, hook in hooks.items():
        does = "shows it in" if hook.do == "show" else "asks the agent in"
        told = f"{where}/hook/{name}, signed as {hook.signature}, {does} {hook.chat}"
        to = hook.to
        ok = to is None or to.platform in served
        if to is not None and not ok:
            told += f": {to.platform} is not switched on here; enable it in `adapters`, or name another chat"
        yield Finding(what="hook", ok=ok, detail=told)
