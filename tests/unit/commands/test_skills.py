"""/skills: who may switch what, and what is asked before it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.commands.chat import NOT_YOURS
from gateway.runtime.errors import UserError
from tests.support.store_kit import key

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling

WITH_TEXT = "---\nname: tea\n---\nBoil s3cret."


class Known:
    """Skills for everybody ("mail"), of this chat ("tea"), switched off here ("old"), and lying there ("new")."""

    def __init__(self, call: Calling) -> None:
        self.off, self.own = {"old", "mine"}, {"tea": WITH_TEXT}
        names = {"mail": Mock(source="config.yaml"), "old": Mock(source="config.yaml")}
        self.skills = Mock(enabled=True, known=names, switch=AsyncMock(side_effect=self._switch))
        self.skills.decided = AsyncMock(side_effect=lambda _: Mock(off={*self.off}, own=self.own))
        self.skills.described.side_effect = lambda decided: {
            name: f"about {name}" for name in ("mail", "old", "tea") if name not in decided.off
        }
        self.skills.waiting.return_value = ["new"]
        self.skills.lying.side_effect = self._lying
        self.skills.keep, self.skills.drop = AsyncMock(return_value="Kept."), AsyncMock()
        self.skills.learn, self.skills.folder = AsyncMock(), Path("skills")
        call.sessions.skills = self.skills
        self.call = call

    async def _switch(self, _: Any, name: str, *, on: bool) -> None:
        if name != "mine":
            (self.off.discard if on else self.off.add)(name)

    def _lying(self, _: Any, name: str) -> str:
        if name != "new":
            raise UserError("no such folder")
        return WITH_TEXT


@pytest.fixture
def known(call: Calling) -> Known:
    """The skills of a chat."""
    return Known(call)


async def test_they_are_listed_with_what_holds(call: Calling, known: Known) -> None:
    answer = await call.answer("/skills")
    assert answer.text.splitlines()[:5] == [
        "mail (config.yaml): about mail",
        "tea (this conversation): about tea",
        "mine: switched off here",
        "old: switched off here",
        "new: a new skill in our workspace that needs your yes; /skills on new shows the skill",
    ]
    assert [each.value for each in answer.choices] == [
        "/skills off mail", "/skills off tea", "/skills on mine", "/skills on old", "/skills on new",
    ]  # fmt: skip
    assert (await call.answer("/skills list", "anna", "group")).choices == ()
    call.sessions.show_anew.assert_not_awaited()
    known.skills.described.side_effect = lambda _: {}
    known.off, known.own = set(), {}
    known.skills.waiting.return_value = []
    assert (await call("/skills")).startswith("There are no skills here.")
    known.skills.enabled = False
    assert "tools.skills.enabled is off" in await call("/skills")


async def test_one_is_switched_for_whom_its_caller_may_choose(call: Calling, known: Known) -> None:
    call.claim = Mock(lease="l")
    assert await call("/skills off mail") == (
        "I switched the skill mail off here. /skills on mail switches the skill on again."
    )
    assert (known.skills.switch.await_args.args, known.off) == ((key(), "mail"), {"old", "mine", "mail"})
    call.sessions.show_anew.assert_awaited_once()
    assert await call("/skills on mail") == "The skill mail is switched on here."
    assert known.skills.switch.await_args.kwargs == {"on": True}
    assert (await call("/skills off old")).startswith("No skill named old is switched on here.")
    assert await call("/skills on mine") == "An admin has switched the skill mine off for everybody here."
    assert await call("/skills off tea", "anna", "group") == NOT_YOURS
    await call("/skills off tea", "boss", "group")
    assert known.skills.switch.await_args.args[0].user is None


@pytest.mark.parametrize("yes", [True, False])
async def test_one_from_the_workspace_is_shown_whole_and_needs_a_yes(call: Calling, known: Known, yes: bool) -> None:
    call.claim, call.yes = Mock(lease="l"), yes
    assert await call("/skills on new") == ("Kept." if yes else "Nothing has changed.")
    assert "Boil s3cret." in call.questions[0]
    assert call.questions[0].startswith("Follow this skill in this conversation from now on?\n")
    assert known.skills.keep.await_count == yes
    assert await call("/skills on other") == "There is no skill other here (no such folder). /skills lists the skills."


@pytest.mark.parametrize("yes", [True, False])
async def test_an_admin_gives_one_to_everybody(call: Calling, known: Known, yes: bool) -> None:
    call.claim, call.yes = Mock(lease="l"), yes
    assert await call("/skills share tea") == "Only an admin of this bot can share a skill with everybody."
    told = await call("/skills share tea", "boss")
    assert told.startswith("Everybody can use the skill tea" if yes else "Nothing has changed.")
    assert known.skills.share.call_args == ((("tea", WITH_TEXT),) if yes else None)
    assert known.skills.drop.await_count == yes
    assert (await call("/skills share mail", "boss")).startswith(
        "This conversation has no skill of its own named mail."
    )


async def test_one_is_removed_or_learned(call: Calling, known: Known) -> None:
    call.claim = Mock(lease="l")
    assert await call("/skills remove tea") == "I removed the skill tea from this conversation."
    known.skills.drop.assert_awaited_once_with(key(), "tea")
    assert (await call("/skills remove mail")).startswith("This conversation has no skill of its own")
    learned = await call.answer("/skills learn  the tea ")
    assert (learned.then or "").startswith("Make a skill of what you have just done (the tea), for")
    assert ((await call.answer("/skills learn")).then or "").startswith("Make a skill of what you have just done, for")
    assert known.skills.learn.await_count == 2
    assert (await call("/skills on")).startswith("Say the name of the skill, for example: /skills on weekly-report")
    assert (await call("/skills show tea")).startswith("/skills lists the skills.")
