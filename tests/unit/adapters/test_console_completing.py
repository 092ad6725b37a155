"""The commands on offer while somebody types."""

from __future__ import annotations

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from adapters.console.interactive import CommandCompleter


def test_commands_complete_at_the_start_of_a_message_only() -> None:
    completer = CommandCompleter([("status", "how it goes"), ("/stop", "end the turn")])

    def complete(text: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]

    assert complete("/") == ["/quit", "/status", "/stop"]
    assert complete("/ST") == ["/status", "/stop"]
    assert complete("/stop now") == []
    assert complete("see /st") == []
    assert complete("") == []
