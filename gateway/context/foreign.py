"""Runs an engine that was written for hermes-agent's contract, as it is, from a folder.

Such an engine imports modules of its own host: `agent.context_engine`, whose `ContextEngine` is Legato's,
`agent.auxiliary_client`, whose `call_llm` asks the auxiliary model of the session at work, metered like every call, and
`hermes_constants`, whose `get_hermes_home` gives the engine's own folder. They are there for the plug-in's own code, at
any time, and for nobody else: its modules get an import statement of their own, and `sys.modules` holds these only
while the plug-in loads, for those who import by name.

Such a host also hands over the system prompt in front of the messages (`ContextEngine.takes_system_prompt`), which
`guard` does.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from gateway.context.engine import ContextEngine
from gateway.context.threads import BlockingModel

_TOP: Final = "agent"
_MOST_TOKENS: Final = 4_096  # of an answer, where the engine names no limit

AT_WORK: Final[ContextVar[BlockingModel | None]] = ContextVar("the model of the session at work", default=None)


def call_llm(
    *_task: Any, messages: Sequence[Any] = (), max_tokens: int | None = None, **_choices: Any
) -> SimpleNamespace:
    """Ask the auxiliary model, and return its answer in the shape of a chat completion. The host chooses model,
    provider and temperature. Raises RuntimeError if no engine is at work, and whatever the model raises."""
    model = AT_WORK.get()
    if model is None:
        raise RuntimeError("call_llm works only inside a method that the host has called")
    answer = model([*messages], max_tokens or _MOST_TOKENS)
    message = SimpleNamespace(role="assistant", content=str(answer), tool_calls=None)
    choice = SimpleNamespace(index=0, message=message, finish_reason=getattr(answer, "stop", "stop"))
    return SimpleNamespace(choices=[choice], model="", usage=None)


class Visiting:
    """The packages that one plug-in may import besides its own. `home`: the engine's own folder. `used`: whether it
    imported one, which tells for which host it was written."""

    def __init__(self, package: str, home: Path) -> None:
        self.used = False
        self._package = package
        self._modules = _modules(home)
        self._builtins = {**vars(builtins), "__import__": self._import}

    def loader(self, name: str, path: str) -> SourceFileLoader:
        """Loads a module of the plug-in."""
        return _Loader(name, path, self._builtins)

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """Let the plug-in load: its submodules, and modules by name."""
        finder = _Finder(self._package, self._builtins)
        before = {name: sys.modules.get(name) for name in self._modules}
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """The import statement of the plug-in's code."""
        if level == 0 and name in self._modules:
            self.used = True
            return self._modules[name if fromlist else name.partition(".")[0]]
        return __import__(name, globals, locals, fromlist or (), level)


def _modules(home: Path) -> dict[str, ModuleType]:
    names = (_TOP, f"{_TOP}.context_engine", f"{_TOP}.auxiliary_client", "hermes_constants")
    top, engine, client, constants = map(ModuleType, names)
    top.__path__ = []
    vars(engine)["ContextEngine"] = ContextEngine
    vars(client)["call_llm"] = call_llm
    vars(top).update(context_engine=engine, auxiliary_client=client)
    vars(constants)["get_hermes_home"] = lambda: home
    return {module.__name__: module for module in (top, engine, client, constants)}


class _Loader(SourceFileLoader):
    """Runs a module with builtins of its own."""

    def __init__(self, name: str, path: str, own: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._own = own

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        vars(module)["__builtins__"] = self._own
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the submodules of a plug-in."""

    def __init__(self, package: str, own: Mapping[str, Any]) -> None:
        self._prefix = f"{package}."
        self._own = own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, with the loader that gives the module its builtins."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(self._prefix) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._own)
        return spec
