"""Words that several rooms must agree on stand in one file: a literal elsewhere would silently part from it."""

import ast

from gateway.domain.notes import SECTIONS, SUMMARY_REQUEST
from tests.support.source_tree import modules, name_of, parsed

PLACE = "gateway/domain/notes.py"


def literals(tree):
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_the_headings_of_notes_and_the_marker_of_their_request_are_written_once():
    words = (SUMMARY_REQUEST, *(title for title in SECTIONS if " " in title), *(f"## {title}" for title in SECTIONS))
    found = {
        f"{name_of(path)}: {word}"
        for path in modules("gateway", "adapters")
        if name_of(path) != PLACE
        for text in literals(parsed(path))
        for word in words
        if word in text
    }
    assert found == set()
