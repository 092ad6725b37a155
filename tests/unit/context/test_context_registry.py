"""Engines by name: built in, installed, in a folder."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from gateway.context.engine import ContextEngine
from gateway.context.policy import CompressionSettings
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.errors import ConfigError
from tests.fakes import ManualClock
from tests.unit.context.transcripts import COUNTER

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


class Installed(ContextEngine):
    """What the entry point of the test offers."""

    def update_from_response(self, usage: object) -> None: ...

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return False

    def compress(self, messages: list[object]) -> list[object]:  # type: ignore[override]
        return messages


def _plugin(folder: Path, name: str, source: str) -> EngineRegistry:
    package = folder / "context_engine" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    return EngineRegistry(BUILTIN, folder)


def test_each_session_has_its_own_compressor() -> None:
    factory = EngineRegistry(BUILTIN, None).factory("compressor")
    assert factory() is not factory()
    assert factory().name == "compressor"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    registry = _plugin(tmp_path, "mine", ENGINE)
    with pytest.raises(ConfigError, match=r"no engine named 'compresor'; known are compressor, mine"):
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


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("1/0", "ZeroDivisionError"),
        ("x = 1", "it has 0"),
        ("def register(ctx): pass", "registered no engine"),
        ("def register(ctx): ctx.register_context_engine(5)", "neither an engine nor a factory"),
        ("def register(ctx): ctx.register_context_engine(dict)", "did not return a context engine"),
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
        EngineRegistry(BUILTIN, tmp_path).factory("..")


def test_an_installed_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("theirs", f"{__name__}:Installed", "legato.context_engines")
    monkeypatch.setattr("gateway.context.registry.entry_points", lambda group: [point])
    registry = EngineRegistry(BUILTIN, None)
    assert registry.names() == ["compressor", "theirs"]
    assert type(registry.factory("theirs")()).__name__ == "Installed"
