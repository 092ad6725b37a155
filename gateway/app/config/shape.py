"""The keys that a configuration may have: Legato's own, a model's by its provider, and the platforms' sections."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeGuard, Union

from pydantic import BaseModel, SecretStr, create_model
from pydantic.fields import FieldInfo

from gateway.app.config.models import Config
from gateway.app.config.source import KeyPath, Tree
from gateway.domain.platform import Platform
from gateway.domain.settings import Section, variable_of
from gateway.providers.plugin import ModelSettings, ProviderPlugin, ServedModel
from gateway.runtime.redaction import Redactor
from gateway.runtime.redaction.plausible import looks_mixed

_SHORTEST_SECRET: Final = 8  # characters of what may be a password, if it has letters and digits
_REDACT: Final = Redactor()
_OF_SERVERS: Final = (("env",), ("headers",))
_CREDENTIAL: Final = re.compile(r"(?:token|secret|passw(?:or)?d|key|authorization|credentials?)$", re.IGNORECASE)
_SOUND_SECRET = ("api_key", "token", "secret", "password", "webhook_secret")


def may_be_secret(text: str) -> bool:
    """Whether a text looks like a secret, so that no sentence may repeat it."""
    return _REDACT(text) != text or (len(text) >= _SHORTEST_SECRET and looks_mixed(text))


class Shape:
    """The declared keys, for the values of one `Tree`: which keys a model's section has depends on its provider."""

    def __init__(self, tree: Tree, platforms: Mapping[str, Platform], providers: Mapping[str, ProviderPlugin]) -> None:
        self._tree = tree
        self.platforms = platforms
        self.providers = providers
        sections: Any = {each.name: (each.settings, None) for each in platforms.values() if each.settings}
        self.adapters: type[Section] = create_model(
            "Adapters", __base__=Section, __doc__="`adapters` names the platforms that people talk on.", **sections
        )

    def model_of(self, value: Any) -> type[ModelSettings]:
        """The kind of a model's section, by the provider that it names."""
        named = value.get("provider") if isinstance(value, dict) else None
        plugin = self.providers.get(str(named or ModelSettings().provider))
        return plugin.settings if plugin else ModelSettings

    def kind(self, path: KeyPath) -> Any:
        """The declared type of the key at `path`; None where no such key exists."""
        if not path:
            return Config
        key = path[-1]
        above = self.kind(path[:-1])  # once: every level that asked twice would double the work of all above it
        if isinstance(key, int):
            lists = (kind for kind in alternatives(above) if typing.get_origin(kind) is tuple)
            return next((typing.get_args(kind)[0] for kind in lists), None)
        if section := self._section(path[:-1], above):
            field = section.model_fields.get(key)
            return field.annotation if field else None
        named = (kind for kind in alternatives(above) if typing.get_origin(kind) is dict)
        return next((typing.get_args(kind)[1] for kind in named), None)

    def field(self, path: KeyPath) -> FieldInfo | None:
        """Return the declaration of the key at `path`, which names a key."""
        section = self.section(path[:-1])
        return section.model_fields.get(str(path[-1])) if section else None

    def section(self, path: KeyPath) -> type[BaseModel] | None:
        """The section that may stand at `path`; None where a value does."""
        return self._section(path, self.kind(path))

    def _section(self, path: KeyPath, kind: Any) -> type[BaseModel] | None:
        if path == ("adapters",):
            return self.adapters
        section = next((each for each in alternatives(kind) if is_section(each)), None)
        return self.model_of(self._tree.at(path)) if section is ModelSettings else section

    def is_mapping(self, path: KeyPath) -> bool:
        """Whether the key at `path` holds values by names that people choose."""
        return any(typing.get_origin(kind) is dict for kind in alternatives(self.kind(path)))

    def may_be_null(self, path: KeyPath) -> bool:
        """Whether YAML's null is a value of the key at `path`."""
        return types.NoneType in alternatives(self.kind(path))

    def models(self) -> Iterator[KeyPath]:
        """Yield the paths where a model's section may stand."""
        for path, kind in self._declared((), Config):
            if ModelSettings in alternatives(kind):
                yield path
            listed = self._tree.at(path)
            for index, item in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(item, dict) and ModelSettings in alternatives(self.kind((*path, index))):
                    yield (*path, index)
            for name in listed if isinstance(listed, dict) and self.is_mapping(path) else ():
                inner = self.section((*path, name))
                for key in inner.model_fields if inner else ():
                    if isinstance(self._tree.at((*path, name, key)), dict) and self.section((*path, name, key)):
                        yield (*path, name, key)

    def paths(self) -> Iterator[KeyPath]:
        """Every declared key, each section before its own."""
        return (path for path, _ in self._declared((), Config))

    def _declared(self, above: KeyPath, kind: Any) -> Iterator[tuple[KeyPath, Any]]:
        """The keys below one of this type, with the type of each."""
        section = self._section(above, kind)
        for name, field in section.model_fields.items() if section else ():
            yield (*above, name), field.annotation
            yield from self._declared((*above, name), field.annotation)

    def is_secret(self, path: KeyPath) -> bool:
        """Whether the key at `path` holds a credential; also for keys that do not exist but sound like it."""
        return path[-1:] in {(name,) for name in _SOUND_SECRET} or SecretStr in alternatives(self.kind(path))

    def sounds_secret(self, path: KeyPath) -> bool:
        """Whether a variable or a header of a server has a name like those of credentials."""
        return path[:2] == ("tools", "mcp") and path[3:4] in _OF_SERVERS and bool(_CREDENTIAL.search(str(path[-1])))

    def may_show(self, path: KeyPath, value: object) -> bool:
        """Whether a sentence may repeat the value: no variable's value, and no likely secret below a wrong key."""
        if self.is_secret(path) or self.sounds_secret(path) or path in self._tree.referred:
            return False
        return not may_be_secret(str(value))

    def variable(self, path: KeyPath) -> str:
        """The variable in which people keep the secret at `path`."""
        section, field = self.section(path[:-1]), self.field(path)
        if field and (named_there := variable_of(field)):
            return named_there
        if section and issubclass(section, ServedModel):
            plugin = self.providers.get(str(self._tree.at((*path[:-1], "provider"))))
            return (plugin.vendor.key if plugin and plugin.vendor else "") or "API_KEY"
        named = path[-1:] if self.sounds_secret(path) else path[-2:]
        return re.sub(r"\W", "_", "_".join(str(part) for part in named)).upper()

    def is_used(self, path: KeyPath) -> bool:
        """Whether anything would read the value at `path`: its section may be switched off."""
        for length in range(1, len(path)):
            section, given = self.section(path[:length]), self._tree.at(path[:length])
            if section is None or not isinstance(given, dict):
                continue
            switch = section.model_fields.get("enabled")
            if switch is not None and given.get("enabled", switch.default) is False:
                return False
            if issubclass(section, ModelSettings) and not issubclass(section, ServedModel):
                # What every model may be given is of no use to one that is asked by no address and no key.
                return path[length] == "provider" or path[length] not in ModelSettings.model_fields
        return path[0] != "auxiliary" or self._tree.at(("auxiliary", "mode")) == "custom"


def is_section(kind: Any) -> TypeGuard[type[BaseModel]]:
    """Whether a declared type is a section rather than a value."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The members of a union, without the wrapping of `Annotated`."""
    return _members(kind)


@cache
def _members(kind: Hashable) -> tuple[Any, ...]:
    """The same. A start asks for the same few types thousands of times."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return alternatives(typing.get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return tuple(each for member in typing.get_args(kind) for each in alternatives(member))
    return (kind,)
