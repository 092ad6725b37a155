"""`legato upgrade`: how this program was installed, and the commands that bring a newer one.

Installers leave signs. pipx, uv and our image put a file at the root of the environment, and PEP 610 has pip keep the
folder from which a distribution came.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

NAME: Final = "legato"  # of the distribution
_SIGNS: Final = {"legato.image": "image", "pipx_metadata.json": "pipx", "uv-receipt.toml": "uv"}
_BY_NAME: Final = {
    "pipx": ("pipx", "upgrade", NAME),
    "uv": ("uv", "tool", "upgrade", NAME),
    "pip": (sys.executable, "-m", "pip", "install", "--upgrade", NAME),
    "uv pip": ("uv", "pip", "install", "--python", sys.executable, "--upgrade", NAME),
}
_FROM: Final = {
    "pipx": ("pipx", "install", "--force"),
    "uv": ("uv", "tool", "install", "--reinstall"),
    "pip": (sys.executable, "-m", "pip", "install", "--upgrade"),
    "uv pip": ("uv", "pip", "install", "--python", sys.executable, "--upgrade"),
}


class Installed(Struct, frozen=True, kw_only=True):
    """How the program came here: `image`, `pipx`, `uv`, `uvx`, `clone`, `pip` or `uv pip`. `source` is the folder of
    the code, or the file, from which it was installed; None where it came by its name."""

    by: str
    source: Path | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """Commands to run here, in their order; or, where none can be, `advice` on what to do instead."""

    installed: Installed
    commands: tuple[tuple[str, ...], ...] = ()
    advice: str = ""


def installed() -> Installed:
    """How the program that runs was installed."""
    try:
        ours = distribution(NAME)
    except PackageNotFoundError:  # run from a folder that nobody installed
        return Installed(by="clone", source=Path(__file__).resolve().parents[2])
    return found_in(Path(sys.prefix), ours.read_text("direct_url.json") or "", ours.read_text("INSTALLER") or "")


def found_in(prefix: Path, direct_url: str, installer: str) -> Installed:
    """The same, from the environment's folder and what an installer wrote beside the distribution."""
    origin = json.loads(direct_url) if direct_url else {}
    address = urlsplit(origin.get("url", ""))
    source = Path(unquote(address.path)) if address.scheme == "file" else None
    for sign, by in _SIGNS.items():
        if (prefix / sign).exists():
            return Installed(by=by, source=source)
    if origin.get("dir_info", {}).get("editable"):
        return Installed(by="clone", source=source)
    if any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts):  # of uv's cache
        return Installed(by="uvx", source=source)
    return Installed(by="uv pip" if installer.strip() == "uv" else "pip", source=source)


def plan(found: Installed) -> Plan:
    """What brings a newer version."""
    by, source = found.by, found.source
    if by == "image":
        advice = (
            "Start a container of the newer image on the same volume. The container upgrades the store when it starts."
        )
        return Plan(installed=found, advice=advice)
    if by == "uvx":
        return Plan(
            installed=found, advice=f"uvx keeps no installation. `uvx {NAME}@latest chat` runs the newest version."
        )
    if source is None:
        return Plan(installed=found, commands=(_BY_NAME[by],))
    if source.is_dir():
        pull = ("git", "-C", str(source), "pull", "--ff-only")
        if by == "clone":
            return Plan(installed=found, commands=(pull, ("make", "-C", str(source), ".venv/.installed")))
        return Plan(installed=found, commands=(pull, (*_FROM[by], str(source))))
    again = shlex.join([*_FROM[by], "FILE"])
    return Plan(
        installed=found,
        advice=f"Legato was installed from the file {source.name}. Download the newer file and run `{again}`.",
    )


def told(made: Plan) -> str:
    """What is here, and what would be run, for people."""
    by, source = made.installed.by, made.installed.source
    came = {
        "image": "is part of a container image",
        "uvx": "was started by uvx",
        "clone": f"runs from the clone {source}",
    }
    where = f" from {source}" if source is not None else ""
    head = f"This Legato {came.get(by, f'was installed by {by}{where}')}."
    if made.advice:
        return f"{head} {made.advice}"
    steps = [*(shlex.join(each) for each in made.commands), "legato upgrade --store"]
    return "\n".join([f"{head} An upgrade runs:", *(f"  {step}" for step in steps)])


def carry_out(made: Plan, options: Sequence[str]) -> str:
    """Run the commands, which print for themselves; then the new program brings the store to its version. Return what
    went wrong, for people, or nothing."""
    for command in made.commands:
        if _status(command):
            return (
                f"This command failed: {shlex.join(command)}. Legato ran no later command, and the store is unchanged."
            )
    if _status((sys.executable, "-m", "gateway", "upgrade", "--store", *options)):
        return "The program is upgraded. The next start upgrades the store."
    return ""


def _status(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        return 127
