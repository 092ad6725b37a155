"""What a configuration need not say: the addresses and keys of vendors, keys of searches, and tokens of platforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.app.config.rules import Finding
from gateway.app.config.shape import Shape
from gateway.app.config.source import KeyPath, Tree, dotted
from gateway.domain.settings import variable_of
from gateway.providers.plugin import Vendor
from gateway.runtime.plugins import imported


def complete_models(tree: Tree, shape: Shape, environ: Mapping[str, str]) -> list[Finding]:
    """Give each model what its vendor's row says and the file does not. Returns what is still missing, to be told
    unless something is wrong with the same section."""
    missing: list[Finding] = []
    for path in list(shape.models()):
        section = tree.at(path)
        plugin = shape.providers.get(str(section.get("provider"))) if isinstance(section, dict) else None
        if plugin is not None and plugin.vendor is not None and shape.is_used((*path, "base_url")):
            missing += _complete(tree, path, section, plugin.vendor, environ)
    return missing


def _complete(
    tree: Tree, path: KeyPath, section: dict[str, Any], vendor: Vendor, environ: Mapping[str, str]
) -> Iterator[Finding]:
    address, key = (*path, "base_url"), (*path, "api_key")
    for feature in vendor.lacks:
        section.setdefault(feature, False)
    at_home = not section.get("base_url")
    if at_home and vendor.address_to_fill:
        text = f'is needed by {vendor.name}: "{vendor.address_to_fill}", with your own words for the capital letters'
        yield (address, path), f"{dotted(address)} {text}"
    elif at_home and vendor.address:
        section["base_url"] = vendor.address
    # The name of a wire format with another address is another vendor's server: it must not be sent the key.
    theirs = at_home or bool(vendor.address)
    if not theirs or any(section.get(name) for name in ("api_key", "api_keys", "api_key_command")):
        return
    if held := _held(environ, vendor.key):
        _give(tree, key, section, held)
    elif vendor.token_command and not vendor.key:
        section["api_key_command"] = vendor.token_command
    elif not vendor.own:
        keys = f"get a key at {vendor.keys_at}" if vendor.keys_at else "its website says where to get a key"
        text = f"is needed by {vendor.name}: set the variable {vendor.key}, in the environment or in .env; {keys}"
        yield (key, path), f"{dotted(key)} {text}"


def complete_platforms(tree: Tree, shape: Shape, environ: Mapping[str, str]) -> None:
    """Give each enabled platform the tokens of its usual variables, unless the file names others."""
    sections = tree.values.get("adapters")
    for name, section in sections.items() if isinstance(sections, dict) else ():
        kind = shape.section(("adapters", name))
        if kind is None or not isinstance(section, dict) or section.get("enabled") is not True:
            continue
        for key, field in kind.model_fields.items():
            if section.get(key) is None and (held := _held(environ, variable_of(field))):
                _give(tree, ("adapters", name, key), section, held)


def complete_search(tree: Tree, environ: Mapping[str, str]) -> None:
    """Give the web search the key of its vendor's usual variable, unless the file has a key or another address."""
    section = tree.at(("tools", "search"))
    if isinstance(section, dict) and isinstance(name := section.get("provider"), str):
        plugin = imported("gateway.agent.search.plugin:searches")().get(name)
        if plugin and not (section.get("api_key") or section.get("base_url")) and (held := _held(environ, plugin.key)):
            _give(tree, ("tools", "search", "api_key"), section, held)


def _held(environ: Mapping[str, str], variable: str) -> str:
    """What a variable holds; "" if there is none."""
    return environ.get(variable, "").strip() if variable else ""


def _give(tree: Tree, path: KeyPath, section: dict[str, Any], held: str) -> None:
    """Put what a variable holds at `path`, the last part of which is the key in its section."""
    section[str(path[-1])] = held
    tree.from_environment.add(path)
    tree.referred.add(path)
