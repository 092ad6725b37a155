"""Somebody adds a platform and a provider from docs/ alone: the packages are installed, and run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from irc_server import IrcServer
from tests.support.program import ROOT, legato, legato_run
from tests.support.waiting import eventually

_MODULE = re.compile(r"^`(legato_\w+/\w+\.py)` [^`]*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_POINTS = re.compile(r"^\[project\.entry-points\.\"([\w.]+)\"\]\n((?:\w+ = .*\n)+)", re.MULTILINE)
_CODE = re.compile(r"^```(?:python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "examples/platform"


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a program that has the example and the page's provider installed, as pip would leave them."""
    site, page = tmp_path / "site", (ROOT / "docs/adding-a-provider.md").read_text(encoding="utf-8")
    modules, points = _MODULE.findall(page), _POINTS.findall(page)
    assert (len(modules), len(points)) == (3, 2)
    for name, code in modules:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    for name, found in (
        ("legato_echo", points),
        ("legato_irc", _POINTS.findall((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))),
    ):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "".join(f"[{group}]\n{lines}" for group, lines in found).replace('"', "")
        )
    return {"PYTHONPATH": f"{ROOT}:{site}:{EXAMPLE}"}


def test_the_page_shows_the_example_as_it_is() -> None:
    files = [path.read_text(encoding="utf-8") for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml")]
    shown = _CODE.findall((ROOT / "docs/adding-a-platform.md").read_text(encoding="utf-8"))
    of_others = [each for each in shown if not any(each in text for text in files)]
    assert len(shown) > 9
    assert [each for each in of_others if "draft_rates" not in each] == []  # of an ability that IRC has not


async def test_a_platform_and_a_provider_are_added_from_the_documents(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    async with IrcServer() as server:
        irc = {"enabled": True, "port": server.port, "trust_nicks": True, "channels": ["#choir"]}
        config = {"model": {"provider": "echo"}, "adapters": {"irc": irc}, "access": {"allow": ["irc:anna"]}}
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        status, out, errors = await legato(tmp_path, "check", fresh=True, **installed)
        assert status == 0, out + errors
        assert "echo, window 32,000 tokens (known for this model), answers" in out
        assert re.search(r"^irc +ok +legato@127.0.0.1", out, re.MULTILINE)
        status, _, err = await legato(tmp_path, "models", "acme", fresh=True, **installed)
        assert status == 2
        assert "set the variable ACME_API_KEY" in err
        server.say("anna", "good morning")
        server.say("anna", "legato: and \x02all\x0f of you?", "#choir")
        server.say("anna", "not for the bot", "#choir")
        async with legato_run(tmp_path, fresh=True, **installed):
            wanted = [("#choir", "AND ALL OF YOU?"), ("anna", "GOOD MORNING")]
            await eventually(lambda: sorted(server.said) == wanted)
        assert server.violations == []
