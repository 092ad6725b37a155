"""What commands do, in other languages."""

from __future__ import annotations

from gateway.app.plugins import all_commands
from gateway.domain.command import translated


def test_every_command_is_told_in_every_language() -> None:
    names = {each.entry.name for each in all_commands().commands}
    told = translated()
    assert list(told) == ["de", "es", "fr", "ru", "zh", "ja"]
    for language, texts in told.items():
        assert set(texts) == names, language
        assert all(0 < len(text.strip()) <= 100 for text in texts.values()), language  # Discord's limit
        assert len(set(texts.values())) == len(names), language
