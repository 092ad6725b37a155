"""One description of sessions and rows for every store: their facts, their states, and the words for these."""

from importlib.resources import files

import pytest
from msgspec.structs import fields

from gateway.domain.chat import Button, ChatAddress, KeptFile, Outbound, OutboundState, Returns, SessionKey
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import CanonicalUsage
from gateway.store.redis.scripts import script
from gateway.store.shared.fields import COMPACTION, FILE, OUTBOUND, SESSION
from tests.support.store_kit import FULL_SESSION

KEY = SessionKey(platform="test", chat="1/2", thread="t", user="ü")
BARE = Session(id="s1", key=KEY, chat_type="direct", parent_id=None, started_at=0.0, model="m", system_prompt="")
ROW = Outbound(
    id="o1",
    key=KEY,
    to=ChatAddress(platform="test", chat="1/2", thread="t"),
    kind="question",
    text="May I?",
    session_id="s1",
    answers="e1",
    buttons=((Button(label="Yes", token="y"), Button(label="No", token="n")), (Button(label="?", token="q"),)),
    edits="o0",
    state=OutboundState.SENDING,
    platform_message_id="17",
    attempts=2,
    ambiguous=1,
    due_at=3.5,
    created_at=4.5,
    error="no",
    shown_at=14.5,
    file=KeptFile(ref="r", digest="d", name="n", mime="text/plain", size=3, at=5.5),
    returns=Returns(finish="tool_calls", calls=({"id": "c1"},), usage=CanonicalUsage(output_tokens=3)),
)
RUN = Compaction(
    at=1.5,
    parent_id="s1",
    child_id="s2",
    trigger="manual",
    messages_before=4,
    messages_after=2,
    tokens_before=40,
    tokens_after=20,
    fallback=True,
)


@pytest.mark.parametrize("session", [FULL_SESSION, BARE])
def test_a_session_is_what_its_facts_say_in_columns_and_in_a_hash(session):
    assert SESSION.of_row(list(SESSION.row(session))) == session
    assert SESSION.of_texts(SESSION.facts(session)) == session


def test_a_row_is_what_its_facts_say_in_columns_and_in_a_hash():
    assert OUTBOUND.of_row(list(OUTBOUND.row(ROW))) == ROW
    assert OUTBOUND.of_texts(OUTBOUND.facts(ROW)) == ROW
    assert isinstance(OUTBOUND.of_texts(OUTBOUND.facts(ROW)).state, OutboundState)


def test_compactions_and_files_are_what_their_facts_say():
    assert COMPACTION.of_texts(COMPACTION.facts(RUN)) == RUN
    assert FILE.of_texts(FILE.facts(ROW.file)) == ROW.file


def test_the_sample_has_every_field_so_that_none_is_forgotten():
    assert [each.name for each in fields(Session) if getattr(FULL_SESSION, each.name) == each.default] == []
    assert [each.name for each in fields(Outbound) if getattr(ROW, each.name) == each.default] == []


def test_a_field_that_was_not_stored_yet_has_its_default_and_a_needed_one_is_an_error():
    facts = SESSION.facts(FULL_SESSION)
    del facts["announced"], facts["epoch"], facts["parent_id"]
    facts["of a later release"] = "x"
    assert (SESSION.of_texts(facts).announced, SESSION.of_texts(facts).epoch) == ((), 1)
    assert SESSION.of_texts(facts).parent_id is None
    del facts["model"]
    with pytest.raises(TypeError, match="model"):
        SESSION.of_texts(facts)


def test_half_a_surrogate_pair_becomes_storable():
    facts = SESSION.facts(BARE)
    assert SESSION.fact("title", "a\ud83d") == "a?"
    assert all("\ud83d" not in str(fact) for fact in facts.values())


def test_every_script_knows_the_words_it_uses():
    folder = files("gateway.store.redis").joinpath("scripts")
    names = [each.name.removesuffix(".lua") for each in folder.iterdir() if each.name.endswith(".lua")]
    assert all(script(name).text for name in names)
