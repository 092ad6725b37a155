"""The references of a transcript to files: found out once for each message, however often it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.files.references import References, picture_part, references_in
from gateway.domain.message import Message, user
from gateway.domain.session import SessionRef

PICTURE: Message = {"role": "user", "content": [{"type": "text", "text": "look"}, picture_part("0" * 64)]}
PARTS: Message = {"role": "user", "content": [{"type": "text", "text": "only words"}]}
EMPTY: Message = {"role": "assistant", "content": None}
transcripts = st.lists(st.sampled_from([PICTURE, PARTS, EMPTY, user("words")]), max_size=12)


class Watched(list[Message]):
    """A transcript that knows how many of its messages were looked at."""

    def __init__(self, messages: Iterable[Message]) -> None:
        super().__init__(messages)
        self.looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_a_message_is_looked_at_once_however_many_turns_follow() -> None:
    references, session = References(), SessionRef(id="s", epoch=1)
    transcript = Watched([PICTURE, *(user("words") for _ in range(1_000))])
    assert references.among(session, transcript) == [0]
    transcript.looks = 0
    for turn in range(1, 6):
        transcript.append(user("more"))
        assert references.among(session, transcript) == [0]
        assert transcript.looks == turn


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2), transcripts), max_size=6))
def test_what_is_remembered_is_what_a_look_at_everything_finds(turns: list[Any]) -> None:
    references = References()
    known: dict[SessionRef, list[Message]] = {}
    for name, epoch, added in turns:
        session = SessionRef(id=name, epoch=epoch)
        transcript = known.setdefault(session, [])
        transcript += added
        assert list(references.among(session, transcript)) == references_in(transcript)


def test_a_shorter_transcript_is_looked_through_anew() -> None:
    references, session = References(), SessionRef(id="s", epoch=1)
    references.among(session, [user("words"), PICTURE])
    assert references.among(session, [PICTURE]) == [0]
