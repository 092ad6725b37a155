"""`legato skills`: instructions for certain work, listed, added and removed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.printing import complain, show, show_rows
from gateway.cli.program import Commands, ConfigOption, JsonOption, fail, settings_of, told
from gateway.runtime.errors import UserError

if TYPE_CHECKING:
    from gateway.app.config import Config

Row = dict[str, str]

_TAKEN: Final = "A running bot uses the skill after `legato reload`, or from its next start."

skills_app = Commands(help="Skills tell the bot how to do certain kinds of work.")


@skills_app.command("list")
def list_(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List your skills and those of packages."""
    settings = settings_of(config)
    none = f"There are no skills. `legato skills add FOLDER` copies a skill into {_folder(settings)}."
    show_rows(_rows(settings), as_json, lambda rows: "\n".join(map(_line, rows)) or none)


@skills_app.command()
def add(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Give a folder, or a .zip or .tar.gz file.")],
    config: ConfigOption = None,
) -> None:
    """Copy the skills of a folder or an archive into your folder. Read them first: the bot will do what they say."""
    from gateway.agent.skills.folders import write
    from gateway.agent.skills.packed import brought
    from gateway.app.store import make_folders

    settings = settings_of(config)
    with told(settings):
        found = brought(source)
        folder = _folder(settings)
        make_folders(settings, home=False)
        left = 0
        for each in found:
            try:
                if each.skill is None:
                    raise UserError(each.problem)
                show(f"Added: {write(folder, each.skill.name, each.contents)}")
            except UserError as error:
                left += 1
                complain(f"Left out: {error}.")
    if left < len(found):
        show(_TAKEN)
    raise typer.Exit(int(left > 0))


@skills_app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Give the name that `legato skills list` shows.")],
    config: ConfigOption = None,
) -> None:
    """Delete a skill from your folder."""
    from gateway.agent.skills.skill import named

    settings = settings_of(config)
    with told(settings):
        folder = _folder(settings) / named(name)
        if folder.is_symlink():
            folder.unlink()
        elif folder.is_dir():
            shutil.rmtree(folder)
        else:
            fail(f"{_folder(settings)} holds no skill {name}; `legato skills list` names them, and where they are from")
    show(f"Removed: {folder}\n{_TAKEN}")


def _folder(settings: Config) -> Path:
    return settings.at("skills").absolute()


def _rows(settings: Config) -> list[Row]:
    from gateway.agent.skills.folders import found

    known, broken = found(_folder(settings))
    rows = [_row(name, description=each.skill.description, source=each.source) for name, each in known.items()]
    return [*rows, *(_row(where, problem=reason) for where, reason in broken)]


def _row(name: str, *, description: str = "", source: str = "", problem: str = "") -> Row:
    return {"name": name, "description": description, "source": source, "problem": problem}


def _line(row: Row) -> str:
    return f"{row['name']}: {row['problem']}" if row["problem"] else "{name} ({source}): {description}".format(**row)
