"""Projects: their block in the list of chats, and the page of one, where its name and its instructions are changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from adapters.web.icons import icon
from adapters.web.log import moment
from adapters.web.markup import Child, Html, el, hidden, section, submit
from gateway.domain.session import Project

AT: Final = "/project"  # the page of a new one; that of one stands below it
FRESH: Final = Project(id="", name="")
_HINT: Final = "I follow these instructions in every chat of this project, and nowhere else."
_EXAMPLE: Final = "For example: Our balcony faces north. Suggest only plants that are safe for cats."
_NONE: Final = "No chats yet. Begin one here, or move one here with ⋯ next to it."


def path_of(project: Project) -> str:
    """Where a project is looked at."""
    return f"{AT}/{quote(project.id, safe='')}"


def delete(name: str) -> str:
    """What is asked before a project goes."""
    return f"Delete the project “{name}” and its instructions? Its chats stay."


def block(project: Project, lines: Sequence[Html], *, opened: bool) -> Html:
    """A project in the list, with its chats and the beginning of another."""
    name = el("summary", icon("folder"), el("span", project.name, dir="auto"), class_="named-project")
    about = {"aria_label": f"About the project {project.name}", "title": "Instructions, name, delete"}
    return el(
        "li",
        el("details", name, el("ul", lines, el("li", begin(project))), id=f"in-{project.id}", open=opened),
        el("a", icon("more"), href=path_of(project), class_="about-project", **about),
        class_="project",
        data_group=project.name,
    )


def begin(project: Project) -> Html:
    """The button that begins a chat in a project."""
    return submit([icon("plus"), "New chat"], form="project", name="order", value=f"chat {project.id}", class_="begin")


def page(project: Project, chats: Sequence[tuple[str, str, float]], csrf: str, problem: str = "") -> Child:
    """A project, with its chats as (address, title, last moment), or the form of a new one."""
    name = el("input", type="text", name="name", value=project.name, required=True, dir="auto", maxlength=100)
    field = el(
        "textarea",
        project.instructions,
        name="instructions",
        rows=7,
        dir="auto",
        placeholder=_EXAMPLE,
    )
    form = el(
        "form",
        hidden(csrf=csrf),
        el("p", problem, class_="reason", role="alert") if problem else None,
        el("label", "Name", name),
        el("label", "Instructions", field, el("small", _HINT)),
        el("p", submit("Save" if project.id else "Create", name="order", value=f"save {project.id}")),
        method="post",
        action=AT,
        class_="settings project",
    )
    if not project.id:
        return form
    items = [el("li", el("a", title, href=at, dir="auto"), el("small", moment(last))) for at, title, last in chats]
    gone = submit("Delete the project", form="project", name="order", value=f"delete {project.id}", class_="bad")
    return [
        form,
        section("Chats", el("ul", items, class_="facts") if items else el("p", _NONE)),
        el("p", gone),
    ]
