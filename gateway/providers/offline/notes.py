"""What the offline model writes down: the notes of a conversation, and what is to be remembered. Both are copied from
the request, never made up.

A request for notes names its headings and holds the turns between tags, as blocks that begin with `[user]`,
`[assistant]`, `[assistant calls TOOL]` or `[result of TOOL]`; earlier notes, if any, stand between tags in front of
them. A request for what is to be remembered shows the known facts, a line each, and lines that begin with
`[1] person:`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.domain.message import text_of
from gateway.domain.notes import CONTEXT, DONE, FILES, SECTIONS, TASK, section, sections_of

FACT: Final = re.compile(r"\bmy (?P<thing>[\w' -]{2,40}?) (?:is|are) (?P<value>[^\n.!?|]{1,200})", re.IGNORECASE)
_QUESTION: Final = re.compile(r"\bwhat(?:'s| is| was| are) $", re.IGNORECASE)
_SAID: Final = re.compile(r"^\[(\d+)\] person: (?:\[[^\]\n]{1,60}\] )?(.*)$", re.MULTILINE)
_KNOWN: Final = re.compile(r"^- \d{4}-\d\d-\d\d: (?:[^:\n]{1,60}: )??(?P<fact>[^\n]+)$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^\[(user|assistant|result of)(?: ([^\]\n]*))?\] ?", re.MULTILINE)
_GAP: Final = re.compile(r"^\[\d{1,9} (?:older )?messages [^\]\n]*\]$", re.MULTILINE)  # turns that did not fit
_BUDGET: Final = re.compile(r"at most ([\d,]+) tokens")
_FILE: Final = re.compile(r"(?<![\w/])(?:[~.]?/)?(?:[\w.-]{1,60}/){0,12}[\w-]{1,80}\.[A-Za-z]\w{0,5}\b(?!\.\w)")
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LINE: Final = 220  # characters of one copied line


def asks(fact: re.Match[str]) -> bool:
    """Whether a fact that was found is part of a question."""
    return _QUESTION.search(fact.string[: fact.start()]) is not None


def known_facts(prompt: str) -> dict[str, tuple[str, str]]:
    """The facts in a prompt's memory, as written and their values, by their things."""
    facts = (found["fact"] for found in _KNOWN.finditer(_within(prompt, "memory")))
    return {fact.partition(": ")[0].casefold(): (fact, fact.partition(": ")[2]) for fact in facts if ": " in fact}


def memories(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of the calls that answer a request for facts: each "my THING is VALUE" that is news."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    known = known_facts(prompt)
    calls: list[dict[str, Any]] = []
    for said in _SAID.finditer(_within(prompt, "conversation")):
        for found in FACT.finditer(said[2]):
            thing, value = found["thing"].casefold(), found["value"].partition(",")[0].strip().removesuffix(" now")
            old, before = known.get(thing, (None, None))
            if before != value and not asks(found):
                fact = f"{found['thing'].capitalize()}: {value}"
                call = {"action": "add", "about": "person"} if old is None else {"action": "replace", "fact": old}
                calls.append({**call, "text": fact, "message": int(said[1])})
                known[thing] = fact, value
    return calls


def checkpoint(messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None, count: Callable[[str], int]) -> str:
    """Return notes within the size that the request asks for, and under `max_tokens`. `count` counts tokens. Where not
    all fits, the oldest lines of each section go first."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    found, earlier = _found(prompt), sections_of(_within(prompt, "previous-notes"))
    lines: dict[str, list[str]] = {}
    asked = prompt.partition("<")[0]
    for title in [title for title in SECTIONS if section(title, "") in asked] or SECTIONS:
        kept = [] if title == TASK and found[TASK] else _lines(earlier.get(title, ""))
        if some := list(dict.fromkeys([*kept, *found.get(title, ())])):
            lines[title] = [f"{at}. {line}" for at, line in enumerate(some, 1)] if title == DONE else some
    stated = _BUDGET.findall(prompt)
    wanted = int(stated[-1].replace(",", "")) if stated else 800
    budget = max(40, min(wanted, max_tokens or wanted) * 4 // 5)
    text = _written(lines)
    while (size := max(count(text), len(text) // 4)) > budget and any(len(some) > 1 for some in lines.values()):
        lines = {title: some[(len(some) + 3) // 4 :] if len(some) > 1 else some for title, some in lines.items()}
        text = _written(lines)
    return text if size <= budget else text[: len(text) * budget // size]


def _within(prompt: str, tag: str) -> str:
    """The text between two tags, each on a line of its own."""
    return prompt.rpartition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0] if f"<{tag}>\n" in prompt else ""


def _found(prompt: str) -> dict[str, list[str]]:
    """Return the lines that the turns of a request give to each section, oldest first."""
    material = _GAP.sub("", _within(prompt, "conversation"))
    _, *pieces = _BLOCK.split(material)
    blocks = [(pieces[n], pieces[n + 1] or "", pieces[n + 2].strip()) for n in range(0, len(pieces), 3)]
    requests = [text for kind, _, text in blocks if kind == "user" and text]
    said = [*(" ".join(text.split())[:_LINE] for text in requests), *_lines(_within(prompt, "memory-notes"))]
    return {
        TASK: requests[-1:],
        DONE: [f"{tool}: {text.partition(chr(10))[0][:_LINE]}" for kind, tool, text in blocks if kind == "result of"],
        FILES: list(dict.fromkeys(_FILE.findall(material)))[-40:],
        CONTEXT: sorted(said, key=lambda line: FACT.search(line) is not None),  # facts last: these lines stay longest
    }


def _lines(text: str) -> list[str]:
    """Return the lines of earlier notes without bullets and numbers."""
    stripped = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [line for line in stripped if line and line.lower() != "none"]


def _written(lines: Mapping[str, Sequence[str]]) -> str:
    bulleted = {
        title: [line if title in (TASK, DONE) else f"- {line}" for line in some] for title, some in lines.items()
    }
    return "\n".join(section(title, "\n".join(some)) for title, some in bulleted.items()) or section(TASK, "None")
