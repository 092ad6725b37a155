"""The `legato` program. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import sys

from gateway import __version__


def main() -> None:
    """Run the command line; exits with its status."""
    if sys.argv[1:] == ["--version"]:
        print(f"legato {__version__}")
        return
    from gateway.cli.main import app

    app()


if __name__ == "__main__":
    main()
