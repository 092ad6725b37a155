"""Draw sentences from the documents, `--help` and the messages to people, to be read by fresh eyes.

`python -m tests.docs.sentences 40 [SEED]` prints so many, each with its file. The same seed draws the same ones.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.source_tree import ROOT, modules, name_of, nodes, project_files

_NOT_PROSE = re.compile(r"^(#|\||```|    |<|>|!\[)")
_SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][)\"]))\s+(?=[A-Z`*\[/(\"])")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_CUT = re.compile(
    r"[a-z,;:#]|SELECT|INSERT|DELETE|UPDATE"
)  # the rest of a sentence whose beginning is elsewhere; and SQL
_END = re.compile(r"[.!?][*_\"”]*$")
_LEAST_WORDS = 5
_ROOMS = re.compile(r"(gateway/(commands|turns|people|cli|app)|adapters)/")
_FOR_MODELS = re.compile(r"gateway/(turns/(joining|suggestions|delegated)|app/(heartbeat|mcp_server))\.py")


def of_document(path: Path) -> Iterator[str]:
    """The sentences of paragraphs and lists, without code, tables and headings."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if not _NOT_PROSE.match(block.lstrip("\n")):
            yield from _SENTENCE.split(re.sub(r"\s+", " ", _ITEM.sub("", block).strip()))


def of_module(path: Path) -> Iterator[str]:
    """Texts in the code that end as sentences do: messages and help. Documentation of the code is left out."""
    quiet = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    quiet |= {id(part) for node in nodes(path) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            yield from _SENTENCE.split("".join(map(_shown, node.values)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            yield from _SENTENCE.split(node.value)


def _shown(part: ast.expr) -> str:
    """A part of an f-string as a reader meets it: the first of two wordings, or the name of what stands there."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    value = value.body if isinstance(value, ast.IfExp) else value
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "counted":
        return f"3 {ast.unparse(value.args[1])[1:-1]}s"
    return f"{{{(re.findall(r'[a-z]{2,}', ast.unparse(value)) or ['…'])[-1]}}}"


def drawn(number: int, seed: int) -> list[tuple[str, str]]:
    """So many sentences with the names of their files: half from documents, half from messages."""
    documents = [each for each in project_files() if each.suffix == ".md" and "decisions" not in each.parts]
    rooms = [
        each
        for each in modules("gateway", "adapters")
        if _ROOMS.match(name_of(each)) and not _FOR_MODELS.match(name_of(each))
    ]
    chance = random.Random(seed)
    chosen: list[tuple[str, str]] = []
    for paths, told in ((documents, of_document), (rooms, of_module)):
        found = [
            (name_of(path), text)
            for path in paths
            for text in map(str.strip, told(path))
            if text.count(" ") >= _LEAST_WORDS and _END.search(text) and not (path.suffix == ".py" and _CUT.match(text))
        ]
        chosen += chance.sample(sorted(set(found)), number // 2)
    return chosen


if __name__ == "__main__":
    many, *given = (int(each) for each in sys.argv[1:] or ["40"])
    for name, text in drawn(many, *(given or [1])):
        print(f"{name.removeprefix(str(ROOT))}\n    {text}\n")
