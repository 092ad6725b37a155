"""Slash commands in a message."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import resources
from typing import Literal

from msgspec import Struct


class Proposal(Struct, frozen=True, kw_only=True):
    """A value that a person may mean, and the words by which they know it."""

    value: str
    label: str


class Parameter(Struct, frozen=True, kw_only=True):
    """A value that may follow a command's name, for a platform that asks for each by itself. `form`: how the value is
    written in a message, with {} in its place; for a flag, what is written if it is set. `proposes`: the program can
    propose values while a person types."""

    name: str
    help: str
    kind: Literal["text", "number", "flag"] = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    form: str = "{}"
    proposes: bool = False

    def written(self, value: object) -> str:
        """The value as a person types it."""
        if self.kind == "flag":
            return self.form if value else ""
        return self.form.format(value)


class CommandCall(Struct, frozen=True, kw_only=True):
    """`/name argument`, the name lower-cased and without an `@bot` suffix."""

    name: str
    argument: str


def parse_command(text: str) -> CommandCall | None:
    """The command a text calls, or None.

    A command is a slash, a letter, then letters, digits, `_` or `-`, up to white space or the end;
    so paths (`/usr/bin`) and a lone slash are ordinary text.
    """
    found = _COMMAND.match(text)
    return CommandCall(name=found[1].lower(), argument=(found[2] or "").strip()) if found else None


def as_typed(text: str, names: Collection[str], sign: str) -> str:
    """Our own text with the commands of these `names` in the form in which people type them if the slash is the
    platform's: `sign` replaces it. Paths and addresses stay as they are."""
    return _NAMED.sub(lambda found: sign + found[1] if found[1] in names else found[0], text)


_NAMED = re.compile(r"(?<![\w/.:~-])/([a-z][a-z_-]*)(?![\w/]|\.\w)")
# White space of any script ends a name: a Chinese keyboard writes U+3000.
_COMMAND = re.compile(r"\s*/([^\W\d_][\w-]*)(?:@\S*)?(?:\s+(.*))?\Z", re.DOTALL)


def translated() -> Mapping[str, Mapping[str, str]]:
    """What the commands do, in other languages: by language (ISO 639-1) and the command's name."""
    text = resources.files(__package__).joinpath("command_help.tsv").read_text("utf-8")
    (_, *languages), *rows = (line.split("\t") for line in text.splitlines())
    return {each: {row[0]: row[place] for row in rows} for place, each in enumerate(languages, 1)}
