"""What one start of the program goes by: the settings, and Legato's folder, wherever it is started.

Legato's folder is `$LEGATO_HOME`, else `~/.legato`. In it lie `config.yaml`, `.env`, the store and all else; relative
paths of the settings begin there. Earlier versions kept these in the working folder. What one of them left there is
still used by who starts there (docs/decisions/0072).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.app.config.environment import HOME_VARIABLE, variables
from gateway.app.config.loading import load_config
from gateway.app.config.models import Config
from gateway.app.config.source import read_file
from gateway.runtime import posix
from gateway.runtime.errors import ConfigError

FILE: Final = "config.yaml"
_MISNAMED: Final = ("config.yml", "config.yaml.txt", "config.yml.txt", FILE)  # the last one with capitals
_HERE: Final = Path()
_OTHERS: Final = 0o077  # of a file's mode; Legato makes its files without


class Setup(Struct, frozen=True, kw_only=True):
    """`config` was read from `file` (None if there is none). `folder` is Legato's. `earlier`: what is used of the
    working folder, as in early versions. `secrets`: the folders whose `.env` was read; the last counts most."""

    config: Config
    folder: Path
    file: Path | None
    earlier: tuple[Path, ...] = ()
    secrets: tuple[Path, ...] = ()

    def variables(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """The variables that the settings may name, as the files are now. Raises ConfigError."""
        return variables(self.secrets, environ)


def set_up(given: Path | None, environ: Mapping[str, str]) -> Setup:
    """Read the settings: of the file `given`, else of the one where a person keeps them. Raises ConfigError."""
    folder = legato_folder(environ)
    own, here = folder / FILE, _HERE / FILE
    elsewhere = not environ.get(HOME_VARIABLE, "").strip() and folder != _HERE
    lived = elsewhere and (_is_ours(Path("legato.db")) or _is_ours(Path("legato-home")))
    file, edited = given, False
    if given is not None:
        secrets = [folder, given.parent]
    else:
        has_own = os.path.lexists(own)  # a link that leads nowhere is told
        edited = elsewhere and not has_own and _says_something(here)
        file = own if has_own else here if edited else None
        if file is None:
            _refuse_misnamed(folder, elsewhere)
        if has_own and lived and _says_something(here):  # ignoring them would drop who may write, and where all lies
            raise ConfigError(
                [
                    f"two files hold settings: {here.absolute()}, which an earlier version read, and {own}. Move what "
                    "you need from the first file into the second, and delete the first"
                ]
            )
        secrets = [*([_HERE] if lived or edited else []), folder]
    config = load_config(file, variables(secrets, environ))
    # Who has settings here and never started elsewhere is given a store here, too, as ever.
    store_here = elsewhere and (_store_is_here(config, folder) or (edited and not folder.exists()))
    config = config.within(_HERE if store_here else folder)
    earlier = [*([here] if edited else []), *([config.database or config.home] if store_here else [])]
    return Setup(config=config, folder=folder, file=file, earlier=tuple(earlier), secrets=tuple(secrets))


def legato_folder(environ: Mapping[str, str]) -> Path:
    """Return Legato's folder, which need not be there; `.` where it is the working folder. Raises ConfigError."""
    try:
        if given := environ.get(HOME_VARIABLE, "").strip():
            path = Path(given).expanduser().absolute()
        else:
            path = (Path(environ["HOME"]) if environ.get("HOME") else Path.home()).absolute() / ".legato"
    except RuntimeError:
        reason = f"your home folder is unknown: set {HOME_VARIABLE} to the folder that Legato may use"
        raise ConfigError([reason]) from None
    if path.exists() and not path.is_dir():
        raise ConfigError(
            [f"{path} is not a folder: move it away, or set {HOME_VARIABLE} to the folder that Legato may use"]
        )
    with suppress(OSError):  # the working folder may be gone
        return _HERE if path == Path.cwd() else path
    return path


def misnamed(folder: Path) -> list[Path]:
    """Files of settings in a folder that are not read, for their names."""
    return (
        sorted(each for each in folder.iterdir() if each.name.lower() in _MISNAMED and each.name != FILE)
        if folder.is_dir()
        else []
    )


def _refuse_misnamed(folder: Path, elsewhere: bool) -> None:
    """Raise ConfigError where settings were meant, and none are read. In the working folder a file may be another
    program's."""
    others = [each for each in misnamed(_HERE) if read_file(each).values.keys() <= Config.model_fields.keys()]
    for path in (*misnamed(folder), *(others if elsewhere else ())):
        raise ConfigError([f"{path} is ignored because of its name: call it {FILE}, or move it away"])


def _is_ours(path: Path) -> bool:
    """Whether a Legato of this user made it. What was copied or checked out from elsewhere is open to others, or a
    link, and a stranger's folder must not choose what this program does."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return posix.user() in (found.st_uid, -1) and not found.st_mode & _OTHERS


def _says_something(path: Path) -> bool:
    """Whether a file holds settings of Legato, rightly or wrongly written, other than the shipped defaults."""
    if not path.exists():
        return False
    tree = read_file(path)
    if tree.values and tree.values.keys().isdisjoint(Config.model_fields):
        return False  # another program's
    try:
        return not load_config(path, {}).is_default()
    except ConfigError:
        return True


def _store_is_here(config: Config, folder: Path) -> bool:
    """Whether the store of the settings, or the folder beside a store, lies in the working folder. Raises ConfigError
    if it is unclear whose the store is."""
    store, home = config.database, config.home
    if home.is_absolute():
        return False
    if _is_ours(home) or (store is not None and _is_ours(store)):
        return True
    if store is not None and store.exists():
        sentence = (
            f"{store} lies in this folder, and may be yours or a stranger's, since others on this machine can open it: "
            f"set {HOME_VARIABLE}=. to use it, or {HOME_VARIABLE}={folder} to leave it alone"
        )
        raise ConfigError([sentence])
    return False
