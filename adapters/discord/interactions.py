"""Answers to slash commands and to buttons: https://discord.com/developers/docs/interactions/receiving-and-responding

Discord waits three seconds for a first word, which is "wait"; then it takes the answer for fifteen minutes, from any
holder of the interaction's token. That lies in the event's name, so any process can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from discord.errors import NotFound
from discord.http import Route

from adapters.discord import codec, failures
from adapters.discord.commands import SlashCommands
from adapters.discord.components import form_for
from adapters.discord.connection import DiscordClient
from gateway.domain.adapter import Accepted
from gateway.domain.command import Proposal
from gateway.domain.reading import Recent
from gateway.runtime.clock import Clock
from gateway.runtime.errors import DeliveryRefused

log = structlog.get_logger(__name__)

_FIRST_WORD: Final = 2.8  # seconds
_GOOD_FOR: Final = 14 * 60.0  # seconds of the fifteen minutes: what begins later may be too late on arrival
PRESSES: Final = (3, 5)  # kinds of interactions: buttons and menus, forms that were sent
_MESSAGE, _WAIT, _NOTHING_YET, _CHOICES, _FORM = 4, 5, 6, 8, 9  # kinds of first words
_MOST_CHOICES: Final = 25
_LONGEST_CHOICE: Final = 100
_PRIVATE: Final = 1 << 6  # flags of messages
_LOADING: Final = 1 << 7

PASSED_ON: Final = "Noted."
NOT_TAKEN: Final = "I could not store this command, so I did nothing. Send the command again, or type it as a message."
NOT_KNOWN: Final = (
    "I did nothing, because I do not know you, or cannot read the command. Ask the person who runs this bot for help."
)
TOO_LATE: Final = "only one person should see the answer, and Discord no longer accepts it; send the command again"


class Interactions:
    """The interactions of one bot. `_waiting`: those that this process asked to wait, and did not answer itself."""

    def __init__(self, connection: DiscordClient, commands: SlashCommands, clock: Clock) -> None:
        self._connection = connection
        self._commands = commands
        self._clock = clock
        self._waiting: set[str] = set()
        self._over: Recent[str, None] = Recent()  # those that take no answer any more

    async def acknowledge(self, data: Mapping[str, Any], *, private: bool, refused: bool = False) -> None:
        """Say the first word. Nobody relies on its arrival: the answer finds out whether Discord waits for it.
        `refused`: only the person is told why nothing is done."""
        private = private or refused
        first: dict[str, Any] = {"type": _WAIT, "data": {"flags": _PRIVATE if private else 0}}
        if data["type"] in PRESSES:
            form = form_for(data["data"])
            first = {"type": _NOTHING_YET} if form is None else {"type": _FORM, "data": form}
        elif not refused and self._commands.passes_on(data["data"]["name"]):
            first = {"type": _MESSAGE, "data": {**_sentence(PASSED_ON), "flags": _PRIVATE}}
        try:
            async with self._clock.limit(_FIRST_WORD):
                await self._connection.calls.request(_callback(data), json=first)
        except failures.Foreign as error:
            log.warning("interaction_not_acknowledged", error=str(failures.mapped(error)))
            if failures.is_over(error):
                return
        if first["type"] == _WAIT:
            self._waiting.add(data["id"])

    async def propose(self, data: Mapping[str, Any], proposals: Sequence[Proposal]) -> None:
        """Show values to a person who types a command. Nobody misses them for long, so errors are only logged."""
        choices = [
            {"name": each.label[:_LONGEST_CHOICE], "value": each.value}
            for each in proposals
            if each.label and 0 < len(each.value) <= _LONGEST_CHOICE
        ]
        try:
            async with self._clock.limit(_FIRST_WORD):
                said = {"type": _CHOICES, "data": {"choices": choices[:_MOST_CHOICES]}}
                await self._connection.calls.request(_callback(data), json=said)
        except failures.Foreign as error:
            log.info("nothing_proposed", error=str(failures.mapped(error)))

    async def show(self, each: codec.Interaction, payload: Mapping[str, Any], *, may_be_public: bool) -> str | None:
        """Give an answer: what it is known by. None: it is to be a message of its own. Raises what the library raises,
        and DeliveryRefused."""
        said = {
            name: payload[name] for name in ("content", "components", "allowed_mentions", "flags") if name in payload
        }
        if each.id not in self._over and self._clock.now() - codec.moment(each.id) < _GOOD_FOR:
            try:
                if (shown := await self._answered(each, said)) is not None:
                    return f"@{shown}" if each.private else shown
            except failures.Foreign as error:
                if not failures.is_over(error):
                    raise
                self._over[each.id] = None
        self._waiting.discard(each.id)
        if each.private and not (may_be_public or each.elsewhere):
            raise DeliveryRefused(TOO_LATE)
        return None

    async def _answered(self, each: codec.Interaction, said: Mapping[str, Any]) -> str | None:
        """The answer in place of "wait", or after it if that is gone or only one person may see the answer."""
        try:
            found = await self._call("GET", each, "/messages/@original")  # another process may have answered
            self._waiting.discard(each.id)
            if found.get("flags", 0) & _LOADING:
                return str((await self._call("PATCH", each, "/messages/@original", json=_edited(said)))["id"])
            if (found.get("content") or "").strip() == said["content"].strip():
                return str(found["id"])
            if not each.private:
                return None
        except NotFound as error:
            if error.code != failures.UNKNOWN_MESSAGE:
                raise
        flags = said.get("flags", 0) | (_PRIVATE if each.private else 0)
        return str((await self._call("POST", each, "", json={**said, "flags": flags}, params={"wait": "true"}))["id"])

    async def edit(self, each: codec.Interaction, message: str, payload: Mapping[str, Any]) -> None:
        """Change an answer that only one person sees. Raises what the library raises."""
        await self._call("PATCH", each, f"/messages/{message}", json=_edited(payload))

    async def conclude(self, data: Mapping[str, Any], result: Accepted | None) -> None:
        """An interaction was stored or refused: nobody may be left waiting for an answer that does not come."""
        each = codec.Interaction(id=data["id"], token=data["token"], private=True)
        try:
            if data["type"] in PRESSES:
                if result is not None and result.told:
                    await self._call("POST", each, "", json={**_sentence(result.told), "flags": _PRIVATE})
                return
            if each.id not in self._waiting:
                return
            is_taken = result is not None and result.status in ("new", "duplicate")
            if is_taken:
                await self._clock.sleep(_GOOD_FOR)
            if each.id in self._waiting:
                self._waiting.discard(each.id)
                found = await self._call("GET", each, "/messages/@original")
                if not found.get("flags", 0) & _LOADING:
                    return
                if is_taken:
                    await self._call("DELETE", each, "/messages/@original")
                else:
                    told = NOT_TAKEN if result is None else result.told or NOT_KNOWN
                    await self._call("PATCH", each, "/messages/@original", json=_sentence(told))
        except failures.Foreign as error:  # too late, or told before
            log.info("interaction_not_concluded", error=str(failures.mapped(error)))

    async def _call(self, method: str, each: codec.Interaction, path: str, **how: Any) -> Any:
        route = Route(
            method,
            "/webhooks/{webhook_id}/{webhook_token}" + path,
            webhook_id=self._connection.application_id,
            webhook_token=each.token,
        )
        return await self._connection.calls.request(route, **how)


def _callback(data: Mapping[str, Any]) -> Route:
    return Route(
        "POST",
        "/interactions/{webhook_id}/{webhook_token}/callback",
        webhook_id=data["id"],
        webhook_token=data["token"],
    )


def _sentence(text: str) -> dict[str, Any]:
    return {"content": text[: codec.LONGEST], "allowed_mentions": codec.NO_PINGS}


def _edited(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"components": [], **{name: value for name, value in payload.items() if name != "flags"}}
