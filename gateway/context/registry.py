"""Finding an engine by name: built in, an installed entry point, or a folder of plugins.

An entry point of the group `legato.context_engines` is a subclass of `ContextEngine`, a factory, or
an instance. The `__init__.py` of a folder `<plugins.dir>/context_engine/<name>/` holds one such
subclass (its own, or one of its submodules') or defines `register(ctx)`, which calls
`ctx.register_context_engine(engine_or_factory)`. Each session gets an instance of its own: a
class or factory is called, an instance deep-copied; where that is impossible, because it holds a connection,
`register(ctx)` is called anew. An engine of a folder may be written for hermes-agent (`foreign`). Built-in names win.

The engine of a plug-in is made once when it is looked up, so that a broken one is a ConfigError at the start and not an
error in somebody's turn. An engine without a name bears the one it is found by.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gateway.context.compressor import Compressor
from gateway.context.engine import ContextEngine
from gateway.context.foreign import Visiting
from gateway.context.policy import CompressionSettings
from gateway.context.window import Window, for_window
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import contained, installed, load
from gateway.runtime.tokens import TokenCounter

GROUP: Final = "legato.context_engines"
FOLDER: Final = "context_engine"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

Factory = Callable[[], ContextEngine]


def builtin_engines(
    settings: CompressionSettings, *, counter: TokenCounter, clock: Clock, redact: Callable[[str], str]
) -> dict[str, Factory]:
    """The engines that come with Legato, by name."""
    archiving = for_window(settings)
    return {
        Compressor.name: lambda: Compressor(settings, counter=counter, clock=clock, redact=redact),
        Window.name: lambda: Window(archiving, counter=counter, redact=redact),
    }


class Registration:
    """The `ctx` that a plugin's `register` is given. `home`: the engine's own folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.registered: Any = None

    def register_context_engine(self, engine_or_factory: Any) -> None:
        """Offer an engine: an instance, a subclass of ContextEngine, or a factory. The last wins."""
        self.registered = engine_or_factory


class EngineRegistry:
    """Engines by name. `plugins_dir` is `plugins.dir` of the configuration, or None. `home`: the folder in which each
    plug-in engine has its own folder, which exists before the engine is made."""

    def __init__(self, builtin: Mapping[str, Factory], plugins_dir: Path | None, home: Path) -> None:
        self._builtin = dict(builtin)
        self._home = home
        self._folder = plugins_dir / FOLDER if plugins_dir is not None else None

    def names(self) -> list[str]:
        """Every name that `factory` knows, sorted."""
        return sorted({*self._builtin, *installed(GROUP), *self._folders()})

    def factory(self, name: str) -> Factory:
        """Return the factory of an engine for a session. Raises ConfigError: unknown name, broken plugin."""
        if name in self._builtin:
            return self._builtin[name]
        points, folders = installed(GROUP), self._folders()
        if name not in {*points, *folders}:
            known = ", ".join(self.names())
            raise ConfigError([f"context.engine: there is no engine named {name!r}; known are {known}."])
        home = self._home / name
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        make: Callable[[], ContextEngine]
        if name in points:
            make = partial(_made, name, load(points[name]), home)
        else:
            what = f"context.engine {name} could not be loaded from {folders[name]}"
            make = contained(what, lambda: _from_folder(name, folders[name], home))

        def factory() -> ContextEngine:
            return contained(f"context.engine {name} could not be made", make)

        factory()
        return factory

    def _folders(self) -> dict[str, Path]:
        if self._folder is None or not self._folder.is_dir():
            return {}
        return {
            path.name: path / "__init__.py"
            for path in sorted(self._folder.iterdir())
            if _NAME.fullmatch(path.name) and (path / "__init__.py").is_file()
        }


def _from_folder(name: str, path: Path, home: Path) -> Callable[[], ContextEngine]:
    """Return the factory of an engine in a plugin folder."""
    package = f"legato_context_engine_{name.replace('-', '_')}"
    visiting = Visiting(package, home)
    with visiting.at_home():
        module = _imported(package, path, visiting)
        offered = _offered(name, path, module, home)

    def anew() -> Any:
        with visiting.at_home():
            return _offered(name, path, module, home)

    def make() -> ContextEngine:
        made = _made(name, offered, home, anew)
        if visiting.used:
            made.takes_system_prompt = True
        return made

    return make


def _offered(name: str, path: Path, module: ModuleType, home: Path) -> Any:
    register = getattr(module, "register", None)
    if callable(register):
        registration = Registration(home)
        register(registration)
        if registration.registered is None:
            raise ConfigError([f"context.engine {name}: register(ctx) in {path} registered no engine."])
        return registration.registered
    own = {value for value in vars(module).values() if _is_own_engine(value, module.__name__)}
    if len(own) != 1:
        raise ConfigError(
            [f"context.engine {name}: {path} must define register(ctx) or one ContextEngine; it has {len(own)}."]
        )
    return own.pop()


def _is_own_engine(value: Any, module: str) -> bool:
    """Whether a module's name is a whole engine, defined by the module or one of its submodules."""
    if not isinstance(value, type) or not issubclass(value, ContextEngine) or inspect.isabstract(value):
        return False
    return value.__module__ == module or value.__module__.startswith(f"{module}.")


def _imported(module_name: str, path: Path, visiting: Visiting) -> ModuleType:
    loader = visiting.loader(module_name, str(path))
    places = [str(path.parent)]
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise ConfigError([f"{path} cannot be imported."])
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # so that its relative imports find it
    spec.loader.exec_module(module)
    return module


def _made(name: str, offered: Any, home: Path, anew: Callable[[], Any] | None = None) -> ContextEngine:
    """An engine for one session, from a plug-in's offer. An instance is copied; if it cannot be copied, because it
    holds a connection or a lock, it is offered `anew`."""
    is_instance = isinstance(offered, ContextEngine)
    if not is_instance and not callable(offered):
        raise ConfigError([f"context.engine {name}: what it offers is neither an engine nor a factory."])
    made: Any
    if isinstance(offered, type) and issubclass(offered, ContextEngine):
        offered.home = home  # for its `__init__`
    if not is_instance:
        made = offered()
    else:
        try:
            made = copy.deepcopy(offered)
        except (TypeError, ValueError, AttributeError, RuntimeError, copy.Error):  # no connection, lock or file can
            if anew is None:
                raise
            made = anew()
            made = made if isinstance(made, ContextEngine) else made()
            made = type(offered)() if made is offered else made
    if not isinstance(made, ContextEngine):
        raise ConfigError([f"context.engine {name}: its factory did not return a ContextEngine."])
    if not isinstance(made.name, str) or not made.name:
        made.name = name
    made.home = home
    return made
