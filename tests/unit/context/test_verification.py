"""The answers of a summariser that are refused, and the repairs of those that are taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context import facts
from gateway.context.dating import Dating, Days
from gateway.context.ledger import LEDGER, ledger
from gateway.context.listing import HEADING as LIST_HEADING
from gateway.context.statements import Outdated
from gateway.context.verification import Lists, completed, held, notes_in, withheld, without, without_lists
from gateway.domain.message import Message, assistant, note_of, text_of, user
from gateway.runtime.errors import ProviderUnavailable, SummaryRefused
from gateway.runtime.redaction import MARK, Redactor
from tests.support.transcripts import (
    COUNTER,
    Extractive,
    Failing,
    Scripted,
    call,
    compressor,
    conversation,
    stored,
    summaries,
    tokens,
)
from tests.unit.runtime.test_redaction import PARTLY, SAMPLES, pem

UNDATED = Dating([], Days(0.0))
NOTES = "## Active Task\nRepair the import.\n## Goal\nAll is well."


def _notes(answer: str) -> str:
    return notes_in(answer, limit=500, room=400, counter=COUNTER)


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot summarise this conversation.",
        "As an AI, I must decline.",
        "抱歉，我无法总结这段对话。",
        "К сожалению, я не могу этого сделать.",
        "Es tut mir leid, das geht nicht.",
        "क्षमा करें, यह संभव नहीं है।",
    ],
)
def test_a_refusal_is_no_summary(answer: str) -> None:
    with pytest.raises(SummaryRefused, match="refused"):
        _notes(answer)


def test_notes_about_a_refusal_are_notes() -> None:
    text = "## Blocked\nI'm sorry, but I can't help with that: said by the other bot."
    assert _notes(text) == text
    assert _notes("Sorrel soup was cooked.") == "Sorrel soup was cooked."


@pytest.mark.parametrize(
    "answer",
    [
        f"{NOTES}\n## Relev",
        f"{NOTES}\n## Completed Actions\n1. Read a\n2.",
        f"{NOTES}\n## Relevant Files\n- a.py\n- ",
        f"{NOTES}\n## Active State\n```\nhalf a block",
        "<think>The person wants",
    ],
)
def test_what_breaks_off_is_refused(answer: str) -> None:
    with pytest.raises(SummaryRefused, match="cut off"):
        _notes(answer)


def test_a_last_section_that_says_nothing_is_left_out() -> None:
    assert _notes(f"{NOTES}\n## Critical Context\n") == NOTES
    assert _notes("## Active Task\n```\nwhole\n```") == "## Active Task\n```\nwhole\n```"


def _completed(notes: str, middle: list[Message], earlier: list[str] | None = None, **limits: Any) -> str:
    known = ledger(middle, dict.fromkeys(earlier or [], 3.0))
    usual = {
        "room": 2_000,
        "counter": COUNTER,
        "previous": "",
        "lists": Lists("", ""),
        "gone": Outdated(),
        "dating": UNDATED,
    }
    return completed(notes, known, Redactor(), **{**usual, **limits})


def test_what_a_summary_dropped_is_appended_letter_for_letter() -> None:
    middle: list[Message] = [
        {"role": "user", "content": "Fix src/a.py and JIRA-77 by 2026-12-01."},
        {"role": "assistant", "content": None, "tool_calls": [call("c", path="src/deep/b.py")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": "c", "content": "exit code 3 in 512 MB"},
    ]
    whole = _completed("## Goal\nJIRA-77 is done.", middle)
    assert whole.startswith("## Goal\nJIRA-77 is done.\n\n" + LIST_HEADING)
    listed = [line.partition(" · ")[0] for line in whole.partition(LIST_HEADING)[2].split("\n- ")[1:]]
    assert listed == ["src/a.py", "2026-12-01", "exit code 3", "512 MB", "src/deep/b.py"]
    # What was only passed to a tool is listed this once.
    assert list(held(whole, ledger(middle))) == [value for value in ledger(middle) if value != "src/deep/b.py"]


def test_a_value_that_ends_a_sentence_of_a_list_is_held() -> None:
    told: list[Message] = [{"role": "user", "content": "The spare key tag says R-2209-B."}]
    whole = _completed("## Goal\nx", [], lists=Lists("", f"{facts.HEADING}\n- The spare key tag says R-2209-B."))
    assert list(held(whole, ledger(told))) == ["R-2209-B"]


def test_a_sentence_of_the_list_of_instructions_is_not_said_twice() -> None:
    standing = "## Standing Instructions\nHold for good.\n- Never deploy on a Friday.\n- Answer in German."
    ruled = "## Constraints & Preferences\n- Never deploy on a Friday.\n"
    whole = _completed(f"## Goal\nx\n\n{ruled}\n## Blocked\nno", [], lists=Lists(standing, ""))
    assert whole == f"## Goal\nx\n\n## Blocked\nno\n\n{standing}"
    more = _completed(f"{ruled}- Prefers tea.", [], lists=Lists(standing, ""))
    assert more == f"## Constraints & Preferences\n- Prefers tea.\n\n{standing}"
    assert _completed(f"## Goal\nx\n{ruled.strip()}", [], lists=Lists(standing, "")) == f"## Goal\nx\n\n{standing}"
    assert _completed(ruled, []) == ruled
    dated = f"{facts.HEADING}\n- We own a boat. (3 May)"
    assert _completed("## Goal\nx\n- We own a boat. (2 May)", [], lists=Lists("", dated)) == f"## Goal\nx\n\n{dated}"


def test_nothing_is_appended_to_notes_that_hold_everything() -> None:
    assert _completed("src/a.py is done", [{"role": "user", "content": "src/a.py"}]) == "src/a.py is done"


def test_what_was_said_of_an_identifier_stands_beside_it() -> None:
    middle: list[Message] = [
        {"role": "user", "content": "Hello. The export folder is /srv/out-7.csv since May. Bye."},
        {"role": "assistant", "content": "青鸟的错误码是 E9508。"},
    ]
    whole = _completed("## Goal\nx", middle, ["/srv/old-1.csv"], previous="- /srv/old-1.csv · It was at … once.")
    assert set(whole.partition(f"{LIST_HEADING}\n")[2].splitlines()) == {
        "- /srv/out-7.csv · The export folder is … since May.",
        "- E9508 · 青鸟的错误码是 …。",
        "- /srv/old-1.csv · It was at … once.",
    }


def test_the_sentence_beside_an_identifier_says_no_outdated_value() -> None:
    middle: list[Message] = [
        {"role": "user", "content": "The hotel adds up to $410 and $7715 for both."},
        {"role": "user", "content": "After the change the flight went from $410 to $880."},
    ]
    known = {value: entry for value, entry in ledger(middle).items() if value != "$410"}
    gone = Outdated(present={"$410": "$880"})
    whole = completed(
        "## Goal\nx",
        known,
        Redactor(),
        room=2_000,
        counter=COUNTER,
        previous="",
        lists=Lists("", ""),
        gone=gone,
        dating=UNDATED,
    )
    assert whole.partition(f"{LIST_HEADING}\n")[2].splitlines() == [
        "- $880 · … change the flight went from $410 to ….",
        "- $7715",
    ]


def test_a_list_that_was_copied_gives_way_to_the_new_one() -> None:
    copied = f"## Goal\nx\n\n{LIST_HEADING}\n- old/one.py\n- old/two.py · Look at …\n\n## Blocked\nno"
    assert without_lists(copied) == "## Goal\nx\n\n## Blocked\nno"
    twice = f"{LIST_HEADING}\n- one/1.py\n{LIST_HEADING}\n- two/2.py\n\n\n{LIST_HEADING}\n- three/3.py"
    assert without_lists(f"\n\nx\n{twice}") == "x"
    whole = _completed(copied, [{"role": "user", "content": "new/three.py"}], ["old/two.py"])
    assert whole.count(LIST_HEADING) == 1
    assert whole.endswith("- new/three.py old/two.py")


def test_bare_values_share_a_line_pass_after_pass() -> None:
    whole = _completed("## Goal\nx", [user("\n".join(["QX-1001", "ZK-2002", "LP-3003", "512 MB"]))])
    assert whole.endswith("- 512 MB | QX-1001 ZK-2002 LP-3003")
    later: Message = {"role": "tool", "tool_call_id": "c", "content": "TR-9009"}
    again = _completed("## Goal\nZK-2002 is done", [later], ["QX-1001", "ZK-2002", "LP-3003", "512 MB"], previous=whole)
    (line,) = again.partition(f"{LIST_HEADING}\n")[2].splitlines()
    assert line.startswith("- 512 MB | ")
    assert set(line.rpartition(" | ")[2].split()) == {"QX-1001", "LP-3003", "TR-9009"}


def test_a_line_that_says_an_outdated_value_says_which_one_holds_now() -> None:
    middle: list[Message] = [user("After the change the lamp is $8511 instead of $8654, not A-77.")]
    notes = "## Critical Context\n- The lamp was charged at $8654.\n- lamp: $8654, now $8511\n- Not A-77, nor $86541."
    whole = _completed(notes, middle, gone=Outdated(present={"$8654": "$8511", "A-77": ""}))
    assert whole.splitlines()[1:4] == [
        "- The lamp was charged at $8654. (no longer $8654, now $8511)",
        "- lamp: $8654, now $8511",
        "- Not A-77, nor $86541. (no longer A-77)",
    ]
    assert _completed(notes, middle) == notes


def test_a_value_that_may_be_of_a_credential_is_not_told_as_the_present_one() -> None:
    middle: list[Message] = [user("The password: hunter2-99-abc, it was changed from hunter1-98-abc.")]
    whole = _completed(
        "## Goal\nIt was hunter1-98-abc.", middle, gone=Outdated(present={"hunter1-98-abc": "hunter2-99-abc"})
    )
    assert "hunter2-99-abc" not in whole


def test_as_many_are_listed_as_there_is_room_for() -> None:
    middle: list[Message] = [user(" ".join(f"/srv/{n}-{k}.csv" for k in range(30))) for n in range(10)]
    notes = "## Goal\nx"
    sizes = [_completed(notes, middle, room=room).count("/srv/") for room in (200, 800, 4_000)]
    assert sizes[0] < sizes[1] < sizes[2] == LEDGER


@pytest.mark.parametrize("room", [10, 30, 60, 100])
def test_the_list_keeps_to_its_room(room: int) -> None:
    middle: list[Message] = [{"role": "user", "content": " ".join(f"src/file_{n}.py" for n in range(30))}]
    notes = "## Goal\nx"
    whole = _completed(notes, middle, room=room)
    assert whole.startswith(notes)
    assert COUNTER.text(whole) <= max(room, COUNTER.text(notes))


# Redaction comes last, and what is left of a credential is no identifier either.


def _leaks(secret: str, text: str) -> list[str]:
    pieces = (secret[start : start + 10] for start in range(max(1, len(secret) - 9)))
    return [piece for piece in pieces if piece in text]


KINDS: dict[str, tuple[str, str]] = {
    **{name: (f"use {secret} for host-7/db", secret) for name, secret in SAMPLES.items()},
    **{name: (f"{before}{secret}{after}", secret) for name, (before, secret, after) in PARTLY.items()},
    "private key": (f"here:\n{pem()}\nthanks", pem().partition("-----\n")[2].partition("\n-----")[0]),
    "private key, long": ("\n".join([pem()] * 3), pem().partition("-----\n")[2].partition("\n-----")[0]),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_no_credential_comes_back_with_the_identifiers(kind: str) -> None:
    """Wherever it was said: by the user, in a call, in its result."""
    text, secret = KINDS[kind]
    messages = conversation(20)
    messages[41]["tool_calls"] = [call("c8a", "run", command=text), call("c8b", path="p8")]  # type: ignore[list-item]
    for place in (40, 42):
        messages[place] = {**messages[place], "content": text}
    messages = stored(messages)
    for model in (Extractive(), Failing(ProviderUnavailable("down"))):
        engine = compressor(model, redact=Redactor())
        [summary] = summaries(await engine.compress(messages))
        said = f"{text_of(summary)} {note_of(summary).get('identifiers')}"
        assert _leaks(secret, said) == []
        assert note_of(summary).get("identifiers")


async def test_identifiers_survive_a_summariser_that_drops_them_all_pass_after_pass() -> None:
    engine = compressor(Scripted(*["## Goal\nSomething was done."] * 20), window=16_000)
    transcript = conversation(40)
    wanted = "src/part33.py"
    for turn in range(10):
        transcript = await engine.compress(transcript)
        [summary] = summaries(transcript)
        assert "## Goal\nSomething was done." in text_of(summary)
        assert text_of(summary).count(LIST_HEADING) < 2
        assert wanted in text_of(summary), f"after {turn + 1} passes"
        more = conversation(20)
        transcript = [*transcript, *more]
        assert tokens([summary]) < 1_600


async def test_what_stays_in_view_at_the_head_is_corrected_as_long_as_it_stands_there() -> None:
    engine = compressor(Scripted(*["## Goal\nSomething was done."] * 60), window=16_000)
    head = [user("The cache switch of Yarrow is fast_yarrow_380."), assistant("Noted.")]
    correction = [user("The cache switch of Yarrow is slow_yarrow_668 now."), assistant("Noted.")]
    transcript = stored([*head, *conversation(20)[:-1], *correction, *conversation(30)])
    for _ in range(12):
        transcript = await engine.compress(transcript)
        [summary] = summaries(transcript)
        assert "fast_yarrow_380" in text_of(transcript[0])
        assert "- The cache switch of Yarrow is slow_yarrow_668 now." in text_of(summary).splitlines()
        pasted = "\n".join(f"look at logs/{transcript.index(summary)}/{n}/day_{n}.txt, please" for n in range(3))
        transcript = [*transcript, *conversation(25)[:-1], *stored([user(pasted)]), *conversation(5)]


async def test_the_fallback_has_the_identifiers_too_and_keeps_to_its_size() -> None:
    engine = compressor(window=200_000)
    messages = conversation(300)
    result = await engine.compress(messages, force=True)
    [summary] = summaries(result)
    assert note_of(summary).get("fallback")
    notes = text_of(summary).partition("=== notes ===\n")[2].partition("\n===")[0]
    assert len(without_lists(notes)) <= 8_000
    assert len(note_of(summary)["identifiers"]) >= 30  # of 48; what was only passed to a tool is not kept on


# Words that redaction takes out of the conversation are taken out of the notes about it


REDACT = Redactor(["configured-one"])


def test_a_password_that_only_its_place_gives_away_is_known_by_itself() -> None:
    messages: list[Message] = [
        user("db password: tulip-meadow-77\nand that is all"),
        {"role": "assistant", "content": None, "tool_calls": [call("k", password="maple-street-12")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": "k", "content": 'secret="first-of-two" and secret="other-of-two"'},
        user("configured-one"),
    ]
    found = withheld(messages, REDACT)
    assert set(found) == {"tulip-meadow-77", "maple-street-12", "first-of-two", "other-of-two", "configured-one"}
    notes = without("Logs in with tulip-meadow-77, then maple-street-12.", found)
    assert notes == f"Logs in with {MARK}, then {MARK}."


def test_where_there_is_nothing_to_redact_nothing_is_withheld() -> None:
    assert withheld([user("hello"), user(f"a mark of before: {MARK}")], REDACT) == []


def test_what_is_as_short_as_a_word_is_left_alone() -> None:
    assert withheld([user("password: hush1")], REDACT) == []


words = st.lists(
    st.sampled_from(["a", "password: tulip-meadow-77", MARK, "configured-one", "\n", "x y z"]), max_size=12
)


@given(words)
def test_only_what_redaction_replaced_is_ever_withheld(pieces: list[str]) -> None:
    text = " ".join(pieces)
    found = withheld([user(text)], REDACT)
    assert all(secret in text for secret in found)
    if MARK not in text:
        assert set(found) <= {"tulip-meadow-77", "configured-one"}
        assert without(text, found) == REDACT(text)
