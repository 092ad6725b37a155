"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="File of settings (default: config.yaml in ~/.legato).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one value.")]
