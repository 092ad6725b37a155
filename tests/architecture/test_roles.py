"""Who needs one role of the store asks for that one, so that its type says what it may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gateway.store import port

ROOT = Path(__file__).parents[2]
ROLES = {
    name: role.__name__
    for role in port.Store.__mro__[1:]
    if role.__module__ == port.__name__
    for name, value in vars(role).items()
    if callable(value) and not name.startswith("_")
}


def _roles(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> set[str]:
    """The roles whose methods a function calls of this parameter; "Store" if it hands the store on."""
    owners = {id(node.value): node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    used = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    return {ROLES.get(owners.get(id(node), ""), "Store") for node in used}


def _too_wide(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            asked = parameter.annotation
            if isinstance(asked, ast.Name) and asked.id == "Store":
                roles = _roles(function, parameter.arg)
                if len(roles) == 1 and "Store" not in roles:
                    yield f"{function.name} needs {roles.pop()} alone"


def test_a_function_that_uses_one_role_asks_for_no_more() -> None:
    files = [path for path in ROOT.glob("gateway/**/*.py") if "store" not in path.relative_to(ROOT).parts]
    found = [f"{path.relative_to(ROOT)}: {each}" for path in files for each in _too_wide(ast.parse(path.read_bytes()))]
    assert found == []
    assert list(_too_wide(ast.parse("async def a(b: Store): await b.tip(1)"))) == ["a needs SessionStore alone"]
    assert list(_too_wide(ast.parse("async def a(b: Store): await c(b.tip, b)"))) == []
