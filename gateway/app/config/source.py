"""The YAML text of a configuration as plain data that remembers where each value stands.

pydantic knows paths, not lines; PyYAML's node tree knows both. So the data is built from the nodes
here, and the line of every key is noted on the way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct, field

from gateway.domain.wording import reason_of

UNSPACED: Final = "; write a space after each colon, as in `provider: offline`"
KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """A key path as people write it: `access.allow[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_DEEPEST = 12  # levels; an alias that contains itself would have no end
_MOST_BYTES = 1024 * 1024  # every setting with its comments takes 17 KB
_MOST_VALUES = 20_000  # aliases that multiply one another would fill the memory


class Tree(Struct):
    """Nested values, where each one came from, and what is already known to be wrong with them.

    `origins` maps a key path to words such as `config.yaml:12`. `written` has, by path, the words without quotes that
    YAML does not take for text. `from_environment` holds the paths whose text came, at least in part, from an
    environment variable; `referred` those whose variable the file names, as `${NAME}`."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    from_environment: set[KeyPath] = field(default_factory=set)
    referred: set[KeyPath] = field(default_factory=set)
    problems: list[tuple[KeyPath, str]] = field(default_factory=list)

    def origin(self, path: KeyPath) -> str:
        """Return the place of the value at `path`, or of the nearest thing around the value that has a place."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return self.name

    def at(self, path: KeyPath) -> Any:
        """The value at `path`, or None where there is none."""
        value: Any = self.values
        for part in path:
            try:
                value = value[part]
            except (LookupError, TypeError):
                return None
        return value

    def drop(self, path: KeyPath) -> bool:
        """Forget the value at `path`, so that the default is used; an item takes its whole list along. Returns whether
        there was one."""
        for index, part in enumerate(path):
            if isinstance(part, int):
                path = path[:index]
                break
        holder = self.at(path[:-1])
        if not path or not isinstance(holder, dict) or path[-1] not in holder:
            return False
        del holder[path[-1]]
        return True

    def leaves(self) -> Iterator[tuple[KeyPath, Any]]:
        """Every value that is neither a mapping nor a list, with its path."""
        yield from _leaves((), self.values)


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        for key, item in list(value.items()):
            yield from _leaves((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(list(value)):
            yield from _leaves((*path, index), item)
    else:
        yield path, value


def read_file(path: Path) -> Tree:
    """The tree of a file. What cannot be read at all is a problem of the tree, not an exception."""
    tree = Tree(name=str(path))
    try:
        with path.open("rb") as file:
            written = file.read(_MOST_BYTES + 1)
        if len(written) > _MOST_BYTES:
            tree.problems.append(((), "the file is larger than 1 MB, so it cannot be Legato's"))
            return tree
        text = written.decode("utf-8-sig")
    except FileNotFoundError:
        missing = "there is no such file: leave --config out to run with the defaults"
        if path.is_symlink():
            missing = f"{os.readlink(path)}, to which this link points, does not exist: correct the link, or remove it"
        tree.problems.append(((), missing))
    except UnicodeDecodeError as error:
        tree.problems.append(((), f"the file is not UTF-8 text (byte {error.start}); save it as UTF-8"))
    except OSError as error:
        tree.problems.append(((), f"the file cannot be read: {reason_of(error)}"))
    else:
        read_text(text, tree)
    return tree


def read_text(text: str, tree: Tree) -> None:
    """Fill `tree` from YAML text."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        tree.problems.append(((), "the file is nested too deeply"))
        return
    except yaml.reader.ReaderError as error:
        tree.origins[()] = f"{tree.name}:{text.count(chr(10), 0, error.position) + 1}"
        tree.problems.append(((), f"the file holds a character that YAML forbids (U+{ord(text[error.position]):04X})"))
        return
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        tree.origins[()] = f"{tree.name}:{mark.line + 1}" if mark else tree.name
        # Behind the star of what YAML takes for an alias may stand a password.
        problem = re.sub(
            r"undefined alias .*", "an undefined alias: put what begins with * in quotes", error.problem or ""
        )
        reason = " ".join(part for part in (error.context, problem) if part)
        tree.problems.append(((), f"the file is not valid YAML: {reason}{_hint(text, mark, reason)}"))
        return
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return
    if not isinstance(root, yaml.MappingNode):
        hint = UNSPACED if isinstance(root, yaml.ScalarNode) and is_unspaced(root.value) else ""
        tree.problems.append(((), f"the file must hold sections such as `model:` at its top level{hint}"))
        return
    _Builder(tree).mapping((), root, tree.values)


def _hint(text: str, mark: yaml.Mark | None, reason: str) -> str:
    """A guess at the person's mistake; "" if nobody can tell."""
    lines = text.splitlines()
    around = lines[max(0, mark.line - 1) : mark.line + 1] if mark else []
    if "\\t" in reason or any("\t" in line[: len(line) - len(line.lstrip())] for line in around):
        return "; indent with spaces, YAML takes no tabs"
    return UNSPACED if any(is_unspaced(line.strip()) for line in around) else ""


def is_unspaced(text: str) -> bool:
    """Whether a text seems to be a key and its value without the space that YAML wants between them."""
    return re.match(r"[A-Za-z_]\w*:[^\s/]", text) is not None


class _Builder:
    """Walks the nodes once, noting lines, repeated keys and values that YAML itself cannot make sense of."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._scalars = yaml.constructor.SafeConstructor()
        self._values = 0

    def mapping(self, path: KeyPath, node: yaml.MappingNode, into: dict[str, Any]) -> None:
        first_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            origin = f"{self._tree.name}:{line}"
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem((*path, "?"), origin, "a key must be a single word")
                continue
            key = str(key_node.value)
            if key in first_lines:
                name = dotted((*path, key))
                self._tree.problems.append(((*path, key), f"{name} is given twice, here and in line {line}"))
                continue
            first_lines[key] = line
            self._tree.origins[(*path, key)] = origin
            into[key] = self._value((*path, key), value_node)

    def _value(self, path: KeyPath, node: yaml.Node) -> Any:
        self._values += 1
        if len(path) > _DEEPEST or self._values > _MOST_VALUES:
            if self._values <= _MOST_VALUES + 1:
                self._problem(path, self._tree.origin(path), "is nested too deeply or repeats itself without end")
            return None
        if isinstance(node, yaml.MappingNode):
            inner: dict[str, Any] = {}
            self.mapping(path, node, inner)
            return inner
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self._tree.origins[(*path, index)] = f"{self._tree.name}:{item.start_mark.line + 1}"
                items.append(self._value((*path, index), item))
            return items
        return self._scalar(path, node)

    def _scalar(self, path: KeyPath, node: yaml.Node) -> Any:
        try:
            value = self._scalars.construct_object(node)
            if not isinstance(value, str) and node.value:
                self._tree.written[path] = node.value
            return value
        except (yaml.YAMLError, ValueError):
            self._problem(path, self._tree.origin(path), "is a value YAML cannot read; put it in quotes")
            return None

    def _problem(self, path: KeyPath, origin: str, text: str) -> None:
        self._tree.origins[path] = origin
        self._tree.problems.append((path, f"{dotted(path)} {text}"))
