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


MOST_WHOLE = 57  # parameters and fields that ask for the whole store: lower it when one asks for less


def _roles(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> set[str]:
    """The roles whose methods a function calls of this parameter; "Store" if it hands the store on."""
    owners = {id(node.value): node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    used = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    return {ROLES.get(owners.get(id(node), ""), "Store") for node in used}


def _asks_for_all(asked: ast.expr | None) -> bool:
    return isinstance(asked, ast.Name) and asked.id == "Store"


def _too_wide(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            if _asks_for_all(parameter.annotation):
                roles = _roles(function, parameter.arg)
                if len(roles) == 1 and "Store" not in roles:
                    yield f"{function.name} needs {roles.pop()} alone"


def _whole(tree: ast.Module) -> int:
    """How many parameters and fields are given the whole store."""
    asked = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign)]
    return sum(map(_asks_for_all, asked))


def test_a_function_that_uses_one_role_asks_for_no_more() -> None:
    paths = [path for path in ROOT.glob("gateway/**/*.py") if "store" not in path.relative_to(ROOT).parts]
    trees = {path.relative_to(ROOT): ast.parse(path.read_bytes()) for path in paths}
    assert [f"{path}: {each}" for path, tree in trees.items() for each in _too_wide(tree)] == []
    assert sum(map(_whole, trees.values())) == MOST_WHOLE
    assert list(_too_wide(ast.parse("async def a(b: Store): await b.tip(1)"))) == ["a needs SessionStore alone"]
    assert list(_too_wide(ast.parse("async def a(b: Store): await c(b.tip, b)"))) == []
    assert _whole(ast.parse("class A:\n    b: Store\n    def c(self, d: Store, e: InboxStore): ...")) == 2
