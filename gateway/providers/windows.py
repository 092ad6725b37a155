"""A server's list of models: their names and windows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.providers.base import OfferedModel

# Servers' names of a model's window; the one that they run with comes before the one of the model's training.
_WINDOW_KEYS: Final = (
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)
_LARGEST: Final = 10**9  # tokens; a number beyond means that nobody knows


def window_in(models: Any, name: str) -> int | None:
    """The window in tokens that a server's list of models states for one of them, or None."""
    return next((window for entry in _entries(models) if entry["id"] == name and (window := _window(entry))), None)


def offered(models: Any) -> list[OfferedModel]:
    """The models of a server's list, in its order, each once."""
    found = {entry["id"]: OfferedModel(name=entry["id"], window=_window(entry)) for entry in _entries(models)}
    return list(found.values())


def _entries(models: Any) -> Iterator[Mapping[str, Any]]:
    entries = models.get("data") if isinstance(models, Mapping) else models
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str) and entry["id"]:
            yield entry


def _window(entry: Mapping[str, Any]) -> int | None:
    for key in _WINDOW_KEYS:
        window = entry.get(key)
        if isinstance(window, int) and not isinstance(window, bool) and 0 < window <= _LARGEST:
            return window
    return None
