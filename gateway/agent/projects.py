"""Projects: a person's conversations about one thing, under a name, with instructions that hold in all of them.

A project belongs to the owner of conversations, as pins do. A session names its project by an id, so a name can change.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from msgspec import MsgspecError, json

from gateway.domain.chat import SessionKey
from gateway.domain.session import Project
from gateway.store.port import Documents, under

log = structlog.get_logger(__name__)


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
