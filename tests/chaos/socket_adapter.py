"""The adapter of the tests' own platform (`socket_platform`), written as one for a real platform is.

The platform confirms: it hands an update out again until it is told that it was taken, and answers a
send with the message's id. Each request is one connection, one line of JSON each way, and one that says
that the answer was heard, for the platform's log. There are two ways to read it: polling, which one
process does at a time, and deliveries to any process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Inbound, Outbound, Source
from gateway.runtime.clock import Clock
from gateway.runtime.errors import Ambiguous, DeliveryRefused, Disconnected, RateLimited, StoreUnavailable

ANSWER_SECONDS: Final = 8.0
_AGAIN: Final = 1.0  # seconds before a platform or a store that is away is asked again
_LINE: Final = 1 << 20


def inbound(update: Mapping[str, Any], platform: str) -> Inbound:
    """An update as the gateway knows it."""
    return Inbound(
        event_id=update["id"],
        source=Source(
            platform=platform,
            chat=update["chat"],
            chat_type="group" if update["group"] else "direct",
            user=update["user"],
            user_name=update["user"],
        ),
        text=update["text"],
        sent_at=update["at"],
    )


class SocketAdapter:
    """Sends from any process, and takes deliveries in any process. `process` is told to the platform
    with every request, for its log."""

    name = "socket"
    limits = Limits(text_units=4_096, ambiguous_retries=1_000)  # its log has the row of each message

    def __init__(self, path: str, *, process: int, clock: Clock) -> None:
        self._path = path
        self._process = process
        self._clock = clock

    async def run(self, accept: Accept) -> None:
        """Take deliveries until cancelled."""
        while True:
            try:
                reader, writer = await self._dial()
            except Disconnected:
                await self._clock.sleep(_AGAIN)
                continue
            try:
                _say(writer, {"op": "listen", "process": self._process})
                while line := await reader.readline():
                    update = json.loads(line)
                    await self._take(accept, [inbound(update, self.name)])
                    _say(writer, {"taken": update["number"]})
            except (OSError, ValueError):
                pass  # cut in the middle of a line: it comes again
            finally:
                writer.close()
            await self._clock.sleep(_AGAIN)

    async def send(self, outbound: Outbound) -> str:
        """Show a message. Raises what became of it otherwise."""
        answer = await self._ask(
            {
                "op": "send",
                "process": self._process,
                "row": outbound.id,
                "chat": outbound.to.chat,
                "kind": outbound.kind,
                "text": outbound.text,
                "answers": outbound.answers,
            }
        )
        status = answer["status"]
        if status == 200:
            return str(answer["id"])
        if status == 429:
            raise RateLimited("The platform asks for silence.", retry_after=answer["retry_after"])
        if status == 400:
            raise DeliveryRefused(answer["why"])
        raise Disconnected(f"The platform took nothing ({status}).")

    async def aclose(self) -> None:
        """Nothing stays open between two requests."""

    async def _take(self, accept: Accept, batch: Sequence[Inbound]) -> None:
        """Hand over until the store has it."""
        while True:
            try:
                await accept(batch)
            except StoreUnavailable:
                await self._clock.sleep(_AGAIN)
            else:
                return

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_unix_connection(self._path, limit=_LINE)
        except OSError as error:
            raise Disconnected("The platform cannot be reached.") from error

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One request, one answer. Raises Disconnected if it certainly was not heard, Ambiguous if it
        may have been."""
        reader, writer = await self._dial()
        try:
            async with self._clock.limit(ANSWER_SECONDS):
                _say(writer, request)
                await writer.drain()
                line = await reader.readline()
            if not line.endswith(b"\n"):
                raise Ambiguous("The platform hung up before it answered.")
            answer: dict[str, Any] = json.loads(line)
            _say(writer, {"heard": True})
            return answer
        except TimeoutError as error:
            raise Ambiguous("The platform did not answer in time.") from error
        except OSError as error:
            raise Ambiguous("The connection broke before the platform answered.") from error
        finally:
            writer.close()


class PollingSocketAdapter(SocketAdapter):
    """Reads by polling, which the platform allows one process at a time."""

    account = "bot"
    waits_for_account = True
    reader_sends = False

    async def run(self, accept: Accept) -> None:
        """Poll until cancelled. Asking for what comes next tells that everything before was taken."""
        taken = -1
        while True:
            try:
                answer = await self._ask({"op": "poll", "process": self._process, "taken": taken})
            except (Disconnected, Ambiguous):
                await self._clock.sleep(_AGAIN)
                continue
            if answer["status"] != 200:
                await self._clock.sleep(_AGAIN)
                continue
            updates = answer["updates"]
            if updates:
                await self._take(accept, [inbound(update, self.name) for update in updates])
                taken = max(taken, *(update["number"] for update in updates))


def _say(writer: asyncio.StreamWriter, words: Mapping[str, Any]) -> None:
    writer.write(json.dumps(words).encode() + b"\n")
