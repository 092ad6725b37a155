"""Asks the person something in the middle of a turn, with options as buttons where the platform has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.agent.tools.base import FOR_PEOPLE, ToolContext, schema
from gateway.domain.approval import Choices
from gateway.runtime.errors import ToolError

_MOST_OPTIONS: Final = 10
_LONGEST: Final = 1_000  # characters of a question
_LONGEST_OPTION: Final = 200  # characters

REFUSED: Final = "The person does not want to answer this. Go on without it, and say what you took for granted."
KEPT_BACK: Final = "A plug-in keeps the person's answer from you. Go on without it, and tell them: {sentence}"
UNANSWERED: Final = "Nobody answered in time. Go on without it, and say what you took for granted."
LOST: Final = "(a restart took their words: ask once more)"
NOBODY: Final = "There is nobody here who could be asked. Go on without it, and say what you took for granted."


class AskPersonTool:
    """Waits for the answer. A question that was put before a restart is not put again."""

    name = "ask_person"
    description = (
        "Asks the person one question and waits for the answer, where you cannot go on well without it. "
        "`options`: what they may choose from; unless `free_text` is false they may also answer in their own words."
    )
    parameters = schema(
        "question",
        question={"type": "string", "minLength": 1, "maxLength": _LONGEST},
        options={
            "type": "array",
            "maxItems": _MOST_OPTIONS,
            "items": {"type": "string", "minLength": 1, "maxLength": _LONGEST_OPTION},
        },
        multiple={"type": "boolean", "description": "Several options may be chosen."},
        free_text={"type": "boolean", "description": "false: nothing but an option is an answer."},
    )
    read_only = True
    idempotent = True
    refers = True  # the call is stored before the question is put, so that a restart finds the same one
    brings = ""
    timeout = FOR_PEOPLE

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """What the person answered."""
        if context.ask is None:
            raise ToolError(NOBODY)
        options = list(dict.fromkeys(" ".join(each.split()) for each in arguments.get("options") or ()))
        several = bool(arguments.get("multiple")) and len(options) > 1
        closed = bool(options) and arguments.get("free_text") is False
        choices = Choices(options=tuple(options), several=several, closed=closed)
        lines = [arguments["question"].strip(), *(f"{number}. {option}" for number, option in enumerate(options, 1))]
        lines += ["Several numbers are fine, such as 1, 2."] if several else []
        verdict, said = await context.ask("\n".join(lines), None, choices)
        if verdict == "denied" and said:
            return KEPT_BACK.format(sentence=said)
        if verdict != "approved":
            return REFUSED if verdict == "denied" else UNANSWERED
        return f"The person answered: {choices.named(said) or said or LOST}"


TOOLS = (lambda _: AskPersonTool(),)
