"""The `legato` program. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import sys

from gateway import __version__
from gateway.cli.streams import open_closed_streams, write


def main() -> None:
    """Run the command line; exits with its status."""
    open_closed_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        write(f"legato {__version__}")
        return
    from gateway.cli.main import app

    app(prog_name="legato")


if __name__ == "__main__":
    main()
