"""What people do in Slack."""

from __future__ import annotations

from typing import Any

from tests.emulators.slack.delivery import Delivery, Envelope
from tests.emulators.slack.world import Channel, File, Json, Message, User, World


class People:
    """The people of a workspace."""

    def __init__(self, world: World, delivery: Delivery) -> None:
        self._world, self._delivery = world, delivery
        self.root = ""

    def person(self, name: str, *, bot: bool = False) -> User:
        """Somebody new."""
        return self._world.user(name, bot=bot)

    def channel(self, name: str, *members: User) -> Channel:
        """A channel with the bot in it."""
        return self._world.channel(name, *members)

    def direct(self, user: User) -> Channel:
        """The chat of a person with the bot."""
        return self._world.direct(user)

    def file(self, name: str, content: bytes, mime: str, *, voice: bool = False) -> File:
        """A file that somebody has."""
        file = File(id=self._world.new("F"), name=name, mime=mime, content=content, voice=voice)
        file.url = f"{self.root}/files/{file.id}"
        self._world.files[file.id] = file
        return file

    def say(
        self, channel: Channel, user: User, text: str, *, thread: Message | None = None, files: tuple[File, ...] = ()
    ) -> Message:
        """Write. `@Legato` names the bot."""
        written = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        written = written.replace("@Legato", f"<@{self._world.bot.id}>")
        message = Message(ts=self._world.ts(), channel=channel, user=user, texts=[written], files=[*files])
        message.thread_ts = thread.ts if thread else None
        channel.messages.append(message)
        told = message.json() | ({"subtype": "file_share"} if files else {})
        if thread is not None:
            told["parent_user_id"] = thread.user.id
        self.told(channel, told)
        return message

    def told(self, channel: Channel, message: Json) -> None:
        """The app hears of a message, and of a mention a second time."""
        event = message | {"channel": channel.id, "channel_type": channel.kind, "event_ts": message["ts"]}
        if self._world.bot not in channel.members:
            return
        if channel.kind == "im" or self._world.settings.all_messages:
            self.event(event)
        if channel.kind != "im" and f"<@{self._world.bot.id}>" in message.get("text", ""):
            self.event({name: value for name, value in event.items() if name != "subtype"} | {"type": "app_mention"})

    def event(self, event: Json) -> Envelope:
        """The app hears of an event."""
        settings = self._world.settings
        payload = {"type": "event_callback", "team_id": settings.team, "event_id": self._world.new("Ev")}
        return self._delivery.tell("events_api", payload | {"event": event, "event_time": int(self._world.clock.now())})

    def edit(self, message: Message, text: str) -> None:
        """Change what one wrote."""
        before = message.json()
        message.texts.append(text)
        message.edited = self._world.ts()
        self._changed(message, {"subtype": "message_changed", "message": message.json(), "previous_message": before})

    def delete(self, message: Message) -> None:
        """Take it back."""
        before = message.json()
        message.deleted = True
        what = {"subtype": "message_deleted", "deleted_ts": message.ts, "previous_message": before}
        self._changed(message, what)

    def _changed(self, message: Message, what: Json) -> None:
        channel = message.channel
        event = {"type": "message", "hidden": True, "channel": channel.id, "channel_type": channel.kind, **what}
        self.event(event | {"ts": self._world.ts()})

    def react(self, message: Message, user: User, name: str, *, gone: bool = False) -> None:
        """Put an emoji on a message, or take it away."""
        if gone:
            message.reactions.remove((name, user))
        else:
            message.reactions.append((name, user))
        event = {"type": "reaction_removed" if gone else "reaction_added", "user": user.id, "reaction": name}
        item = {"type": "message", "channel": message.channel.id, "ts": message.ts}
        self.event({**event, "item": item, "item_user": message.user.id, "event_ts": self._world.ts()})

    def press(self, message: Message, user: User, label: str, *, chosen: tuple[str, ...] = ()) -> Envelope:
        """Press a button, after these were chosen in the menu."""
        button = next(each for each in message.buttons if each["text"]["text"] == label)
        action = {"type": "button", "action_id": button["action_id"], "value": button["value"]}
        where = {"type": "message", "message_ts": message.ts, "channel_id": message.channel.id}
        if message.thread_ts:
            where["thread_ts"] = message.thread_ts
        payload: dict[str, Any] = {
            "type": "block_actions",
            "user": {"id": user.id, "name": user.name, "team_id": self._world.settings.team},
            "container": where,
            "channel": {"id": message.channel.id},
            "message": message.json(),
            "actions": [action | {"action_ts": self._world.ts()}],
            "trigger_id": self._world.trigger(user),
        }
        if message.options:
            options = [each for each in message.options if each["text"]["text"] in chosen]
            menu = {"type": "multi_static_select", "selected_options": options}
            payload["state"] = {"values": {"ticks": {"ticks": menu}}}
        return self._delivery.tell("interactive", payload)

    def submit(self, user: User, written: str) -> Envelope:
        """Write this into the form that is open before somebody, and send it."""
        form, user.form = user.form, None
        assert form is not None, "no form is open"
        (field,) = form["blocks"]
        value = {"type": "plain_text_input", "value": written}
        state = {"values": {field["block_id"]: {field["element"]["action_id"]: value}}}
        payload = {
            "type": "view_submission",
            "user": {"id": user.id, "name": user.name, "team_id": self._world.settings.team},
            "trigger_id": self._world.trigger(user),
            "view": {**form, "state": state},
        }
        return self._delivery.tell("interactive", payload)

    def opens_assistant(self, user: User) -> Message:
        """Begin a thread with the assistant, which has a message of the app's own before it."""
        channel = self.direct(user)
        first = Message(ts=self._world.ts(), channel=channel, user=self._world.bot, texts=["New conversation"])
        channel.messages.append(first)
        thread = {"user_id": user.id, "context": {}, "channel_id": channel.id, "thread_ts": first.ts}
        self.event({"type": "assistant_thread_started", "assistant_thread": thread, "event_ts": self._world.ts()})
        return first

    def command(self, channel: Channel, user: User, command: str, text: str = "") -> Envelope:
        """Give a slash command."""
        settings = self._world.settings
        where = f"{self.root}/commands/{settings.team}/{channel.id}.{user.id}/{self._world.new('S')}"
        payload = {
            "command": command,
            "text": text,
            "user_id": user.id,
            "user_name": user.name,
            "channel_id": channel.id,
            "channel_name": channel.name or "directmessage",
            "team_id": settings.team,
            "trigger_id": self._world.trigger(user),
            "response_url": where,
        }
        return self._delivery.tell("slash_commands", payload)
