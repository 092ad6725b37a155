"""Asks the person something in the middle of a turn, with options as buttons where the platform has them; and has all
people of a chat vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.agent.tools.base import FOR_PEOPLE, ToolContext, schema
from gateway.domain.approval import Choices
from gateway.domain.platform import POLLS
from gateway.runtime.errors import ToolError

_MOST_OPTIONS: Final = 10
_LONGEST: Final = 1_000  # characters of a question
_LONGEST_OPTION: Final = 200  # characters

_ANSWERS: Final = f"`answers` must be 2 to {_MOST_OPTIONS} different answers; ask again."

REFUSED: Final = "The person does not want to answer this. Go on without it, and say what you took for granted."
KEPT_BACK: Final = "A plug-in keeps the person's answer from you. Go on without it, and tell them: {sentence}"
UNANSWERED: Final = "Nobody answered in time. Go on without it, and say what you took for granted."
NOBODY: Final = "There is nobody here to ask. Go on without it, and say what you took for granted."


class AskPersonTool:
    """Waits for the answer. A question that was put before a restart is not put again."""

    name = "ask_person"
    description = (
        "Asks the person one question and waits for the answer, where you cannot go on well without it. "
        "`options`: what they may choose from, or say it in their own words unless `free_text` is false."
    )
    parameters = schema(
        "question",
        question={"type": "string", "minLength": 1, "maxLength": _LONGEST},
        options={
            "type": "array",
            "maxItems": _MOST_OPTIONS,
            "items": {"type": "string", "minLength": 1, "maxLength": _LONGEST_OPTION},
        },
        multiple={"type": "boolean"},
        free_text={"type": "boolean"},
    )
    read_only = True
    idempotent = True
    refers = True  # the call is stored before the question is put, so that a restart finds the same one
    brings = ""
    timeout = FOR_PEOPLE

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if context.ask is None:
            raise ToolError(NOBODY)
        options = list(dict.fromkeys(" ".join(each.split()) for each in arguments.get("options") or ()))
        several = bool(arguments.get("multiple")) and len(options) > 1
        closed = bool(options) and arguments.get("free_text") is False
        choices = Choices(options=tuple(options), several=several, closed=closed)
        lines = [arguments["question"].strip(), *(f"{number}. {option}" for number, option in enumerate(options, 1))]
        lines += ["You can choose several numbers, such as 1, 2."] if several else []
        verdict, said = await context.ask("\n".join(lines), None, choices)
        if verdict == "denied" and said:
            return KEPT_BACK.format(sentence=said)
        if verdict != "approved":
            return REFUSED if verdict == "denied" else UNANSWERED
        return f"The person answered: {choices.named(said) or said}"


class MakePollTool:
    """The question is the poll's name: the same one in the same turn is one poll."""

    name = "make_poll"
    description = "Has the people here vote, or with `close` ends your poll of this question and tells the counts."
    parameters = schema(
        "question",
        question={"type": "string", "minLength": 1, "maxLength": 300},
        answers={"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 100}},
        several={"type": "boolean"},
        close={"type": "boolean"},
    )
    read_only = False
    idempotent = True
    brings = ""
    timeout = 60.0
    needs = POLLS

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if context.polls is None:
            raise ToolError("No poll can be made here; ask in words.")
        question = " ".join(arguments["question"].split())
        if arguments.get("close"):
            return await context.polls.close(question)
        answers = list(dict.fromkeys(" ".join(each.split()) for each in arguments.get("answers") or ()))
        if not 2 <= len(answers) <= _MOST_OPTIONS or not question or not all(answers):
            raise ToolError(_ANSWERS)
        await context.polls.make(question, answers, several=bool(arguments.get("several")))
        return "The poll is on its way. Who answers it shows you its counts; `close` ends it."


TOOLS = (lambda _: AskPersonTool(), lambda _: MakePollTool())
