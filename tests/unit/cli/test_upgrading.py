"""What `legato upgrade` makes of the signs that installers leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.upgrading import found_in, plan, told


def origin(path: Path, **more: object) -> str:
    return json.dumps({"url": path.as_uri(), **more})


@pytest.mark.parametrize(
    ("sign", "runs"),
    [
        ("pipx_metadata.json", "pipx upgrade legato"),
        ("uv-receipt.toml", "uv tool upgrade legato"),
        ("", "-m pip install --upgrade legato"),
    ],
)
def test_what_came_by_its_name_is_upgraded_by_its_name(tmp_path: Path, sign: str, runs: str) -> None:
    if sign:
        (tmp_path / sign).touch()
    text = told(plan(found_in(tmp_path, "", "pip\n")))
    assert f"{runs}\n" in text
    assert text.endswith("legato upgrade --store")


def test_what_came_from_a_folder_comes_from_it_again(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    code = tmp_path / "my code"
    code.mkdir()
    pull, install = plan(found_in(tmp_path, origin(code, dir_info={}), "pip")).commands
    assert pull == ("git", "-C", str(code), "pull", "--ff-only")
    assert install == ("pipx", "install", "--force", str(code))
    pull, make = plan(found_in(tmp_path / "elsewhere", origin(code, dir_info={"editable": True}), "pip")).commands
    assert make == ("make", "-C", str(code), ".venv/.installed")


def test_where_nothing_can_be_run_it_says_what_to_do(tmp_path: Path) -> None:
    made = plan(found_in(tmp_path, origin(tmp_path / "legato-1.0.0.whl", archive_info={}), "uv"))
    assert made.commands == ()
    assert "Download the newer file and run `uv pip install --python" in told(made)
    assert "uvx legato@latest" in told(plan(found_in(tmp_path / "archive-v0" / "x", "", "uv")))
    (tmp_path / "legato.image").touch()
    assert "on the same volume" in told(plan(found_in(tmp_path, "", "pip")))
