"""The `legato` program. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import os
import sys

from gateway import __version__
from gateway.cli.printing import show


def main() -> None:
    """Run the command line; exits with its status."""
    _open_closed_streams()
    if sys.argv[1:] == ["--version"]:
        show(f"legato {__version__}")
        return
    from gateway.cli.main import app

    app()


def _open_closed_streams() -> None:
    """A parent may start the program without standard streams: then there is no input, and nobody sees the output."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - open as long as the program runs
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    main()
