"""A skill as https://agentskills.io/specification defines it: a folder with a SKILL.md, whose front matter says what it
is for, and whose body says how the work is done. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml
from msgspec import Struct

from gateway.runtime.errors import UserError

GROUP: Final = "legato.skills"  # entry points that name a folder (a Path) with folders of skills
FILE: Final = "SKILL.md"
MOST_BYTES: Final = 200_000  # of a SKILL.md; its authors recommend fewer than 5,000 tokens
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1_024
_LONGEST_FRONT: Final = 16_000  # characters; real ones have some hundred
_DEEPEST: Final = 10  # levels of its values
_TOO_DEEP: Final = "SKILL.md has front matter that is nested too deeply: write plain values"
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # the one in C, where PyYAML was built with it
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PARTS: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?(.*)\Z", re.DOTALL | re.MULTILINE)
_TOOL: Final = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
_TOLD: Final = "put a line --- first, then `name:` and `description:`, then a line --- and the instructions"
# The names that most published skills use for tools, and ours for them.
_OURS: Final[Mapping[str, str]] = {
    "bash": "shell", "edit": "patch", "multiedit": "patch", "read": "read_file", "write": "write_file",
    "glob": "list_files", "ls": "list_files", "grep": "search_files", "webfetch": "web_fetch",
    "websearch": "web_search", "todowrite": "todo", "agent": "delegate", "task": "delegate",
}  # fmt: skip


class Skill(Struct, frozen=True, kw_only=True):
    """What a SKILL.md says that matters here; its licence and metadata are for people. `compatibility`: what it needs.
    `tools`: the only ones that may be called while it is in use, by our names; None: it does not say. Where it is
    loaded to be used, it has the paths of its `files`, and is the conversation's `own`, or not."""

    name: str
    description: str
    body: str
    compatibility: str = ""
    tools: tuple[str, ...] | None = None
    files: Sequence[str] = ()
    own: bool = False


def read(content: bytes) -> Skill:
    """Read a SKILL.md. Raises UserError with the reason if it is not valid."""
    if len(content) > MOST_BYTES:
        raise UserError(f"SKILL.md is larger than {MOST_BYTES // 1_000} KB: move the details into files next to it")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UserError(f"SKILL.md is not UTF-8 text (byte {error.start + 1}): save it as UTF-8") from None
    parts = _PARTS.match(text)
    if parts is None:
        raise UserError(f"SKILL.md has no front matter: {_TOLD}")
    said = _front(parts[1])
    name, description = _text(said, "name", LONGEST_NAME), _text(said, "description", LONGEST_DESCRIPTION)
    if not _NAME.fullmatch(name):
        raise UserError(
            f"SKILL.md is named {name[:80]!r}: a name has small letters a-z, digits, and single hyphens in between"
        )
    if not description:
        raise UserError("SKILL.md has no `description`: say in it what the skill does, and when it helps")
    return Skill(
        name=name,
        description=" ".join(description.split()),
        body=parts[2].strip(),
        compatibility=_text(said, "compatibility", 500),
        tools=_tools(said.get("allowed-tools")),
    )


def named(name: str) -> str:
    """The name, if a skill may have it. Raises UserError."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise UserError(f"{name[:80]!r} is not a skill name: a name has small letters a-z, digits and single hyphens.")
    return name


def _front(text: str) -> Mapping[str, Any]:
    """The values of front matter, all of them text. What could grow when it is read, or make objects, is refused."""
    if len(text) > _LONGEST_FRONT:
        raise UserError(f"SKILL.md has front matter of more than {_LONGEST_FRONT:,} characters: move it into the body")
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise UserError(
                    "SKILL.md has YAML aliases or tags in its front matter: write plain values, or quote them"
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise UserError(_TOO_DEEP)
        said = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        if "nesting depth" in str(error):  # newer builds of the loader in C look ahead, and have a limit of their own
            raise UserError(_TOO_DEEP) from None
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark else ""
        raise UserError(
            f"SKILL.md has front matter that is not valid YAML{where}: quote values that hold a colon"
        ) from None
    if not isinstance(said, dict):
        raise UserError(f"SKILL.md has no front matter: {_TOLD}")
    return said


def _text(said: Mapping[str, Any], key: str, longest: int) -> str:
    value = said.get(key, "")
    if not isinstance(value, str):
        raise UserError(f"SKILL.md has a `{key}` that is not text")
    if len(value.strip()) > longest:
        raise UserError(f"SKILL.md has a `{key}` of {len(value.strip()):,} characters, and {longest:,} are allowed")
    return value.strip()


def _tools(said: Any) -> tuple[str, ...] | None:
    """The tools of a list, or of a text with spaces or commas between them. `Bash(git:*)` is all of `shell`: what a
    command may be is decided elsewhere."""
    listed = " ".join(map(str, said)) if isinstance(said, list) else said
    if not isinstance(listed, str):
        return None
    names = (each.partition("(")[0] for each in _TOOL.findall(listed))
    return tuple(dict.fromkeys(_ours(each) for each in names)) or None


def _ours(name: str) -> str:
    if name.startswith("mcp__"):
        return name.removeprefix("mcp__").replace("__", "_", 1)
    return _OURS.get(name.casefold(), name)
