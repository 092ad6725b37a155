"""The part of the store that keeps pins: `pins:<key>` is a document beside the key's sessions, so that a
change of it and of a session's prompt are one step."""

from __future__ import annotations

from typing import Any

from gateway.domain.chat import SessionKey
from gateway.domain.pin import Pins
from gateway.domain.session import Session
from gateway.store.records import Lease, Rebuilt
from gateway.store.redis.codec import session_from
from gateway.store.redis.metering import MeteringStore
from gateway.store.redis.partitions import partition_of_key
from gateway.store.shared.documents import pins_from, pins_json, storable


class PinningStore(MeteringStore):
    """Pins, seen by all processes as soon as they are set."""

    async def pins(self, key: SessionKey) -> Pins:
        document = await self._wire.ask(partition_of_key(key), "GET", f"pins:{key}")
        return pins_from(document) if document else Pins()

    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        parts = ["0"]
        if rebuilt is not None:
            ref, prompt = rebuilt.ref, storable(rebuilt.system_prompt)
            parts = ["1", ref.id, str(ref.epoch), prompt, str(rebuilt.last_prompt_tokens)]

        def read(reply: list[Any]) -> Session | None:
            return session_from(reply[0]) if reply[0] else None

        key = lease.key
        return await self._wire.run(
            partition_of_key(key), "set_pins", str(key), str(lease.fence), pins_json(pins), *parts, read=read
        )
