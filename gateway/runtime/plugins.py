"""Finding plug-ins: what installed packages register as entry points, and what the modules of a folder offer.

An entry point's group says what it is: a platform (`legato.adapters`), a wire format (`legato.providers`), vendors
that speak one (`legato.vendors`), a tool (`legato.tools`), a search of the web (`legato.searches`), a slash command
(`legato.commands`), an engine (`legato.context_engines`) or hooks (`legato.hooks`). Legato's own platforms and wire
formats are registered in its pyproject.toml like anybody's.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from inspect import signature
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from gateway.runtime.errors import ConfigError, GatewayError

T = TypeVar("T")


def contained(what: str | Callable[[], str], call: Callable[[], T]) -> T:
    """Return `call()`. Any exception becomes a ConfigError that begins with `what`: for loading foreign code."""
    try:
        return call()
    except ConfigError:
        raise
    except Exception as error:
        told = what if isinstance(what, str) else what()
        raise ConfigError([f"{told}: {type(error).__name__}: {error}"]) from error


async def held_to(work: Awaitable[T], what: str, rule: str) -> T:
    """Return the result of foreign work. An exception that is none of Legato's becomes a ConfigError that quotes the
    broken rule, such as "a provider may raise only ProviderError"."""
    try:
        return await work
    except GatewayError:
        raise
    except Exception as error:
        raise ConfigError([f"{what} raised {type(error).__name__}: {error}; {rule}"]) from error


def refuse_misfit(what: str, made: object, port: type) -> None:
    """Raise ConfigError if `made` lacks an attribute or a method of a port, which is a Protocol, or if a method has
    other parameters."""
    methods = methods_of(port)
    if missing := [name for name in (*port.__annotations__, *methods) if not hasattr(made, name)]:
        raise ConfigError([f"{what} ({type(made).__name__}) has no {', no '.join(missing)}"])
    for name, method in methods.items():
        given, wanted = [*signature(getattr(made, name)).parameters], [*signature(method).parameters][1:]
        if given[: len(wanted)] != wanted:
            told = f"{name}({', '.join(given)}) must be {name}({', '.join(wanted)})"
            raise ConfigError([f"{what} ({type(made).__name__}): {told}"])


def methods_of(port: type) -> Mapping[str, Callable[..., Any]]:
    """Return the methods of a Protocol by name."""
    return {name: each for name, each in vars(port).items() if isinstance(each, FunctionType) and name[0] != "_"}


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of the names. Raises ConfigError."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(_registered(tuple(sys.path))(group=group)):
        other = found.setdefault(point.name, point)
        if other != point:
            raise ConfigError([f"{origin(other)} and {origin(point)} have the same name: remove one of the packages"])
    return found


@lru_cache(maxsize=1)
def _registered(_path: Sequence[str]) -> Callable[..., EntryPoints]:
    """Selects from the entry points of the packages on this path. A file of each is read, so once for all groups."""
    return entry_points().select


def loaded(group: str, kind: type[T]) -> dict[str, T]:
    """Load everything registered under a group, and check its kind. Raises ConfigError."""
    return {name: _of_kind(point, kind) for name, point in installed(group).items()}


def _of_kind(point: EntryPoint, kind: type[T]) -> T:
    offered = load(point)
    if not isinstance(offered, kind):
        raise ConfigError([f"{origin(point)}: {point.value} is no {kind.__name__}"])
    name = getattr(offered, "name", point.name)
    if name != point.name:
        raise ConfigError([f"{origin(point)}: {point.value} calls itself {name!r}; both names must be the same"])
    return offered


def load(point: EntryPoint) -> Any:
    """Load the object that an entry point names. Raises ConfigError."""
    # Where it comes from stands in a file, which is read only if something is wrong.
    return contained(lambda: f"{origin(point)} cannot be loaded from {point.value}", point.load)


def origin(point: EntryPoint) -> str:
    """Return the source of an entry point, such as `legato.adapters: matrix of legato-matrix 1.0`."""
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
    return f"{point.group}: {point.name} of {package}"


def imported(where: str) -> Any:
    """Import `module:name` now, and return it. Raises ConfigError."""
    module, _, name = where.partition(":")
    return contained(f"{where} cannot be loaded", lambda: getattr(import_module(module), name))


def offered(attribute: str, *, package: ModuleType, group: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects of this name, with their source: from a package's modules by name, then those registered
    under a group. Raises ConfigError."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = import_module(found.name)
        if hasattr(module, attribute):
            yield found.name, getattr(module, attribute)
    for point in installed(group).values():
        yield origin(point), load(point)
