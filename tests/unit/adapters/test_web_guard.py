"""Who may ask for a page: names of the page, logins that end, and attempts that are refused unread."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict
from pydantic import SecretStr

from adapters.web.guard import DAYS, Guard, Lockout, Login
from adapters.web.platform import WebPerson, WebSettings, person_problem
from gateway.runtime.errors import StoreUnavailable
from tests.support.fakes import ManualClock

ANNA = "a password of Anna"


class Notes:
    """A notebook in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def read(self) -> dict[str, str]:
        return dict(self.kept)

    async def write(self, changes: dict[str, str | None]) -> None:
        for name, value in changes.items():
            self.kept.pop(name, None) if value is None else self.kept.update({name: value})


class SlowNotes(Notes):
    """The same, behind a store that others wait for, too, and that fails at first."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__()
        self.fails = fails

    async def write(self, changes: dict[str, str | None]) -> None:
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("away")
        await super().write(changes)


def guard(folder: Path, clock: ManualClock, **settings: object) -> Guard:
    people = {"anna": WebPerson(password=SecretStr(ANNA))}
    made = Guard(WebSettings(enabled=True, people=people, **settings), clock, folder / "page-link")  # type: ignore[arg-type]
    made.open("http://127.0.0.1:8787")
    return made


def asked(made: Guard, login: Login | None = None, **headers: str) -> object:
    """A request with this login's cookie."""
    cookie = {} if login is None else {"Cookie": f"{made.cookie_name}={login.cookie}"}
    return make_mocked_request("GET", "/", headers=CIMultiDict({"Host": "127.0.0.1:8787", **cookie, **headers}))


async def test_a_login_holds_for_its_days_and_over_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    notes = Notes()
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    login = await made.by_password("anna", ANNA, "1.2.3.4")
    assert login is not None
    assert login.cookie not in str(notes.kept), "the store keeps its hash"
    later = guard(tmp_path, clock)
    await later.begin(notes)  # type: ignore[arg-type]
    assert later.login_of(asked(later, login)) == login  # type: ignore[arg-type]
    await clock.advance(DAYS * 86_400.0)
    assert later.login_of(asked(later, login)) is None  # type: ignore[arg-type]
    again = guard(tmp_path, clock)
    await again.begin(notes)  # type: ignore[arg-type]
    assert notes.kept == {}, "what is over is not kept"


async def test_a_changed_password_ends_the_logins_that_came_by_it(tmp_path: Path, clock: ManualClock) -> None:
    notes = Notes()
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    login, owner = await made.by_password("anna", ANNA, "1.2.3.4"), await made.by_link(made.link.partition("=")[2])
    assert ANNA not in str(notes.kept)
    for password, holds in (("another password", False), (ANNA, True)):
        people = {"anna": WebPerson(password=SecretStr(password))}
        later = Guard(WebSettings(enabled=True, people=people), clock, tmp_path / "page-link")
        later.open("http://127.0.0.1:8787")
        await later.begin(notes)  # type: ignore[arg-type]
        assert (later.login_of(asked(later, login)) == login) is holds  # type: ignore[arg-type]
        assert later.login_of(asked(later, owner)) == owner  # type: ignore[arg-type]


async def test_people_who_come_and_go_hold_at_once(tmp_path: Path, clock: ManualClock) -> None:
    made = guard(tmp_path, clock)
    annas, owners = await made.by_password("anna", ANNA, "::1"), await made.by_link(made.link.partition("key=")[2])
    assert annas is not None
    assert owners is not None
    bob = {"bob": WebPerson(password=SecretStr("a password of Bob"))}
    made.take_up(WebSettings(enabled=True, people=bob, port=1))
    assert await made.by_password("bob", "a password of Bob", "::1") is not None
    assert (made.holds(annas), made.holds(owners)) == (False, True)
    assert await made.by_password("anna", ANNA, "::1") is None


async def test_a_login_of_a_version_that_bound_none_holds_for_the_owner_alone(
    tmp_path: Path, clock: ManualClock
) -> None:
    notes = Notes()
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    anna, owner = await made.by_password("anna", ANNA, "1.2.3.4"), await made.by_link(made.link.partition("=")[2])
    for name, text in notes.kept.items():
        notes.kept[name] = json.dumps({name: fact for name, fact in json.loads(text).items() if name != "bound"})
    later = guard(tmp_path, clock)
    await later.begin(notes)  # type: ignore[arg-type]
    assert later.login_of(asked(later, anna)) is None  # type: ignore[arg-type]
    assert later.login_of(asked(later, owner)) == owner  # type: ignore[arg-type]


async def test_somebody_logs_out_everywhere_and_nobody_else_does(tmp_path: Path, clock: ManualClock) -> None:
    notes = Notes()
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    here, there = [await made.by_password("anna", ANNA, "1.2.3.4") for _ in range(2)]
    owner = await made.by_link(made.link.partition("=")[2])
    assert here is not None
    await made.log_out(here, everywhere=True)
    assert [made.login_of(asked(made, each)) for each in (here, there, owner)] == [None, None, owner]  # type: ignore[arg-type]
    assert len(notes.kept) == 1


async def test_a_login_whose_note_a_shell_removed_ends(tmp_path: Path, clock: ManualClock) -> None:
    notes = Notes()
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    login = await made.by_password("anna", ANNA, "1.2.3.4")
    await made.refresh()
    assert made.login_of(asked(made, login)) == login  # type: ignore[arg-type]
    notes.kept.clear()
    await made.refresh()
    assert made.login_of(asked(made, login)) is None  # type: ignore[arg-type]


async def test_a_link_works_once_and_the_next_one_is_in_the_file(tmp_path: Path, clock: ManualClock) -> None:
    made = guard(tmp_path, clock)
    await made.begin(None)
    key = made.link.partition("=")[2]
    assert (tmp_path / "page-link").read_text() == f"{made.link}\n"
    assert (tmp_path / "page-link").stat().st_mode & 0o077 == 0
    assert await made.by_link(key) is not None
    assert await made.by_link(key) is None
    assert (tmp_path / "page-link").read_text() == f"{made.link}\n"
    assert key not in made.link


async def test_a_note_of_another_version_stops_no_page(tmp_path: Path, clock: ManualClock) -> None:
    notes = Notes()
    share = {"person": "anna", "session": "s", "made_at": 1.0, "title": "first words"}
    login = {"person": "anna", "until": 9e9, "by": "link"}
    notes.kept = {f"share {sha256(b't').hexdigest()}": json.dumps(share), "login x": json.dumps(login)}
    made = guard(tmp_path, clock)
    await made.begin(notes)  # type: ignore[arg-type]
    found = made.shares.at("t")
    assert found is not None
    assert found.session == "s"


async def test_of_two_requests_with_one_link_one_logs_in(tmp_path: Path, clock: ManualClock) -> None:
    made = guard(tmp_path, clock)
    await made.begin(SlowNotes())  # type: ignore[arg-type]
    key = made.link.partition("=")[2]
    assert [login is None for login in await asyncio.gather(made.by_link(key), made.by_link(key))] == [False, True]


async def test_a_link_works_still_after_the_store_was_away(tmp_path: Path, clock: ManualClock) -> None:
    made, notes = guard(tmp_path, clock), SlowNotes(fails=1)
    await made.begin(notes)  # type: ignore[arg-type]
    key = made.link.partition("=")[2]
    with pytest.raises(StoreUnavailable):
        await made.by_link(key)
    assert await made.by_link(key) is not None


async def test_a_link_that_somebody_else_laid_there_is_not_written_through(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".page-link").symlink_to(tmp_path / "victim")
    (tmp_path / "page-link").symlink_to(tmp_path / "victim")
    made = guard(tmp_path, clock)
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "page-link").read_text() == f"{made.link}\n"


async def test_attempts_are_refused_for_longer_each_time(clock: ManualClock) -> None:
    lockout = Lockout(clock=clock)
    for _ in range(4):
        lockout.failed("at 192.0.2.1", "as anna")
    assert lockout.wait("at 192.0.2.1", "as anna") == 0.0
    waits = []
    for _ in range(9):
        lockout.failed("at 192.0.2.1", "as anna")
        waits.append((lockout.wait("at 192.0.2.1"), lockout.wait("as anna")))
    at, anna = zip(*waits, strict=True)
    assert at == (30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1_920.0, 3_600.0, 3_600.0)
    assert anna == (30.0, *[60.0] * 8), "a stranger must not lock Anna out for hours"
    assert lockout.wait("as boris") == 0.0
    await clock.advance(3_600.0)
    assert lockout.wait("at 192.0.2.1") == 0.0
    lockout.succeeded("at 192.0.2.1")
    lockout.failed("at 192.0.2.1")
    assert lockout.wait("at 192.0.2.1") == 0.0


async def test_failures_of_countless_names_are_forgotten(clock: ManualClock) -> None:
    lockout = Lockout(clock=clock)
    for number in range(20_000):
        lockout.failed(f"as {number}")
    assert len(lockout._failures) == 10_000


@pytest.mark.parametrize("name", ["anna", "*", "Anna-2.b", "anna@*"])
def test_names_that_people_can_have(name: str) -> None:
    assert person_problem(name) is None


@pytest.mark.parametrize("name", ["", "-", "a b", "a/b", "a:b", "<b>", "é", "a" * 65, "a\n", "..", "@x"])
def test_names_that_nobody_can_have(name: str) -> None:
    assert person_problem(name) is not None


def test_what_cannot_go_together_is_told() -> None:
    short = WebSettings.model_validate({"enabled": True, "people": {"owner": {"password": "x" * 12}}})
    assert [keys[0] for keys, _ in short.contradictions()] == ["people.owner"]
    with pytest.raises(ValueError, match="12 characters"):
        WebSettings.model_validate({"people": {"anna": {"password": "short"}}})
