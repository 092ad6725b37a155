"""All skills: those of the operator's folder and of packages, which are read at a start and a reload, and those that a
person said yes to in a conversation, whose whole text the store keeps. Nothing of this is read for a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec import Struct
from pydantic import Field

from gateway.agent.prompt import bent
from gateway.agent.skills.skill import FILE, GROUP, Skill, read
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


class SkillsSettings(Section):
    """Skills: folders with a SKILL.md that says how some work is done (docs/skills.md)."""

    enabled: Flag = Field(True, description="whether there are any")


class Kept(Struct, frozen=True, kw_only=True):
    """What was decided of a skill in a conversation. `off`: it is not used there. `text`: its SKILL.md, to which a
    person said yes; "" for a skill that is no conversation's own."""

    off: bool = False
    text: str = ""
    description: str = ""
    by: str = ""
    at: float = 0.0


class Loaded(Struct, frozen=True, kw_only=True):
    """A skill to be used, and the paths of its files."""

    skill: Skill
    files: Sequence[str]
    own: bool


@dataclass(slots=True, kw_only=True)
class Skills:
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

    async def decided(self, key: SessionKey) -> dict[str, Kept]:
        """What was decided for a conversation. Of somebody's own one in a group, what an admin decided for the group
        holds as well. Raises StoreUnavailable."""
        if not self.enabled:
            return {}
        keys = (key,) if key.user is None else (replace(key, user=None), key)
        notes = [note for each in keys for note in (await self.store.notes(_folder(each))).items()]
        made = [(name, msgspec.json.decode(text, type=Kept)) for name, text in notes]
        off = {name for name, each in made if each.off}
        return {name: replace(each, off=name in off) for name, each in made}

    async def decide(self, key: SessionKey, name: str, kept: Kept | None) -> None:
        """Keep a decision; None: as if none had been made. Raises StoreUnavailable."""
        text = None if kept is None or kept == Kept() else msgspec.json.encode(kept).decode()
        await self.store.set_notes(_folder(key), {name: text})

    async def learn(self, key: SessionKey) -> None:
        """Let the model make a skill where there is none yet."""
        await self.decide(key, _LEARNS, Kept(text=_LEARNS))

    async def shown(self, key: SessionKey, window: int) -> str:
        """The part of a prompt that names the conversation's skills; "" without any."""
        decided = await self.decided(key)
        if not self.known and not decided:
            return ""
        return listing(self.described(decided), window, learns=_LEARNS in decided)

    def described(self, decided: Mapping[str, Kept]) -> dict[str, str]:
        """The descriptions of the skills that a conversation has, by name; its own come first."""
        own = {name: each.description for name, each in decided.items() if each.text and name != _LEARNS}
        off = {name for name, each in decided.items() if each.off}
        all_ = {**own, **{name: each.skill.description for name, each in self.known.items()}, **own}
        return {name: text for name, text in all_.items() if name not in off}

    async def load(self, key: SessionKey, name: str) -> Loaded | None:
        """The skill of this name with its body, as it is now; None: the conversation has none. Raises UserError."""
        kept = (await self.decided(key)).get(name, Kept())
        if kept.off:
            return None
        if kept.text and name != _LEARNS:
            files = await asyncio.to_thread(_files, self._workspace(key, name))
            return Loaded(skill=read(kept.text.encode()), files=files, own=True)
        if (known := self.known.get(name)) is None:
            return None
        skill, files = await asyncio.to_thread(lambda: (known.folder.skill(name), known.folder.files()))
        return Loaded(skill=skill, files=[each for each in files if each != FILE], own=False)

    async def content(self, key: SessionKey, path: str) -> bytes | None:
        """The bytes of `skills/NAME/FILE`, a file of a skill that the conversation has; None: there is no such skill
        on the disk. Raises UserError."""
        _, _, rest = path.partition("skills/")
        name, _, file = rest.partition("/")
        known = self.known.get(name)
        kept = (await self.decided(key)).get(name, Kept()) if known else Kept()
        if known is None or kept.off or kept.text:
            return None
        return await asyncio.to_thread(known.folder.content, file or FILE)

    def waiting(self, key: SessionKey, decided: Mapping[str, Kept]) -> list[str]:
        """The names of skills that lie in the conversation's workspace, and are none until a person says yes."""
        return [name for name in self._workspace(key).folders() if not decided.get(name, Kept()).text]

    def lying(self, key: SessionKey, name: str) -> str:
        """The text of the SKILL.md of this name in the conversation's workspace. Raises UserError."""
        folder = self._workspace(key, name)
        folder.skill(name)
        return folder.content(FILE, LONGEST_KEPT).decode("utf-8-sig").strip()

    async def keep(self, key: SessionKey, text: str, *, by: str, at: float) -> str:
        """Keep a SKILL.md to which a person said yes; a sentence. Raises UserError."""
        skill = read(text.encode())
        if self.redact(text) != text:
            raise UserError("It seems to hold a credential: write where that is found instead.")
        held = [each for each in (await self.decided(key)).values() if each.text]
        if len(held) >= MOST_KEPT:
            raise UserError(f"A conversation keeps at most {MOST_KEPT} skills; /skills remove NAME makes room.")
        await self.decide(key, skill.name, Kept(text=text, description=skill.description, by=by, at=at))
        return f"The skill {skill.name} is kept in this conversation. /skills lists what there is."

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
    for longest in (None, _SHORT):
        lines = [f"- {name}: {bent(_short(text, longest))}" for name, text in described.items()]
        if sum(len(line.encode()) + 1 for line in lines) <= room:
            return MARK + ("\n".join(lines) or "(none yet)")
    shown: list[str] = []
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    return MARK + "\n".join([*shown, f"({len(lines) - len(shown)} more: `skill` finds them by a few words.)"])


def _short(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def _files(folder: Folder) -> list[str]:
    try:
        return [each for each in folder.files() if each != FILE]
    except UserError:
        return []  # a workspace holds what its people like


def _folder(key: SessionKey) -> str:
    return under(key, "skills")
