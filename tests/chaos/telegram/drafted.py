"""The promises about drafts: they stand where they may, say the right thing, and their messages follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.chaos.bots.model import TOKEN
from tests.chaos.bots.stalls import stood_still
from tests.chaos.bots.stores import Row
from tests.chaos.telegram.doubts import place_of, read_in, shown_as
from tests.chaos.telegram.evidence import Evidence, Heard
from tests.chaos.telegram.silence import ON_ITS_WAY
from tests.emulators.journal import Call

CROSSED: Final = "drafts that crossed their message on its way"


def drafts_are_no_more_than_that(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """None in a group, none unless they were chosen, no words of another conversation, and none after its message,
    below which it would stand for half a minute."""
    asked = {heard.said.token: heard for heard in evidence.street.heard if heard.said.token}
    for draft in evidence.street.telegram.journal.of("sendMessageDraft"):
        if not evidence.schedule.drafts:
            yield f"{draft.chat_id}: was shown a draft that nobody chose"
        if draft.chat_id.startswith("-"):
            yield f"{draft.chat_id}: is a group and was shown a draft"
        counts["drafts"] += draft.done
        words = TOKEN.findall(read_in(draft))
        heard = asked.get(words[0]) if words else None
        if heard is None or heard.where[0] != draft.chat_id:
            yield f"{draft.chat_id}: words of another conversation in a draft: {read_in(draft)[:80]}"
            continue
        message = _message_of(heard, evidence)
        if message is not None and message.number < draft.number:
            if draft.at - message.at - stood_still(evidence.stalls, message.at, draft.at) > ON_ITS_WAY:
                yield f"{draft.chat_id}: was shown a draft after its message: {read_in(draft)[:80]}"
            counts[CROSSED] += 1


def _message_of(heard: Heard, evidence: Evidence) -> Call | None:
    """The call by which the first part of an answer was sent; the other parts of answers may be alike."""
    texts = {shown_as(row) for row in evidence.rows if _answers(row, heard) and heard.said.token in row.text}
    sends = evidence.street.telegram.journal.of("sendMessage", heard.where[0])
    return next((call for call in sends if call.done and read_in(call) in texts), None)


def _answers(row: Row, heard: Heard) -> bool:
    return row.kind == "reply" and place_of(row.answers) == heard.place
