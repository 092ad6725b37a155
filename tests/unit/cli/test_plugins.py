"""`legato plugins`: what is there, where from, what is used, and what cannot be loaded."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from gateway.app.config import Config
from gateway.cli import plugins
from gateway.cli.plugins import plugin_rows, plugins_text
from gateway.runtime.errors import ConfigError


def names(rows: list[dict[str, Any]], kind: str, *, used: bool | None) -> list[str]:
    return [row["name"] for row in rows if row["kind"] == kind and row["used"] is used]


def test_legatos_own_parts_are_listed_with_what_the_settings_use() -> None:
    rows = plugin_rows(Config())
    assert {row["source"] for row in rows} == {"Legato"}
    assert {row["problem"] for row in rows} == {""}
    assert "console" in names(rows, "platform", used=True)
    assert "telegram" in names(rows, "platform", used=False)
    assert len(names(rows, "wire format", used=True)) == 1
    assert names(rows, "context engine", used=True) == [Config().context.engine]
    assert names(rows, "tools", used=True) == names(rows, "tools", used=False) == []
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    assert (kinds[0], kinds[-1]) == ("platform", "context engine")
    assert rows == sorted(rows, key=lambda row: (kinds.index(row["kind"]), row["name"]))


def test_without_settings_nothing_says_what_is_used() -> None:
    assert {row["used"] for row in plugin_rows(None)} == {None}


@pytest.mark.parametrize("is_broken", [True, False])
def test_a_strangers_plugin_has_a_source_and_a_broken_one_says_why(
    monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    point = EntryPoint(name="parrot", value="parrot:plugin", group="legato.tools")

    def load(_: EntryPoint) -> object:
        if is_broken:
            raise ConfigError(["it has no beak"])
        return object()

    monkeypatch.setattr(plugins, "installed", lambda group: {"parrot": point} if group == "legato.tools" else {})
    monkeypatch.setattr(plugins, "load", load)
    monkeypatch.setattr(plugins, "origin", lambda _: "parrot of bird 1.0")
    rows = plugin_rows(None)
    (row,) = [each for each in rows if each["kind"] == "tools"]
    assert (row["name"], row["source"], row["problem"]) == ("parrot", "bird 1.0", "it has no beak" if is_broken else "")
    text = plugins_text(rows)
    assert "\ntools:\n    parrot  from bird 1.0\n" in f"\n{text}"
    assert ("      FAIL  it has no beak\n" in text) is is_broken


def test_two_packages_with_one_name_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(group: str) -> dict[str, EntryPoint]:
        if group == "legato.commands":
            raise ConfigError(["two have it"])
        return {}

    monkeypatch.setattr(plugins, "installed", installed)
    (row,) = [each for each in plugin_rows(None) if each["kind"] == "commands"]
    assert row == {"kind": "commands", "name": "", "source": "two packages", "used": None, "problem": "two have it"}


def test_what_is_used_has_a_mark() -> None:
    rows = [{"kind": "tools", "name": name, "source": "Legato", "used": used, "problem": ""} for name, used in
            (("a", True), ("b", False))]  # fmt: skip
    assert plugins_text(rows).splitlines()[:3] == ["tools:", "  * a", "    b"]
