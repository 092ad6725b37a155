"""How much room an upgrade of a store needs."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.sqlite.rehearsal import rehearse
from tests.support.empty_store import put_empty_store

EARLIER = sorted((Path(__file__).parents[2] / "fixtures" / "stores").glob("*.db.xz"))[0]


@pytest.mark.parametrize("is_old", [True, False])
def test_room_for_a_copy_is_needed_only_where_a_store_is_changed(tmp_path: Path, is_old: bool) -> None:
    path = tmp_path / "legato.db"
    if is_old:
        path.write_bytes(lzma.decompress(EARLIER.read_bytes()))
    else:
        put_empty_store(path)
    kept, alone = (rehearse(path, SystemClock(), keeps_copy=each) for each in (True, False))
    assert kept.bytes == path.stat().st_size
    assert kept.needed_bytes - alone.needed_bytes == (kept.bytes if is_old else 0)
    assert alone.needed_bytes >= 0
    assert (kept.version == kept.known) is not is_old
