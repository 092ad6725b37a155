"""The `legato` program. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import atexit
import errno
import os
import sys

from gateway import __version__
from gateway.cli.streams import end_unwritten, open_closed_streams, write
from gateway.runtime.heap import collect_later


def main() -> None:
    """Run the command line; exits with its status."""
    open_closed_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        write(f"legato {__version__}")
        return
    collect_later()
    ended: list[int] = []
    atexit.register(_leave, ended)  # first here, so last of all
    from gateway.cli.main import program

    try:
        program(sys.argv[1:])(prog_name="legato")
    except SystemExit as end:
        ended += [end.code or 0] if isinstance(end.code, int | None) else []
        raise
    except OSError as error:  # of the help, which the library prints; commands tell of their own
        if error.errno != errno.ENOSPC:
            raise
        end_unwritten(error)


def _leave(ended: list[int]) -> None:
    """Leave the memory to the system: to take a thousand modules apart takes Python an eighth of a short command."""
    if ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended[0])


if __name__ == "__main__":
    main()
