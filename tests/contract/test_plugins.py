"""What every registered platform and wire format keeps to: found by discovery, so that a new one is held to it, too."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from pydantic import BaseModel

from gateway.app.config.shape import alternatives, is_section
from gateway.app.plugins import platforms, providers
from gateway.domain import platform
from gateway.providers import plugin
from gateway.runtime.plugins import imported

POINTS = [point.value for group in (platform.GROUP, plugin.GROUP) for point in entry_points(group=group)]
# What takes long to load, and is for those who use it.
HEAVY = {"aiohttp", "discord", "genai_prices", "httpx", "prompt_toolkit", "telegram", "tiktoken"}


def undescribed(section: type[BaseModel], above: str = "") -> list[str]:
    """Keys that the reference of all settings could say nothing about."""
    missing = [] if section.__doc__ else [above or section.__name__]
    for name, field in section.model_fields.items():
        inner = [kind for kind in alternatives(field.annotation) if is_section(kind)]
        missing += [each for kind in inner for each in undescribed(kind, f"{above}{name}.")]
        if not inner and not field.description:
            missing.append(f"{above}{name}")
    return missing


@pytest.mark.parametrize("point", POINTS)
def test_to_read_a_description_loads_nothing_heavy(point: str) -> None:
    module = point.partition(":")[0]
    code = f"import sys, {module}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", platforms())
def test_a_platform_is_described(name: str) -> None:
    described = platforms()[name]
    assert described.title
    assert callable(imported(described.create))
    assert described.person_problem(described.person) is None
    assert described.in_shell or described.settings is not None, "nobody could switch it on"
    if described.settings is not None:
        assert undescribed(described.settings) == []
        assert not described.settings.model_fields["enabled"].default, "a platform is asked for"


@pytest.mark.parametrize("name", providers())
def test_a_wire_format_is_described(name: str) -> None:
    described = providers()[name]
    assert callable(imported(described.create))
    assert undescribed(described.settings) == []
    assert [*described.listed("vendor/some-model")]
    assert described.marks_cache("some-model", None) in (True, False)
