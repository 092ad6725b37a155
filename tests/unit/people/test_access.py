"""The rights to talk and to administer."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.adapter import Limits
from gateway.domain.chat import Source
from gateway.people.access import Access, AccessSettings
from gateway.runtime.structs import replace


def source(platform: str = "telegram", user: str = "7", chat: str = "c", **more: Any) -> Source:
    return Source(platform=platform, chat=chat, chat_type="group", user=user, **more)


def test_nobody_is_allowed_by_default() -> None:
    assert not Access().allows(source())
    assert not Access().is_admin(source())


def test_a_trusted_platform_needs_no_entry() -> None:
    access = Access(trusted={"console"})
    assert access.allows(source("console"))
    assert access.is_admin(source("console"))
    assert not access.allows(source("telegram"))


def test_a_renamed_chat_goes_by_either_name() -> None:
    for name in ("c", "d"):
        assert Access(allow={f"telegram:7@{name}"}).allows(source(renamed="d"))
        assert Access(admins={f"telegram:*@{name}"}).is_admin(source(renamed="d"))
    assert not Access(allow={"telegram:7@d"}).allows(source())


@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        ("telegram:7", True),
        ("telegram:7@c", True),
        ("telegram:*", True),
        ("telegram:*@c", True),
        ("telegram:7@*", True),
        ("telegram:*@*", True),
        ("telegram:7@other", False),
        ("telegram:*@other", False),
        ("telegram:70", False),
        ("discord:7", False),
        ("*:7", False),
        ("7", False),
        ("", False),
    ],
)
def test_entries(entry: str, allowed: bool) -> None:
    assert Access(allow={entry}).allows(source()) is allowed
    assert Access(admins={entry}).is_admin(source()) is allowed


def test_admins_of_a_platform_are_those_named_for_all_of_it() -> None:
    access = Access(admins={"p:2", "p:1", "q:3", "p:4@chat", "p:*", "p:*@*"})
    assert access.admins_on("p") == ["1", "2"]


def test_an_admin_may_talk_but_who_may_talk_is_no_admin() -> None:
    assert Access(admins={"telegram:7"}).allows(source())
    assert not Access(allow={"telegram:7"}).is_admin(source())


def test_a_name_buys_nothing() -> None:
    access = Access(allow={"telegram:7"})
    assert not access.allows(source(user="8", user_name="7"))
    assert not access.allows(source(user="7@c"))


def test_an_id_that_looks_like_an_entry_matches_nobody_else() -> None:
    access = Access(allow={"telegram:7@c"})
    assert not access.allows(source(user="7", chat="d"))
    assert not access.allows(source(user="7@c", chat="d"))
    assert Access(allow={"telegram:7@c@*"}).allows(source(user="7@c", chat="d"))
    assert not Access(allow={"telegram:8"}).allows(source(user="*"))


@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        ("telegram:*@guild-1", True),
        ("telegram:7@guild-1", True),
        ("telegram:role-5", True),
        ("telegram:role-5@guild-1", True),
        ("telegram:role-5@other", False),
        ("telegram:role-6", False),
        ("telegram:*@guild-2", False),
    ],
)
def test_a_person_goes_by_their_roles_too_and_a_chat_by_what_it_lies_in(entry: str, allowed: bool) -> None:
    assert Access(allow={entry}).allows(source(within=("parent", "guild-1"), roles=("role-4", "role-5"))) is allowed


def test_a_user_who_is_named_on_a_trusted_platform_is_not_its_operator() -> None:
    access = Access(trusted={"console"}, operators={"console": "local"}, allow={"console:ann"}, admins={"console:bob"})
    speaking = {user: source(platform="console", user=user) for user in ("local", "ann", "bob", "eve")}
    assert [user for user, who in speaking.items() if access.allows(who)] == ["local", "ann", "bob"]
    assert [user for user, who in speaking.items() if access.is_admin(who)] == ["local", "bob"]


@pytest.mark.parametrize(
    ("platform", "user", "entry", "allowed"),
    [
        ("matrix", "@ann:example.org", "matrix:@ann:example.org", True),
        ("matrix", "@ann:example.org", "matrix:@ann:example.org@room", True),
        ("matrix", "@ann:example.org", "matrix:@ann:example.org@*", True),
        ("matrix", "@ann:example.org", "matrix:@ann:example.org@other", False),
        ("matrix", "@ann:example.org", "matrix:*", True),
        ("matrix", "@ann@room", "matrix:@ann@room", False),  # this is @ann in one room
        ("mail", "ann@example.org", "mail:ann@example.org", True),
        ("mail", "ann@example.org", "mail:ann@example.org@room", True),
        ("mail", "ann@example.org", "mail:bob@example.org", False),
        ("mail", "ann@example.org@room", "mail:ann@example.org@room", False),
        ("telegram", "ann@example.org", "telegram:ann@example.org", False),
    ],
)
def test_ids_with_an_at_are_named_like_others(platform: str, user: str, entry: str, allowed: bool) -> None:
    person = Source(platform=platform, chat="room", chat_type="group", user=user)
    limits = {"mail": Limits(mail_ids=True), "matrix": Limits(), "telegram": Limits()}
    assert Access.of(AccessSettings(allow=(entry,)), limits).allows(person) is allowed
    assert Access.of(AccessSettings(admins=(entry,)), limits).is_admin(person) is allowed
    elsewhere = allowed and not entry.endswith("@room")
    assert Access.of(AccessSettings(allow=(entry,)), limits).allows(replace(person, chat="hall")) is elsewhere


def test_admins_with_an_at_in_their_id_are_found() -> None:
    access = Access(admins=("mail:a@b.c", "mail:a@b.c@room", "matrix:@a:b.c", "p:1@chat"), mail_ids={"mail"})
    assert access.admins_on("mail") == ["a@b.c"]
    assert access.admins_on("matrix") == ["@a:b.c"]
    assert access.admins_on("p") == []
