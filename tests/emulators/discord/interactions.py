"""Commands, presses and completions on their way to the bot, and what it answers.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding. The first answer must come within
three seconds; the token then holds for fifteen minutes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tests.emulators.discord.refusals import Refusal, bad, not_found
from tests.emulators.discord.snowflakes import moment_of
from tests.emulators.discord.world import UPLOAD_LIMITS, Channel, Kind, Message, User

if TYPE_CHECKING:
    from tests.emulators.discord.cloud import Cloud


class Asking(IntEnum):
    """The type of an interaction."""

    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class Answer(IntEnum):
    """The type of a callback."""

    PONG = 1
    MESSAGE = 4
    DEFERRED = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    CHOICES = 8
    MODAL = 9


@dataclass(slots=True, kw_only=True, eq=False)
class Interaction:
    """One interaction. `message`: the one whose button was pressed; `answer`: the type of the first answer, None until
    there is one; `original`: the message that this answer made, or that the button is on; `choices`, `modal`: what the
    person is shown of the other kinds of answers; `followups`: all messages that were made with its token."""

    id: int
    token: str
    kind: Asking
    user: User
    channel: Channel
    data: dict[str, Any]
    message: Message | None = None
    answer: Answer | None = None
    original: Message | None = None
    ephemeral: bool = False
    choices: list[dict[str, Any]] = field(default_factory=list)
    modal: dict[str, Any] | None = None
    followups: list[Message] = field(default_factory=list)

    @property
    def shown(self) -> list[Message]:
        """Return the parts of the answer that the person sees, oldest first."""
        messages = [message for message in (self.original, *self.followups) if message is not None]
        return [message for message in messages if not message.deleted]


def context_of(channel: Channel) -> int:
    """A guild, the bot's own chat with somebody, or a chat among people."""
    return 0 if channel.guild else 2 if channel.kind is Kind.GROUP_DM else 1


def owners(cloud: Cloud, channel: Channel, user: User | None) -> dict[str, str]:
    """For whom the bot is installed that is used in a channel: "0" a guild ("0" for its own chats), "1" a person."""
    guild = channel.guild
    there = context_of(channel) == 1 or (guild is not None and cloud.bot.id in guild.members)
    found = {"0": str(guild.id) if guild else "0"} if there else {}
    return found | ({"1": str(user.id)} if user is not None and user.installed else {})


class Interactions:
    """All of them, by token."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._all: dict[str, Interaction] = {}

    def start(
        self, kind: Asking, user: User, channel: Channel, data: dict[str, Any], message: Message | None = None
    ) -> Interaction:
        """Somebody asks; the bot is told."""
        interaction = Interaction(
            id=self._cloud.ids.new(),
            token=secrets.token_urlsafe(64),
            kind=kind,
            user=user,
            channel=channel,
            data=data,
            message=message,
        )
        self._all[interaction.token] = interaction
        self._cloud.tell("INTERACTION_CREATE", self._as_json(interaction), guild=None)
        return interaction

    def failed(self, interaction: Interaction) -> bool:
        """Say whether the person was told that the application did not respond."""
        return interaction.answer is None and self._age(interaction) > self._cloud.settings.acknowledge

    def to_answer(self, identity: int, token: str) -> Interaction:
        """The interaction that a callback names. Raises the refusal of one that is too late or comes twice."""
        interaction = self._all.get(token)
        if interaction is None or interaction.id != identity:
            raise not_found(10062)
        if interaction.answer is not None:
            raise bad(40060)
        if self._age(interaction) > self._cloud.settings.acknowledge:
            raise not_found(10062)
        return interaction

    def of_token(self, application: int, token: str) -> Interaction:
        """The interaction whose token is used like that of a webhook. Raises the refusal of a dead one."""
        interaction = self._all.get(token)
        if interaction is None or application != self._cloud.application or interaction.answer is None:
            raise not_found(10015)
        if self._age(interaction) > self._cloud.settings.token_life:
            raise Refusal(401, 50027)
        return interaction

    def _age(self, interaction: Interaction) -> float:
        return self._cloud.clock.now() - moment_of(interaction.id)

    def _as_json(self, interaction: Interaction) -> dict[str, Any]:
        """`interaction`."""
        cloud, channel, guild = self._cloud, interaction.channel, interaction.channel.guild
        body: dict[str, Any] = {
            "id": str(interaction.id),
            "application_id": str(cloud.application),
            "type": int(interaction.kind),
            "token": interaction.token,
            "version": 1,
            "data": interaction.data,
            "channel_id": str(channel.id),
            "channel": channel.as_json(),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": owners(cloud, channel, interaction.user),
            "context": context_of(channel),
            "attachment_size_limit": guild.upload_limit if guild else UPLOAD_LIMITS[0],
            "app_permissions": str(guild.permissions(cloud.bot, channel) if guild else (1 << 14) | (1 << 15)),
        }
        if interaction.message is not None:
            body["message"] = cloud.shown_to_bot(interaction.message)
        if guild is None:
            return {**body, "user": interaction.user.as_json()}
        member = guild.members[interaction.user.id].as_json(with_user=True)
        member["permissions"] = str(guild.permissions(interaction.user, channel))
        place = {"id": str(guild.id), "locale": "en-US", "features": []}
        return {**body, "guild_id": str(guild.id), "guild": place, "guild_locale": "en-US", "member": member}
