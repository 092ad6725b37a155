"""Files in Legato's folder that become part of prompts by themselves: what a person wrote down for their agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from gateway.app.config import Config

FOR_ALL: Final = ("SOUL.md", "AGENTS.md")
OWNERS: Final = "USER.md"  # about the operator, so it is nobody else's
LONGEST: Final = 8_000  # characters that stand in a prompt


class HomeFile(Struct, frozen=True, kw_only=True):
    """A file that was found. `text`: as it stands in prompts. `said`: what there is to say about it, for the operator;
    `broken`: it cannot be read."""

    name: str
    text: str
    said: str
    broken: bool = False


def home_files(config: Config, redact: Callable[[str], str]) -> Iterator[HomeFile]:
    """Look for them. A file that the settings name is already part of prompts."""
    configured = {config.at(name).absolute() for name in config.prompt.context_files}
    for name in (*FOR_ALL, OWNERS):
        path = config.at(name).absolute()
        if path in configured or not path.is_file():
            continue
        try:
            with path.open(encoding="utf-8-sig") as file:
                written = file.read(LONGEST + 1).strip()
        except (OSError, UnicodeDecodeError) as error:
            yield HomeFile(name=name, text="", said=f"{path} cannot be read ({error})", broken=True)
            continue
        if not written:
            continue
        text = redact(written[:LONGEST])
        whom = "your own direct chats" if name == OWNERS else "every prompt"
        notes = [f"in {whom}", *([f"cut at {LONGEST:,} characters"] if len(written) > LONGEST else [])]
        notes += ["without what looks like a secret"] if text != written[:LONGEST] else []
        yield HomeFile(name=name, text=text, said=f"{path}: {', '.join(notes)}")
