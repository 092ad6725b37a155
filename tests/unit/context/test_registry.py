"""Engines by name: built in, installed, in a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.context.policy import CompressionSettings
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.context.window import Window
from gateway.runtime.errors import ConfigError
from tests.support.fakes import ManualClock
from tests.support.transcripts import COUNTER

BUILTIN = builtin_engines(CompressionSettings(), counter=COUNTER, clock=ManualClock(), redact=str)

ENGINE = '''
from gateway.context import ContextEngine

class Mine(ContextEngine):
    """Does nothing."""
    name = "mine"
    def update_from_response(self, usage): pass
    def should_compress(self, prompt_tokens=None): return False
    def compress(self, messages): return messages
'''


def _plugin(folder: Path, name: str, source: str) -> EngineRegistry:
    package = folder / "context_engine" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    return EngineRegistry(BUILTIN, folder, folder / "homes")


def test_each_session_has_its_own_compressor() -> None:
    factory = EngineRegistry(BUILTIN, None, Path()).factory("compressor")
    assert factory() is not factory()
    assert factory().name == "compressor"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    registry = _plugin(tmp_path, "mine", ENGINE)
    with pytest.raises(ConfigError, match=r"no engine named 'compresor'; known are compressor, mine, window"):
        registry.factory("compresor")


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "\ndef register(ctx): ctx.register_context_engine(Mine)",
        "\ndef register(ctx): ctx.register_context_engine(Mine())",
        "\ndef register(ctx): ctx.register_context_engine(lambda: Mine())",
    ],
)
def test_a_folder_offers_a_class_an_instance_or_a_factory(tmp_path: Path, ending: str) -> None:
    factory = _plugin(tmp_path, "mine", ENGINE + ending).factory("mine")
    one, other = factory(), factory()
    assert one is not other
    assert (one.name, type(one).__name__) == ("mine", "Mine")


@pytest.mark.parametrize("offered", ["ONE", "Mine()"])
def test_sessions_share_no_engine_that_cannot_be_copied(tmp_path: Path, offered: str) -> None:
    held = (
        "\nimport threading\nMine.__init__ = lambda self: setattr(self, 'lock', threading.Lock())\nONE = Mine()"
        f"\ndef register(ctx): ctx.register_context_engine({offered})"
    )
    factory = _plugin(tmp_path, "mine", ENGINE + held).factory("mine")
    assert len({id(engine) for engine in [factory(), factory(), factory()]}) == 3


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("1/0", "ZeroDivisionError"),
        ("x = 1", "it has 0"),
        ("def register(ctx): pass", "registered no engine"),
        ("def register(ctx): ctx.register_context_engine(5)", "neither an engine nor a factory"),
        ("def register(ctx): ctx.register_context_engine(dict)", "did not return a ContextEngine"),
        ("def register(ctx): ctx.register_context_engine(lambda: 1/0)", "could not be made"),
    ],
)
def test_a_broken_plugin_is_a_config_error(tmp_path: Path, source: str, reason: str) -> None:
    registry = _plugin(tmp_path, "bad", source)
    with pytest.raises(ConfigError, match=reason):
        registry.factory("bad")()


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    (tmp_path / "context_engine").mkdir()
    (tmp_path / "__init__.py").write_text(ENGINE, encoding="utf-8")
    with pytest.raises(ConfigError, match="no engine named"):
        EngineRegistry(BUILTIN, tmp_path, tmp_path).factory("..")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EngineRegistry]:
    """Installs a distribution with a module and entry points, as a package installer leaves it on the path."""

    def install(source: str, **points: str) -> EngineRegistry:
        site = tmp_path / "site"
        information = site / "their_engine-1.0.dist-info"
        information.mkdir(parents=True)
        (site / "their_engine.py").write_text(source, encoding="utf-8")
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-engine\nVersion: 1.0\n")
        lines = ["[legato.context_engines]", *(f"{name} = {where}" for name, where in points.items())]
        (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, "their_engine", raising=False)
        return EngineRegistry(BUILTIN, None, tmp_path / "homes")

    return install


def test_an_installed_entry_point(installed: Callable[..., EngineRegistry]) -> None:
    registry = installed(
        f"{ENGINE}\nREADY = Mine()\nmake = lambda: Mine()",
        a_class="their_engine:Mine",
        a_factory="their_engine:make",
        an_instance="their_engine:READY",
    )
    assert registry.names() == ["a_class", "a_factory", "an_instance", "compressor", "window"]
    for name in ("a_class", "a_factory", "an_instance"):
        factory = registry.factory(name)
        assert type(factory()).__name__ == "Mine"
        assert factory() is not factory()


def test_built_in_names_win(installed: Callable[..., EngineRegistry]) -> None:
    registry = installed(ENGINE, window="their_engine:Mine")
    assert type(registry.factory("window")()) is Window


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("their_engine:Missing", "AttributeError"),
        ("no_such_module:Mine", "ModuleNotFoundError"),
        ("their_engine", "neither an engine nor a factory"),
        ("their_engine:Abstract", "could not be made: TypeError"),
        ("their_engine:NoSubclass", "did not return a ContextEngine"),
        ("their_engine:Greedy", "could not be made: TypeError"),
    ],
)
def test_a_broken_entry_point_is_a_config_error_at_once(
    installed: Callable[..., EngineRegistry], where: str, reason: str
) -> None:
    source = f"""{ENGINE}
class Abstract(ContextEngine): pass
class NoSubclass: update_from_response = should_compress = compress = print
class Greedy(Mine):
    def __init__(self, size): pass
"""
    with pytest.raises(ConfigError, match=reason):
        installed(source, theirs=where).factory("theirs")


def test_an_engine_without_a_name_bears_the_one_it_is_found_by(tmp_path: Path) -> None:
    registry = _plugin(tmp_path, "quiet", ENGINE.replace('name = "mine"', "pass"))
    assert registry.factory("quiet")().name == "quiet"


def test_a_folder_may_keep_its_class_in_a_module_of_its_own(tmp_path: Path) -> None:
    registry = _plugin(
        tmp_path, "split", "from gateway.context import ContextEngine\nfrom .words import Mine as Engine"
    )
    (tmp_path / "context_engine" / "split" / "words.py").write_text(
        f"{ENGINE}\nclass Unfinished(ContextEngine): pass", encoding="utf-8"
    )
    assert registry.factory("split")().name == "mine"


def test_a_factory_that_fails_later_is_told_as_what_it_is(tmp_path: Path) -> None:
    ending = """
left = [1]
def make():
    left.pop()
    return Mine()
def register(ctx): ctx.register_context_engine(make)
"""
    factory = _plugin(tmp_path, "tired", ENGINE + ending).factory("tired")
    with pytest.raises(ConfigError, match=r"context\.engine tired could not be made: IndexError"):
        factory()


def test_no_folder_of_plugins_is_no_error(tmp_path: Path) -> None:
    assert EngineRegistry(BUILTIN, tmp_path / "nowhere", tmp_path).names() == ["compressor", "window"]
