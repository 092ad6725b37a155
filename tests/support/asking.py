"""A platform with buttons, and a gateway whose tool asks before it pays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.domain.adapter import Accepted, Limits, Rate
from gateway.domain.chat import ChatAddress, Outbound
from gateway.people.access import AccessSettings
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.tools import Payment, payments


class WithButtons(FakeAdapter):
    """A platform with buttons, and without edits."""

    longest_token = 64


class Buttoned(FakeAdapter):
    """A platform with buttons and edits; `edited` is what messages became, by their id."""

    account = "1"
    longest_token = 64

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits=limits or Limits())
        self.edited: dict[str, Outbound] = {}

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        self.edited[platform_message_id] = outbound
        self.changed()

    def draft_rates(self, to: ChatAddress) -> Sequence[Rate]:
        return ()

    async def question(self, number: int = 1) -> Outbound:
        """The `number`th question, once it is shown."""
        await self.until(lambda: len([row for row in self.sent if row.kind == "question"]) >= number)
        return [row for row in self.sent if row.kind == "question"][number - 1]

    async def press(self, question: Outbound, label: str, *, user: str = "u", **more: Any) -> Accepted:
        """Press one of its buttons."""
        (token,) = [button.token for line in question.buttons for button in line if button.label == label]
        (accepted,) = await self.receive(self.inbound(token, user=user, kind="press", **more))
        return accepted

    async def became(self, question: Outbound, text: str) -> Outbound:
        """Return the question's row once it has this text."""
        name = f"m-{question.id}"
        await self.until(lambda: name in self.edited and text in self.edited[name].text)
        return self.edited[name]


def results(model: FakeModel) -> list[str]:
    return [text for role, text in model.spoken() if role == "tool"]


def settings(folder: Path, **sections: Any) -> Any:
    access = AccessSettings(allow=("fake:u", "fake:v", "fake:boss"), admins=("fake:boss",))
    return config_in(folder, access=access, **sections)


class CommandContext:
    """A gateway whose model pays, and the person who asks for it."""

    def __init__(self, folder: Path, *said: Say, **sections: Any) -> None:
        self.folder = folder
        self.sections = sections
        self.tool = Payment()
        self.adapter = Buttoned()
        self.model = FakeModel(in_turn(*said))

    def open(self, **more: Any) -> Any:
        """The gateway, or after a first one another process's: what people were shown stays shown."""
        again = Buttoned()
        again.sent, again.edited = self.adapter.sent, self.adapter.edited
        self.adapter = again
        config = settings(self.folder, **self.sections)
        return running(self.folder, config=config, model=self.model, adapter=self.adapter, tools=[self.tool], **more)


def scene(folder: Path, *sums: int, **sections: Any) -> CommandContext:
    return CommandContext(folder, payments(*sums), Say(text="done"), **sections)


def questions(live: Live) -> list[str]:
    """What was asked, as it was asked first."""
    return [each.text for each in live.adapter.sent if each.kind == "question" and not each.edits]


async def asked(live: Live, count: int = 1) -> str:
    """The question of this number."""
    await live.adapter.until(lambda: len(questions(live)) >= count)
    return questions(live)[count - 1]
