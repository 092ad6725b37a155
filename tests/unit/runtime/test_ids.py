"""Ids that must outlive a process, and a release."""

from gateway.runtime.clock import lasting_id


def test_the_same_facts_have_the_same_id_in_every_release():
    assert lasting_id("o", "test/chat=1", "e1", 2) == "o_38e9cd796d08009f1f60"
    assert lasting_id("s", "e1", size=8) != lasting_id("s", "e2", size=8)
    assert len(lasting_id("s", "e1", size=8)) == len("s_") + 16


def test_half_a_surrogate_pair_can_be_a_fact():
    assert lasting_id("o", "\ud83d").startswith("o_")
