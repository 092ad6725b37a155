"""The API in the test's own process, and OpenAI's client before it.

async with api(tmp_path, model=FakeModel(echo)) as live:
    await live.client().chat.completions.create(model="legato", messages=[...])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from adapters.api.adapter import ApiAdapter
from adapters.api.platform import ApiSettings
from gateway.app import build as bootstrap
from gateway.app.config import Config
from gateway.app.gateway import Gateway
from gateway.domain.keys import Key
from gateway.people.keys import Keys
from gateway.providers.plugin import ServedModel
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from tests.support.gateway import config_in
from tests.support.model import PATIENCE, FakeModel
from tests.support.page import host_in


@dataclass
class LiveApi:
    """A running gateway with its API, and the secret of anna's key."""

    gateway: Gateway
    adapter: ApiAdapter
    model: FakeModel
    secret: str
    clients: list[AsyncOpenAI] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)

    def client(self, secret: str = "", **more: Any) -> AsyncOpenAI:
        """OpenAI's client with a key, anna's if no other is named. It tries nothing twice."""
        made = AsyncOpenAI(base_url=f"{self.adapter.at}/v1", api_key=secret or self.secret, max_retries=0, **more)
        self.clients.append(made)
        return made

    async def key(self, name: str, **facts: Any) -> str:
        """Another key's secret."""
        return await Keys(store=self.gateway.store, clock=SystemClock()).add(Key(name=name, **facts))


@asynccontextmanager
async def api(
    folder: Path, *, model: FakeModel | None = None, config: Config | None = None, port: int = 0, **parts: Any
) -> AsyncIterator[LiveApi]:
    """A gateway with an API; stopped in order at the end. A store that is there has a key already."""
    adapter, model = ApiAdapter(ApiSettings(enabled=True, port=port), host_in(folder)), model or FakeModel()
    made = bootstrap.Parts(providers={"offline": model, "openai": model})
    served = ServedModel(provider="openai", name="fake")
    gateway = bootstrap.build(config or config_in(folder, model=served), [adapter], replace(made, **parts))
    serving = asyncio.create_task(gateway.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await adapter.listens.wait()
        live = LiveApi(gateway=gateway, adapter=adapter, model=model, secret="")
        kept = folder / "secret"
        if not kept.exists():
            kept.write_text(await live.key("anna"))
        live.secret = kept.read_text()
        yield live
        for each in live.clients:
            await each.close()
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
