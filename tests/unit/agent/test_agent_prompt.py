"""The system prompt holds what its session needs and nothing that changes by itself."""

from __future__ import annotations

from gateway.agent.prompt import PromptBuilder
from gateway.domain.session import Todo

BUILDER = PromptBuilder(context_files=[("house.md", "Wipe your feet.\n")], tool_names=["search_history"])


def built(builder: PromptBuilder = BUILDER, **changes: object) -> str:
    plain = {"platform": "console", "chat_type": "direct", "shared": False, "compacted": False}
    return builder.build(**{**plain, **changes})  # type: ignore[arg-type]


def test_it_is_the_same_every_time() -> None:
    assert built() == built()


def test_a_persona_takes_the_place_of_the_usual_identity() -> None:
    assert built(PromptBuilder(persona="You are a pirate.")).startswith("You are a pirate.")
    assert "Legato" not in built(PromptBuilder(persona="You are a pirate."))


def test_files_and_tools_are_named() -> None:
    assert "# house.md\nWipe your feet." in built()
    assert "search_history" in built()
    assert "search_history" not in built(PromptBuilder())


def test_only_a_continuation_says_that_turns_were_condensed_and_what_is_open() -> None:
    todos = (Todo(text="buy milk"), Todo(text="sell eggs", status="done"))
    plain, compacted = built(todos=todos), built(compacted=True, todos=todos)
    assert "condensed" not in plain
    assert "buy milk" not in plain
    assert "condensed" in compacted
    assert "buy milk" in compacted
    assert "sell eggs" not in compacted
