"""All skills: those of the operator's folder and of packages, which are read at a start and a reload, and those that a
person agreed to in a conversation, whose whole text the store keeps. Nothing of this is read for a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import Struct, field
from pydantic import Field

from gateway.agent.prompt import bent
from gateway.agent.skills.skill import FILE, GROUP, LONGEST_DESCRIPTION, Skill, read
from gateway.agent.workspace.folders import Workspaces
from gateway.domain.chat import SessionKey
from gateway.domain.settings import Flag, Section
from gateway.runtime.errors import UserError
from gateway.runtime.plugins import installed
from gateway.runtime.structs import replace
from gateway.store.port import Documents, under

if TYPE_CHECKING:
    from gateway.agent.skills.folders import Folder, Known

log = structlog.get_logger(__name__)

HERE: Final = "this conversation"
MARK: Final = "Skills to load and follow before such work:\n"  # in a prompt; the tool rests without it
LONGEST_KEPT: Final = 20_000  # characters of a SKILL.md that is kept in a conversation
MOST_KEPT: Final = 20
SHARE: Final = 0.02  # of the window, for names and descriptions
_BYTES: Final = 3  # of a token, at least: the share is kept whatever the tokeniser
_SHORT: Final = 160  # characters of a description where not all have room in full
_LEARNS: Final = "+"  # the note that lets a conversation make its first skill; no skill is named so
_OFF: Final = "-"  # begins the note that switches a skill off


class SkillsSettings(Section):
    """A skill is a folder with a SKILL.md that says how to do certain work (docs/skills.md)."""

    enabled: Flag = Field(True, description="use them")


class Decided(Struct, frozen=True, kw_only=True):
    """What was decided for a conversation: its own skills, each a SKILL.md to which a person said yes, and those that
    are off there. `learns`: the model may make the first one."""

    own: Mapping[str, str] = field(default_factory=dict)
    off: Collection[str] = frozenset()
    learns: bool = False


class Skills(Struct, kw_only=True):
    """`folder`: the operator's. `known`: by name. `broken`: where a skill should be, and why there is none."""

    store: Documents
    folder: Path
    workspaces: Workspaces
    redact: Callable[[str], str]
    enabled: bool = True
    known: Mapping[str, Known] = field(default_factory=dict)
    broken: Sequence[tuple[str, str]] = ()

    def scan(self) -> None:
        """Look at the folders again."""
        self.known, self.broken = {}, ()
        if self.enabled and (self.folder.is_dir() or installed(GROUP)):
            # By name: where there are no skills, nothing is loaded for them.
            self.known, self.broken = import_module("gateway.agent.skills.folders").found(self.folder)
        for where, reason in self.broken:
            log.warning("skill_unreadable", where=where, reason=reason)

    # -- of one conversation ----------------------------------------------------------------

    async def decided(self, key: SessionKey) -> Decided:
        """What was decided. What an admin switched off in a group is off in everybody's conversation there."""
        notes = await self.store.notes(_folder(key)) if self.enabled else {}
        group = await self.store.notes(_folder(replace(key, user=None))) if self.enabled and key.user else {}
        own = {name: note for name, note in notes.items() if not name.startswith((_LEARNS, _OFF))}
        off = {name.removeprefix(_OFF) for name in (*notes, *group) if name.startswith(_OFF)}
        return Decided(own=own, off=off, learns=_LEARNS in notes)

    async def switch(self, key: SessionKey, name: str, *, on: bool) -> None:
        """Switch a skill on or off."""
        await self.store.set_notes(_folder(key), {f"{_OFF}{name}": None if on else "off"})

    async def learn(self, key: SessionKey) -> None:
        """Let the model make the first skill."""
        await self.store.set_notes(_folder(key), {_LEARNS: "yes"})

    async def keep(self, key: SessionKey, text: str) -> str:
        """Keep a SKILL.md to which a person said yes. Returns a sentence. Raises UserError."""
        skill = read(text.encode())
        if self.redact(text) != text:
            raise UserError("The skill seems to hold a password or a key. Write where it can be found instead.")
        if len((await self.decided(key)).own) >= MOST_KEPT:
            raise UserError(f"A conversation keeps at most {MOST_KEPT} skills. /skills remove NAME removes a skill.")
        await self.store.set_notes(_folder(key), {skill.name: text})
        return f"I saved the skill {skill.name} in this conversation. /skills lists the skills."

    async def drop(self, key: SessionKey, name: str) -> None:
        """Remove one of a conversation's own skills."""
        await self.store.set_notes(_folder(key), {name: None})

    async def shown(self, key: SessionKey, window: int) -> str:
        """The part of a prompt that names the conversation's skills; "" without any."""
        decided = await self.decided(key)
        return listing(self.described(decided), window, learns=decided.learns)

    def described(self, decided: Decided) -> dict[str, str]:
        """The descriptions of the skills that a conversation has, by name; its own come first."""
        own: dict[str, str] = {}
        for name, text in decided.own.items():
            with suppress(UserError):  # a release with other rules kept it
                own[name] = read(text.encode()).description
        known = {name: each.skill.description for name, each in self.known.items() if name not in own}
        return {name: text for name, text in {**own, **known}.items() if name not in decided.off}

    async def load(self, key: SessionKey, name: str) -> Skill | None:
        """The skill of this name with its body and files, as it is now; None: the conversation has none. Raises
        UserError."""
        decided = await self.decided(key)
        if name in decided.off:
            return None
        if name in decided.own:
            files: Sequence[str] = ()
            with suppress(UserError):  # a workspace holds what its people like
                files = await asyncio.to_thread(self._workspace(key, name).files)
            return replace(read(decided.own[name].encode()), files=files, own=True)
        if (known := self.known.get(name)) is None:
            return None
        return await asyncio.to_thread(lambda: replace(known.folder.skill(name), files=known.folder.files()))

    async def content(self, key: SessionKey, path: str) -> bytes | None:
        """The bytes of `skills/NAME/FILE`, a file of a skill that the conversation has; None: there is no such skill
        on the disk. Raises UserError."""
        name, _, file = path.removeprefix("skills/").partition("/")
        known = self.known.get(name)
        if known is None or name in (decided := await self.decided(key)).off or name in decided.own:
            return None
        return await asyncio.to_thread(known.folder.content, file or FILE)

    def waiting(self, key: SessionKey, decided: Decided) -> list[str]:
        """The names of skills that lie in the conversation's workspace, and are none until a person says yes."""
        return [name for name in self._workspace(key).folders() if name not in decided.own]

    def lying(self, key: SessionKey, name: str) -> str:
        """The text of the SKILL.md of this name in the conversation's workspace. Raises UserError."""
        folder = self._workspace(key, name)
        folder.skill(name)
        return folder.content(FILE, LONGEST_KEPT).decode("utf-8-sig").strip()

    def share(self, name: str, text: str) -> None:
        """Let everybody have a skill. Raises UserError."""
        contents = {FILE: (text.encode(), False)}
        import_module("gateway.agent.skills.folders").write(self.folder, name, contents, anew=name in self.known)
        self.scan()

    @property
    def lent(self) -> list[tuple[str, Path]]:
        """The folders that a sandbox shows, read-only, as /skills/NAME."""
        return [(name, each.folder.root) for name, each in self.known.items()]

    def _workspace(self, key: SessionKey, *name: str) -> Folder:
        made: Folder = import_module("gateway.agent.skills.folders").Folder(
            self.workspaces.folder(key), ("skills", *name)
        )
        return made


def listing(described: Mapping[str, str], window: int, *, learns: bool = False) -> str:
    """The part of a prompt with these skills. Descriptions are shortened, then skills left out, where they would take
    too much of the window."""
    if not described and not learns:
        return ""
    room = int(SHARE * window * _BYTES)
    lines, shown = list[str](), list[str]()
    for longest in (LONGEST_DESCRIPTION, _SHORT):
        lines = [f"- {name}: {bent(shorten(text, longest, placeholder='…'))}" for name, text in described.items()]
        sizes = accumulate(len(line.encode()) + 1 for line in lines)
        shown = [line for line, size in zip(lines, sizes, strict=True) if size <= room]
        if len(shown) == len(lines):
            break
    more = [f"({len(lines) - len(shown)} more: `skill` finds them by a few words.)"] if len(shown) < len(lines) else []
    return MARK + "\n".join([*shown, *more] or ["(none yet)"])


def _folder(key: SessionKey) -> str:
    return under(key.caller.owner, "skills")
