"""Exact replacements in a text, and what they changed. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from gateway.runtime.errors import ToolError

_MOST_COMPARED: Final = 4_000  # lines in which the nearest place is looked for, and of two texts that are compared
_LONGEST_DIFF: Final = 20_000  # characters
_AROUND: Final = 3  # lines that are shown around a change
_LONGEST_LINE: Final = 300  # characters of one that is shown
_MOST_SHOWN: Final = 20  # lines of the nearest place
_ALIKE: Final = 0.5  # of two lines that may be the same


class Edit(NamedTuple):
    """A text and what comes into its place."""

    old: str
    new: str


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text after all edits, one after another. Each old text must be there exactly once. Raises ToolError for the
    first that is not, with the nearest place."""
    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")  # its line ends stay as they are
    for number, edit in enumerate(edits, 1):
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") if windows else each for each in edit)
        which = f"`old` of edit {number}" if len(edits) > 1 else "`old`"
        if not old:
            raise ToolError(f"{which} is empty; say which text is to be replaced. Nothing was changed.")
        count = text.count(old)
        if count > 1:
            found = islice(re.finditer(re.escape(old), text), 5)
            places = ", ".join(f"{text.count(chr(10), 0, each.start()) + 1}" for each in found)
            more = " and more" if count > 5 else ""
            raise ToolError(
                f"{which} is there {count} times (lines {places}{more}); add lines around it until it is the only one. "
                "Nothing was changed."
            )
        if not count:
            raise ToolError(f"{which} is not there. {_nearest(text, old)} Nothing was changed.")
        text = text.replace(old, new)
    return text


def _nearest(text: str, old: str) -> str:
    """The place that looks most like it, as a sentence."""
    there, lines = _split(text), _split(old)
    sought = max(lines, key=lambda line: len(line.strip())).strip()[:_LONGEST_LINE]
    compared = [line.strip()[:_LONGEST_LINE] for line in there[:_MOST_COMPARED]]
    best = difflib.get_close_matches(sought, compared, 1, _ALIKE)
    if not best:
        return "No place in the file looks like it."
    before = next(at for at, line in enumerate(lines) if line.strip()[:_LONGEST_LINE] == sought)
    start = max(0, compared.index(best[0]) - before)
    near = there[start : start + len(lines)]
    same = [line.split() for line in near] == [line.split() for line in lines]
    how = "It differs in white space alone" if same else "The nearest place is"
    numbered = [f"{number}: {line[:_LONGEST_LINE]}" for number, line in enumerate(near[:_MOST_SHOWN], start + 1)]
    return "\n".join([f"{how}:", *numbered, ""])


def diff(before: str, after: str, path: str) -> str:
    """What changed between two texts, as a unified diff; a sentence if that would be too long."""
    lines = changed_lines(before, after)
    if not lines:
        return "only the ends of lines changed" if before != after else "nothing changed"
    text = "\n".join([f"--- {path}", f"+++ {path}", *(line[:_LONGEST_LINE] for line in lines)])
    return text if len(text) <= _LONGEST_DIFF else f"{text[:_LONGEST_DIFF]}\n(and more)"


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a unified diff, without its head."""
    old, new = _split(before), _split(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    # What is the same at both ends takes no time; a few lines of it stand around the changes.
    first, last = max(0, start - _AROUND), max(0, end - _AROUND)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [f"@@ from line {first + 1} @@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    made = list[str]()
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        made.append(f"@@ -{first + i + 1},{i_end - i} +{first + j + 1},{j_end - j} @@")
        for tag, i, i_end, j, j_end in group:
            made += [f" {line}" for line in old[i:i_end]] if tag == "equal" else []
            made += [f"-{line}" for line in old[i:i_end]] if tag != "equal" else []
            made += [f"+{line}" for line in new[j:j_end]] if tag != "equal" else []
    return made if before != after and old != new else []


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of equal lines at the beginning of both."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
