"""The project's own files, as the architecture tests read them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SKIPPED = {".venv", ".git", "__pycache__", "build", "dist", "bench-results", "legato-home"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, under version control; without git, every file that is not made."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not _SKIPPED & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def modules(*rooms: str) -> Iterator[Path]:
    """The Python files below some top-level folders."""
    for path in project_files():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in rooms:
            yield path


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of its syntax tree: to walk through those of the whole project takes half a second each time."""
    return tuple(ast.walk(parsed(path)))


def name_of(path: Path) -> str:
    """The path as it is shown in a failure."""
    return path.relative_to(ROOT).as_posix()
