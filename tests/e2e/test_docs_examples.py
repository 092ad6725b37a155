"""Somebody adds a platform and a provider from docs/ alone: the packages on those pages are installed, and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.program import ROOT, legato, legato_run
from tests.support.waiting import eventually

PAGES = {"docs/adding-a-platform.md": (2, 1), "docs/adding-a-provider.md": (3, 2)}  # modules, and entry points
_MODULE = re.compile(r"^`(legato_\w+/\w+\.py)` [^`]*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_POINTS = re.compile(r"^\[project\.entry-points\.\"([\w.]+)\"\]\n((?:\w+ = .*\n)+)", re.MULTILINE)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a program that has the pages' packages installed, as pip would leave them."""
    site = tmp_path / "site"
    for page, numbers in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        modules, points = _MODULE.findall(text), _POINTS.findall(text)
        assert (len(modules), len(points)) == numbers, page
        for name, code in modules:
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        package = Path(modules[0][0]).parent.name
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "".join(f"[{group}]\n{lines}" for group, lines in points).replace('"', "")
        )
    return {"PYTHONPATH": f"{ROOT}:{site}"}


CONFIG = """\
model: {provider: echo}
adapters:
  mailbox: {enabled: true}
access:
  allow: ["mailbox:anna"]
"""


async def test_a_platform_and_a_provider_are_added_from_the_documents(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    letters, answers = tmp_path / "mail" / "in", tmp_path / "mail" / "out" / "anna"
    letters.mkdir(parents=True)
    (letters / "anna.1.txt").write_text("good morning")
    (letters / "anna.2.txt").write_text("/version")

    def said() -> list[str]:
        return [path.read_text(encoding="utf-8").partition(" ")[0] for path in answers.glob("*.txt")]

    status, out, _ = await legato(tmp_path, "check", fresh=True, **installed)
    assert status == 0
    assert "echo, window 32,000 tokens (known for this model), answers" in out
    status, _, err = await legato(tmp_path, "models", "acme", fresh=True, **installed)
    assert status == 2
    assert "set the variable ACME_API_KEY" in err
    async with legato_run(tmp_path, fresh=True, **installed):
        await eventually(lambda: sorted(said()) == ["GOOD", "Legato"])
    assert list(letters.iterdir()) == []
