"""`python -m tests.support.killed_step FOLDER NUMBER COMMAND…`: a `legato` command that is killed just before it does
step NUMBER of what it does to files below FOLDER; 0: never. Statements of SQLite are steps, too.

Where it is not killed, the last line of its errors tells how many steps there were.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final

import apsw

from gateway.cli.main import app

_STEPS: Final = ("open", "os.", "shutil.", "subprocess.Popen")
_LOOKS: Final = ("os.scandir", "os.listdir", "os.walk", "os.putenv", "os.fwalk")


def main(folder: str, number: str, *command: str) -> None:
    """Run the command until its step."""
    steps = 0

    def step(*_: Any) -> bool:
        nonlocal steps
        steps += 1
        if steps == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_STEPS) and event not in _LOOKS and any(folder in str(each) for each in arguments):
            step()

    def traced(connection: apsw.Connection) -> None:
        connection.exec_trace = step

    sys.addaudithook(heard)
    apsw.connection_hooks.append(traced)
    try:
        app(command)
    finally:
        print(steps, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
