"""What `legato upgrade --rehearse` says of a start."""

from __future__ import annotations

from gateway.cli.backup import is_fit, rehearsal_text
from gateway.runtime.structs import replace
from gateway.store.sqlite.rehearsal import Rehearsal

FOUND = Rehearsal(
    version=3,
    known=5,
    seconds=1.25,
    bytes=2_000_000,
    needed_bytes=3_000_000,
    free_bytes=3_000_000,
    rows={"messages": 1_000, "turns": 2},
    unindexed=7,
)


def test_a_rehearsal_that_went_well() -> None:
    assert is_fit(FOUND)
    assert rehearsal_text(FOUND).splitlines() == [
        "The next start would update the store from version 3 to 5, in 1.2 seconds.",
        "The store takes 2.0 MB. The update needs 3.0 MB more, and the disk has 3.0 MB free.",
        "Then Legato will rebuild the search index for 7 messages.",
        "All 1,002 rows of the store are in the updated copy.",
    ]
    assert "will not change it" in rehearsal_text(replace(FOUND, version=5, unindexed=0))


def test_what_would_go_wrong_is_said() -> None:
    small = replace(FOUND, needed_bytes=3_000_001)
    assert not is_fit(small)
    assert rehearsal_text(small).endswith("THE DISK IS TOO SMALL. Make room first.")
