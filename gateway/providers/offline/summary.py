"""How the offline model summarises: by picking sentences, never by making any up.

The request names its sections (lines that begin with `##`) and holds the turns as blocks that
begin with `[user]`, `[assistant]`, `[assistant calls TOOL]` or `[result of TOOL]`, with the
previous notes, if any, in front. Every line of the answer is copied from one of these.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.domain.message import text_of

_SECTIONS: Final = (
    "Active Task", "Goal", "Constraints & Preferences", "Completed Actions", "Active State", "In Progress", "Blocked",
    "Key Decisions", "Resolved Questions", "Pending User Asks", "Relevant Files", "Remaining Work", "Critical Context",
)  # fmt: skip
_HEADING: Final = re.compile(r"^## +(\S[^\n]{0,80}?) *$", re.MULTILINE)
_BLOCK: Final = re.compile(
    r"^\[(?:(?P<result>result of) (?P<of>[^\]\n]+)|(?P<role>user|assistant)(?P<more>[^\]\n]*))\] ?", re.MULTILINE
)
_GAP: Final = re.compile(r"^\[\d{1,9} (?:older )?messages [^\]\n]*\]$", re.MULTILINE)  # what did not fit
_BUDGET: Final = re.compile(r"at most ([\d,]+) tokens")
_FILE: Final = re.compile(  # every repeat is bounded: the material may be one endless word
    r"(?<![\w/])(?:[~.]?/)?(?:[\w.-]{1,60}/){0,12}[\w-]{1,80}\.[A-Za-z]\w{0,5}\b(?!\.\w)"
    r"|(?<!\w)/(?:[\w.-]{1,60}/){1,12}[\w.-]{0,80}"
)
_RULE: Final = re.compile(r"\b(?:always|never|must(?: not)?|do not|don't|prefer|please use|only use|remember)\b", re.I)
_FACT: Final = re.compile(r"\b(?:my|our) [\w' -]{1,40} (?:is|are) |\bI(?: am|'m) called |\bremember\b", re.I)
_DECISION: Final = re.compile(r"\b(?:decided|let's|we will|we'll|agreed|go with|chose)\b", re.I)
_TROUBLE: Final = re.compile(r"\b(?:error|failed|failure|exception|denied|not found|cannot|refused)\b", re.I)
_MINOR: Final = ("asked: ", "answered: ")
_CHARS_PER_TOKEN: Final = 3  # careful: English has about four
_LINE: Final = 220  # characters of one extracted line
_TASK: Final = 1_200  # characters of the active task, which is wanted word for word


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One block of the material. `kind`: user, assistant, call or result."""

    kind: str
    text: str
    tool: str = ""


def checkpoint(
    messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None, count: Callable[[str], int] | None = None
) -> str:
    """A summary of what the request holds, within the size it asks for and under `max_tokens`.
    `count` gives the tokens of a text; without it they are guessed from its characters."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    turns = _turns(_between(prompt, "conversation") or text_of(messages[-1]))
    previous = _sections(_between(prompt, "previous-notes"))
    asked = [name for name in _HEADING.findall(prompt.partition("<")[0]) if len(name) < 60]
    found = _extract(turns)
    memory = _between(prompt, "memory-notes")
    if memory:
        found["Critical Context"] = [*found.get("Critical Context", []), *_lines(memory)]
    names = list(dict.fromkeys(asked)) or list(_SECTIONS)
    budget = _budget(prompt, max_tokens)
    chars = budget * _CHARS_PER_TOKEN
    text = _written(names, found, previous, chars)
    while count is not None and (size := count(text)) > budget and chars > 100:
        # Chinese has as many tokens as characters: scale by what this text really has.
        chars = min(chars, len(text)) * budget * 9 // (size * 10)
        text = _written(names, found, previous, chars)
    return text


def _between(text: str, tag: str) -> str:
    match = re.search(rf"<{tag}>\n?(.*?)\n?</{tag}>", text, re.DOTALL)
    return match[1] if match else ""


def _budget(prompt: str, max_tokens: int | None) -> int:
    stated = [int(number.replace(",", "")) for number in _BUDGET.findall(prompt)]
    wanted = stated[-1] if stated else 800
    return max(40, min(wanted, max_tokens or wanted) * 4 // 5)


def _turns(material: str) -> list[Turn]:
    material = _GAP.sub("", material)
    heads = list(_BLOCK.finditer(material))
    ends = [head.start() for head in heads[1:]] + [len(material)]
    turns: list[Turn] = []
    for head, end in zip(heads, ends, strict=True):
        text = material[head.end() : end].strip()
        more = (head["more"] or "").strip()
        if head["result"]:
            turns.append(Turn(kind="result", text=text, tool=head["of"]))
        elif more.startswith("calls "):
            turns.append(Turn(kind="call", text=text, tool=more.removeprefix("calls ")))
        else:
            turns.append(Turn(kind=head["role"], text=text))
    return turns


def _sections(notes: str) -> dict[str, list[str]]:
    """The lines of earlier notes by heading, bullets and numbers taken off."""
    sections: dict[str, list[str]] = {}
    pieces = _HEADING.split(notes)
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        sections[name] = [line for line in _lines(body) if line.lower() != "none"]
    return sections


def _lines(text: str) -> list[str]:
    stripped = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line).strip() for line in text.splitlines())
    return [line for line in stripped if line]


def _extract(turns: Sequence[Turn]) -> dict[str, list[str]]:
    """What each section can be given from the turns, oldest first."""
    asks = [turn.text for turn in turns if turn.kind == "user" and turn.text]
    said = [turn.text for turn in turns if turn.kind == "assistant" and turn.text]
    results = [turn for turn in turns if turn.kind == "result"]
    people = [sentence for text in asks for sentence in _sentences(text)]
    everything = "\n".join(turn.text for turn in turns)
    return {
        "Active Task": [_clip(asks[-1], _TASK)] if asks else [],
        "Goal": [_clip(asks[0])] if asks else [],
        "Constraints & Preferences": [_clip(line) for line in people if _RULE.search(line)],
        "Completed Actions": [f"{turn.tool}: {_clip(_first_line(turn.text))}" for turn in results],
        "Active State": [_clip(_first_line(results[-1].text))] if results else [],
        "Blocked": [_clip(_first_line(turn.text)) for turn in results if _TROUBLE.search(turn.text[:400])],
        "Key Decisions": [_clip(line) for line in people if _DECISION.search(line)],
        "Resolved Questions": _questions(turns),
        "Pending User Asks": [_clip(asks[-1])] if asks and turns[-1].kind == "user" else [],
        "Relevant Files": list(dict.fromkeys(_FILE.findall(everything)))[:40],
        "Critical Context": [
            *(_clip(line) for line in people if _FACT.search(line)),
            *(f"asked: {_clip(_first_line(text), 120)}" for text in asks[:-1]),
            *(f"answered: {_clip(_first_line(text), 120)}" for text in said[-5:]),
        ],
    }


def _questions(turns: Sequence[Turn]) -> list[str]:
    pairs = itertools.pairwise(turns)
    return [
        f"{_clip(ask.text, 120)} → {_clip(_first_line(reply.text), 120)}"
        for ask, reply in pairs
        if ask.kind == "user" and reply.kind == "assistant" and ask.text.rstrip().endswith("?")
    ]


def _sentences(text: str) -> Iterable[str]:
    return (part.strip() for part in re.split(r"(?<=[.!?。！？])\s+|\n+", text) if part.strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _clip(text: str, limit: int = _LINE) -> str:
    flat = " ".join(text.split()) if limit != _TASK else text.strip()
    return flat if len(flat) <= limit else f"{flat[: limit - 1].rstrip()}…"


def _written(names: list[str], found: dict[str, list[str]], previous: dict[str, list[str]], budget: int) -> str:
    """The sections that have something, each within its share; later lines matter more."""
    lines: dict[str, list[str]] = {}
    for name in names:
        fresh = found.get(name, [])
        kept = [] if fresh and name in ("Active Task", "Active State", "Pending User Asks") else previous.get(name, [])
        first_wins = name == "Goal" and kept
        merged = list(dict.fromkeys(kept if first_wins else [*kept, *fresh]))
        lines[name] = sorted(merged, key=lambda line: not line.startswith(_MINOR))  # facts last: they stay longest
    lines = {name: some for name, some in lines.items() if some}
    room = budget - sum(len(name) + 5 for name in lines)
    written: list[str] = []
    for position, (name, some) in enumerate(lines.items()):
        share = max(0, room) // max(1, len(lines) - position)
        if name == "Active Task":
            share = max(share, room // 2)
        verbatim = some[-1] if name == "Active Task" and len(some[-1]) <= share else ""
        body = verbatim or _fitting(some, share, numbered=name == "Completed Actions")
        if body:
            written.append(f"## {name}\n{body}")
            room -= len(body)
    return "\n".join(written) or "## Active Task\nNone"


def _fitting(lines: Sequence[str], share: int, *, numbered: bool) -> str:
    """The newest lines that fit in `share` characters, in their order."""
    kept: list[str] = []
    for number, line in reversed(list(enumerate(lines, start=1))):
        bullet = f"{number}. {line}" if numbered else f"- {line}"
        if len(bullet) + 1 > share:
            if not kept and share > 40:
                kept.append(f"{bullet[: share - 2]}…")
            break
        kept.append(bullet)
        share -= len(bullet) + 1
    return "\n".join(reversed(kept))
