"""The style law, as far as a machine can tell: names that say something, documented names, few broad catches."""

import ast

import pytest

from tests.support.source_tree import ROOT, modules, name_of, nodes, parsed

BANNED_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "handler", "handlers", "misc", "common"}
# Rooms that contain foreign code or own the tasks and threads of others; nowhere else is every error caught.
WHERE_ALL_IS_CAUGHT = {
    "gateway/commands/runner.py",
    "gateway/store/redis/looking.py",
    "gateway/store/redis/running.py",
    "gateway/turns/turn.py",
    "gateway/turns/delegated.py",
    "gateway/turns/poison.py",
    "gateway/app/gateway.py",
    "gateway/app/readers.py",
    "gateway/runtime/plugins.py",
    "gateway/runtime/tasks.py",
    "gateway/store/sqlite/writer.py",
    "gateway/context/guard.py",
    "gateway/context/threads.py",
    "gateway/agent/tools/runtime.py",
    "gateway/agent/plugged.py",
    "gateway/agent/mcp/server.py",
}
A_DOZEN = {
    "gateway/app/gateway.py": "Gateway",
    "gateway/app/health.py": "Health",
    "gateway/app/upkeep.py": "Upkeep",
    "gateway/turns/turn.py": "Turns",
    "gateway/commands/base.py": "CommandContext",
    "gateway/people/people.py": "People",
    "gateway/agent/agents.py": "Agents",
}


def test_no_module_has_a_name_that_says_nothing():
    named = [path for path in modules("gateway", "adapters", "tests") if BANNED_NAMES & set(path.stem.split("_"))]
    folders = [path for path in modules("gateway", "adapters", "tests") if BANNED_NAMES & set(path.parts)]
    assert [name_of(path) for path in named + folders] == []


# Docstrings


def is_public(name):
    return not name.startswith("_")


def base_names(node):
    names = []
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        names.append(base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", ""))
    return names


def functions_of(node):
    return [inner for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)]


def classes_of(paths):
    return [node for path in paths for node in nodes(path) if isinstance(node, ast.ClassDef)]


def documented_methods(classes):
    """Names of methods that a class somewhere documents: implementing one needs no second text."""
    return {method.name for node in classes for method in functions_of(node) if ast.get_docstring(method)}


def needs_no_docstring(function):
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name.endswith((".setter", "overload")) for name in decorators)


def undocumented(tree, documented, own_classes):
    """(line, name) of every public thing that says nothing about itself."""
    if not ast.get_docstring(tree):
        yield 1, "the module"
    for function in functions_of(tree):
        if is_public(function.name) and not ast.get_docstring(function) and not needs_no_docstring(function):
            yield function.lineno, function.name
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not is_public(node.name):
            continue
        if not ast.get_docstring(node):
            yield node.lineno, node.name
        # A class derived from a library's overrides methods that are documented there.
        foreign = [base for base in base_names(node) if base not in own_classes and base not in ("Protocol", "ABC")]
        for method in functions_of(node):
            exempt = method.name in documented or foreign or needs_no_docstring(method)
            if is_public(method.name) and not ast.get_docstring(method) and not exempt:
                yield method.lineno, f"{node.name}.{method.name}"


def test_every_public_name_is_documented():
    paths = list(modules("gateway", "adapters"))
    classes = classes_of(paths)
    documented, own = documented_methods(classes), {node.name for node in classes}
    found = [
        f"{name_of(path)}:{line} {name}" for path in paths for line, name in undocumented(parsed(path), documented, own)
    ]
    assert found == []


def test_the_check_for_docstrings_sees_what_is_missing():
    tree = ast.parse(
        "class A:\n    def f(self): ...\n    def _g(self): ...\n\ndef h(): ...\nclass _B:\n    def f(self): ..."
    )
    assert [name for _, name in undocumented(tree, set(), {"A"})] == ["the module", "h", "A", "A.f"]


# Parts


@pytest.mark.parametrize("file", A_DOZEN)
def test_a_room_is_given_a_dozen_parts_at_most(file):
    (holder,) = [each for each in classes_of([ROOT / file]) if each.name == A_DOZEN[file]]
    fields = {each.target.id: ast.unparse(each.annotation) for each in holder.body if isinstance(each, ast.AnnAssign)}
    parts = [name for name, kind in fields.items() if is_public(name) and kind != "bool"]
    assert 0 < len(parts) <= 12, parts


# Errors


def broad_catches(whole):
    """Lines of handlers that catch everything and do not raise it again at their end."""
    for node in whole:
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = "BaseException" if node.type is None else ast.unparse(node.type)
        passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        if {"Exception", "BaseException"} & set(caught.strip("()").split(", ")) and not passes_on:
            yield node.lineno


def test_all_errors_are_caught_only_where_foreign_code_is_contained():
    found = {
        name_of(path): lines
        for path in modules("gateway", "adapters")
        if name_of(path) not in WHERE_ALL_IS_CAUGHT and (lines := list(broad_catches(nodes(path))))
    }
    assert found == {}


def test_the_check_for_broad_catches_sees_them():
    code = "try: a\nexcept {}: b"
    assert [
        bool(list(broad_catches(ast.walk(ast.parse(code.format(kind))))))
        for kind in ("Exception", "(OSError, Exception)", "OSError")
    ] == [
        True,
        True,
        False,
    ]
    assert list(broad_catches(ast.walk(ast.parse("try: a\nexcept: b")))) == [2]
    assert list(broad_catches(ast.walk(ast.parse("try: a\nexcept BaseException:\n    b\n    raise")))) == []


def test_nothing_is_left_for_later():
    marks = [
        "# TO" + "DO",
        "FIX" + "ME",
        "# XX" + "X",
        "NotImplemented" + "Error",
        "pytest.mark.sk" + "ip",
        "pytest.sk" + "ip",
    ]
    found = [
        f"{name_of(path)}: {mark}"
        for path in modules("gateway", "adapters", "tests")
        for mark in marks
        if mark in path.read_text()
    ]
    assert found == []


# What a turn changes


def bases(node):
    while isinstance(node, ast.Attribute):
        node = node.value
        yield node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_a_conversation_is_changed_by_its_own_methods_alone():
    """`Conversation` is held by many: who wants to know what changes it reads one file."""
    assigned = [
        f"{name_of(path)}:{target.lineno}"
        for path in modules("gateway")
        for node in ast.walk(parsed(path))
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        if "conversation" in bases(each)
    ]
    assert assigned == []


# Programs that are started


STARTS = {"Popen", "check_output", "check_call", "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec"}
OF_OUR_OWN = {"gateway/app/workers.py", "gateway/cli/upgrading.py"}  # `legato run`; what a person had asked for


def starts_a_program(call):
    return getattr(call.func, "attr", "") in STARTS or ast.unparse(call.func) == "subprocess.run"


def test_all_that_is_started_is_marked():
    """Else it could give Legato's own commands."""
    unmarked = {
        f"{name_of(path)}:{node.lineno}"
        for path in modules("gateway", "adapters")
        if name_of(path) not in OF_OUR_OWN
        for node in nodes(path)
        if isinstance(node, ast.Call) and starts_a_program(node) and "marked(" not in ast.unparse(node)
    }
    assert {each.partition(":")[0] for each in unmarked} == {
        "gateway/runtime/program.py",
        "gateway/agent/mcp/process.py",
    }
    for path in ("gateway/runtime/program.py", "gateway/agent/mcp/process.py"):
        assert "marked(" in (ROOT / path).read_text(), "it marks what it is given before"


def test_no_dataclass_has_a_default_that_python_3_11_refuses():
    """A mapping proxy has a hash since 3.12 only; a dataclass takes no default without one."""
    refused = [
        f"{name_of(path)}:{given.lineno}"
        for path in modules("gateway", "adapters")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list)
        for given in node.body
        if isinstance(given, ast.AnnAssign) and given.value and "MappingProxyType(" in ast.unparse(given.value)
    ]
    assert refused == []
