"""The window that a server of one's own really runs a model with.

The list of models says it at best in a place of its own, and often not at all, or says the length that the model was
trained for. llama.cpp tells it under `/props` (tools/server/README.md of its repository), LM Studio under
`/api/v0/models` (https://lmstudio.ai/docs/app/api/endpoints/rest), and Ollama under `/api/ps` while the model is
loaded and `/api/show` where its file sets one (https://docs.ollama.com/api). Ollama cuts longer prompts without a word,
so its window must be known beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from gateway.providers.windows import is_named, tokens_in, window_in

LookUp = Callable[[str, Mapping[str, Any] | None], Awaitable[Any | None]]
"""The JSON at a path of the server; with a body it is posted. None where there is no such page."""

_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


async def running_window(look_up: LookUp, name: str) -> int | None:
    """The tokens that `name` runs with; None if the server does not say. Raises ProviderError."""
    props = await look_up("/props", None)
    settings = props.get("default_generation_settings") if isinstance(props, Mapping) else None
    if isinstance(settings, Mapping) and (window := tokens_in(settings, "n_ctx")):
        return window
    return window_in(await look_up("/api/v0/models", None), name) or await _of_ollama(look_up, name)


async def _of_ollama(look_up: LookUp, name: str) -> int | None:
    loaded = _loaded(await look_up("/api/ps", None), name)
    if loaded is not None:
        return loaded
    shown = await look_up("/api/show", {"model": name})
    if not isinstance(shown, Mapping):
        return None
    if set_by_file := _NUM_CTX.search(str(shown.get("parameters", ""))):
        return int(set_by_file[1])
    await look_up("/api/generate", {"model": name, "stream": False})  # loads it, as the first message would
    return _loaded(await look_up("/api/ps", None), name)


def _loaded(running: Any, name: str) -> int | None:
    entries = running.get("models") if isinstance(running, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and is_named(entry.get("name"), name):
            return tokens_in(entry, "context_length")
    return None
