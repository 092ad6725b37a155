"""The contract of every registered platform and wire format: found by discovery, so that a new one is held to it,
too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from random import Random

import pytest
from pydantic import BaseModel

from gateway.agent.tools.base import ToolHost, schema
from gateway.agent.tools.clock import ClockTool
from gateway.app import models, plugins, serving
from gateway.app.config import Config
from gateway.app.config.shape import alternatives, is_section
from gateway.app.plugins import platforms, providers
from gateway.commands.base import Command, CommandContext
from gateway.domain import platform
from gateway.domain.adapter import Limits
from gateway.domain.platform import AdapterSettings, Platform
from gateway.providers import plugin
from gateway.providers.plugin import ProviderHost
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import imported
from tests.support.fakes import ManualClock

POINTS = [point.value for group in (platform.GROUP, plugin.GROUP) for point in entry_points(group=group)]
# What takes long to load, and is for those who use it.
SERVED = ("discord", "matrix", "slack", "telegram", "whatsapp")
HEAVY = {"aiohttp", "discord", "genai_prices", "httpx", "prompt_toolkit", "slack_sdk", "telegram", "tiktoken"}


def undescribed(section: type[BaseModel], above: str = "") -> list[str]:
    """Keys that the reference of all settings could say nothing about."""
    missing = [] if section.__doc__ else [above or section.__name__]
    for name, field in section.model_fields.items():
        inner = [kind for kind in alternatives(field.annotation) if is_section(kind)]
        missing += [each for kind in inner for each in undescribed(kind, f"{above}{name}.")]
        if not inner and not field.description:
            missing.append(f"{above}{name}")
    return missing


def test_to_read_descriptions_loads_nothing_heavy() -> None:
    modules = [point.partition(":")[0] for point in POINTS]
    code = f"import sys\nfor each in {modules}:\n __import__(each); print(each, sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{module} []" for module in modules]


def test_what_is_not_enabled_is_not_loaded(tmp_path: Path) -> None:
    home = {**os.environ, "LEGATO_HOME": str(tmp_path)}
    asked = [sys.executable, "-X", "importtime", "-m", "gateway", "check"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env=home, cwd=tmp_path)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gateway.app.config" in loaded
    assert not loaded & {"discord", "slack_sdk", "telegram", *(f"adapters.{name}.adapter" for name in SERVED)}


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


# A package's mistakes

ORIGIN = "legato.tools: dice of legato-dice 1.0"


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Have a package offer something, be it tools or commands."""

    def offer(given: object) -> None:
        monkeypatch.setattr(plugins, "offered", lambda *_, **__: [(ORIGIN, given)])

    return offer


def tools_problem() -> str:
    with pytest.raises(ConfigError) as caught:
        plugins.configured_tools(ToolHost(clock=ManualClock(), redact=str, home=Path("/")))
    return str(caught.value)


def commands_problem() -> str:
    with pytest.raises(ConfigError) as caught:
        plugins.all_commands.__wrapped__()
    return str(caught.value)


async def shout(ctx: CommandContext) -> str:
    """Never run."""
    return ""


def test_a_command_of_an_unknown_group_is_told(offers: Callable[[object], None]) -> None:
    offers((Command(shout, name="shout", group="Fun", help="shout"),))  # type: ignore[arg-type]
    assert commands_problem() == (
        f"{ORIGIN}: group must be Conversation, While I work, What I remember, Sessions or About, not 'Fun'"
    )


@pytest.mark.parametrize("given", [shout, (shout,), Command(shout, name="a", group="About", help="a")])
def test_what_is_no_tuple_of_commands_is_told(offers: Callable[[object], None], given: object) -> None:
    offers(given)
    assert commands_problem() == f"{ORIGIN}: COMMANDS must be a tuple of commands"


@pytest.mark.parametrize("given", [lambda _: ClockTool(), (ClockTool(),)])
def test_what_is_no_tuple_of_functions_is_told(offers: Callable[[object], None], given: object) -> None:
    offers(given)
    assert tools_problem() == f"{ORIGIN}: TOOLS must be a tuple of functions"


def test_what_a_tool_lacks_is_told(offers: Callable[[object], None]) -> None:
    class Dice:
        name = description = "dice"
        parameters = schema()
        read_only = idempotent = True

    offers((lambda _: Dice(),))
    assert tools_problem() == f"{ORIGIN}: a tool (Dice) has no timeout, no run"


def test_a_tool_with_another_run_is_told(offers: Callable[[object], None]) -> None:
    class Dice:
        name = description = "dice"
        parameters = schema()
        read_only = idempotent = True
        timeout = 1.0

        async def run(self, context: object) -> str:
            return ""

    offers((lambda _: Dice(),))
    assert tools_problem() == f"{ORIGIN}: a tool (Dice): run(context) must be run(arguments, context)"


def test_a_tool_that_cannot_be_made_is_told(offers: Callable[[object], None]) -> None:
    offers((ClockTool,))
    assert tools_problem() == f"{ORIGIN}: TypeError: ClockTool() takes no arguments"


class Parrot:
    """An adapter that has no limits."""

    name = "parrot"

    async def run(self, accept: object) -> None:
        """Never called."""

    async def send(self, outbound: object) -> str:
        return ""

    async def aclose(self) -> None:
        """Never called."""


class Typist(Parrot):
    """An adapter whose `typing` cannot be called."""

    limits = Limits()

    async def typing(self, to: object) -> None:
        """Never called."""


class Editor(Parrot):
    """An adapter with half an ability."""

    limits = Limits()

    async def edit(self, outbound: object, platform_message_id: str) -> None:
        """Never called."""


class Broken(Parrot):
    """An adapter that cannot be made."""

    def __init__(self) -> None:
        raise KeyError("ear")


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (Parrot, " (Parrot) has no limits"),
        (Typist, " (Typist): typing(to) must be typing(to, active)"),
        (Editor, " (Editor) has no account, no draft_rates"),
        (Broken, ": KeyError: 'ear'"),
    ],
)
def test_what_is_wrong_with_an_adapter_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: type[Parrot], problem: str
) -> None:
    described = Platform(name="parrot", title="Parrot", create="toys:parrot")
    monkeypatch.setattr(serving, "platforms", lambda: {"parrot": described})
    monkeypatch.setattr(serving, "imported", lambda _: lambda *_: kind())
    with pytest.raises(ConfigError) as caught:
        serving.adapters(Config().replace(adapters={"parrot": AdapterSettings(enabled=True)}))  # type: ignore[arg-type]
    assert str(caught.value) == f"the adapter of the platform parrot{problem}"


def test_a_provider_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "imported", lambda _: lambda: None)
    host = ProviderHost(clock=ManualClock(), redact=str, count=len, pause=Parrot().aclose)
    with pytest.raises(ConfigError, match=r"^the provider offline: TypeError: .* takes 0 positional arguments"):
        models.configured_models(Config(), host, Random(0), {})
