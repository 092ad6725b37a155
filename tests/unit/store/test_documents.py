"""JSON documents that are read together."""

from __future__ import annotations

from typing import Any

from gateway.store.shared import documents
from gateway.store.shared.documents import dumps, parsed


def test_documents_that_are_parsed_together_are_those_that_are_parsed_alone() -> None:
    half = "中" * (documents._AT_ONCE // 2)
    values: list[Any] = [{"n": 1}, half, [], half, None, 'a "quoted", 好', half, half, {}]
    assert parsed(map(dumps, values)) == values
    assert parsed([dumps(half)] * 3) == [half] * 3
    assert parsed([]) == []
