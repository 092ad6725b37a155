"""What a slash command looks like in a message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """`/name argument`, the name lower-cased and without an `@bot` suffix."""

    name: str
    argument: str


def parse_command(text: str) -> CommandCall | None:
    """The command a text calls, or None.

    A command is a slash, a letter, then letters, digits, `_` or `-`, up to white space or the end;
    so paths (`/usr/bin`) and a lone slash are ordinary text.
    """
    stripped = text.lstrip()
    if not stripped.startswith("/"):
        return None
    head, _, argument = stripped[1:].partition(" ")
    first_line, newline, rest = head.partition("\n")
    if newline:
        head, argument = first_line, f"{rest} {argument}".strip()
    name = head.partition("@")[0].lower()
    if not name[:1].isalpha() or not all(c.isalnum() or c in "_-" for c in name):
        return None
    return CommandCall(name=name, argument=argument.strip())
