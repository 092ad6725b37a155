"""The documents say what is so: their links lead somewhere, and what they name is there."""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args

import pytest
import typer

from gateway.agent import pictures, tools
from gateway.agent.search import results as search
from gateway.app.plugins import all_commands
from gateway.cli import main
from gateway.domain.chat import OutboundKind
from tests.support.source_tree import ROOT, modules, name_of, parsed, project_files

DOCUMENTS = [path for path in project_files() if path.suffix == ".md"]
DECISIONS = sorted(ROOT.glob("docs/decisions/[0-9]*.md"))
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")
_CODE = re.compile(r"`([^`\n]+)`")


def prose(path: Path) -> str:
    """A document without its code blocks."""
    return _FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """Return the names that a link may have behind its `#`: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path: Path) -> Iterator[str]:
    """Yield the targets of the document's links, except those on the network."""
    for link, source in _LINK.findall(prose(path)):
        if not (link or source).startswith(("https://", "http://")):
            yield link or source


def broken_links(path: Path) -> Iterator[str]:
    """Yield the links of a document that lead to nothing."""
    for link in links(path):
        name, _, anchor = link.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield f"{name_of(path)}: {link}"


def test_every_link_leads_somewhere() -> None:
    broken = [link for path in DOCUMENTS for link in broken_links(path)]
    assert not broken, "\n".join(broken)


def test_every_document_is_linked() -> None:
    """A reader who begins with the README finds all of them."""
    linked = {(path.parent / link.partition("#")[0]).resolve() for path in DOCUMENTS for link in links(path)}
    assert [name_of(path) for path in DOCUMENTS if path not in linked] == []


def test_the_documents_are_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 140, "a version fits a page"
    read = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in read)
    assert words <= 51_000, "say it once, in its place: what comes in is paid by what goes out"
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in DECISIONS}
    assert {name: length for name, length in lengths.items() if length > 15} == {}


def test_the_decisions_are_numbered_and_listed() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d{4})\]\(([\w-]+\.md)\) (.+)$", index, re.MULTILINE)
    assert [name for _, name, _ in listed] == [path.name for path in DECISIONS]
    numbers = [int(written) for written, _, _ in listed]
    assert numbers == sorted(set(numbers))
    for number, (_, name, title) in zip(numbers, listed, strict=True):
        head = (ROOT / "docs/decisions" / name).read_text(encoding="utf-8").splitlines()[0]
        assert (int(name[:4]), head) == (number, f"# {number}. {title}")


# -- what is typed -----------------------------------------------------------------------------------


def typed(path: Path) -> Iterator[str]:
    """Every command that a reader may type: lines of code blocks, and pieces of code within sentences."""
    text = path.read_text(encoding="utf-8")
    for language, block in _FENCE.findall(text):
        if language in ("", "sh"):
            yield from (line.removeprefix("$ ").strip() for line in block.splitlines())
    yield from _CODE.findall(prose(path))


@functools.cache
def program() -> Any:
    """The command `legato` with its subcommands; to put it together takes a while."""
    return typer.main.get_command(main.program([]))


def missing(words: list[str]) -> str | None:
    """Return the first word of a `legato` command line that does not exist."""
    command = program()
    options = {"--help"}
    for word in words:
        options |= {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        inner = getattr(command, "commands", None)
        if inner is not None and word in inner:
            command = inner[word]
        elif (inner is not None and not word.startswith("-")) or (word.startswith("--") and word not in options):
            return word
    return None


def unknown_commands(path: Path, targets: set[str]) -> Iterator[str]:
    """Yield the commands in a document that are neither Legato's nor targets of make."""
    for line in typed(path):
        for part in re.split(r"\s(?:\||&&)\s", line):
            words = shlex.split(part, comments=True) if part.count('"') % 2 == part.count("'") % 2 == 0 else []
            is_ours = (
                bool(words) and Path(words[0]).name == "legato" and words[0] != "/legato"
            )  # which people type on Slack
            if is_ours and (unknown := missing(words[1:])) is not None:
                yield f"{name_of(path)}: {part}: {unknown}"
            if len(words) > 1 and words[0] == "make" and words[1] not in targets:
                yield f"{name_of(path)}: {part}"


def test_every_command_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    unknown = [line for path in DOCUMENTS for line in unknown_commands(path, targets)]
    assert not unknown, "\n".join(unknown)


def test_the_check_for_commands_sees_what_is_missing() -> None:
    assert missing(["run", "--workers", "4"]) is None
    assert missing(["sessions", "show", "ID"]) is None
    assert missing(["sesions", "list"]) == "sesions"
    assert missing(["usage", "--bye", "model"]) == "--bye"


def test_the_page_of_commands_has_them_all_and_no_other() -> None:
    commands = [each for each in all_commands().commands if each.run.__module__.startswith("gateway.")]
    table = re.findall(r"^\| (.+?) \|", prose(ROOT / "docs/commands.md"), re.MULTILINE)
    documented = {name for cell in table for name in re.findall(r"`/(\w+)", cell)}
    assert documented == {name for command in commands for name in (command.name, *command.aliases)}


def test_the_page_of_tools_has_them_all_and_no_other() -> None:
    rooms = [import_module(f"{tools.__name__}.{module.name}") for module in iter_modules(tools.__path__)]
    made = {
        kind.name
        for room in (*rooms, search, pictures)  # the last two are loaded only where they are set up
        for kind in vars(room).values()
        if isclass(kind) and {"name", "run"} <= set(vars(kind)) and isinstance(kind.name, str)
    }
    factories = [each for room in rooms for each in getattr(room, "TOOLS", ()) if isinstance(each, functools.partial)]
    made |= {each.keywords["name"] for each in factories}
    table = prose(ROOT / "docs/tools.md").split("## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert documented == made | {"SERVER_TOOL"}


def test_the_examples_of_code_run() -> None:
    """The examples of one module run here; a page's packages are installed and talked to in
    `e2e/test_docs_examples.py`."""
    blocks = [
        block for language, block in _FENCE.findall((ROOT / "docs/adding.md").read_text()) if language == "python"
    ]
    assert len(blocks) == 7
    for block in blocks:
        exec(compile(block, "docs/adding.md", "exec"), {"__name__": "example"})


# -- what is named -----------------------------------------------------------------------------------

_PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)*/?")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_MADE = (
    ".venv/",
    "skills/",
    "build/",
    "legato-home/",
    "legato_",
    "mail/",
    "plugins/",
    "~/",
)  # by the program, make, or the reader


def missing_files(path: Path) -> Iterator[str]:
    """Paths that a document names: they begin at the root, in `gateway/`, or in the document's folder."""
    for name in _CODE.findall(prose(path)):
        if "/" in name.strip("/") and _PATH.fullmatch(name) and not name.startswith(_MADE):
            places = (ROOT, ROOT / "gateway", path.parent)
            if not any(list(place.glob(name.rstrip("/"))) for place in places):
                yield f"{name_of(path)}: {name}"


def test_every_file_that_is_named_exists() -> None:
    of_today = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
    absent = [name for path in of_today for name in missing_files(path)]
    assert not absent, "\n".join(absent)


def test_every_method_that_is_named_exists() -> None:
    named = {name for path in DOCUMENTS for name in _CODE.findall(prose(path)) if re.fullmatch(r"[A-Z]\w+\.\w+", name)}
    named -= {name for name in named if name.endswith((".md", ".yaml"))}
    kinds = {name.partition(".")[0] for name in named}
    there: set[str] = set()
    for path in modules("gateway", "adapters"):
        if kinds.isdisjoint(re.findall(r"^ *class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                there |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, _FUNCTION)}
    assert named - there == set()


def test_the_kinds_of_lines_are_those_of_the_program() -> None:
    text = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    table = text.partition("| `kind` | Meaning |\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted([*get_args(OutboundKind), "piece"])


@pytest.mark.parametrize("room", ["agent", "context", "domain", "providers", "store/sqlite", "turns"])
def test_the_map_of_a_large_room_has_its_files_and_no_others(room: str) -> None:
    folder = ROOT / "gateway" / room
    there = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    drawing = ast.get_docstring(parsed(folder / "__init__.py")) or ""
    rows = [re.split(r" {2,}", line.strip()) for line in drawing.splitlines() if line.startswith("    ")]
    lists = [names for *_, names, _ in rows] + re.findall(r"\((\w+(?:, \w+)*)[:)]", drawing)
    drawn = {name for names in lists for name in names.split(", ")}
    assert drawn - there == set()
    assert there - {"__init__"} - drawn - set(re.findall(r"(?:`|▶ )(\w+)", drawing)) == set()
