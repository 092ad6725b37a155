"""The keys of other programs: who has one, and for how long one that was looked up holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from gateway.domain.keys import Key
from gateway.people.keys import Keys, line_of
from gateway.runtime.errors import UserError
from gateway.store.port import Documents
from tests.support.fakes import ManualClock

ANNA = Key(name="anna", made_at=1_700_000_000.0)
DOOR = Key(name="door", front_end=True, made_at=1_700_000_000.0)


class Folder:
    """The store's folder of keys."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.looks = 0

    async def notes(self, folder: str) -> dict[str, str]:
        self.looks += 1
        return dict(self.held)

    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        if any(self.held.get(name) != text for name, text in (still or {}).items()):
            return False
        self.held = {name: text for name, text in {**self.held, **changes}.items() if text is not None}
        return True


def keys(folder: Folder, clock: ManualClock) -> Keys:
    return Keys(store=cast(Documents, folder), clock=clock)


async def test_a_key_is_its_secrets_and_only_a_hash_is_kept() -> None:
    folder, clock = Folder(), ManualClock()
    secret = await keys(folder, clock).add(ANNA)
    assert secret not in folder.held["anna"]
    assert await keys(folder, clock).holder(secret) == ANNA
    assert await keys(folder, clock).holder("sk-other") is None
    with pytest.raises(UserError, match="there is already a key named anna"):
        await keys(folder, clock).add(ANNA)
    await keys(folder, clock).add(DOOR)
    assert [each.name for each in await keys(folder, clock).all()] == ["anna", "door"]


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65])
async def test_a_name_is_one_word(name: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a key"):
        await keys(Folder(), ManualClock()).add(Key(name=name))


@pytest.mark.parametrize("cap", [None, 0.0, 2.5])
async def test_a_cap_is_kept(cap: float | None) -> None:
    known = keys(Folder(), ManualClock())
    await known.add(Key(name="a", cap=cap))
    assert [each.cap for each in await known.all()] == [cap]


@pytest.mark.parametrize("cap", [-1.0, float("inf"), float("nan")])
async def test_a_cap_is_an_amount(cap: float) -> None:
    with pytest.raises(UserError, match="is not an amount in US dollars"):
        await keys(Folder(), ManualClock()).add(Key(name="a", cap=cap))


@pytest.mark.parametrize(("after", "holds"), [(9.9, True), (10.0, False)])
async def test_a_key_that_was_taken_back_is_refused_within_ten_seconds(after: float, holds: bool) -> None:
    folder, clock = Folder(), ManualClock()
    known = keys(folder, clock)
    secret = await known.add(ANNA)
    await known.holder(secret)
    assert (await known.remove("anna"), await known.remove("anna"), folder.held) == (True, False, {})
    await clock.advance(after)
    assert (await known.holder(secret) is not None) is holds


@pytest.mark.parametrize(("after", "looks"), [(0.9, 1), (1.0, 2)])
async def test_strangers_have_the_store_read_once_a_second(after: float, looks: int) -> None:
    folder, clock = Folder(), ManualClock()
    known = keys(folder, clock)
    assert not known.is_strange("sk-1")  # nobody has looked yet
    await known.holder("sk-1")
    assert known.is_strange("sk-1")
    await clock.advance(after)
    assert known.is_strange("sk-1") is (looks == 1)
    await known.holder("sk-2")
    assert folder.looks == looks


@pytest.mark.parametrize(
    ("person", "of"), [("anna", "anna"), ("door", "door"), ("door/ben", "door"), ("anna/ben", None), ("ben", None)]
)
async def test_who_talks_by_which_key(person: str, of: str | None) -> None:
    known = keys(Folder(), ManualClock())
    for each in (ANNA, DOOR):
        await known.add(each)
    if of is None:
        with pytest.raises(UserError, match=f"no key for {person}. `legato keys add {person.partition('/')[0]}`"):
            await known.of(person)
    else:
        assert (await known.of(person)).name == of


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (ANNA, "anna: person, since 2023-11-14"),
        (DOOR, "door: front end, since 2023-11-14"),
        (
            Key(name="a", admin=True, cap=2.5, chat="slack:C1"),
            "a: admin, $2.5 a day, over MCP for slack:C1, since 1970-01-01",
        ),
    ],
)
def test_a_line_about_a_key(key: Key, line: str) -> None:
    assert line_of(key) == line
