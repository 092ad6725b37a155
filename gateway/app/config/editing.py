"""One value of a file of settings, changed in its text: comments, order and everything else stay as they are. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from gateway.app.config.source import Tree, read_text
from gateway.runtime.errors import UserError

_WIDE = 10_000  # characters: no value is broken over lines
_PLAIN = re.compile(r"[\w/][\w./@+-]*(:[\w./@*+-]+)*")  # a name that needs no quotes


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text of a YAML file with `value` at `path`; missing sections are added. Raises UserError if something else is
    in the way, or the text is too unusual to change safely."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        changed = _inserted(text, len(text), _block(path, value, 0))
    elif isinstance(root, yaml.MappingNode):
        changed = _changed(text, root, list(path), value)
    else:
        raise UserError("The file has no sections, so change it by hand.")
    if _read(changed) != _expected(_read(text) or {}, path, value):  # an unusual comma or comment stood in the way
        raise UserError(f"Legato cannot change {'.'.join(path)} in this file safely. Change it by hand.")
    return changed


def without(text: str, path: Sequence[str]) -> str:
    """The text without the key at `path`, and without sections that held nothing else; unchanged if there is no such
    key. Raises UserError if the text is too unusual."""
    node, held, last = yaml.compose(text, Loader=yaml.SafeLoader), _read(text), 0
    pairs = list[tuple[yaml.MappingNode, tuple[yaml.Node, yaml.Node]]]()
    for name in path:
        inner = node.value if isinstance(node, yaml.MappingNode) else []
        if (found := next((each for each in inner if each[0].value == name), None)) is None:
            return text
        assert isinstance(node, yaml.MappingNode), "it has keys"
        last = len(pairs) if len(inner) > 1 else last
        pairs.append((node, found))
        node = found[1]
    (section, (key, value)), gone = pairs[last], path[: last + 1]
    if section.flow_style:
        left = {name: each for name, each in _at(held, gone[:-1]).items() if name != gone[-1]}
        changed = text[: section.start_mark.index] + _flow(left) + text[section.end_mark.index :]
    else:
        begins = text.rfind("\n", 0, key.start_mark.index) + 1
        changed = text[:begins] + text[_line_end(text, max(key.end_mark.index, _end(text, value)) - 1) :]
    _at(held, gone[:-1]).pop(gone[-1])
    if _read(changed) != held:
        raise UserError(f"Legato cannot remove {'.'.join(path)} from this file safely. Remove it by hand.")
    return changed


def _read(text: str) -> dict[str, Any] | None:
    """The values as the program reads them: names are text, and what an alias repeats is a value of its own. None: they
    cannot be read."""
    tree = Tree(name="")
    read_text(text, tree)
    return None if tree.problems else tree.values


def _at(held: Any, path: Sequence[str]) -> Any:
    for name in path:
        held = held[name]
    return held


def _changed(text: str, node: yaml.MappingNode, path: list[str], value: Any) -> str:
    name, *rest = path
    found = next((pair for pair in node.value if pair[0].value == name), None)
    if found is not None:
        key, held = found
        if rest and isinstance(held, yaml.MappingNode):
            return _changed(text, held, rest, value)
        empty = held.start_mark.index == held.end_mark.index  # `model:` with nothing behind it
        if rest and not empty:
            raise UserError(f"In this file, {name} is not a section. Change it by hand.")
        if empty:
            if rest:
                return _inserted(
                    text, _line_end(text, key.end_mark.index), _block(rest, value, key.start_mark.column + 2)
                )
            return f"{text[: held.start_mark.index].rstrip()} {_flow(value)}{text[held.end_mark.index :]}"
        if isinstance(held, yaml.SequenceNode) and not held.flow_style and isinstance(value, list) and value:
            return _listed(text, held, value)
        return text[: held.start_mark.index] + _flow(value) + text[_end(text, held) :]
    if node.flow_style:
        inner = _flow(_nested(rest, value))
        at = node.end_mark.index - 1
        before = "" if not node.value else ", "
        return f"{text[:at].rstrip()}{before}{_name(name)}: {inner}{text[at:]}"
    last = node.value[-1]
    at = _line_end(text, max(last[0].end_mark.index, _end(text, last[1]) - 1))
    return _inserted(text, at, _block(path, value, node.value[0][0].start_mark.column))


def _listed(text: str, node: yaml.SequenceNode, value: list[Any]) -> str:
    """A list with a line for each item: those that stay keep their line and its comment, and new ones come last."""
    stay = [each for each in node.value if each.value in value]
    names = [each.value for each in stay]
    begins = [text.rfind("\n", 0, each.start_mark.index) + 1 for each in node.value]
    if value[: len(names)] != names or len({*begins}) < len(begins):
        return text[: node.start_mark.index] + _flow(value) + text[_end(text, node) :]
    at, lines = begins[0], ""
    for each, begin in zip(node.value, begins, strict=True):
        end = _line_end(text, _end(text, each) - 1)
        lines += text[at:begin] + (text[begin:end] if each in stay else "")
        at = end
    lines += "" if lines.endswith("\n") or not lines else "\n"
    lines += "".join(f"{' ' * node.start_mark.column}- {_flow(each)}\n" for each in value[len(names) :])
    return text[: begins[0]] + lines + text[at:]


def _end(text: str, node: yaml.Node) -> int:
    """The end of a node's own characters. PyYAML says that a block ends where the next one begins, after comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end = node.end_mark.index
    while end > node.start_mark.index and text[end - 1 : end].isspace():
        end -= 1
    return int(end)


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found == -1 else found + 1


def _inserted(text: str, at: int, lines: str) -> str:
    before = text[:at]
    return f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{lines}{text[at:]}"


def _block(path: Sequence[str], value: Any, column: int) -> str:
    *above, name = path
    lines = [f"{' ' * (column + 2 * depth)}{_name(each)}:" for depth, each in enumerate(above)]
    return "\n".join([*lines, f"{' ' * (column + 2 * len(above))}{_name(name)}: {_flow(value)}"]) + "\n"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _flow(name)


def _flow(value: Any) -> str:
    """A value in a line, also of a section in braces, where more texts need quotes: as it is written in a list."""
    written = str(yaml.safe_dump([value], default_flow_style=True, width=_WIDE, allow_unicode=True, sort_keys=False))
    return written.strip()[1:-1]


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _expected(values: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    inner = values.get(name)
    if rest:
        value = _expected(inner if isinstance(inner, dict) else {}, rest, value)
    return {**values, name: _as_read(value)}


def _as_read(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _as_read(each) for name, each in value.items()}
    return [*map(_as_read, value)] if isinstance(value, list) else value
