"""Which store the configuration names, and who waits for a server that is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app import store as module
from gateway.app.config import Config
from gateway.app.store import configured_store
from gateway.store.sqlite import SqliteStore


def test_a_file_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    assert isinstance(configured_store(Config()), SqliteStore)


@pytest.mark.parametrize("address", ["redis://localhost/0", "postgresql://localhost/legato"])
@pytest.mark.parametrize(
    ("waits", "read_only", "expected"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_who_only_reads_does_not_wait_for_a_server(
    address: str, waits: bool, read_only: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool] = []

    def made(*_: Any, waits: bool, **__: Any) -> None:
        given.append(waits)

    monkeypatch.setattr("gateway.store.redis.RedisStore", made)
    monkeypatch.setattr(module, "_on_postgres", made)
    configured_store(Config.model_validate({"store": {"url": address}}), waits=waits, read_only=read_only)
    assert given == [expected]
