"""Projects: a person's conversations about one thing, under a name, with instructions that hold in all of them.

A project belongs to the owner of conversations, as pins do. A session names its project by an id, so a name can change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import MsgspecError, Struct, json

from gateway.domain.chat import SessionKey
from gateway.store.port import Documents, under

log = structlog.get_logger(__name__)

MOST_PROJECTS: Final = 100  # of one owner
LONGEST_INSTRUCTIONS: Final = 4_000  # characters
PROJECT_SHARE: Final = 0.1  # of the context length: what the instructions of a project may take
_PART: Final = (
    "This conversation belongs to a project. Its owner gave these instructions for every conversation of the project:\n"
)


class Project(Struct, frozen=True, kw_only=True):
    """A project; without `instructions` it only keeps conversations together."""

    id: str
    name: str
    instructions: str = ""

    @property
    def part(self) -> str:
        """Its part of a prompt. The name is not in it, so that another name leaves the prompt as it is."""
        return self.instructions and f"{_PART}{self.instructions}"


async def projects(store: Documents, owner: SessionKey) -> Sequence[Project]:
    """The projects of an owner by name. Raises StoreUnavailable."""
    noted = await store.notes(under(owner, "projects"))
    read = (_read(id_, text) for id_, text in noted.items())
    return sorted(filter(None, read), key=lambda each: each.name.casefold())


async def project(store: Documents, owner: SessionKey, project_id: str) -> Project | None:
    """The project of this id, if there is one. Raises StoreUnavailable."""
    return next((each for each in await projects(store, owner) if each.id == project_id), None)


async def keep_project(store: Documents, owner: SessionKey, kept: Project) -> None:
    """Make a project, or change the one of this id. Raises StoreUnavailable."""
    await store.set_notes(under(owner, "projects"), {kept.id: json.encode(kept).decode()})


async def drop_project(store: Documents, owner: SessionKey, project_id: str) -> None:
    """Take a project away; its conversations are outside of it. Raises StoreUnavailable."""
    await store.set_notes(under(owner, "projects"), {project_id: None})


def _read(project_id: str, text: str) -> Project | None:
    try:
        return json.decode(text, type=Project)
    except MsgspecError as error:  # of a later release, or damaged
        log.warning("project_unreadable", project=project_id, error=str(error))
        return None
