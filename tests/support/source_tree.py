"""The project's own files, as the architecture tests read them."""

from __future__ import annotations

import ast
import gc
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _listed_by_git() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return listed.stdout.decode().split("\0")[:-1] if listed.returncode == 0 else []


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, under version control; without git, every file that is not made."""
    paths = [ROOT / name for name in _listed_by_git()] or _not_made(ROOT)
    return tuple(sorted(path for path in paths if path.is_file()))


def _not_made(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name == ".git" or any(fnmatch(path.name, made) for made in _made()):
            continue
        if path.is_dir():
            yield from _not_made(path)
        else:
            yield path


@cache
def _made() -> tuple[str, ...]:
    """Names of what is made, and kept nowhere."""
    return tuple(line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split())


def modules(*rooms: str) -> Iterator[Path]:
    """The Python files below some top-level folders."""
    for path in project_files():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in rooms:
            yield path


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    gc.disable()  # what a collection ends may be logged with its place, and Python 3.11 cannot parse that amid a parse
    try:
        return ast.parse(path.read_text(), str(path))
    finally:
        gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of its syntax tree: to walk through those of the whole project takes half a second each time."""
    return tuple(ast.walk(parsed(path)))


def name_of(path: Path) -> str:
    """The path as it is shown in a failure."""
    return path.relative_to(ROOT).as_posix()
