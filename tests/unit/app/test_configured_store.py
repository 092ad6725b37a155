"""Which store the configuration names, and who waits for a server that is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app import store as module
from gateway.app.config import Config
from gateway.app.store import configured_store, make_folders
from gateway.runtime.errors import UserError
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


def test_a_folder_that_is_made_is_private_and_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Path, Path]] = []
    monkeypatch.setattr(module, "leave_to_owner", lambda of, path: given.append((of, path)))
    for _ in range(2):  # one that is there stays as it is
        make_folders(Config.model_validate({"store": {"url": f"sqlite:///{tmp_path}/legato.db"}}))
        assert given == [(tmp_path, tmp_path / "legato-home")]
    assert (tmp_path / "legato-home").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"the folder {tmp_path}/file/a-home cannot be made"):
        make_folders(Config.model_validate({"store": {"url": f"sqlite:///{tmp_path}/file/a.db"}}))
