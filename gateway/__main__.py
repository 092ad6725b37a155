"""The `legato` program. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import errno
import sys

from gateway import __version__
from gateway.cli.streams import end_unwritten, open_closed_streams, write
from gateway.runtime.heap import collect_seldom


def main() -> None:
    """Run the command line; exits with its status."""
    open_closed_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        write(f"legato {__version__}")
        return
    collect_seldom()
    from gateway.cli.main import app

    try:
        app(prog_name="legato")
    except OSError as error:  # of the help, which the library prints; commands tell of their own
        if error.errno != errno.ENOSPC:
            raise
        end_unwritten(error)


if __name__ == "__main__":
    main()
