"""What the summariser of trajectories is asked."""

from __future__ import annotations

import pytest

from gateway.trajectories.prompts import task


@pytest.mark.parametrize(("tokens", "words"), [(1_000, 750), (1, 1)])
@pytest.mark.parametrize("refused", ["", "it was cut off"])
def test_a_request_says_how_long_the_notes_may_be_and_what_was_wrong(tokens: int, words: int, refused: str) -> None:
    asked = task("[user]\nHello", tokens=tokens, refused=refused)
    assert "<conversation>\n[user]\nHello\n</conversation>" in asked
    assert f"Write at most {tokens} tokens (about {words} words)." in asked
    assert (f"could not be used because {refused}." in asked) is bool(refused)
