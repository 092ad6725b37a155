"""The statements about identifiers, and those of them that no longer hold."""

from __future__ import annotations

import pytest

from gateway.context.statements import Outdated, around, context_in, marked, outdated
from gateway.domain.message import Message, assistant, user

TALK: list[Message] = [
    user("The Kestrel export folder is /srv/kestrel/a-1.csv."),
    assistant("The Juniper export folder is /srv/juniper/b-2.csv."),
    user("Note the Kestrel mail queue: retry_kestrel_5."),
    user("银杏的夜间构建是 #36177。"),
    user("Маяк, время ожидания: 2173 мс."),
    user("कमल की अपलोड सीमा 4769 MB है।"),
]


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("The Kestrel export folder is /srv/kestrel/z-9.csv now.", {"/srv/kestrel/a-1.csv"}),
        ("Correction: no longer /srv/juniper/b-2.csv, it is /srv/juniper/c-3.csv.", {"/srv/juniper/b-2.csv"}),
        ("We changed it from retry_kestrel_5 to retry_kestrel_6.", {"retry_kestrel_5"}),
        ("银杏的夜间构建现在是 #40001。", {"#36177"}),
        (
            "(That was host n-1.example.net, by the way.) The Kestrel mail queue is retry_kestrel_7 now.",
            {"retry_kestrel_5"},
        ),
        ("更正：不再是 #36177，而是 #40001。", {"#36177"}),
        ("Маяк, время ожидания теперь: 999 мс.", {"2173 мс"}),
        ("कमल की अपलोड सीमा अब 5000 MB है।", {"4769 MB"}),
        ("The Larch export folder is /srv/larch/a-1.csv now.", set()),  # of something else
        ("The Kestrel backup folder is /srv/kestrel/z-9.csv now.", set()),
        ("The Kestrel export folder is /srv/kestrel/z-9.csv.", set()),  # nothing says that it changed
        ("Now compare /srv/kestrel/a-1.csv with /srv/kestrel/z-9.csv.", set()),
        ("I am done now.", set()),
    ],
)
def test_what_another_value_took_the_place_of_is_outdated(said: str, gone: set[str]) -> None:
    assert outdated([*TALK, user(said)], "").values == gone


@pytest.mark.parametrize(
    ("said", "former", "present"),
    [
        ("After the change the camera is $1830 instead of $8230.", "$8230", "$1830"),
        ("We upgraded Postgres from 2.41.50 to 9.45.79 last night.", "2.41.50", "9.45.79"),
        ("Nach der Änderung kostet der Mixer 5112 € statt 4409 €.", "4409 €", "5112 €"),
        ("改动之后水壶从9411元变成4950元。", "9411元", "4950元"),
        ("Order #W1234567 is $55 now instead of $7012.", "$7012", "$55"),
    ],
)
def test_what_holds_now_is_known_for_what_is_outdated(said: str, former: str, present: str) -> None:
    gone = outdated([user(said)], "")
    assert gone.values == {former}
    assert gone.present == {former: present}


@pytest.mark.parametrize(
    "said",
    [
        "Die Kaution ist jetzt am 5. März fällig, nicht am 1. März.",
        "Korrektur: der Umzugstag ist nicht mehr der 1. März, sondern der 5. März.",
    ],
)
def test_a_small_word_may_stand_before_what_was_replaced(said: str) -> None:
    assert outdated([user(said)], "").present == {"1. März": "5. März"}


def test_of_several_changes_the_last_value_holds_now() -> None:
    said = ["The lamp is $7012 instead of $8123.", "The lamp is $6005 instead of $7012."]
    assert outdated([user(each) for each in said], "").present == {"$8123": "$6005", "$7012": "$6005"}


def test_what_is_said_of_one_thing_outdates_nothing_of_another_however_often_that_is_named() -> None:
    things = ("settings file", "release ticket", "mail queue", "upload limit")
    talk = [user(f"The Gannet {thing} is GAN-{n}-{n}{n}77.") for n, thing in enumerate(things)]
    talk += [
        user("The Gannet hotfix branch is enable_gannet_498."),
        user("The Ember hotfix branch is enable_ember_371."),
    ]
    assert outdated([*talk, user("The Ember hotfix branch is use_ember_535 now.")], "").values == {"enable_ember_371"}


def test_a_full_stop_is_no_word() -> None:
    talk = [
        user("कमल अपलोड त्रुटि: ERR_189।"),
        *(user(f"वज्र मेल कतार {n} है।") for n in range(3)),
        user("कमल अपलोड त्रुटि अब E4918 है।"),
    ]
    assert outdated(talk, "").values == {"ERR_189"}


@pytest.mark.parametrize(
    ("said", "then", "gone"),
    [
        ("The booking JHBEJE is for 3 May.", "We changed the booking JHBEJE to 14 June.", {"3 May"}),
        ("Server web-9965 runs nginx 1.22.1.", "Server web-9965 was upgraded to nginx 1.26.2.", {"1.22.1"}),
        ("My flight GBFBAK leaves at 09:15.", "My flight GBFBAK was delayed, it leaves at 13:05.", {"09:15"}),
        ("The booking DFBDKD is for 9 May.", "We changed the booking JHBEJE to 9 May.", set()),
        ("Server web-9965 runs nginx 1.22.1.", "Server web-8000 was upgraded to nginx 1.22.1.", set()),
        ("Order #W1234567 was placed on 3 May.", "Order #W1234567 now costs 40 euros.", set()),
        ("Flight LH456 leaves on 3 May.", "The return of flight LH456 was changed to 10 May.", set()),
        ("Order A-1177 costs 300 EUR.", "Shipping of order A-1177 was changed to 20 EUR.", set()),
        ("The booking JHBEJE is for 3 May.", "The payment of the booking JHBEJE was moved to 5 June.", set()),
        ("The server db-3 uses 10.0.0.4.", "The replica of server db-3 was changed to 10.0.0.5.", set()),
    ],
)
def test_a_thing_that_has_a_number_of_its_own_changes_its_values(said: str, then: str, gone: set[str]) -> None:
    assert outdated([user(said), user(then)], "").values == gone


def test_what_comes_back_holds_again() -> None:
    talk = [
        *TALK,
        user("The Kestrel export folder is /srv/kestrel/z-9.csv now."),
        user("The Kestrel export folder is /srv/kestrel/a-1.csv again now."),
    ]
    assert outdated(talk, "").values == {"/srv/kestrel/z-9.csv"}


def test_what_only_the_notes_said_can_be_outdated_too() -> None:
    notes = "## Goal\n- Ship it.\n- The Marlin port is 80801.\n\n## Identifiers\n- OLD-77 · The Marlin release is …."
    talk = [
        *TALK,
        user("The Marlin port is 94431 now, the release is NEW-1."),
        user("The Marlin release is NEW-1 now."),
    ]
    assert outdated(talk, notes).values == {"80801", "OLD-77"}


@pytest.mark.parametrize("polite", ["", "请记一下，", "注意，"])
def test_words_of_courtesy_tell_nothing_of_what_a_statement_is_of(polite: str) -> None:
    talk = [
        user(f"{polite}长庚 登录失败：E8272。"),
        user("银杏 付款拒绝：E6641。"),
        user("长庚 登录失败 现在是 E5079。"),
    ]
    assert outdated(talk, "").values == {"E8272"}


def test_what_corrects_the_head_is_known_as_long_as_the_head_stands() -> None:
    head = [user("The Yarrow cache switch is fast_yarrow_380."), assistant("Noted.")]
    middle = [user("Correction: the Yarrow cache switch is no longer fast_yarrow_380, it is retry_yarrow_668.")]
    first = outdated(middle, "", head)
    assert first.corrections == {"retry_yarrow_668"}
    assert "fast_yarrow_380" in first.values
    # Another one takes the place of the correction, not only of what the head says.
    notes = "## Identifiers\n- retry_yarrow_668 · Correction: the Yarrow cache switch is …."
    second = outdated([user("The Yarrow cache switch is slow_yarrow_1 now.")], notes, head)
    assert second.corrections == {"slow_yarrow_1"}
    assert second.values >= {"retry_yarrow_668"}
    assert outdated(middle, "").corrections == set()


def test_notes_and_tools_change_nothing() -> None:
    said: list[Message] = [*TALK, {"role": "tool", "tool_call_id": "c", "content": "now instead of #36177: #40001"}]
    assert outdated(said, "- The Kestrel export folder is /srv/kestrel/z-9.csv now.") == Outdated()


def test_a_sentence_is_quoted_with_a_gap_and_not_at_length() -> None:
    assert around("x/1.py", "First. Fix x/1.py today! Then rest.") == "Fix … today!"
    assert around("8000元", "场地费是38000元，定金8000元。") == "场地费是38000元，定金…。"
    assert around("x/1.py", "x/1.py") == ""
    assert around("x/1.py", "x/1.py " + "and so on " * 40) == ""
    quoted = around("x/1.py", "words that go on " * 7 + "x/1.py" + " and more of them" * 7)
    assert quoted.startswith("… ")
    assert quoted.endswith(" …")
    assert len(quoted) < 100


def test_what_notes_say_of_an_identifier_is_found_in_any_of_their_lines() -> None:
    notes = "## Goal\n- Move A-100 to the new host.\n\n## Identifiers\n- B-200 · The ticket is ….\n- C-300"
    said = {value: context_in(notes, value) for value in ("A-100", "B-200", "C-300", "D-400")}
    assert said == {"A-100": "Move … to the new host.", "B-200": "The ticket is ….", "C-300": "", "D-400": ""}


def test_what_was_pasted_at_length_is_read_at_its_ends() -> None:
    change = "The Kestrel export folder is /srv/kestrel/z-9.csv now."
    bulk = "and so on " * 5_000
    assert outdated([*TALK, user(f"{bulk}\n{change}")], "").values == {"/srv/kestrel/a-1.csv"}
    assert outdated([*TALK, user(f"See /srv/kestrel/z-9.csv. {bulk}\n{change}\n{bulk}")], "") == Outdated()


def test_only_so_many_statements_are_compared_with_each_other() -> None:
    rows = [user("\n".join(f"Row {row} of {page} is now id-{page}-{row}." for row in range(30))) for page in range(40)]
    change = user("The Kestrel export folder is /srv/kestrel/z-9.csv now.")
    assert "/srv/kestrel/a-1.csv" in outdated([*TALK, change, *rows[:5]], "").values
    assert "/srv/kestrel/a-1.csv" not in outdated([*TALK, change, *rows], "").values


def test_a_line_of_notes_is_looked_at_once_however_often_it_nearly_holds_an_identifier() -> None:
    assert context_in("- " + "7712" * 50_000 + "\n- 77 · The level is ….", "77") == "The level is …."


@pytest.mark.parametrize(
    "said",
    [
        "Should the Kestrel export folder be /srv/kestrel/z-9.csv now?",  # asks
        "The Kestrel export folder is not to be /srv/kestrel/z-9.csv now.",  # rules out
        "We no longer use /srv/kestrel/z-9.csv for the Kestrel export folder.",
        "Now copy from /srv/kestrel/a-1.csv to /srv/kestrel/z-9.csv.",  # both stay what they are
        "现在从 `#36177` 复制到 `#40001`。",
        "银杏的夜间构建不要再用 #40001，现在还没好。",
    ],
)
def test_a_question_a_ban_and_a_copy_change_nothing(said: str) -> None:
    assert outdated([*TALK, user(said)], "") == Outdated()


def test_what_a_quoted_name_was_changed_from_is_outdated() -> None:
    for said in ("We renamed it from `alpha_x` to `beta_x`.", "It is no longer `alpha_x` but `beta_x`."):
        assert outdated([user("Look at `alpha_x`."), user(said)], "").values == {"alpha_x"}


def test_what_is_said_again_holds_again() -> None:
    first, then = (
        user("The Kestrel export folder is /srv/k/a-1.csv."),
        user("The Kestrel export folder is /srv/k/z-9 now."),
    )
    assert outdated([first, then], "").values == {"/srv/k/a-1.csv"}
    assert outdated([first, then, first], "").values == set()
    asked = user("Was the Kestrel export folder /srv/k/a-1.csv?")
    assert outdated([first, then, asked], "").values == {"/srv/k/a-1.csv"}
    again = user("The Kestrel export folder is /srv/k/a-1.csv again, not /srv/k/z-9 any more.")
    assert outdated([first, then, again], "").values == {"/srv/k/z-9"}
    for other in (
        user("The Kestrel export folder was /srv/k/a-1.csv."),
        assistant("The Kestrel folder is /srv/k/a-1.csv."),
    ):
        assert outdated([first, then, other], "").values == {"/srv/k/a-1.csv"}
    # Nor does what took its place misguide any more where the head shows the first.
    assert outdated([then], "", [first]).corrections == {"/srv/k/z-9"}
    assert outdated([then, first], "", [first]).corrections == set()
    head = user("The Kestrel export folder is /srv/k/0-0.csv.")
    assert outdated([first, then, first], "", [head]).corrections == {"/srv/k/a-1.csv"}


def test_a_value_is_outdated_beside_another_one_that_stays() -> None:
    first = user("The Kestrel mail server at mx.example.net has port 8443.")
    then = user("The Kestrel mail server at mx.example.net has port 9443 now.")
    assert outdated([first, then], "").values == {"port 8443"}
    more = user("The Kestrel mail server at mx.example.net and mx.example.org has port 8443 now.")
    assert outdated([first, more], "").values == set()


@pytest.mark.parametrize(
    ("often", "first", "then"),
    [
        ("Nomad is slow.", "Nomad's config went to {} yesterday.", "Traefik's config moved to {} yesterday."),
        (
            "Nomad is slow.",
            "I moved the config of Nomad to {} yesterday.",
            "I moved the config of redis to {} yesterday.",
        ),
        ("青鸟很慢。", "青鸟的配置文件是{}。", "银杏的配置文件现在是{}。"),
    ],
)
def test_a_thing_that_is_often_named_is_still_another_thing(often: str, first: str, then: str) -> None:
    old, new = "/etc/one/site-6562.conf", "/etc/two/site-4995.conf"
    talk = [user(f"{often[:-1]} {number}-X77{number}.") for number in range(12)]
    assert outdated([*talk, user(first.format(old)), user(then.format(new))], "") == Outdated()


def test_a_verb_may_change_where_a_value_does() -> None:
    talk = [user("青鸟的备份配置文件放在/etc/a-1.conf。"), user("青鸟的备份配置文件现在挪到/etc/b-2.conf。")]
    assert outdated(talk, "").values == {"/etc/a-1.conf"}


def test_a_mark_stands_once_with_the_newest_value() -> None:
    line = "- The lamp was charged at $8123."
    first = marked(line, {"$8123": "$7012"})
    assert first == f"{line} (no longer $8123, now $7012)"
    assert marked(first, {"$7012": "$6005"}) == f"{line} (no longer $8123, now $6005)"
    assert marked(first, {"$8123": "$6005", "$7012": "$6005"}) == f"{line} (no longer $8123, now $6005)"
    assert marked(first, {"$7012": ""}) == f"{line} (no longer $8123)"
    assert marked(first, {"$7012": "$8123"}) == line  # what it was first
    assert marked(first, {"A-77": "B-88"}) == first
    change = "- The lamp is $7012 instead of $8123."
    assert marked(change, {"$8123": "$6005", "$7012": "$6005"}) == f"{change} (no longer $7012, now $6005)"


def test_a_mark_is_no_sentence_around_an_identifier() -> None:
    notes = "## Goal\n- The lamp was charged at $8123. (no longer $8123, now $7012)"
    assert context_in(notes, "$8123") == "The lamp was charged at …."
    assert context_in(notes, "$7012") == ""


def test_a_value_that_another_thing_has_too_is_marked_where_it_changed() -> None:
    talk = [
        user("I would like to fly to Leeds on May 17, just one way."),
        user("My sister gets married on May 17."),
        user("I have to change Leeds: not May 17 any more, it is October 4 now."),
    ]
    gone = outdated(talk, "")
    assert set(gone.present) == {"May 17"}
    assert gone.values == frozenset()  # the wedding's day stays in the list
    flight, wedding, bare = "- Flight to Leeds: May 17", "- Sister's wedding: May 17", "- May 17"
    assert marked("\n".join([flight, wedding, bare]), gone.present, gone.about).splitlines() == [
        f"{flight} (no longer May 17, now October 4)",
        wedding,
        f"{bare} (no longer May 17, now October 4)",
    ]
    talk = [user("去Lyon的机票共6788元。"), user("改动之后Lyon从6788元变成6250元。")]
    price = outdated(talk, "")
    assert (
        marked("- 6506元 + 6788元.", price.present, price.about) == "- 6506元 + 6788元. (no longer 6788元, now 6250元)"
    )
    unsaid = outdated([user("We moved it from May 17 to October 4.")], "")  # of what, nobody knows
    assert marked(flight, unsaid.present, unsaid.about) == f"{flight} (no longer May 17, now October 4)"
