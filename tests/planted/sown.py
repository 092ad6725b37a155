"""Bugs that nobody thought up: one small change each, by rule, spread over all rooms by a seed.

A condition is turned, a limit is off by one, a call is left out, two steps change places, a named argument is lost. The
tests that must find it are those that run its line. What survives may be no bug: a person judges.

What can be seen from the code to be no bug is not sown:
- what only writes to the log, or only asks whether to;
- two steps in another order, one of which only computes a value that the other does not read, or each of which
  changes a collection, or sets an event, of its own, or one of which names a value and the other starts a task;
- a point at which the laboratory may kill the program (`points`), left out or elsewhere;
- an argument that only names something, or that only refuses a mistake of the program's own (`strict`);
- a limit of times, of HTTP's codes, of fractions or of a hundred and more that is off by one: nobody can tell a moment,
  or one of 20,000 characters, from the next, so such a comparison is turned round instead.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

from tests.planted.bugs import Bug
from tests.planted.chart import Chart, folders

_ROOT: Final = Path(__file__).resolve().parents[2]
_KINDS: Final = ("condition", "limit", "call", "order", "argument", "value")
_OPPOSITES: Final[tuple[tuple[type[ast.cmpop], str], ...]] = (
    *((ast.Eq, "!="), (ast.NotEq, "=="), (ast.Is, "is not"), (ast.IsNot, "is"), (ast.In, "not in"), (ast.NotIn, "in")),
    *((ast.Lt, "<="), (ast.LtE, "<"), (ast.Gt, ">="), (ast.GtE, ">")),
)
_TURNED: Final = dict(_OPPOSITES)
_ROUND: Final[dict[type[ast.cmpop], str]] = {ast.Lt: ">", ast.LtE: ">", ast.Gt: "<", ast.GtE: "<"}
_UNCOUNTED: Final = re.compile(  # times, and the codes of HTTP
    r"\b(?:codes|HTTPStatus)\.|\bnow\b"
    r"|(?:\b|_)(?:at|since|until|due|deadline|age|seconds|waited)\b|\.monotonic\(|\.perf_counter\("
)
_PURE: Final = (
    *("all", "any", "bool", "dict", "float", "int", "len", "list"),
    *("max", "min", "set", "sorted", "str", "sum", "tuple"),
)
_MANY: Final = 100
_FILLS: Final = (
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "remove",
    "set",
    "setdefault",
    "update",
)
_LIMITS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SAID: Final = re.compile(r"\b_?log(?:ger)?\.|\bprint\(|__all__|\bassert\b|\bpoints\(")  # what no person would miss
_UNSEEN: Final = (  # arguments
    *("what", "name", "thread_name_prefix", "encoding", "errors"),
    *("slots", "kw_only", "frozen", "strict"),
)


def sow(root: Path, chart: Chart, number: int, seed: int) -> list[Bug]:
    """So many bugs, as many of each room and kind as can be; which kinds a room has first, the seed says."""
    rng = Random(seed)
    rooms = defaultdict(list)
    for path in sorted([*root.glob("gateway/*/**/*.py"), *root.glob("adapters/*/**/*.py")]):
        rooms[path.relative_to(root).parts[:2]].append(path)
    bugs: dict[tuple[str, str], Bug] = {}
    places = rng.sample(list(rooms), len(rooms))
    for turn in range(20 * number):
        if len(bugs) == number:
            break
        room, kind = places[turn % len(rooms)], _KINDS[(turn + turn // len(rooms)) % len(_KINDS)]
        path = rng.choice(rooms[room])
        grown = list(_grown(path.read_text(encoding="utf-8"), kind))
        if grown:
            file, (line, old, new) = str(path.relative_to(root)), rng.choice(grown)
            name = f"{file}:{line} ({kind})"
            near, others, named = chart.tests(file, line)
            if _is_run_at_import(path.read_text(encoding="utf-8"), line):  # once: no fork would see the bug
                near, others, named = (), (), (folders(file)[0],)
            bugs[file, old] = Bug(
                name=name,
                file=file,
                old=old,
                new=new,
                tests=named,
                near=near,
                others=others,
                sown=True,
            )
    return list(bugs.values())


def _is_run_at_import(source: str, line: int) -> bool:
    functions = [
        each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    at_once = (
        part for each in functions for part in (*each.decorator_list, *each.args.defaults, *each.args.kw_defaults)
    )
    return any(part and part.lineno <= line <= (part.end_lineno or 0) for part in at_once)


def _grown(source: str, kind: str) -> Iterator[tuple[int, str, str]]:
    """(line, old, new) of each bug of a kind that grows in a module."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = source.encode()

    def place(node: ast.AST) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def text(node: ast.AST) -> str:
        start, end = place(node)
        return data[start:end].decode()

    tree = ast.parse(source)
    vague = {*_vague(tree)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for first, last, new in _changes(function, kind, text, vague):
            start, end = place(first)[0], place(last)[1]
            head = data.rfind(b"\n", 0, start) + 1
            tail = data.find(b"\n", end)
            while head and data.count(data[head:tail]) > 1:  # whole lines above, until the text stands once
                head = data.rfind(b"\n", 0, head - 1) + 1
            old = data[head:tail].decode()
            if not _SAID.search(old):
                yield first.lineno, old, (data[head:start] + new.encode() + data[end:tail]).decode()  # type: ignore[attr-defined]


def _vague(tree: ast.Module) -> Iterator[str]:
    """The names of constants, of a module's own or of others, of which one more or less is nothing to see."""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int() | float() as value)):
                if isinstance(value, float) or value >= _MANY:
                    yield name
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.BinOp(op=ast.Mult() | ast.Pow() | ast.Div())):
                yield name
            case ast.ImportFrom(module=str(module), names=names):
                path = Path(f"{module.replace('.', '/')}.py")
                if any(each.name.isupper() for each in names) and (_ROOT / path).exists():
                    there = {*_vague(ast.parse((_ROOT / path).read_text(encoding="utf-8")))}
                    yield from (each.asname or each.name for each in names if each.name in there)


def _changes(
    function: ast.AST, kind: str, text: Callable[[ast.AST], str], vague: Collection[str]
) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    """(first node, last node, what stands there then)."""
    for node in ast.walk(function):
        match node:
            case ast.If(body=body, orelse=[]) if all(_SAID.search(text(each)) for each in body):
                pass  # it only asks whether to log
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if kind == "condition":
                if not isinstance(test, ast.Constant):
                    yield test, test, f"not ({text(test)})"
            case ast.BoolOp(op=op, values=[one, other]) if kind == "condition":
                yield node, node, f"({text(one)}) {'or' if isinstance(op, ast.And) else 'and'} ({text(other)})"
            case ast.Compare(ops=[op]) if kind == ("limit" if isinstance(op, _LIMITS) else "condition"):
                is_vague = _UNCOUNTED.search(text(node)) or not _names(node).isdisjoint(vague)
                turned = _ROUND if is_vague and isinstance(op, _LIMITS) else _TURNED
                yield node, node, f"({text(node.left)}) {turned[type(op)]} ({text(node.comparators[0])})"
            case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=ast.Constant(value=1)) if kind == "limit":
                yield node, node, text(left)
            case ast.Call(func=ast.Name(id="min" | "max" as name)) if kind == "limit":
                yield node.func, node.func, "max" if name == "min" else "min"
            case ast.Expr(value=ast.Await() | ast.Call()) if kind == "call":
                yield node, node, "pass"
            case ast.Await(value=ast.Call(args=[ast.Call() as inner])) if kind == "call":
                yield node, node, f"await {text(inner)}"
            case ast.Call(keywords=[_, *_] as keywords) if kind == "argument":
                lost = keywords[-1]
                if lost.arg and lost.arg not in _UNSEEN and (node.args or len(keywords) > 1):
                    before = keywords[-2].value if len(keywords) > 1 else node.args[-1]
                    yield before, lost.value, text(before)
            case ast.Return(value=ast.Constant(value=bool() as value)) if kind == "value":
                yield node, node, f"return {not value}"
            case ast.UnaryOp(op=ast.Not(), operand=operand) if kind == "value":
                yield node, node, text(operand)
            case ast.keyword(arg=str() as name, value=ast.Constant(value=bool() as value)) if kind == "value":
                if name in _UNSEEN:
                    continue
                yield node, node, f"{name}={not value}"
        if kind == "order":
            for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
                for one, other in pairwise(body) if isinstance(body, list) else ():
                    if _has_effect(one) and _has_effect(other) and _meet(one, other):
                        yield one, other, f"{text(other)}\n{' ' * one.col_offset}{text(one)}"


def _has_effect(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Await | ast.Call)


def _meet(one: ast.AST, other: ast.AST) -> bool:
    """Whether the order of two steps may matter: one that only computes a value must share a name with the other, and
    of two that name what calls return or start a task, one must read what the other names. Two that change collections
    are about the same one, or the one reads the other's."""
    if _only_computes(one) or _only_computes(other):
        return not _names(one).isdisjoint(_names(other))
    if (first := _filled(one)) and (second := _filled(other)):
        return first == second or first in ast.unparse(other) or second in ast.unparse(one)
    if all(isinstance(each, ast.Assign) or _starts(each) for each in (one, other)):
        return _meet_by_names(one, other) or _meet_by_names(other, one)
    return True


def _meet_by_names(one: ast.AST, other: ast.AST) -> bool:
    bound = [each for each in ast.walk(one) if isinstance(getattr(each, "ctx", None), ast.Store)]
    read = {ast.dump(each) for each in ast.walk(other)}
    return any(ast.dump(each).replace("Store()", "Load()") in read for each in bound)


def _starts(step: ast.AST) -> bool:
    """Whether a step starts a task."""
    match step:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=of, attr="start"))):
            return "background" in ast.unparse(of)
    return False


def _only_computes(step: ast.AST) -> bool:
    match step:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Name(id=name))):
            return name in _PURE
    return False


def _filled(step: ast.AST) -> str:
    """The collection that a step changes; "": it does something else."""
    match step:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=of, attr=name))) if name in _FILLS:
            return ast.unparse(of)
    return ""


def _names(step: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(step) if isinstance(each, ast.Name)} - {*_PURE}
