"""A client of Matrix that nobody here wrote (matrix-nio, with vodozemac), in a process and an environment of its own:
`python nio_stranger.py SERVER USER PASSWORD FOLDER`. It reads requests from standard input, a line of JSON each, and
answers each with a line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from nio import (  # type: ignore[import-not-found]
    AsyncClient,
    AsyncClientConfig,
    MegolmEvent,
    RoomEncryptedMedia,
)
from nio.crypto import decrypt_attachment  # type: ignore[import-not-found]


async def answered(client: Any, asked: dict[str, Any]) -> Any:
    """What a request asks for."""
    match asked["do"]:
        case "send":
            how = {"ignore_unverified_devices": True}
            sent = await client.room_send(asked["room"], asked["kind"], asked["content"], **how)
            return sent.event_id
        case "upload":
            content = asked["text"].encode()
            told, keys = await client.upload(lambda *_: content, "text/plain", encrypt=True, filesize=len(content))
            return {**keys, "url": told.content_uri}
        case "download":
            file = asked["file"]
            told = await client.download(file["url"])
            key, digest = file["key"]["k"], file["hashes"]["sha256"]
            return decrypt_attachment(told.body, key, digest, file["iv"]).decode()
        case "join":
            await client.join(asked["room"])
            return await looked(client)
        case "forget":  # a new key for the next message
            client.invalidate_outbound_session(asked["room"])
            return None
        case "devices":
            await client.keys_query() if client.should_query_keys else None
            return [each.id for each in client.device_store.active_user_devices(asked["user"])]
        case "look":
            return await looked(client, asked["seconds"])
    raise ValueError(asked)


async def looked(client: Any, seconds: float = 1.0) -> list[dict[str, Any]]:
    """The events that are new, as they were written; an encrypted one that cannot be read stays as it is."""
    told = await client.sync(timeout=int(seconds * 1000), full_state=False)
    if client.should_upload_keys:
        await client.keys_upload()
    if client.should_query_keys:
        await client.keys_query()
    if client.should_claim_keys:
        await client.keys_claim(client.get_users_for_key_claiming())
    await client.send_to_device_messages()
    found = []
    for room, part in told.rooms.join.items():
        for event in part.timeline.events:
            source = {**event.source, "room": room, "sealed": isinstance(event, MegolmEvent) or event.decrypted}
            if isinstance(event, RoomEncryptedMedia):
                source["file"] = event.source["content"]["file"]
            found.append(source)
    return found


async def main(server: str, user: str, password: str, folder: str) -> None:
    """Log in, and answer until nobody asks."""
    client = AsyncClient(server, user, store_path=folder, config=AsyncClientConfig(encryption_enabled=True))
    try:
        await client.login(password, device_name="stranger")
        await client.sync(timeout=0, full_state=True)
        await client.keys_upload()
        print(json.dumps(client.device_id), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await answered(client, json.loads(line))), flush=True)
    finally:
        await client.close()


if __name__ == "__main__":
    Path(sys.argv[4]).mkdir(parents=True, exist_ok=True)
    asyncio.run(main(*sys.argv[1:]))
