"""Calls of tools that a model wrote into its text, in the dialects of the vendors' chat templates. Pure.

A server that does not know a model's template passes its calls on as text. `DIALECTS` has the marks around them.
Between the marks stand JSON, a name and JSON, or tags; the same reader knows them all, because models mix them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

DIALECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "<tool_call>": ("</tool_call>",),  # Hermes, Qwen, GLM, Granite
    "<tool_calls>": ("</tool_calls>",),  # MiniMax M1, Hunyuan, Jamba
    "<function_calls>": ("</function_calls>",),  # Claude
    "<antml:function_calls>": ("</antml:function_calls>",),
    "<function=": ("</function>",),  # Llama 3.1; Qwen3-Coder without its outer tag
    "<invoke name=": ("</invoke>",),  # Claude, MiniMax, without their outer tag
    "<TOOLCALL>": ("</TOOLCALL>",),  # Nemotron
    "<seed:tool_call>": ("</seed:tool_call>",),
    "<minimax:tool_call>": ("</minimax:tool_call>",),
    "[TOOL_CALLS]": (),  # Mistral; nothing ends it
    "<|tool_calls_section_begin|>": ("<|tool_calls_section_end|>",),  # Kimi
    "<|tool_call_begin|>": ("<|tool_call_end|>",),
    "<|tool_call|>": ("<|/tool_call|>",),  # Phi, Granite 3
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),  # Llama 3
    "<|START_ACTION|>": ("<|END_ACTION|>",),  # Cohere
    "<｜tool▁calls▁begin｜>": ("<｜tool▁calls▁end｜>",),  # DeepSeek V3
    "<｜tool▁call▁begin｜>": ("<｜tool▁call▁end｜>",),
    **{
        f"<{bars}DSML{bars}{name}{end}": (f"</{bars}DSML{bars}{name}>",)
        for bars in ("｜", "｜｜", "|", "||", "‖")  # one in the template; models write others
        for name, end in (
            ("tool_calls", ">"),  # DeepSeek V4
            ("function_calls", ">"),  # V3.2
            ("invoke", " name="),  # and as models write them without the template
            (" calls", ">"),
            (" invoke", " name="),
        )
    },
}
"""Opening mark: its closing marks."""
CLOSINGS: Final = frozenset(end for ends in DIALECTS.values() for end in ends)
WORDS: Final = frozenset(mark for mark in DIALECTS if re.fullmatch(r"<[A-Za-z_ ]+[=>]", mark))  # not a token's name

_NAME: Final = r"[\w.-]{1,64}"
_BETWEEN: Final = r"\s|<[|｜][^<>|｜]{1,40}[|｜]>|\[ARGS\]|\[CALL_ID\]\w{1,64}|```(?:json)?"
_NAMED: Final = re.compile(rf"(?<![\w.-])(?:functions\.)?({_NAME})(?::\d{{1,4}})?(?:{_BETWEEN})*+(?=\{{)")
_SPACE: Final = r"(?:antml:|[|｜‖]{1,2}DSML[|｜‖]{1,2}\s?)?"
_TAGGED: Final = re.compile(rf'<{_SPACE}(?:function=|invoke\s+name=)"?({_NAME})"?\s*>\s*')
_PARAMETER: Final = re.compile(
    rf'\s*<{_SPACE}parameter(?:=|\s+name=)"?([^"<>=\s]{{1,64}})"?(?:\s+string="(true|false)")?\s*>'
)
_PARAMETER_END: Final = re.compile(rf"</{_SPACE}parameter>")
_BLOCK_END: Final = re.compile(rf"\s*</{_SPACE}(?:function|invoke)>")
_KEYED: Final = re.compile(rf"\s*({_NAME})\s*(?:<tool_sep>\s*)?(?=<arg_key>|$)")
_KEY: Final = re.compile(r"\s*<arg_key>([^<]{1,64})</arg_key>\s*<arg_value>")
_BARE_KEYS: Final = frozenset({"name", "parameters", "arguments", "type", "function", "id"})
_SHORT: Final = 200  # characters
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_GAP: Final = re.compile(r"[\s,;]*+")
_JSON: Final = json.JSONDecoder()
Found = tuple[str, str]
"""The name and the arguments of a call, as text."""


def read_call(body: str) -> Found | None:
    """The first call between marks in a text; None if none can be read."""
    return next(iter(read_calls(body)), None)


def read_calls(body: str, *, cut: bool = False) -> list[Found]:
    """All calls between two marks; none if it cannot be read. `cut`: the second mark did not come, so only calls count
    that end by themselves."""
    if "<tool_call>" in body:
        parts = (part.partition("</tool_call>") for part in body.split("<tool_call>")[1:])
        return [call for part, end, _ in parts for call in read_calls(part, cut=cut and not end)]
    found = [*_objects(body)] or [*_tagged(body, cut=cut)]
    if not found and not cut:
        found = [*_keyed(body)]
    return found or [*_named(body)]


def offered(calls: Collection[Found], names: Collection[str]) -> list[Found]:
    """These calls under the names of tools that were offered; none if one of them was not."""
    known = [(name if name in names else name.removeprefix("functions."), text) for name, text in calls]
    return known if all(name in names for name, _ in known) else []


def is_plausible(mark: str, behind: str, names: Collection[str]) -> bool | None:
    """Whether the text after a mark begins like a call; None if too little has come."""
    begun = behind.lstrip(" \t\r\n\"'")
    if not begun:
        return None
    if mark.endswith((">", "]")):
        if begun[0] in "{[<":
            return True
        if mark not in WORDS:
            names = {*names, "function", *(f"functions.{name}" for name in names)}
    return True if any(begun.startswith(name) for name in names) else _undecided(begun, names)


def is_half(mark: str, body: str, names: Collection[str], *, cut: bool) -> bool:
    """Whether a text that cannot be read is a call that went wrong, rather than words about calls. `cut`: nothing
    ended it."""
    return any(name in body for name in names) or ((cut or mark not in WORDS) and len(body) < _SHORT)


def bare(text: str, names: Collection[str]) -> bool | None:
    """Whether an answer begins as the JSON of a call without any mark, as Llama writes it; None: too little has
    come."""
    begun = "".join(text[:400].split())
    wanted = [head + name + '"' for head in _BARE_HEADS for name in names]
    return True if any(begun.startswith(each) for each in wanted) else _undecided(begun, wanted)


_BARE_HEADS: Final = tuple(
    f'{list_}{{{kind}{inner}"name":"'
    for list_ in ("", "[")
    for kind in ("", '"type":"function",')
    for inner in ("", '"function":{')
)


def read_bare(text: str) -> list[Found]:
    """The calls of an answer that is nothing but their JSON."""
    values = _values(text.strip().removesuffix("<|eom_id|>").removesuffix("<|eot_id|>"), alone=True)
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    if not all(isinstance(each, dict) and each.keys() <= _BARE_KEYS and _has_arguments(each) for each in flat):
        return []
    return [call for each in flat if (call := _object(each))]


def is_cut(text: str) -> bool:
    """Whether such an answer ended before its JSON did."""
    try:
        _JSON.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return any(f'"{key}"' in text for key in _ARGUMENTS)
    return False


def _has_arguments(given: Mapping[str, Any]) -> bool:
    inner = given.get("function")
    return bool({"parameters", "arguments"} & (inner.keys() if isinstance(inner, dict) else given.keys()))


def _undecided(begun: str, wanted: Collection[str]) -> bool | None:
    return None if any(each.startswith(begun) for each in wanted) else False


def _values(text: str, *, alone: bool = False) -> list[Any]:
    """The values of consecutive JSON texts, as far as they go. `alone`: nothing else may be there."""
    found, at = list[Any](), _skipped(text, 0)
    while at < len(text):
        try:
            value, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [] if alone else found
        found.append(value)
        at = _skipped(text, end)
    return found


def _skipped(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _objects(body: str) -> Iterator[Found]:
    for value in _values(body):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and (call := _object(each)):
                yield call


def _object(given: Mapping[str, Any]) -> Found | None:
    inner = given["function"] if isinstance(given.get("function"), dict) else given
    named = (inner.get("name"), inner.get("tool_name"), inner.get("function"))
    name = next((each for each in named if isinstance(each, str) and each), None)
    arguments: Any = next((inner[key] for key in _ARGUMENTS if inner.get(key) is not None), {})
    return None if name is None else (name, arguments if isinstance(arguments, str) else _text(arguments))


def _tagged(body: str, *, cut: bool) -> Iterator[Found]:
    at = 0
    while begun := _TAGGED.search(body, at):
        at, given = begun.end(), dict[str, Any]()
        while parameter := _PARAMETER.match(body, at):
            ended = _PARAMETER_END.search(body, parameter.end())
            value = body[parameter.end() : ended.start() if ended else len(body)]
            at = ended.end() if ended else len(body)
            value = (value if ended else _BLOCK_END.split(value, 1)[0]).removeprefix("\n").removesuffix("\n")
            given[parameter[1]] = value if parameter[2] == "true" else _value(value)
        if not given and (written := _object_at(body, at)) is not None:
            given, at = written
        if not cut or _BLOCK_END.match(body, at):
            yield begun[1], _text(given)


def _keyed(body: str) -> Iterator[Found]:
    begun, given = _KEYED.match(body), dict[str, Any]()
    if begun is None:
        return
    at = begun.end()
    while (key := _KEY.match(body, at)) and (end := body.find("</arg_value>", key.end())) >= 0:
        given[key[1].strip()] = _value(body[key.end() : end])
        at = end + len("</arg_value>")
    if not body[at:].strip():
        yield begun[1], _text(given)


def _named(body: str) -> Iterator[Found]:
    at = 0
    while (begun := _NAMED.search(body, at)) and (written := _object_at(body, begun.end())):
        given, at = written
        yield begun[1], _text(given)


def _object_at(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    if not text.startswith("{", at):  # an error would count the lines before it
        return None
    try:
        value, end = _JSON.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) else None


def _text(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
