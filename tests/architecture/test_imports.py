"""Imports: the contracts of pyproject.toml hold, and imports stand where a reader sees them."""

import ast
import re

import pytest
from importlinter import cli

from tests.support.source_tree import ROOT, modules, name_of, nodes, parsed

WHERE_IMPORTS_MAY_WAIT = {
    "gateway/__main__.py",
    "gateway/cli/main.py",
    "gateway/cli/program.py",
    "gateway/cli/access.py",
    "gateway/cli/skills.py",
    "gateway/cli/trajectories.py",
    "gateway/app/store.py",
    "gateway/cli/queues.py",
}
# No import below a function stands anywhere else in its line. To look at the text first spares most files the walk.
MAYBE_INSIDE = re.compile(r"(?:^[^\S\n]+|[:;][^\S\n]*)(?:from|import)\b", re.MULTILINE)


def test_the_import_contracts_hold(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    broken = cli.lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not broken, capsys.readouterr().out


def imports_inside_functions(tree):
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        inner.lineno for node in functions for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)
    ]


def test_only_the_program_itself_imports_late():
    """A module imports at its top; start-up alone may put imports off, to be quick."""
    found = {
        name_of(path): lines
        for path in modules("gateway", "adapters")
        if name_of(path) not in WHERE_IMPORTS_MAY_WAIT
        and MAYBE_INSIDE.search(path.read_text(encoding="utf-8"))
        and (lines := imports_inside_functions(parsed(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import os",
        "async def f():\n    if x:\n        from a import b",
        "def f(): import os",
        "def f():\n    x = 1;from a import b",
    ],
)
def test_the_check_for_late_imports_sees_them(code):
    assert MAYBE_INSIDE.search(code)
    assert imports_inside_functions(ast.parse(code)) != []


def imported_by(path):
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_a_wire_format_is_found_by_its_entry_point_and_imported_by_nobody():
    folders = [path.parent for path in modules("gateway") if path.parent.parent == ROOT / "gateway/providers"]
    packages = {f"gateway.providers.{folder.name}": folder for folder in folders}
    assert len(packages) >= 2
    found = [
        f"{name_of(path)}: {name}"
        for path in modules("gateway", "adapters")
        for name in imported_by(path)
        for package, folder in packages.items()
        if f"{name}.".startswith(f"{package}.") and path.parent != folder
    ]
    assert found == []


def test_what_windows_lacks_is_imported_where_that_may_fail() -> None:
    lacking = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
    found = {name_of(path) for path in modules("gateway", "adapters", "legato") if lacking & {*imported_by(path)}}
    assert found == {"adapters/console/pipes.py"}  # which tries; all else asks gateway.runtime.posix


def test_only_one_module_prints() -> None:
    """All output goes through `printing`, because any text may be a stranger's, and through `streams` at last."""
    found = {
        name_of(path)
        for path in modules("gateway", "adapters")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("print", "echo", "write")
        and ast.unparse(node.func) in ("print", "typer.echo", "sys.stdout.write")
    }
    assert found == {"gateway/cli/streams.py"}
    use_it = {name_of(path) for path in modules("gateway", "adapters") if "gateway.cli.streams" in imported_by(path)}
    assert use_it == {"gateway/__main__.py", "gateway/cli/printing.py"}
