"""Text in columns, where letters are not all of one width."""

from __future__ import annotations

from gateway.delivery.markdown.tables import without_columns


def test_columns_become_dashes() -> None:
    text = "Conversation\n  /new          start afresh\n\n[██░░] 2%  ~636 of 32,000 tokens\n  one word"
    assert without_columns(text) == ("Conversation\n/new — start afresh\n\n[██░░] 2% — ~636 of 32,000 tokens\none word")
