"""`python -m tests.support.killed_migration SOURCE TARGET PAGES`: a migration that dies after so many pages."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from gateway.runtime.clock import SystemClock
from gateway.store.shared import facts
from gateway.store.transfer import migrate, source_at, target_at


def main(source: str, target: str, pages: str) -> None:
    """Run until the page that it dies after."""
    left = int(pages)
    facts.PAGE = 30  # type: ignore[misc]

    def tell(progress: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    clock = SystemClock()
    asyncio.run(migrate(source_at(source, clock), target_at(target, clock), clock=clock, tell=tell))


if __name__ == "__main__":
    main(*sys.argv[1:])
