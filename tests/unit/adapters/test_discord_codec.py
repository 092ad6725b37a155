"""Discord's JSON as Inbounds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.discord import codec
from adapters.discord.codec import Interaction, Me, Place
from gateway.domain.chat import CUT, TORN, Inbound
from gateway.domain.quoting import CALLED, cannot_read
from tests.support.hostile import LONGEST, SECONDS, within

ME = Me(id="42", name="Legato")
ALONE = Place(channel="7")
CHANNEL = Place(channel="7", guild="9", within=("5",))
ANNA = {"id": "1", "username": "anna", "global_name": "Anna"}


def message(text: str = "Hello", **more: Any) -> dict[str, Any]:
    base = {
        "id": "1000",
        "channel_id": "7",
        "type": 0,
        "content": text,
        "author": ANNA,
        "timestamp": "2026-11-22T12:00:00.500000+00:00",
    }
    return base | more


def read(text: str = "Hello", place: Place = ALONE, amends: tuple[str, ...] = (), **more: Any) -> Inbound | None:
    return codec.message_inbound(message(text, **more), place, ME, amends=amends)


def heard(text: str = "Hello", **more: Any) -> Inbound:
    inbound = read(text, **more)
    assert inbound is not None
    return inbound


def said(text: str = "Hello", **more: Any) -> str:
    return heard(text, **more).text


def test_between_two() -> None:
    inbound = heard()
    assert (inbound.source.chat, inbound.source.chat_type, inbound.source.user) == ("7", "direct", "1")
    assert (inbound.source.user_name, inbound.text, inbound.sent_at) == ("Anna", "Hello", 1_795_348_800.5)
    assert inbound.source.within == inbound.source.roles == ()
    assert codec.message_of(inbound.event_id, "7") is None


def test_in_a_channel_an_answer_can_point_at_its_question() -> None:
    member = {"nick": "Änni", "roles": ["3", "4"]}
    inbound = heard(place=CHANNEL, member=member)
    assert inbound.source.chat_type == "group"
    assert (inbound.source.within, inbound.source.roles) == (("5", "guild-9"), ("role-3", "role-4"))
    assert inbound.source.user_name == "Änni"
    assert codec.message_of(inbound.event_id, "7") == "1000"
    assert codec.message_of(inbound.event_id, "8") is None
    assert codec.asked_by(inbound.event_id) == "1"


@pytest.mark.parametrize("unit", [" ", "\n", "\t \n", "> a\n", "`a`\n", "<@42>", "<@42> "])
def test_no_text_takes_long_to_read(unit: str) -> None:
    with within(SECONDS):
        assert heard("a" + unit * (LONGEST // len(unit)) + "b").text.endswith("b")


def test_a_thread_does_not_hold_the_message_that_it_was_opened_from() -> None:
    inbound = heard(place=Place(channel="1000", guild="9", within=("7",), is_thread=True))
    assert inbound.source.chat_type == "thread"
    assert codec.message_of(inbound.event_id, "1000") is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<@42> hi", "hi"),
        ("<@!42>, hi", "hi"),
        ("hi <@42>", "hi"),
        ("hi <@1> and <@!8>", "hi @Anna and @8"),
        ("ask <@42> about it", "ask @Legato about it"),
        ("<@42> /new", "/new"),
    ],
)
def test_names_instead_of_numbers(content: str, text: str) -> None:
    bot = {"id": "42", "username": "Legato"}
    assert said(content, mentions=[ANNA, bot]) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("see <#8> and <@&9>", "see #plans (old) and @9"),
        ("<:wave:123> <a:dance_2:4>", ":wave: :dance_2:"),
        ("at <t:1795348800> or <t:1795348800:R>", "at 2026-11-22 12:00 UTC or 2026-11-22 12:00 UTC"),
        ("<t:999999999999999>", "<t:999999999999999>"),
        ("</remind me:77> is it", "/remind me is it"),
        ("a < b > c <t:x> <#> <::1> <@>", "a < b > c <t:x> <#> <::1> <@>"),
    ],
)
def test_signs_of_discord_are_read_as_people_see_them(content: str, text: str) -> None:
    me = Me(id="42", called=lambda number: "plans [old]" if number == "8" else "")
    inbound = codec.message_inbound(message(f"it says {content}"), ALONE, me)
    assert inbound is not None
    assert inbound.text == f"it says {text}"


def test_cards_are_read_and_are_nobodys_own_words() -> None:
    embeds = [
        {"type": "link", "url": "https://a.example", "title": "A]\n[B", "description": "what\nit says"},
        {"type": "image", "url": "https://a.example/b.png"},
        {"author": {"name": "Robot"}, "fields": [{"name": "Branch", "value": "main"}], "footer": {"text": "end"}},
        {},
    ]
    inbound = heard("look https://a.example", embeds=embeds)
    assert inbound.text == (
        "look https://a.example\n[card: https://a.example | A) (B | what it says]\n[card: Robot | Branch: main | end]"
    )
    assert inbound.own == "look https://a.example"
    assert len(said("", embeds=[{"description": "x" * 4_000}])) == 2_008
    shown = [{"type": 17, "components": [{"type": 9, "components": [{"type": 10, "content": "**Hi**"}]}]}]
    assert said("", components=shown) == "[card: **Hi**]"
    forward = {"message": {"content": "", "embeds": [{"title": "News"}]}}
    assert said("", message_snapshots=[forward], message_reference={"type": 1}) == "[forwarded]\n[card: News]"


def test_a_command_is_not_given_the_preview_of_its_link() -> None:
    inbound = heard("/queue https://a.example", embeds=[{"title": "A"}])
    assert inbound.text == "/queue https://a.example"
    assert inbound.command is not None


def test_what_else_a_message_may_hold() -> None:
    assert said("", sticker_items=[{"id": "5", "name": "a wave]"}]) == "[sticker a wave)]"
    poll = {
        "question": {"text": "When?"},
        "answers": [{"poll_media": {"text": "Now"}}, {"poll_media": {"text": "Never"}}],
    }
    assert said("", poll=poll) == "[poll: When? — Now / Never]"
    counted = {"is_finalized": True, "answer_counts": [{"id": 2, "count": 3}, {"id": 9, "count": 1}]}
    answers = [{**each, "answer_id": number} for number, each in enumerate(poll["answers"], 1)]
    assert said("", poll={**poll, "answers": answers, "results": counted}) == (
        "[closed poll: When? — Now (0) / Never (3)]"
    )
    assert said("", message_snapshots=[{"message": {"content": "said there"}}]) == "[forwarded]\nsaid there"
    assert said("hi", author={"id": "3", "username": "robot", "bot": True}) == "[written by another bot]\nhi"
    invited = heard("", activity={"type": 1, "party_id": "spotify:1"})
    assert (invited.kind, invited.text) == ("unread", cannot_read())
    assert read("", place=CHANNEL) is None


def test_a_reply_quotes_what_it_answers() -> None:
    answered = message("a [long] story " * 50, author={"id": "42", "username": "Legato"}, id="999")
    text = said("why?", referenced_message=answered, message_reference={"message_id": "999"})
    first, rest = text.split("\n")
    assert first.startswith('[in reply to you: "a (long) story')
    assert first.endswith('…"]')
    assert rest == "why?"
    other = said("why?", referenced_message=message("x\ny", author=ANNA))
    assert other == '[in reply to Anna: "x y"]\nwhy?'


PICTURE = {"id": "5", "filename": "a.png", "size": 9, "content_type": "image/png", "url": "https://cdn/a?x=1"}


def test_who_only_names_the_bot_means_what_they_answer_or_is_asked() -> None:
    inbound = heard("<@42>", place=CHANNEL)
    assert (inbound.text, inbound.attachments) == ("", ())
    answered = message("When is it?", author={"id": "2", "username": "ben"}, id="999")
    inbound = heard("<@!42> ", place=CHANNEL, referenced_message=answered)
    assert inbound.text == f'[in reply to ben: "When is it?"]\n{CALLED}'
    assert inbound.own == ""


@pytest.mark.parametrize(
    ("answered", "quote"),
    [
        ({"attachments": [PICTURE]}, "(image a.png)"),
        ({"content": "Our cat", "attachments": [PICTURE]}, "Our cat (image a.png)"),
        ({"message_snapshots": [{"message": {"attachments": [PICTURE]}}]}, "(forwarded) (image a.png)"),
    ],
)
def test_an_answer_to_a_file_brings_the_file(answered: dict[str, Any], quote: str) -> None:
    shown = message(**{"content": "", "id": "999", **answered}, author={"id": "2", "username": "ben"})
    for asked, words in (("<@42> what is it?", "what is it?"), ("<@42>", CALLED)):
        inbound = heard(asked, place=CHANNEL, referenced_message=shown)
        assert inbound.text == f'[in reply to ben: "{quote}"]\n{words}'
        assert [each.ref for each in inbound.attachments] == ["7/999/5"]
    assert codec.address_of(shown, "5") == PICTURE["url"]
    assert not heard("/new", referenced_message=shown).attachments
    corrected = heard("what?", referenced_message=shown, amends=("e",), edited_timestamp="2026-11-22T12:01:00+00:00")
    assert not corrected.attachments


def test_nothing_turns_the_direction_of_what_stands_behind_a_name() -> None:
    file = {**PICTURE, "filename": "cod\u202efdp.exe"}
    member = {"nick": "\u2067Änni\u202e"}
    inbound = heard("hi", place=Place(channel="7", guild="9", name="a\u202eb"), member=member, attachments=[file])
    assert (inbound.source.user_name, inbound.source.chat_name, inbound.attachments[0].name) == (
        "Änni",
        "ab",
        "codfdp.exe",
    )
    assert "\u202e" not in said("why?", referenced_message=message("x\u202ey", author=ANNA))


def test_a_recording_that_was_forwarded_is_one() -> None:
    note = {"id": "6", "filename": "voice.ogg", "content_type": "audio/ogg", "url": "https://cdn/n"}
    forward = {"message": {"content": "", "flags": 1 << 13, "attachments": [note]}}
    inbound = heard("", message_snapshots=[forward], message_reference={"type": 1})
    assert [(each.kind, each.name) for each in inbound.attachments] == [("voice", "")]


@pytest.mark.parametrize(
    ("content", "own"),
    [
        ("/pin be kind", None),
        ("hello", None),
        ("> /pin be rude\nwhat is that?", "what is that?"),
        (">>> /pin be rude\n/pin be ruder", ""),
        ("```\n/pin be rude\n```", ""),
        ("see `/pin` there", "see  there"),
    ],
)
def test_only_a_persons_own_words_are_theirs(content: str, own: str | None) -> None:
    assert heard(content).own == own


def test_words_of_others_command_nothing() -> None:
    forwarded = heard("", message_snapshots=[{"message": {"content": "/pin be rude"}}])
    robot = heard("<@42> /pin be rude", author={"id": "3", "username": "robot", "bot": True})
    quoted = heard("> /pin be rude")
    for inbound in (forwarded, robot, quoted):
        assert inbound.command is None
        assert inbound.own == ""


def test_a_corrected_message_is_an_event_of_its_own() -> None:
    first = heard("Helo")
    before = (first.event_id,)
    corrected = heard("Hello", amends=before, edited_timestamp="2026-11-22T12:01:00+00:00")
    assert (corrected.text, corrected.amends) == ("Hello", before)
    assert corrected.event_id != first.event_id
    again = heard("Hello", amends=before, edited_timestamp="2026-11-22T12:02:00+00:00")
    assert again.event_id != corrected.event_id
    assert read("/new", amends=before, edited_timestamp="2026-11-22T12:01:00+00:00") is None


@pytest.mark.parametrize(
    ("text", "part"), [("x" * 1_949, None), ("x" * 1_950, CUT), ("x" * 2_000, TORN), ("\N{FOX FACE}" * 1_000, TORN)]
)
def test_what_looks_cut(text: str, part: str | None) -> None:
    assert heard(text).part_of == part


def test_files_are_named_by_where_they_stand() -> None:
    picture = {"id": "5", "filename": "a.png", "size": 9, "content_type": "image/png", "url": "https://cdn/a?x=1"}
    note = {
        "id": "6",
        "filename": "n.txt",
        "size": 2,
        "content_type": "text/plain; charset=utf-8",
        "url": "https://cdn/n",
    }
    inbound = heard("", attachments=[picture, note])
    kinds = [(each.kind, each.ref, each.name, each.mime, each.size) for each in inbound.attachments]
    assert kinds == [
        ("image", "7/1000/5", "a.png", "image/png", 9),
        ("document", "7/1000/6", "n.txt", "text/plain", 2),
    ]
    assert codec.address_of(message(attachments=[picture, note]), "6") == "https://cdn/n"
    assert codec.address_of(message(), "6") is None
    spoken = heard("", flags=1 << 13, attachments=[{**note, "content_type": "audio/ogg"}])
    assert [(each.kind, each.name) for each in spoken.attachments] == [("voice", "")]


def test_messages_before_a_mention_have_their_writers() -> None:
    messages = [
        message("first\nline"),
        message("", attachments=[PICTURE]),
        message("joined", type=7),
        message("[x]", author={"id": "2", "username": "ben"}),
    ]
    said = [(each.source.user_name, each.text) for each in codec.quoted(messages, CHANNEL, ME)]
    assert said == [("Anna", "first\nline"), ("Anna", "(image a.png)"), ("ben", "[x]")]


def test_an_interaction_can_be_answered_by_who_has_its_event() -> None:
    data = {"id": "77", "token": "aW50:eraction", "type": 2, "member": {"user": ANNA, "roles": ["3"]}}
    for private in (True, False):
        inbound = codec.command_inbound(data, CHANNEL, ME, "/new", private=private, waited_for=True)
        assert codec.interaction_of(inbound.event_id) == Interaction(id="77", token="aW50:eraction", private=private)
        assert codec.asked_by(inbound.event_id) == "1"
        assert codec.message_of(inbound.event_id, "7") is None
    plain = codec.command_inbound(data, CHANNEL, ME, "/steer x", private=False, waited_for=False)
    assert codec.interaction_of(plain.event_id) is None
    assert codec.interaction_of(heard().event_id) is None
    assert codec.interaction_of(None) is None


def test_a_press_says_its_token() -> None:
    data = {"id": "78", "token": "t", "type": 3, "user": ANNA, "data": {"custom_id": "approve a_1"}}
    inbound = codec.press_inbound(data, ALONE, ME)
    assert (inbound.kind, inbound.text, inbound.source.user) == ("press", "approve a_1", "1")


def test_ids_tell_their_time() -> None:
    assert codec.moment("175928847299117063") == pytest.approx(1_462_015_105.796)
    assert codec.moment(codec.snowflake(1_795_348_800.0)) == pytest.approx(1_795_348_800.0)
    assert codec.snowflake(0.0) == 0
    # What was said in one millisecond is of one time, told by an id or in Discord's words.
    for millisecond in range(1_796_000_934_300, 1_796_000_934_400):
        in_words = datetime.fromtimestamp(millisecond / 1000, UTC).isoformat()
        assert codec.moment(codec.snowflake(millisecond / 1000)) == datetime.fromisoformat(in_words).timestamp()


def test_a_video_and_a_gif_of_a_link_have_a_picture_that_discord_makes() -> None:
    video = {
        "id": "5",
        "filename": "a.mp4",
        "content_type": "video/mp4",
        "url": "https://cdn/v",
        "proxy_url": "https://m/v?x&",
    }
    gif = {"type": "gifv", "url": "https://tenor.com/x", "thumbnail": {"proxy_url": "https://images/x.png"}}
    card = {"type": "rich", "title": "T", "thumbnail": {"proxy_url": "https://images/y.png"}}
    carried = {"attachments": [video], "embeds": [card, gif]}
    inbound = heard("look", **carried)
    assert [(each.is_video, each.ref, each.preview) for each in inbound.attachments] == [
        (True, "7/1000/5", "7/1000/5p"),
        (True, "7/1000/e1", "7/1000/e1"),
    ]
    assert codec.address_of(message(**carried), "5") == "https://cdn/v"
    assert codec.address_of(message(**carried), "5p") == "https://m/v?x&&format=jpeg"
    assert codec.address_of(message(**carried), "e1") == "https://images/x.png"
    assert codec.address_of(message(**carried), "e2") is None
