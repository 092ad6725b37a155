"""Texts that make a pattern or a reader slow, and the time limit that finds those that are."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import signal
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import pairwise
from re import _constants, _parser  # type: ignore[attr-defined]  # the tree of a pattern: `re` offers no other
from typing import Any, Final

import regex

from gateway.runtime.patterns import Pattern as LatePattern

ROOMS: Final = ("gateway", "adapters")
LONGEST: Final = 200_000  # characters: more than any size limit of the program lets in at once
_TENTH: Final = 10
SECONDS: Final = 1.0  # of this process's own time, which a busy machine does not shorten

Pattern = re.Pattern[Any]

_SHREDS: Final = (
    *("a", "A", "0", " ", "\n", "\t", "_", "-", ".", ",", "=", "/", ":", "@", "'", '"', "`", "*", "~", "|", "#", ">"),
    *("[", "]", "(", ")", "{", "}", "<", "\\", "$", "&", "%", "é", "中", "\U0001f600", "\u0301", "\u200b", "\x1b["),
    *("a ", " a", "a\n", "\n\n", "a.", "a-", "a=b,", "a=", "a:", "a: ", "a_", "a/", "//", "a@", "0.", "0,", "0 ", "-a"),
    *(
        "# a\n",
        "- a\n",
        "> ",
        "> a\n",
        "1. ",
        "| a ",
        "|-",
        "```",
        "```a\n",
        "~~~\n",
        "**a",
        "*a*",
        "[a](",
        "![",
        "[^a]",
    ),
    *(
        "<a ",
        "<a>",
        "</a>",
        "<a b='c' ",
        "&a;",
        "\\(",
        "\\(a",
        "\\[",
        "$a$ ",
        "||a",
        "https://a.",
        "a@a.",
        "{{",
        '{"a":',
    ),
    *("-----BEGIN ", "KEY=", "key: ", "Bearer ", "\r\n", " \n", "a\\", "\\n", "%41", "\x1b[0m", "()", "[]", "{}", "''"),
)
_ENDS: Final = ("", "!", "\x00", "\n", " a")


class TooSlow(BaseException):
    """The time limit struck. No `except Exception` swallows it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Break the block off when this process has worked for so long in it. Raises TooSlow. Searches of `re` hear of
    it, code of other languages does not."""

    def strike(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def modules() -> Iterator[types.ModuleType]:
    """Every module of the program."""
    for room in ROOMS:
        package = importlib.import_module(room)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns() -> dict[str, Pattern]:
    """Every compiled pattern of the program that a module, or a list or an object in one, holds: by its name."""
    found: dict[int, tuple[str, Pattern]] = {}
    for module in modules():
        for name, value in vars(module).items():
            for place, pattern in _within(value, f"{module.__name__}.{name}", 4):
                found.setdefault(id(pattern), (place, pattern))
    return dict(sorted(found.values(), key=lambda each: each[0]))


@cache
def uses() -> dict[str, set[str]]:
    """Return the methods that the program calls of a module's patterns, by the pattern's name in `patterns`."""
    found: dict[str, set[str]] = {}
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.setdefault(f"{module.__name__}.{node.value.id}", set()).add(node.attr)
    return found


def _within(value: object, place: str, depth: int) -> Iterator[tuple[str, Pattern]]:
    value = value._compiled if isinstance(value, LatePattern) else value
    if isinstance(value, re.Pattern | regex.Pattern):
        yield place, value
    elif depth and isinstance(value, Mapping):
        for key, each in value.items():
            yield from _within(each, f"{place}[{key!r}]", depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for number, each in enumerate(value):
            yield from _within(each, f"{place}[{number}]", depth - 1)
    elif depth and type(value).__module__.partition(".")[0] in ROOMS:
        late = (name for name, each in vars(type(value)).items() if isinstance(each, cached_property))
        for name in (*getattr(value, "__struct_fields__", ()), *getattr(value, "__dataclass_fields__", ()), *late):
            yield from _within(getattr(value, name, None), f"{place}.{name}", depth - 1)


def texts(size: int = LONGEST) -> Iterator[str]:
    """Texts that are hostile to anything: one shred again and again, with another end."""
    for shred in _SHREDS:
        repeated = shred * (size // len(shred))
        yield repeated
        yield repeated[:-1] + "!"
    for first, second in pairwise(_SHREDS):
        half = size // 2
        yield first * (half // len(first)) + second * (half // len(second))


def against(pattern: Pattern, size: int = LONGEST) -> Iterator[str]:
    """Texts made for one pattern: all that leads to one of its repetitions, the repetition again and again, and an
    end that does not fit."""
    flags = pattern.flags & ~re.DEBUG & 0xFFFF
    flags &= ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0)
    try:
        tree = _parser.parse(pattern.pattern, flags)
    except (re.error, ValueError, OverflowError):  # of the other library's language
        return
    seen = set[tuple[str, str]]()
    for lead, again in _repetitions(list(tree), ""):
        for shred in sorted({again, again + lead, lead + again} - {""}):
            if (lead, shred) not in seen:
                seen.add((lead, shred))
                yield from (lead + shred * (size // len(shred)) + end for end in _ENDS)


def _repetitions(tree: Sequence[Any], lead: str) -> Iterator[tuple[str, str]]:
    """Each repetition of a tree: an example of what leads to it, and one of what is repeated."""
    for operator, value in tree:
        for inner in _inner(operator, value):
            if operator in _REPEATS and value[1] > 8:
                yield lead, _example(inner)
                yield lead, _example(inner, other=True)
            yield from _repetitions(inner, lead)
        lead += _example([(operator, value)])


_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _inner(operator: Any, value: Any) -> list[list[Any]]:
    if operator in _REPEATS:
        return [list(value[2])]
    if operator is _constants.SUBPATTERN:
        return [list(value[3])]
    if operator is _constants.BRANCH:
        return [list(each) for each in value[1]]
    if operator in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [list(value[1])]
    if operator is _constants.ATOMIC_GROUP:
        return [list(value)]
    return []


_CLASSES: Final = {
    _constants.CATEGORY_DIGIT: "0",
    _constants.CATEGORY_SPACE: " ",
    _constants.CATEGORY_WORD: "a",
    _constants.CATEGORY_NOT_DIGIT: "a",
    _constants.CATEGORY_NOT_SPACE: "a",
    _constants.CATEGORY_NOT_WORD: "-",
}


def _example(tree: Iterable[Any], *, other: bool = False) -> str:
    """A text that fits a tree, roughly; the `other` takes the last choice instead of the first."""
    return "".join(_piece(operator, value, other) for operator, value in tree)


def _piece(operator: Any, value: Any, other: bool) -> str:
    if operator is _constants.LITERAL:
        return chr(value)
    if operator is _constants.ANY:
        return "a"
    if operator is _constants.NOT_LITERAL:
        return next(each for each in "a0 " if ord(each) != value)
    if operator is _constants.IN:
        return _member(value, other)
    if operator in _REPEATS:
        return _example(value[2], other=other) * int(max(value[0], 1))
    if operator is _constants.BRANCH:
        return _example(value[1][-1 if other else 0], other=other)
    return "".join(_example(each, other=other) for each in _inner(operator, value) if operator in _HOLD)


_HOLD: Final = (_constants.SUBPATTERN, _constants.ATOMIC_GROUP)


def _member(members: Sequence[Any], other: bool) -> str:
    """A character of a class."""
    if members[0][0] is _constants.NEGATE:
        return next((each for each in "a0 -!é" if not any(_holds(member, each) for member in members[1:])), "\x01")
    operator, value = members[-1 if other else 0]
    if operator is _constants.LITERAL:
        return chr(value)
    return chr(value[1 if other else 0]) if operator is _constants.RANGE else _CLASSES.get(value, "a")


def _holds(member: tuple[Any, Any], character: str) -> bool:
    operator, value = member
    if operator is _constants.LITERAL:
        return bool(ord(character) == value)
    if operator is _constants.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    names = {_constants.CATEGORY_DIGIT: r"\d", _constants.CATEGORY_SPACE: r"\s", _constants.CATEGORY_WORD: r"\w"}
    return value in names and re.match(names[value], character) is not None


def slow(
    work: Callable[[str], object],
    candidates: Callable[[int], Iterable[str]],
    seconds: float = SECONDS,
    *,
    size: int = LONGEST,
) -> str | None:
    """Return the beginning of the first text of this size on which `work` takes longer; None: it is quick on all of
    them. `candidates` gives the same texts in any size. Of the longest ones a tenth is tried first. Where this takes
    less than half a hundredth of the time, the whole one is quick: work that grows with the second power of the text
    takes half the time, and work that grows with the third would have taken minutes."""
    for short, text in zip(candidates(max(1, size // _TENTH)), candidates(size), strict=True):
        try:
            with within(seconds):
                began = time.process_time()
                work(short)
                if size < LONGEST or time.process_time() - began > seconds / _TENTH**2 / 2:
                    work(text)
        except TooSlow:
            return f"{text[:60]!r}…{text[-10:]!r}"
    return None


def readers() -> dict[str, Callable[[str], object]]:
    """Every function of the program that needs one text and nothing else, by its name. One that gives a generator is
    run to its end."""
    found: dict[str, Callable[[str], object]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and (kind := _read_by(value)):
                found[f"{module.__name__}.{name}"] = _carried_out(value, kind)
    return found


def _read_by(function: types.FunctionType) -> str:
    """ "str" or "bytes" if that is all that a function needs, else nothing."""
    needed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    alone = len(needed) == 1 and needed[0].kind is not needed[0].KEYWORD_ONLY
    kind = str(needed[0].annotation) if alone else ""
    return kind if kind in ("str", "bytes") and not inspect.iscoroutinefunction(function) else ""


def _carried_out(function: Callable[[Any], object], kind: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        result = function(text.encode() if kind == "bytes" else text)
        return deque(result, maxlen=0) if isinstance(result, Iterator) else result

    return read
