"""A person whose program encrypts, and was written by strangers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.domain.turn import BUSY
from tests.support.model import PATIENCE
from tests.support.programs import SYNAPSE
from tests.support.synapse import Person, Synapse

_PROGRAM = Path(__file__).with_name("nio_stranger.py")
SEALED = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}


@dataclass
class Stranger:
    """`seen`: events as they were written, in order."""

    person: Person
    program: asyncio.subprocess.Process
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Who it is."""
        return self.person.id

    async def does(self, do: str, **how: Any) -> Any:
        """Have the program do something; returns what it says."""
        assert self.program.stdin is not None
        self.program.stdin.write(json.dumps({"do": do, **how}).encode() + b"\n")
        return await said(self.program)

    async def says(self, room: str, text: str, **content: Any) -> str:
        """Write a message."""
        body = {"msgtype": "m.text", "body": text, **content}
        return str(await self.does("send", room=room, kind="m.room.message", content=body))

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition returns, once that is something."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                self.seen += await self.does("look", seconds=0.5)
        return found

    def by(self, sender: str) -> list[dict[str, Any]]:
        """The messages of somebody, without edits."""
        found = [each for each in self.seen if each["sender"] == sender and each["type"] == "m.room.message"]
        return [each for each in found if each["content"].get("m.relates_to", {}).get("rel_type") != "m.replace"]

    def shown(self, sender: str) -> list[str]:
        """The present texts of these."""
        texts = {each["event_id"]: each["content"]["body"] for each in self.by(sender)}
        for each in self.seen:
            relation = each["content"].get("m.relates_to", {})
            if each["sender"] == sender and relation.get("rel_type") == "m.replace":
                texts[relation["event_id"]] = each["content"]["m.new_content"]["body"]
        return [text for text in texts.values() if text != BUSY]


async def said(program: asyncio.subprocess.Process) -> Any:
    """The next line of it."""
    assert program.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = await program.stdout.readline()
    assert line, "the stranger's program ended"
    return json.loads(line)


@asynccontextmanager
async def stranger(synapse: Synapse, folder: Path, name: str = "Anna") -> AsyncIterator[Stranger]:
    """Somebody new at such a program."""
    person = synapse.person(name)
    command = [str(SYNAPSE), str(_PROGRAM), synapse.url, person.id, "secret", str(folder)]
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**24)
    try:
        await said(program)
        yield Stranger(person, program)
    finally:
        program.kill()
        await program.wait()
