"""What servers of one's own say of the window beside Chat Completions, each in its own way.

- llama.cpp: `meta` in the list of models, `/props` (tools/server/README.md of its repository). It answers to any name.
- Ollama: nothing in the list; `/api/ps` while a model is loaded, `/api/show` for what its file says. An empty call of
  `/api/generate` loads a model (https://docs.ollama.com/api).
- LM Studio: `/api/v0/models` (https://lmstudio.ai/docs/app/api/endpoints/rest).
- vLLM: `max_model_len` in the list.

    async with local_server("ollama", window=4_096) as server: ... server.url
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KINDS = ("llama.cpp", "llama.cpp, older", "ollama", "lmstudio", "vllm")


@dataclass(kw_only=True)
class LocalServer:
    """One server. `loaded`: whether an Ollama holds its model in memory; `num_ctx`: what the model's file sets."""

    kind: str
    window: int
    model: str
    loaded: bool = True
    num_ctx: int | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """One request."""
        self.asked.append(request.path)
        if request.path == "/api/generate":
            self.loaded = True
        found = self._pages().get(request.path)
        if found is None:
            return web.json_response({"error": {"message": "File Not Found", "type": "not_found_error"}}, status=404)
        return web.json_response(found)

    def _pages(self) -> dict[str, Any]:
        trained = 131_072
        plain = {"id": self.model, "object": "model"}
        if self.kind.startswith("llama.cpp"):
            meta = {"n_ctx_train": trained, "n_vocab": 32_000} | (
                {"n_ctx": self.window} if self.kind == "llama.cpp" else {}
            )
            listed = {**plain, "id": f"/models/{self.model}.gguf", "owned_by": "llamacpp", "meta": meta}
            props = {"default_generation_settings": {"n_ctx": self.window, "params": {}}, "total_slots": 1}
            return {"/v1/models": _list(listed), "/props": props}
        if self.kind == "vllm":
            return {"/v1/models": _list({**plain, "owned_by": "vllm", "max_model_len": self.window})}
        if self.kind == "lmstudio":
            loaded = {**plain, "state": "loaded", "max_context_length": trained, "loaded_context_length": self.window}
            other = {"id": "another", "object": "model", "state": "not-loaded", "max_context_length": 4}
            return {"/v1/models": _list(plain, {**plain, "id": "another"}), "/api/v0/models": _list(other, loaded)}
        name = f"{self.model}:latest"
        running = [{"name": name, "model": name, "context_length": self.window}] if self.loaded else []
        shown: dict[str, Any] = {"model_info": {"llama.context_length": trained}}
        if self.num_ctx:
            shown["parameters"] = (
                f'stop                           "</s>"\nnum_ctx                        {self.num_ctx}'
            )
        return {
            "/v1/models": _list({**plain, "id": name, "owned_by": "library"}, {**plain, "id": "other:7b"}),
            "/api/ps": {"models": running},
            "/api/show": shown,
            "/api/generate": {"model": name, "response": "", "done": True},
        }


def _list(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


@asynccontextmanager
async def local_server(kind: str, window: int, model: str = "qwen3", **more: Any) -> AsyncIterator[LocalServer]:
    """A server of this kind on loopback."""
    server = LocalServer(kind=kind, window=window, model=model, **more)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()
