"""Names: nothing in the gateway names a platform, a vendor or a wire format, and words of several rooms stand once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import pytest

from gateway.app.plugins import platforms, providers
from gateway.domain.notes import SECTIONS, SUMMARY_REQUEST
from tests.support.source_tree import modules, name_of, nodes

VENDORS = re.compile("telegram|discord|slack_|whatsapp|openai|anthropic|openrouter|claude|gemini|deepseek|ollama", re.I)
# Patterns of credentials and tables of vendors are data about the world; wire formats and exports are somebody's.
WHERE_THEY_ARE_KNOWN = re.compile(
    r"gateway/(runtime/redaction/|app/imports/|providers/([a-z_]+/|vendors\.py|known\.py))"
)
NAMED = {
    "gateway/agent/holding.py": {"api"},  # a word of credentials
    "gateway/agent/search/servers.py": {"web"},  # where Brave's answer has its pages
    "gateway/app/config/models.py": {"console"},  # a form of log lines
    "gateway/runtime/logs.py": {"console"},
    "gateway/cli/main.py": {
        "Say where the export is from: hermes, chatgpt, claude, openwebui or jsonl."
    },  # formats that `import` reads
    "gateway/cli/migrate.py": {"console"},
    "gateway/delivery/markdown/formulas.py": {"telegramify_markdown"},  # a library, of which only its formulas are used
    "gateway/providers/plugin.py": {"offline"},  # the provider of who chose none
}


def said(whole: Sequence[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Every name and every text that is no docstring; whether it is a text."""
    prose = {id(node.value) for node in whole if isinstance(node, ast.Expr)}
    for node in whole:
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield text, True
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, False
            case ast.keyword(arg=str(name)) | ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                yield name, False


def names_in(whole: Sequence[ast.AST]) -> set[str]:
    """The vendors that are named in some way, and the plug-ins whose very name is a text."""
    plugins = {*platforms(), *providers()}
    return {word for word, is_text in said(whole) if VENDORS.search(word) or (is_text and word in plugins)}


def test_the_gateway_names_nobody() -> None:
    found = {
        name_of(path): names
        for path in modules("gateway")
        if not WHERE_THEY_ARE_KNOWN.match(name_of(path)) and (names := names_in(nodes(path)))
    }
    assert found == NAMED


@pytest.mark.parametrize(
    "code",
    [
        "x = 'console'",
        "def of_telegram(): pass",
        "import openai.x",
        "f(claude=1)",
        "f'see {a} telegram:12'",
        "a.OpenAI",
    ],
)
def test_the_check_sees_a_name(code: str) -> None:
    assert names_in(list(ast.walk(ast.parse(code))))


def test_a_docstring_may_say_where_a_fact_comes_from() -> None:
    code = "'''As Telegram has it.'''\nx = 1\n'''OpenAI, too.'''"
    assert not names_in(list(ast.walk(ast.parse(code))))


PLACE = "gateway/domain/notes.py"


def literals(path):
    return [node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_the_headings_of_notes_and_the_marker_of_their_request_are_written_once():
    words = (SUMMARY_REQUEST, *(title for title in SECTIONS if " " in title), *(f"## {title}" for title in SECTIONS))
    found = {
        f"{name_of(path)}: {word}"
        for path in modules("gateway", "adapters")
        if name_of(path) != PLACE
        for text in literals(path)
        for word in words
        if word in text
    }
    assert found == set()
