"""The notes of the offline model: lines copied from a request for notes, never made up.

A request names its headings and holds the turns between tags, as blocks that begin with `[user]`, `[assistant]`,
`[assistant calls TOOL]` or `[result of TOOL]`. Earlier notes, if any, stand between tags in front of the turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.domain.message import text_of
from gateway.domain.notes import CONTEXT, DONE, FILES, SECTIONS, TASK, section, sections_of

_BLOCK: Final = re.compile(r"^\[(user|assistant|result of)(?: ([^\]\n]*))?\] ?", re.MULTILINE)
_GAP: Final = re.compile(r"^\[\d{1,9} (?:older )?messages [^\]\n]*\]$", re.MULTILINE)  # turns that did not fit
_BUDGET: Final = re.compile(r"at most ([\d,]+) tokens")
_FILE: Final = re.compile(  # every repeat is bounded: the material may be one endless word
    r"(?<![\w/])(?:[~.]?/)?(?:[\w.-]{1,60}/){0,12}[\w-]{1,80}\.[A-Za-z]\w{0,5}\b(?!\.\w)"
    r"|(?<!\w)/(?:[\w.-]{1,60}/){1,12}[\w.-]{0,80}"
)
_FACT: Final = re.compile(
    r"\b(?:my|our) [\w' -]{1,40} (?:is|are) |\bI(?: am|'m) called |\b(?:remember|always|never)\b", re.IGNORECASE
)
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_CHARS_PER_TOKEN: Final = 3  # careful: English has about four
_LINE: Final = 220  # characters of one copied line


def checkpoint(messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None, count: Callable[[str], int]) -> str:
    """Return notes within the size that the request asks for, and under `max_tokens`. `count` counts tokens."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    asked = prompt.partition("<")[0]
    titles = [title for title in SECTIONS if section(title, "") in asked] or [*SECTIONS]
    found, earlier = _found(prompt), sections_of(_between(prompt, "previous-notes"))
    lines: dict[str, list[str]] = {}
    for title in titles:
        kept = [] if title == TASK and found[TASK] else _lines(earlier.get(title, ""))
        if some := list(dict.fromkeys([*kept, *found.get(title, [])])):
            lines[title] = some
    stated = _BUDGET.findall(prompt)
    wanted = int(stated[-1].replace(",", "")) if stated else 800
    budget = max(40, min(wanted, max_tokens or wanted) * 4 // 5)
    chars = budget * _CHARS_PER_TOKEN
    text = _written(lines, chars)
    while (size := count(text)) > budget and chars > 100:
        # Chinese has as many tokens as characters, so the size of this very text tells how much to take away.
        chars = min(chars, len(text)) * budget * 9 // (size * 10)
        text = _written(lines, chars)
    return text


def _between(text: str, tag: str) -> str:
    match = re.search(rf"<{tag}>\n?(.*?)\n?</{tag}>", text, re.DOTALL)
    return match[1] if match else ""


def _found(prompt: str) -> dict[str, list[str]]:
    """Return the lines that the turns of a request give to each section, oldest first."""
    material = _GAP.sub("", _between(prompt, "conversation"))
    _, *pieces = _BLOCK.split(material)
    blocks = [(pieces[n], pieces[n + 1] or "", pieces[n + 2].strip()) for n in range(0, len(pieces), 3)]
    asks = [text for kind, _, text in blocks if kind == "user" and text]
    said = [*(" ".join(text.split())[:_LINE] for text in asks), *_lines(_between(prompt, "memory-notes"))]
    return {
        TASK: asks[-1:],
        DONE: [
            f"{tool}: {(text.splitlines() or [''])[0][:_LINE]}" for kind, tool, text in blocks if kind == "result of"
        ],
        FILES: list(dict.fromkeys(_FILE.findall(material)))[:40],
        CONTEXT: sorted(said, key=lambda line: bool(_FACT.search(line))),  # facts last: the last lines stay longest
    }


def _lines(text: str) -> list[str]:
    """Return the lines of earlier notes without bullets and numbers."""
    stripped = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [line for line in stripped if line and line.lower() != "none"]


def _written(lines: Mapping[str, Sequence[str]], chars: int) -> str:
    """Return the sections, each within its share of `chars` characters."""
    room = chars - sum(len(title) + 5 for title in lines)
    written: list[str] = []
    for position, (title, some) in enumerate(lines.items()):
        share = max(0, room) // (len(lines) - position)
        body = "\n".join(some)[: max(share, room // 2)] if title == TASK else _newest(some, share, title == DONE)
        if body:
            written.append(section(title, body))
            room -= len(body)
    return "\n".join(written) or section(TASK, "None")


def _newest(lines: Sequence[str], share: int, numbered: bool) -> str:
    """Return the newest lines that fit into `share` characters, in order."""
    kept: list[str] = []
    for number, line in reversed(list(enumerate(lines, start=1))):
        bullet = f"{number}. {line}" if numbered else f"- {line}"
        share -= len(bullet) + 1
        if share < 0:
            break
        kept.append(bullet)
    return "\n".join(reversed(kept))
