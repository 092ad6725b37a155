"""What servers say of their models: names and windows. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.providers.base import OfferedModel

# Servers' names of a model's window; the one that they run with comes before the one of the model's training.
_WINDOW_KEYS: Final = (
    "max_model_len",
    "loaded_context_length",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)
_LARGEST: Final = 10**9  # tokens; a number beyond means that nobody knows
# Servers' words for what a model can do: OpenRouter, Mistral, LM Studio, Ollama, Hugging Face, GitHub, Anthropic.
_ABILITIES: Final = frozenset({"input_modalities", "supported_parameters", "capabilities", "modalities"})
_SIGHT: Final = frozenset({"image", "vision", "image_input"})
_TOOLS: Final = frozenset({"tools", "function_calling", "tool_use", "tool-calling"})
_TELLING: Final = {_SIGHT: frozenset({"input_modalities"}), _TOOLS: frozenset({"supported_parameters"})}  # whole lists
_DEAREST: Final = 1_000_000.0  # US dollars; a number beyond, or below 0, means that nobody knows
_OWN_DOMAINS: Final = (".local", ".lan", ".internal", ".localhost", ".home.arpa")


def is_near(base_url: str | None) -> bool:
    """Whether an address is on this machine or in its network, as far as one can see."""
    host = urlsplit(base_url or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_OWN_DOMAINS))


def window_in(models: Any, name: str) -> int | None:
    """The window in tokens that a server's list of models states for one of them, or None. A server with a single model
    answers to any name."""
    entries = list(_entries(models))
    found = [entry for entry in entries if entry["id"] == name] or [e for e in entries if is_named(e["id"], name)]
    found = found or (entries if len(entries) == 1 else [])
    return next((window for entry in found if (window := _window(entry))), None)


def is_named(listed: Any, name: str) -> bool:
    """Whether a server means the model of this name: it may add a tag, a folder or the ending of the file."""
    return isinstance(listed, str) and _plain(listed) == _plain(name)


def _plain(name: str) -> str:
    return name.lower().replace("\\", "/").rpartition("/")[2].removesuffix(".gguf").removesuffix(":latest")


def offered(models: Any) -> list[OfferedModel]:
    """The models of a server's list, in its order, each once."""
    return list({entry["id"]: _offered(entry) for entry in _entries(models)}.values())


def _offered(entry: Mapping[str, Any]) -> OfferedModel:
    read, write = _prices(entry)
    return OfferedModel(
        name=entry["id"],
        window=_window(entry),
        pictures=_can(entry, _SIGHT),
        tools=_can(entry, _TOOLS),
        read_usd=read,
        write_usd=write,
    )


def _can(entry: Mapping[str, Any], words: frozenset[str]) -> bool | None:
    """Whether a model can do what one of these words stands for; None if its entry has no list of abilities."""
    beside = entry.get("architecture")
    places = (entry, beside) if isinstance(beside, Mapping) else (entry,)
    said = [place[key] for place in places for key in _ABILITIES & place.keys()]
    for each in said:
        if isinstance(each, Mapping) and (told := [each[word] for word in words & each.keys()]):
            return any(able is True or (isinstance(able, Mapping) and able.get("supported") is True) for able in told)
    lists = [each for each in said if isinstance(each, list)]
    if any(word in words for each in lists for word in each if isinstance(word, str)):
        return True
    return False if any(_TELLING[words] & place.keys() for place in places) else None


def _prices(entry: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """US dollars for a million tokens, read and written: OpenRouter states those of one token, as text; Together those
    of a million, as numbers."""
    prices = entry.get("pricing")
    if not isinstance(prices, Mapping):
        return None, None
    by_token = "prompt" in prices
    names = ("prompt", "completion") if by_token else ("input", "output")
    read, write = (_amount(prices.get(name)) for name in names)
    factor = 1_000_000 if by_token else 1
    return (None if read is None else read * factor), (None if write is None else write * factor)


def _amount(value: Any) -> float | None:
    try:
        amount = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else -1.0
    except ValueError:
        return None
    return amount if 0 <= amount < _DEAREST else None


def tokens_in(entry: Mapping[str, Any], key: str) -> int | None:
    """A number of tokens; None where it says nothing."""
    tokens = entry.get(key)
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 < tokens <= _LARGEST else None


def _entries(models: Any) -> Iterator[Mapping[str, Any]]:
    entries = models.get("data") if isinstance(models, Mapping) else models
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str) and entry["id"]:
            yield entry


def _window(entry: Mapping[str, Any]) -> int | None:
    beside = entry.get("meta")  # where llama.cpp has it
    places = (entry, beside) if isinstance(beside, Mapping) else (entry,)
    return next((tokens for key in _WINDOW_KEYS for place in places if (tokens := tokens_in(place, key))), None)
