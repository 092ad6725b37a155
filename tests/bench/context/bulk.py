"""The filling of a conversation: code, logs, JSON, listings. Full of identifiers that nobody will ask for."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Final

Bulk = Callable[[Random, int], str]

_NOUNS: Final = ("invoice", "parcel", "session", "upload", "ledger", "report", "bucket", "worker", "tenant", "cursor")
_VERBS: Final = ("load", "merge", "verify", "index", "prune", "send", "fetch", "split")
_LEVELS: Final = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
_HAPPENED: Final = ("accepted", "retried", "queued", "stored", "skipped", "finished", "timed out", "refused")


def code(rng: Random, lines: int) -> str:
    """A module that does nothing anybody remembers."""
    made: list[str] = []
    while len(made) < lines:
        verb, noun = rng.choice(_VERBS), rng.choice(_NOUNS)
        made += [
            f"def {verb}_{noun}({noun}, limit={rng.randrange(2, 500)}):",
            f"    rows = [row for row in {noun}.rows if row.size < limit * {rng.randrange(2, 90)}]",
            f"    return {rng.choice(_VERBS)}_{rng.choice(_NOUNS)}(rows)",
            "",
        ]
    return "\n".join(made[:lines])


def log(rng: Random, lines: int) -> str:
    """A service's log: times, addresses, request ids."""
    return "\n".join(
        f"2026-03-{rng.randrange(1, 29):02} {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02} "
        f"{rng.choice(_LEVELS)} {rng.choice(_NOUNS)}: req-{rng.getrandbits(40):010x} from "
        f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)} {rng.choice(_HAPPENED)} in "
        f"{rng.randrange(2, 900)} ms"
        for _ in range(lines)
    )


def rows(rng: Random, lines: int) -> str:
    """A JSON answer of an API."""
    return json.dumps(
        [
            {
                "id": f"{rng.choice(_NOUNS)}_{rng.getrandbits(32):08x}",
                "mail": f"{rng.choice(_NOUNS)}{rng.randrange(99)}@example.org",
                "amount": rng.randrange(1, 99_999),
                "state": rng.choice(_HAPPENED),
            }
            for _ in range(max(1, lines // 2))
        ],
        indent=1,
    )


def listing(rng: Random, lines: int) -> str:
    """A folder's files."""
    return "\n".join(
        f"{rng.randrange(100, 900_000):>8} /var/lib/{rng.choice(_NOUNS)}/{rng.choice(_VERBS)}_{rng.randrange(999)}.dat"
        for _ in range(lines)
    )


SHAPES: Final[tuple[tuple[str, str, Bulk], ...]] = (  # tool, its argument's name, what it returns
    ("open_file", "path", code),
    ("run", "command", log),
    ("query", "statement", rows),
    ("list_folder", "path", listing),
)
