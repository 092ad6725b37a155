"""What goes into an archive comes out of it, and what is no whole archive is named."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gateway.app.backup.archive import HOME, STORE, Manifest, unpack, write
from gateway.runtime.errors import UserError

MANIFEST = Manifest(made_at="2026-01-02T03:04:05+00:00", legato="1", origin="sqlite:///legato.db", schema=1, counts={})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a file, a folder that holds only a link, an empty one, and a link that leads away."""
    home = tmp_path / "from"
    for folder in ("deep/er", "links", "empty"):
        (home / folder).mkdir(parents=True)
    (home / "deep" / "er" / "file").write_text("content")
    (home / "links" / "within").symlink_to("../deep/er/file")
    (home / "links" / "away").symlink_to("/etc/hostname")
    return home


def packed(home: Path) -> bytes:
    store, beside = home.parent / "store", home.parent / ".env"
    store.write_text("rows")
    beside.write_text("KEY=x")
    out = io.BytesIO()
    write(out, MANIFEST, store, home, [beside])
    return out.getvalue()


def test_files_links_and_empty_folders_come_out_as_they_went_in(home: Path) -> None:
    to = home.parent / "to"
    to.mkdir()
    manifest = unpack(io.BytesIO(packed(home)), to, "a.tar")
    assert (manifest.origin, manifest.made_at) == (MANIFEST.origin, MANIFEST.made_at)
    assert (to / STORE).read_text() == "rows"
    assert (to / ".env").read_text() == "KEY=x"
    assert (to / HOME / "deep/er/file").read_text() == "content"
    assert (to / HOME / "links/within").readlink() == Path("../deep/er/file")
    assert (to / HOME / "empty").is_dir()
    assert not (to / HOME / "links/away").is_symlink()


@pytest.mark.parametrize(("cut", "told"), [(-20_000, "damaged|incomplete"), (10, "damaged, or is not a Legato backup")])
def test_what_is_no_whole_archive_is_named(home: Path, cut: int, told: str) -> None:
    to = home.parent / "to"
    to.mkdir()
    with pytest.raises(UserError, match=told):
        unpack(io.BytesIO(packed(home)[:cut]), to, "a.tar")


def test_a_file_that_was_changed_on_the_way_is_named(home: Path) -> None:
    to = home.parent / "to"
    to.mkdir()
    with pytest.raises(UserError, match="home/deep/er/file differs from the original"):
        unpack(io.BytesIO(packed(home).replace(b"content", b"CONTENT")), to, "a.tar")
