"""What Matrix's events say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from adapters.matrix import codec
from adapters.matrix.codec import Me, Room
from adapters.matrix.platform import PLATFORM, MatrixSettings
from gateway.domain.chat import Button

ME = Me("@legato:example.org", "Legato", frozenset(("help", "new")))
ANNA = "@anna:example.org"


def event(body: str, **content: Any) -> dict[str, Any]:
    text = {"msgtype": "m.text", "body": body, **content}
    return {"type": "m.room.message", "event_id": "$1", "sender": ANNA, "origin_server_ts": 5_000, "content": text}


def room(*others: str) -> Room:
    return Room(id="!r", first="!r", name="Choir", people={ME.id: "Legato", ANNA: "Anna", **dict.fromkeys(others, "")})


def read(said: dict[str, Any], *others: str, **how: Any) -> Any:
    return codec.message_inbound(said, codec.source(room(*others), ANNA, codec.thread_of(said)), ME, **how)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Legato: hi", "hi"),
        ("@legato:example.org, hi", "hi"),
        ("hi @Legato", "hi"),
        ("Legato is nice", "Legato is nice"),
        ("!new", "/new"),
        ("!important", "!important"),
    ],
)
def test_the_name_of_the_bot_is_no_part_of_the_words(said: str, text: str) -> None:
    assert read(event(said)).text == text


def test_who_is_meant() -> None:
    assert codec.is_meant(event("Legato?"), ME)
    assert not codec.is_meant(event("Legato?", **{"m.mentions": {}}), ME)
    assert codec.is_meant(event("you?", **{"m.mentions": {"user_ids": [ME.id]}}), ME)
    assert not codec.is_meant(event("Legatos"), ME)
    assert codec.is_meant(event("!help"), ME)


def test_the_fallback_of_a_reply_is_not_read_and_the_answered_words_are() -> None:
    relation = {"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}
    said = event("> <@ben:b> old\n> words\n\nnew", **relation)
    inbound = read(said, answered={**event("old words"), "sender": "@ben:b"}, answered_name="Ben")
    assert inbound.text == '[in reply to Ben: "old words"]\nnew'
    assert (inbound.own, inbound.reply_to, inbound.event_id) == ("new", "$0", f"$1/{ANNA}")


def test_two_are_alone_and_a_thread_is_shared() -> None:
    assert read(event("hi")).source.chat_type == "direct"
    assert read(event("hi"), "@ben:b").source.chat_type == "group"
    threaded = event("hi", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$t"}})
    source = read(threaded, "@ben:b").source
    assert (source.chat_type, source.thread, source.chat_name) == ("thread", "$t", "Choir")


def test_an_event_names_its_message_and_its_writer() -> None:
    new = event("* b", **{"m.new_content": {"body": "b"}, "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}})
    assert codec.event_id(new) == f"$0~$1/{ANNA}"
    assert codec.asked_by(codec.event_id(new)) == ("$0", ANNA)
    assert codec.asked_by("schedule:1") is None


def test_what_is_encrypted_is_told_where_two_are_alone() -> None:
    sealed = {**event(""), "type": "m.room.encrypted"}
    assert (read(sealed).kind, read(sealed).text) == ("unread", codec.ENCRYPTED)
    assert read(sealed, sealed=True).text == codec.KEYLESS
    assert read(sealed, "@ben:b") is None


def test_each_of_many_buttons_has_a_reaction_of_its_own() -> None:
    rows = [[Button(label=f"{number}", token=f"choose {number}")] for number in range(1, 13)]
    shown = codec.buttons(rows)
    assert [button for row in rows for button in row] == list(shown.values())
    kept = codec.tokens({codec.BUTTONS: {key: button.token for key, button in shown.items()}})
    pressed = [kept[codec.reaction_of({"content": codec.reaction("$q", key)})[1]] for key in shown]
    assert pressed == [f"choose {number}" for number in range(1, 13)]


def test_ids_of_people_and_rooms() -> None:
    good = ("@anna:example.org", "@a=2f.b:h:8448", "*@!r:example.org", "@anna:example.org@!rAnDom-v12")
    assert [each for each in good if PLATFORM.person_problem(each)] == []
    assert [each for each in ("anna", "@anna", "anna:example.org", "@a:b@c") if not PLATFORM.person_problem(each)] == []
    assert [each for each in ("!r:h", "!r", "!r:h/$thread", "@a:b", "*") if PLATFORM.place_problem(each)] == []
    assert PLATFORM.place_problem("#alias:example.org")


def test_what_others_wrote_before_a_mention_is_who_said_what() -> None:
    odd = {**event("x"), "content": 5}
    told = codec.quoted([event("it rains"), odd, event("")], room())
    (said,) = told
    assert (said.source.user_name, said.text, said.place) == ("Anna", "it rains", event("")["event_id"])
    assert codec.quoted([odd], room()) == ()


def test_encryption_without_its_library_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = MatrixSettings(enabled=True, user=ME.id, password=SecretStr("secret"), encryption=True)
    assert list(settings.contradictions()) == []
    monkeypatch.setattr("adapters.matrix.platform.find_spec", lambda name: None)
    ((where, what),) = settings.contradictions()
    assert (where, "pip install 'legato[e2e]'" in what) == (("encryption",), True)
