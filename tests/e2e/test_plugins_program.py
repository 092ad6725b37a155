"""Someone else's platform, wire format, tool and command in the real program, of which no line knows them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import ROOT
from tests.support.program import PATIENCE, legato, legato_run
from tests.support.waiting import eventually

TOYS = ROOT / "tests" / "support" / "toys"
POINTS = {
    "legato.adapters": {"parrot": "toys.platform:PLATFORM"},
    "legato.providers": {"shouting": "toys.provider:PLUGIN"},
    "legato.tools": {"feathers": "toys.extras:TOOLS"},
    "legato.commands": {"wave": "toys.extras:COMMANDS"},
}


def install(site: Path, package: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """A distribution as a package installer leaves it on the path."""
    information = site / f"{package}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line for group, each in points.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in each.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder where the program runs, with the toys installed outside of everything of ours."""
    shutil.copytree(TOYS, tmp_path / "site" / "toys", ignore=shutil.ignore_patterns("__pycache__"))
    install(tmp_path / "site", "toys", POINTS)
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, *, model: Mapping[str, Any] | None = None, parrot: Mapping[str, Any] | None = None) -> None:
    config = {
        "model": {"provider": "shouting", "loudness": 2, **(model or {})},
        "adapters": {"parrot": {"enabled": True, "ears": "ears.txt", **(parrot or {})}},
        "access": {"allow": ["parrot:polly"]},
    }
    lines = [f"{name}: {json.dumps(section)}" for name, section in config.items()]
    (folder / "config.yaml").write_text("\n".join(lines), encoding="utf-8")


def with_toys(folder: Path) -> dict[str, str]:
    """Return the variables that let the program find the installed toys."""
    return {"PYTHONPATH": f"{folder / 'site'}:{ROOT}"}


async def test_they_are_talked_to(folder: Path) -> None:
    beak = folder / "beak.txt"
    async with legato_run(folder, fresh=True, **with_toys(folder)) as process:
        (folder / "ears.txt").write_text("hello\n")
        await eventually(lambda: beak.exists() and "HELLO!!" in beak.read_text(), within=PATIENCE)
        with (folder / "ears.txt").open("a") as ears:
            ears.write("/wave\n/help all\n")
        await eventually(lambda: "The parrot waves back." in beak.read_text(), within=PATIENCE)
        await eventually(lambda: "wave to the parrot" in beak.read_text(), within=PATIENCE)
        process.terminate()
        assert await process.wait() == 0
    status, shown, _ = await legato(folder, "sessions", "list", "--json", **with_toys(folder))
    assert status == 0
    assert [row["key"] for row in json.loads(shown)] == ["parrot/chat=perch"]


async def test_they_are_checked(folder: Path) -> None:
    status, out, errors = await legato(folder, "check", **with_toys(folder))
    assert (status, errors) == (0, "")
    assert "shouting, window 16,000 tokens (known for this model), answers" in out
    assert "parrot           ok    hears ears.txt" in out
    assert "access.allow names 1" in out


async def test_a_mistake_in_their_sections_is_told_with_line_and_nearest_name(folder: Path) -> None:
    configure(folder, model={"loudnes": 3, "loudness": -1}, parrot={"beek": "b", "ears": 5})
    text = (folder / "config.yaml").read_text().replace("parrot:polly", "parrot:Polly")
    (folder / "config.yaml").write_text(text)
    status, _, errors = await legato(folder, "run", **with_toys(folder))
    assert status == 2
    assert errors.splitlines() == [
        "config.yaml:1: model.loudness must be at least 0, not -1",
        "config.yaml:1: model.loudnes is not a known key; did you mean loudness?",
        "config.yaml:2: adapters.parrot.ears must be text, not 5",
        "config.yaml:2: adapters.parrot.beek is not a known key; did you mean beak?",
        "config.yaml:3: access.allow[0] must give a name in small letters, as in \"parrot:polly\", not 'parrot:Polly'; "
        "`legato access list` has those who wrote to the bot",
    ]


def test_their_settings_are_in_the_reference(folder: Path) -> None:
    script = "from tests.docs.settings import as_markdown; print(as_markdown())"
    out = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **with_toys(folder)},
        check=True,
        text=True,
        capture_output=True,
    ).stdout
    assert "### `adapters.parrot`" in out
    assert "| `beak` | `beak.txt` | the file that it speaks into |" in out
    assert "### `model` with `provider: shouting`" in out
    assert "| `loudness` | `1` | how many exclamation marks it ends with |" in out


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (
            {"legato.adapters": {"parrot": "toys.platform:OTHER"}},
            "legato.adapters: parrot of others 1.0 and legato.adapters: parrot of toys 1.0 have the same name",
        ),
        (
            {"legato.adapters": {"owl": "toys.night:PLATFORM"}},
            "legato.adapters: owl of others 1.0 cannot be loaded from toys.night:PLATFORM: ModuleNotFoundError",
        ),
        ({"legato.providers": {"quiet": "toys.provider:PLUGIN"}}, "toys.provider:PLUGIN calls itself 'shouting'"),
        ({"legato.providers": {"quiet": "toys.provider:Shouting"}}, "toys.provider:Shouting is no ProviderPlugin"),
        (
            {"legato.commands": {"again": "toys.extras:COMMANDS"}},
            "two commands are named /wave, of legato.commands: again of others 1.0 and "
            "legato.commands: wave of toys 1.0",
        ),
        (
            {"legato.tools": {"again": "toys.extras:TOOLS"}},
            "two tools are named feathers, of legato.tools: again of others 1.0 and legato.tools: feathers of toys 1.0",
        ),
    ],
)
async def test_a_package_that_does_not_fit_is_named(folder: Path, points: dict[str, dict[str, str]], said: str) -> None:
    install(folder / "site", "others", points)
    status, _, errors = await legato(folder, "check", **with_toys(folder))
    assert status == 2
    assert said in errors
    assert len(errors.splitlines()) == 1


async def test_they_are_listed_with_what_is_used_and_what_is_broken(folder: Path) -> None:
    engine = folder / "plugins" / "context_engine" / "forgetful"
    engine.mkdir(parents=True)
    (engine / "__init__.py").write_text("import nothing_like_it\n")
    status, out, errors = await legato(folder, "plugins", **with_toys(folder))
    assert (status, errors) == (1, "")
    assert "  * parrot  from toys 1.0\n" in out
    assert "  * shouting  from toys 1.0\n" in out
    assert "tools:\n    feathers  from toys 1.0\n" in out
    assert "    telegram\n" in out
    assert "FAIL  context.engine forgetful could not be loaded" in out
    assert "No module named 'nothing_like_it'" in out
    shutil.rmtree(engine)
    install(folder / "site", "others", {"legato.adapters": {"owl": "toys.night:PLATFORM"}})
    status, out, errors = await legato(folder, "plugins", "--json", **with_toys(folder))
    rows = {(row["kind"], row["name"]): row for row in json.loads(out)}
    assert (status, errors) == (1, "")
    assert "toys.night" in rows["platform", "owl"]["problem"]  # which keeps the settings from being read
    assert rows["platform", "parrot"] == {
        "kind": "platform",
        "name": "parrot",
        "source": "toys 1.0",
        "used": None,
        "problem": "",
    }
