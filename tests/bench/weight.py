"""What memory holds, in bytes that Python gave out (tracemalloc): by library, for each chat, for each cached message;
and how long each library takes to import."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from typing import Any, Final

from tests.bench.table import Row, Rows

TITLE = "Memory in bytes, and what was imported; one process, SQLite"
CHATS: Final = 500
MESSAGES: Final = 50  # of one person in each of a tenth of the chats
_SHOWN: Final = 20  # libraries


async def measure() -> Rows:
    """In processes in which nothing has run before."""
    found: dict[str, Any] = {}
    for what in ("took", "held"):
        command = [sys.executable, "-m", "tests.bench.weight", what]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        found |= json.loads((await process.communicate())[0])
    took, held = found["took"], found["held"]
    return [
        Row("all modules", f"{sum(held.values()):,}", f"{1_000 * sum(took.values()):.0f} ms of CPU to import"),
        *(
            Row(f"  {name}", f"{held[name]:,}", f"{1_000 * took.get(name, 0.0):.0f} ms")
            for name in sorted(held, key=lambda name: -held[name])[:_SHOWN]
        ),
        Row(
            "a gateway at rest, beside them", f"{found['rest']:,}", "an eighth of the vocabulary is not Python's: 9 MB"
        ),
        Row("a chat that has spoken once", f"{found['chat']:,}"),
        Row("a cached message", f"{found['message']:,}", "all together at most 50 MB, as their cache reckons"),
    ]


def _owner(path: str) -> str:
    """Ours by room, others by library."""
    parts = Path(path).parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py").partition(".")[0]
    ours = next((place for place, part in enumerate(parts) if part in ("gateway", "adapters")), None)
    return "Python" if ours is None else "/".join(parts[ours : ours + 2])


class _Meter:
    """What each library's own modules add to a figure while they are imported."""

    def __init__(self, read: Callable[[], float]) -> None:
        self.added = Counter[str]()
        self._read = read
        self._inner: list[float] = [0]
        for loader, name in ((SourceFileLoader, "exec_module"), (ExtensionFileLoader, "create_module")):
            setattr(loader, name, self._measured(getattr(loader, name)))

    def _measured(self, load: Any) -> Any:
        def measured(loader: Any, what: Any) -> Any:
            self._inner.append(0)
            begun = self._read()
            try:
                return load(loader, what)
            finally:
                added = self._read() - begun
                self.added[_owner(loader.path)] += added - self._inner.pop()
                self._inner[-1] += added

        return measured


def _traced() -> int:
    return tracemalloc.get_traced_memory()[0]


def _held() -> int:
    gc.collect()
    return _traced()


async def _weighed() -> dict[str, int]:
    from tests.bench.world import Instant, log_as_in_production, quiet, running, settings

    log_as_in_production()
    begun = _held()
    with tempfile.TemporaryDirectory() as folder:
        async with running(settings(Path(folder, "bench.db")), provider=Instant()) as (gateway, chats):
            await chats.ready()
            await chats.talk_all(["first"], 2)
            await quiet(gateway)
            rest = _held()
            names = [f"chat{number}" for number in range(CHATS)]
            await chats.talk_all(names, 1)
            await quiet(gateway)
            spoken = _held()
            await chats.talk_all(names[: CHATS // 10], MESSAGES)
            await quiet(gateway)
            cached = 2 * MESSAGES * CHATS // 10
            return {"rest": rest - begun, "chat": (spoken - rest) // CHATS, "message": (_held() - spoken) // cached}


def main() -> None:
    """Print what `measure` reads. To weigh takes time, so that is done in another process."""
    weighs = sys.argv[1] == "held"
    if weighs:
        tracemalloc.start()
    meter = _Meter(_traced if weighs else time.thread_time)
    import gateway.app.serving  # noqa: F401

    print(json.dumps({sys.argv[1]: meter.added, **(asyncio.run(_weighed()) if weighs else {})}))


if __name__ == "__main__":
    main()
