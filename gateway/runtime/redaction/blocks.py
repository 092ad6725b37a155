"""Credentials that only the lines around them give away: keys without a beginning, tables, Kubernetes' secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from gateway.runtime.patterns import late
from gateway.runtime.redaction.places import Span
from gateway.runtime.redaction.plausible import is_placeholder, looks_chosen, looks_mixed, looks_random

# A private key whose beginning was cut off, read backwards from its last line: that line is of any
# length if the one before it is long.
_KEY_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY: Final = 16_384  # characters; RSA with 16,384 bits takes about 13,000
_BREAK = r"(?:\s|[nr]\\)"
_BODY = rf"(?:(?!{_BREAK})[A-Za-z0-9+/=])"
_BREAKS = re.compile(r"\A(?:\s|\\[nr])++")
_REVERSED_KEY = late(rf"{_BREAK}*+(?:{_BODY}++{_BREAK}++(?={_BODY}{{16}}))?+(?:{_BODY}{{16,}}+{_BREAK}*+)*+")

_HEADINGS: Final = frozenset(
    {"password", "passwd", "pass", "pwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "api key"}
    | {"access_token", "client_secret"}
)
_CHOSEN: Final = frozenset({"password", "passwd", "pass", "pwd", "passphrase"})  # what a person may have made up
_SIGNS: Final = "|│\t,;"
_NAMES: Final = re.compile(r"[\w\t,;\"-]{1,2000}+\r?")
_ROWS: Final = 50  # lines below the heading of a table that are read
_LONGEST_ROW: Final = 2_000  # characters; a longer line is no row of a table for people
_KIND: Final = re.compile(r"[\"']?kind[\"']?\s{0,3}:\s{0,3}[\"']?secret\b")
_DATA: Final = re.compile(r"(?P<indent>[ \t]{0,8})(?:data|stringData):[ \t]*\r?\n")
_ENTRY: Final = re.compile(r"[ \t]{1,16}[\w.-]{1,128}:[ \t]{1,4}[\"']?(?P<value>[^\s\"'|>]\S{3,}?)[\"']?[ \t]*\r?\Z")
_DATA_JSON: Final = re.compile(r"\"(?:data|stringData)\"\s{0,9}:\s{0,9}\{(?P<body>[^{}]{0,65536}+)\}")
_ENTRY_JSON: Final = re.compile(r":\s{0,9}\"(?P<value>[^\"\\]{4,}+)\"")
_FARTHEST: Final = 20_000  # characters around `kind: Secret` that are one document


def cut_keys(text: str) -> Iterator[Span]:
    """Yield the spans of private keys without their beginning, up to their last line."""
    done = 0
    for end in _KEY_END.finditer(text):
        before = text[max(done, end.start() - _LONGEST_KEY) : end.start()]
        found = _REVERSED_KEY.match(before[::-1])
        key = _BREAKS.sub("", before[len(before) - found.end() :]) if found is not None else ""
        if key:
            yield end.start() - len(key), end.start()
        done = end.end()


def held_in_blocks(text: str, lower: str, named: list[int]) -> Iterator[Span]:
    """Yield the spans of secret values in columns of tables, and in secrets of Kubernetes.

    `lower`: the text, folded; `named`: where names begin such as `password`, in order.
    """
    yield from _columns(text, lower, named)
    if "kind" in lower and "secret" in lower:
        done = 0
        for kind in _KIND.finditer(lower):
            if kind.start() >= done:
                first, done = _document(text, kind.start())
                yield from _of_kubernetes(text, first, done)


def _columns(text: str, lower: str, named: list[int]) -> Iterator[Span]:
    """The cells below a heading such as `password`."""
    done = 0
    for place in named:
        if place < done:
            continue
        start, end = lower.rfind("\n", done, place) + 1 or done, lower.find("\n", place)
        if end < 0:
            return
        done = end + 1
        line = text[start:end].lower()
        signs = [sign for sign in _SIGNS if sign in line] if len(line) <= _LONGEST_ROW else []
        for sign in signs if "|" in signs or "│" in signs or (signs and _NAMES.fullmatch(line)) else ():
            headings = [_bare(cell) for cell in line.split(sign)]
            columns = [number for number, heading in enumerate(headings) if heading in _HEADINGS]
            if (
                columns
                and _is_heading(line, sign, headings)
                and not _is_row(_line_before(text, start), sign, len(headings))
            ):
                for begin, row in _lines(text, done):
                    if not _is_row(row, sign, len(headings)):
                        break
                    yield from _cells(row, begin, sign, {column: headings[column] for column in columns})
                    done = begin + len(row)  # the next heading is below this table
                break


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """(where it begins, the line) of a few lines from a place on."""
    for _ in range(_ROWS):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if start >= len(text) or end - start > _LONGEST_ROW:
            return
        yield start, text[start:end]
        start = end + 1


def _is_row(row: str, sign: str, width: int) -> bool:
    return row.count(sign) == width - 1 or not set(row) - set("-─┼├┤+=:| ")


def _is_heading(line: str, sign: str, cells: list[str]) -> bool:
    """Whether a line may be a table's heading, and no part of a program or a sentence."""
    if sign in "|│":
        return len(cells) > 1
    return len(cells) > 1 and all(cells) and _NAMES.fullmatch(line) is not None


def _cells(row: str, place: int, sign: str, columns: Mapping[int, str]) -> Iterator[Span]:
    """Yield the spans of the secrets in some columns, which have headings, of a row that begins at a place."""
    cells = row.split(sign)
    for column, heading in columns.items():
        value = _bare(cells[column]) if column < len(cells) else ""
        if sign not in "|│":
            secret = looks_mixed(value)
        else:  # a person makes up a password, but no token; the names of tokens stand in many tables
            secret = looks_chosen(value) if heading in _CHOSEN else looks_random(value)
        if len(value) >= 4 and secret and " " not in value and set(value) - set("-:="):
            start = place + sum(len(cell) + 1 for cell in cells[:column]) + cells[column].index(value)
            yield start, start + len(value)


def _line_before(text: str, start: int) -> str:
    """The line above the one that begins at a place; "" if it is long or there is none."""
    first = text.rfind("\n", max(0, start - 1 - _LONGEST_ROW), max(0, start - 1))
    return text[first + 1 : start - 1] if first >= 0 or start <= _LONGEST_ROW else ""


def _bare(cell: str) -> str:
    return cell.strip().strip("`*\"'").strip()


def _document(text: str, place: int) -> Span:
    """The document of a file of YAML around a place, as far as it is not very long."""
    first = max(text.rfind("\n---", max(0, place - _FARTHEST), place), place - _FARTHEST, 0)
    last = text.find("\n---", place, place + _FARTHEST)
    return first, min(len(text), place + _FARTHEST) if last < 0 else last


def _of_kubernetes(text: str, first: int, last: int) -> Iterator[Span]:
    """The values below `data:` and `stringData:` between two places."""
    for data in _DATA.finditer(text, first, last):
        for start, line in _lines(text, data.end()):
            entry = _ENTRY.match(line)
            if entry is None:
                break
            if not is_placeholder(entry["value"]):
                yield start + entry.start("value"), start + entry.end("value")
    for data in _DATA_JSON.finditer(text, first, last):
        for entry in _ENTRY_JSON.finditer(data["body"]):
            yield data.start("body") + entry.start("value"), data.start("body") + entry.end("value")
