"""Answers to interactions: the first one, and what follows with the token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.emulators.discord.asked import Asked
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.interactions import Answer, Asking, Interaction, owners
from tests.emulators.discord.posting import add, change, post
from tests.emulators.discord.refusals import bad, bad_choice, bad_length, invalid, not_found
from tests.emulators.discord.world import EPHEMERAL, LOADING, Message, MessageType

MOST_CHOICES: Final = 25
LONGEST_TITLE: Final = 45
MOST_FOLLOWUPS: Final = 5  # where only a person installed the bot


def callback(cloud: Cloud, asked: Asked) -> Any:
    """`POST /interactions/{interaction}/{token}/callback`."""
    interaction = cloud.interactions.to_answer(asked.identity("interaction"), asked.path["token"])
    form = asked.form
    kind = form.get("type")
    if kind not in list(Answer) or not _fits(interaction.kind, Answer(kind)):
        raise bad_choice("type", f"Value must be one of {{{', '.join(str(int(each)) for each in Answer)}}}.")
    asked.body = form.get("data") or {}
    _ANSWERS[Answer(kind)](cloud, interaction, asked)
    interaction.answer = Answer(kind)
    cloud.journal.changed()
    if asked.query.get("with_response") not in ("1", "true"):
        return None
    return _told(cloud, interaction)


def _fits(asking: Asking, answer: Answer) -> bool:
    if asking is Asking.AUTOCOMPLETE:
        return answer is Answer.CHOICES
    if answer in (Answer.UPDATE, Answer.DEFERRED_UPDATE):
        return asking in (Asking.COMPONENT, Asking.MODAL)
    return answer in (Answer.MESSAGE, Answer.DEFERRED) or (answer is Answer.MODAL and asking is not Asking.MODAL)


def _told(cloud: Cloud, interaction: Interaction) -> dict[str, Any]:
    assert interaction.answer is not None
    about: dict[str, Any] = {"id": str(interaction.id), "type": int(interaction.kind)}
    body: dict[str, Any] = {"interaction": about}
    if interaction.original is not None:
        about["response_message_id"] = str(interaction.original.id)
        about["response_message_loading"] = bool(interaction.original.flags & LOADING)
        about["response_message_ephemeral"] = bool(interaction.original.flags & EPHEMERAL)
        message = cloud.shown_to_bot(interaction.original)
        body["resource"] = {"type": int(interaction.answer), "message": message}
    return body


# -- first answers -----------------------------------------------------------------------------------


def _message(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    interaction.ephemeral = bool(int(asked.form.get("flags") or 0) & EPHEMERAL)
    interaction.original = _post(cloud, interaction, asked)


def _defer(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    interaction.ephemeral = bool(int(asked.form.get("flags") or 0) & EPHEMERAL)
    message = Message(
        id=cloud.ids.new(),
        channel=interaction.channel,
        author=cloud.bot,
        content="",
        flags=LOADING | (EPHEMERAL if interaction.ephemeral else 0),
        **_origin(cloud, interaction),
    )
    add(cloud, message)
    interaction.original = message


def _defer_update(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    interaction.original = interaction.message


def _update(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    if interaction.message is not None:
        change(cloud, interaction.message, asked)
    interaction.original = interaction.message


def _choices(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    choices = asked.form.get("choices")
    if not isinstance(choices, list) or len(choices) > MOST_CHOICES:
        raise bad_length("data.choices", 0, MOST_CHOICES)
    for place, choice in enumerate(choices):
        for name in ("name", "value"):
            if isinstance(choice.get(name), str) and not 1 <= len(choice[name]) <= 100:
                raise bad_length(f"data.choices.{place}.{name}", 1, 100)
    interaction.choices = choices


def _modal(cloud: Cloud, interaction: Interaction, asked: Asked) -> None:
    if not 1 <= len(asked.form.get("title", "")) <= LONGEST_TITLE:
        raise bad_length("data.title", 1, LONGEST_TITLE)
    if not 1 <= len(asked.form.get("components") or ()) <= 5:
        raise bad_length("data.components", 1, 5)
    interaction.modal = asked.form


_ANSWERS: Final[Mapping[Answer, Callable[[Cloud, Interaction, Asked], None]]] = {
    Answer.MESSAGE: _message,
    Answer.DEFERRED: _defer,
    Answer.DEFERRED_UPDATE: _defer_update,
    Answer.UPDATE: _update,
    Answer.CHOICES: _choices,
    Answer.MODAL: _modal,
}


# -- what follows --------------------------------------------------------------------------------------


def follow(cloud: Cloud, asked: Asked) -> Any:
    """`POST /webhooks/{webhook}/{token}`. The first message after a deferral takes its place."""
    interaction = cloud.interactions.of_token(asked.identity("webhook"), asked.path["token"])
    original = interaction.original
    if original is not None and original.flags & LOADING and not original.deleted:
        _settle(cloud, original, asked)
        return cloud.shown_to_bot(original)
    if not interaction.followups or interaction.answer is not Answer.MESSAGE:
        interaction.ephemeral = bool(int(asked.form.get("flags") or 0) & EPHEMERAL)
    if len(interaction.followups) >= MOST_FOLLOWUPS and "0" not in owners(cloud, interaction.channel, None):
        raise bad(40094)
    message = _post(cloud, interaction, asked)
    interaction.followups.append(message)
    return cloud.shown_to_bot(message)


def read_original(cloud: Cloud, asked: Asked) -> Any:
    """`GET /webhooks/{webhook}/{token}/messages/{message}`."""
    return cloud.shown_to_bot(_named(cloud, asked)[1])


def edit(cloud: Cloud, asked: Asked) -> Any:
    """`PATCH /webhooks/{webhook}/{token}/messages/{message}`."""
    _, message = _named(cloud, asked)
    if message.flags & LOADING:
        _settle(cloud, message, asked)
    else:
        change(cloud, message, asked)
    return cloud.shown_to_bot(message)


def delete(cloud: Cloud, asked: Asked) -> Any:
    """`DELETE /webhooks/{webhook}/{token}/messages/{message}`."""
    _, message = _named(cloud, asked)
    if message.only_for is None:
        cloud.remove(message)
    message.deleted = True
    cloud.journal.changed()
    return None


def _named(cloud: Cloud, asked: Asked) -> tuple[Interaction, Message]:
    interaction = cloud.interactions.of_token(asked.identity("webhook"), asked.path["token"])
    if asked.path["message"] == "@original":
        message = interaction.original
    else:
        wanted = asked.identity("message")
        message = next((each for each in interaction.shown if each.id == wanted), None)
    if message is None or message.deleted:
        raise not_found(10008)
    return interaction, message


def _settle(cloud: Cloud, message: Message, asked: Asked) -> None:
    """Fill the message that a deferral announced. It then counts as never edited."""
    change(cloud, message, asked, settle=True)


def _post(cloud: Cloud, interaction: Interaction, asked: Asked) -> Message:
    flags = int(asked.form.get("flags") or 0)
    if flags & ~(EPHEMERAL | 1 << 2 | 1 << 12 | 1 << 15):
        raise invalid("flags", "BITFIELD_INVALID_FLAGS", "Contains unsupported flags.")
    return post(cloud, interaction.channel, cloud.bot, asked, **_origin(cloud, interaction))


def _origin(cloud: Cloud, interaction: Interaction) -> dict[str, Any]:
    """Return the fields that a message owes to its interaction."""
    about = {
        "id": str(interaction.id),
        "type": int(interaction.kind),
        "user": interaction.user.as_json(),
        "authorizing_integration_owners": {},
    }
    if interaction.kind is Asking.COMMAND:
        about["name"] = interaction.data["name"]
    return {
        "type": MessageType.COMMAND if interaction.kind is Asking.COMMAND else MessageType.DEFAULT,
        "interaction": about,
        "application": cloud.application,
        "only_for": interaction.user if interaction.ephemeral else None,
    }


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "POST /interactions/{interaction}/{token}/callback": callback,
    "POST /webhooks/{webhook}/{token}": follow,
    "GET /webhooks/{webhook}/{token}/messages/{message}": read_original,
    "PATCH /webhooks/{webhook}/{token}/messages/{message}": edit,
    "DELETE /webhooks/{webhook}/{token}/messages/{message}": delete,
}
