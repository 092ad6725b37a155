"""Which backups stay: the newest of each of the last days, weeks and months that have one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.backup.generations import Keep, file_name, note_made, superfluous, thin_out

START = datetime(2026, 1, 1, 4, tzinfo=UTC)


def daily(days: int) -> list[str]:
    return [file_name((START + timedelta(days=day)).timestamp(), sealed=False) for day in range(days)]


def test_a_year_of_nights() -> None:
    names = daily(365)
    gone = superfluous(names, Keep.parse("7d,4w,6m"))
    kept = [name for name in names if name not in gone]
    assert [name[7:15] for name in kept] == [
        "20260731", "20260831", "20260930", "20261031", "20261130",  # months, the last of which is December
        "20261213", "20261220",  # Sundays; that of 27 December is a day, and the last week is this one
        "20261225", "20261226", "20261227", "20261228", "20261229", "20261230", "20261231",
    ]  # fmt: skip


def test_of_one_day_the_newest_stays() -> None:
    names = [file_name((START + timedelta(hours=hour)).timestamp(), sealed=hour % 2 == 1) for hour in range(5)]
    assert superfluous(names, Keep(d=1)) == names[:-1]


def test_what_is_no_backup_is_never_superfluous() -> None:
    others = ["notes.txt", "legato-20260101T040000Z.tar.bak", "legato-2026.tar", "../legato-20260101T040000Z.tar"]
    assert superfluous(others, Keep(d=1)) == []


@given(st.lists(st.integers(0, 5_000), unique=True), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_the_newest_always_stays_and_no_more_than_asked_for(hours: list[int], d: int, w: int, m: int) -> None:
    names = sorted(file_name((START + timedelta(hours=hour)).timestamp(), sealed=False) for hour in hours)
    gone = superfluous(names, Keep(d=d, w=w, m=m))
    kept = [name for name in names if name not in gone]
    assert len(kept) <= d + w + m
    assert not names or kept[-1] == names[-1]
    assert superfluous(kept, Keep(d=d, w=w, m=m)) == [], "once is enough"


@pytest.mark.parametrize("text", ["", "7", "d", "7x", "7d,7d", "7d;4w", "0d", "-1d", "99999d"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be days, weeks and months"):
        Keep.parse(text)


def test_only_noted_backups_of_the_same_store_are_deleted(tmp_path: Path) -> None:
    names = daily(4)
    for name in names:
        (tmp_path / name).touch()
    for name, store in zip(names, ("ours", "theirs", "ours", "ours"), strict=True):
        note_made(tmp_path, store, name)
    note_made(tmp_path, "ours", "../evil")
    assert thin_out(tmp_path, "ours", Keep(d=1)) == [names[0], names[2]]
    assert sorted(each.name for each in tmp_path.glob("legato-*")) == [names[1], names[3]]
