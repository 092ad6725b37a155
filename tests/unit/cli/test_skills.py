"""`legato skills`: what is listed, added and removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import program

GOOD = "---\nname: {name}\ndescription: For {name}\n---\nDo it.\n"


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(program(arguments), arguments)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    for name, text in (("minutes", GOOD.format(name="minutes")), ("broken", "no front matter")):
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / "SKILL.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_skill_is_added_listed_and_removed_and_a_broken_one_left_out(home: Path) -> None:
    assert "There are no skills. `legato skills add FOLDER`" in legato("skills", "list").stdout
    added = legato("skills", "add", "source")
    assert (added.exit_code, added.stdout.count("Added: "), added.stderr.count("Left out: ")) == (1, 1, 1)
    assert "after `legato reload`" in added.stdout
    assert (home / "skills" / "minutes" / "SKILL.md").read_text() == GOOD.format(name="minutes")
    (row,) = json.loads(legato("skills", "list", "--json").stdout)
    assert (row["name"], row["description"], row["problem"]) == ("minutes", "For minutes", "")
    assert legato("skills", "list").stdout == "minutes ({source}): For minutes\n".format(**row)
    only_broken = legato("skills", "add", "source/broken")
    assert (only_broken.exit_code, "after `legato reload`" in only_broken.stdout) == (1, False)
    (home / "skills" / "linked").symlink_to(home / "source" / "broken")
    assert "no front matter" in legato("skills", "list").stdout
    for name in ("minutes", "linked"):
        assert legato("skills", "remove", name).stdout.startswith("Removed: ")
    assert (home / "source" / "broken" / "SKILL.md").exists(), "only the link goes"
    again = legato("skills", "remove", "minutes")
    assert (again.exit_code, "holds no skill minutes" in again.stderr) == (1, True)
    assert legato("skills", "add", "source/minutes").exit_code == 0
