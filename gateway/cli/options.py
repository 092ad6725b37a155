"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="Configuration file (default: ./config.yaml).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one value.")]
