"""The deeds of people: they write, open threads, press buttons, come and go. The bot is told as Discord would tell
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.emulators.discord.asked import Upload
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.interactions import Asking, Interaction, context_of, owners
from tests.emulators.discord.mentions import Allowed
from tests.emulators.discord.posting import LONGEST, VOICE, add, answer, keep, mention
from tests.emulators.discord.threads import open_alone, open_from, open_post, set_archived
from tests.emulators.discord.world import Channel, Guild, Kind, Message, Role, User

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
"""A picture of one dot, as PNG."""


class People:
    """Everybody but the bot."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    # -- who and where -----------------------------------------------------------------------------

    def person(self, name: str, *, display: str = "", bot: bool = False) -> User:
        """Somebody new."""
        return self._cloud.add_user(name.lower(), display=display or name, bot=bot)

    def guild(self, name: str, *members: User, tier: int = 0, with_bot: bool = True) -> Guild:
        """A guild with one channel, `general`. Its first member owns it. The bot is told if it is connected."""
        owner = members[0] if members else self._cloud.owner
        guild = self._cloud.add_guild(name, owner, tier=tier)
        for member in members:
            self._cloud.join(guild, member)
        self._cloud.add_channel(Kind.TEXT, "general", guild)
        if with_bot:
            self.invite_bot(guild)
        return guild

    def invite_bot(self, guild: Guild) -> None:
        """The bot comes into a guild."""
        self._cloud.join(guild, self._cloud.bot)
        self._cloud.tell("GUILD_CREATE", guild.as_json(self._cloud.bot), guild=guild)

    def channel(self, guild: Guild, name: str, *, kind: Kind = Kind.TEXT, **details: Any) -> Channel:
        """A new channel. `details`: other fields of `Channel`."""
        channel = self._cloud.add_channel(kind, name, guild, **details)
        self._cloud.tell("CHANNEL_CREATE", channel.as_json(), guild=guild, channel=channel)
        return channel

    def general(self, guild: Guild) -> Channel:
        """The first channel of a guild."""
        return next(iter(guild.channels.values()))

    def direct(self, user: User) -> Channel:
        """Somebody's DM with the bot."""
        return self._cloud.direct(user)

    def among(self, *users: User) -> Channel:
        """A chat of people, which the bot is not in."""
        channel = Channel(id=self._cloud.ids.new(), kind=Kind.GROUP_DM, name=", ".join(each.name for each in users))
        return self._cloud.channels.setdefault(channel.id, channel)

    def role(self, guild: Guild, name: str, *members: User, permissions: int = 0) -> Role:
        """A role, and who bears it."""
        role = Role(id=self._cloud.ids.new(), name=name, permissions=permissions)
        guild.roles[role.id] = role
        for user in members:
            guild.members[user.id].roles.append(role.id)
        body = {"guild_id": str(guild.id), "role": role.as_json()}
        self._cloud.tell("GUILD_ROLE_CREATE", body, guild=guild)
        return role

    # -- writing -----------------------------------------------------------------------------------

    def say(
        self,
        channel: Channel,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        ping: bool = True,
        files: Sequence[Upload] = (),
        voice: Upload | None = None,
        embeds: Sequence[dict[str, Any]] = (),
        stickers: Sequence[dict[str, Any]] = (),
    ) -> Message:
        """Write a message, or send a `voice` message; `@Name` of a member becomes a mention, as in Discord's
        clients. `ping`: whether whoever is answered is told; `embeds`: cards, which only bots send. Raises
        ValueError for a text that a client would not send."""
        content = self._with_mentions(channel, text).strip()
        if len(content) > LONGEST:
            raise ValueError(f"A message has at most {LONGEST} characters.")
        if not content and not files and not embeds and not stickers and voice is None:
            raise ValueError("A message needs a text or a file.")
        message = Message(id=self._cloud.ids.new(), channel=channel, author=user, content=content)
        message.embeds = [{"type": "rich", **embed} for embed in embeds]
        message.stickers = list(stickers)
        message.attachments = [keep(self._cloud, channel, upload) for upload in files]
        if voice is not None:  # its only attachment, by which clients know it
            message.attachments, message.flags = [keep(self._cloud, channel, voice, voice=True)], VOICE
        if reply_to is not None:
            answer(message, reply_to)
        mention(self._cloud, message, Allowed(replied_user=ping))
        add(self._cloud, message)
        return message

    def _with_mentions(self, channel: Channel, text: str) -> str:
        guild = channel.guild
        users = [member.user for member in guild.members.values()] if guild else [self._cloud.bot]
        for user in sorted(users, key=lambda each: -len(each.name)):
            for name in {user.name, user.display} - {""}:
                text = text.replace(f"@{name}", f"<@{user.id}>")
        return text

    def edit(self, message: Message, text: str) -> Message:
        """Change one's message."""
        message.content = self._with_mentions(message.channel, text).strip()
        message.edited = self._cloud.clock.now()
        message.texts.append(message.content)
        mention(self._cloud, message, Allowed())
        self._cloud.tell_message("MESSAGE_UPDATE", message)
        return message

    def preview(self, message: Message, *embeds: dict[str, Any]) -> None:
        """Discord adds the previews of a message's links, a moment after it was written or changed. It tells so like of
        an edit, and still names the time of the last one."""
        message.embeds = [{"type": "link", **embed} for embed in embeds]
        self._cloud.tell_message("MESSAGE_UPDATE", message)

    def pin(self, message: Message) -> None:
        """Pin a message; Discord tells of that in the same way."""
        message.pinned = True
        self._cloud.tell_message("MESSAGE_UPDATE", message)

    def delete(self, *messages: Message) -> None:
        """Delete messages of a channel; several at once, as moderators do."""
        self._cloud.remove(*messages)

    def vote(self, message: Message, *answers: int) -> None:
        """Give these answers of a poll, counted from 1. Bots are told of votes if they asked for that."""
        assert message.poll is not None
        if message.poll["results"]["is_finalized"] or (len(answers) > 1 and not message.poll["allow_multiselect"]):
            raise ValueError("This poll takes no such vote.")
        counts = {each["id"]: each for each in message.poll["results"]["answer_counts"]}
        for each in answers:
            counts.setdefault(each, {"id": each, "count": 0, "me_voted": False})["count"] += 1
        message.poll["results"]["answer_counts"] = list(counts.values())

    def react(self, message: Message, user: User, emoji: str, *, gone: bool = False) -> None:
        """Put a reaction on a message, or take it away."""
        self._cloud.react(message, user, emoji, gone=gone)

    # -- threads -----------------------------------------------------------------------------------

    def thread(self, channel: Channel, user: User, name: str, *, private: bool = False) -> Channel:
        """Open a thread without a message."""
        kind = Kind.PRIVATE_THREAD if private else Kind.PUBLIC_THREAD
        return open_alone(self._cloud, channel, user, name, kind)

    def thread_from(self, message: Message, user: User, name: str) -> Channel:
        """Open a thread under a message."""
        return open_from(self._cloud, message, user, name)

    def post(self, forum: Channel, user: User, title: str, text: str, *, tags: Sequence[int] = ()) -> Channel:
        """Open a post of a forum."""
        thread = open_post(self._cloud, forum, user, title, applied=list(tags))
        message = Message(id=thread.id, channel=thread, author=user, content=self._with_mentions(forum, text).strip())
        mention(self._cloud, message, Allowed())
        add(self._cloud, message)
        return thread

    def archive(self, thread: Channel, *, archived: bool = True) -> None:
        """Archive a thread, or open it again."""
        set_archived(self._cloud, thread, archived)

    def delete_channel(self, channel: Channel) -> None:
        """Delete a channel or thread."""
        self._cloud.remove_channel(channel)

    # -- commands and buttons ----------------------------------------------------------------------

    def command(self, channel: Channel, user: User, name: str, **options: Any) -> Interaction:
        """Use a slash command of the bot. Raises LookupError for one that is not offered there, or options that a
        client would not send."""
        command = self._command(channel, user, name)
        chosen = self._options(command, options)
        required = {option["name"] for option in command.get("options") or () if option.get("required")}
        if required - options.keys():
            raise LookupError(f"/{name} needs {', '.join(sorted(required - options.keys()))}.")
        return self._cloud.interactions.start(Asking.COMMAND, user, channel, {**_named(command), "options": chosen})

    def complete(self, channel: Channel, user: User, name: str, option: str, typed: str) -> Interaction:
        """Type in an option of a slash command; the bot's proposals will be the `choices` of what this gives."""
        command = self._command(channel, user, name)
        (chosen,) = self._options(command, {option: typed}, typing=True)
        data = {**_named(command), "options": [{**chosen, "focused": True}]}
        return self._cloud.interactions.start(Asking.AUTOCOMPLETE, user, channel, data)

    def commands(self, channel: Channel, user: User | None = None) -> dict[str, dict[str, Any]]:
        """The bot's slash commands that a channel offers, by name; to a `user` also those that they installed."""
        scopes = [self._cloud.commands.get(0), self._cloud.commands.get(channel.guild.id if channel.guild else -1)]
        offered = [command for scope in scopes if scope for command in scope.commands.values() if command["type"] == 1]
        context = context_of(channel)
        kinds = set(owners(self._cloud, channel, user))
        return {
            each["name"]: each
            for each in offered
            if (each.get("contexts") is None or context in each["contexts"])
            and any(str(kind) in kinds for kind in each["integration_types"] or (0,))
        }

    def _command(self, channel: Channel, user: User, name: str) -> dict[str, Any]:
        offered = self.commands(channel, user)
        if name not in offered:
            raise LookupError(f"There is no command /{name} here; there are: {', '.join(sorted(offered)) or 'none'}.")
        return offered[name]

    def _options(self, command: dict[str, Any], given: dict[str, Any], *, typing: bool = False) -> list[dict[str, Any]]:
        known = {option["name"]: option for option in command.get("options") or ()}
        chosen = []
        for name, value in given.items():
            if name not in known:
                raise LookupError(f"/{command['name']} has no option {name}; it has: {', '.join(known) or 'none'}.")
            option = known[name]
            allowed = [choice["value"] for choice in option.get("choices") or ()]
            if allowed and value not in allowed and not typing:
                raise LookupError(f"{name} is one of {', '.join(map(str, allowed))}.")
            chosen.append({"name": name, "type": option["type"], "value": value})
        return chosen

    def press(self, message: Message, user: User, button: str, *, values: Sequence[str] = ()) -> Interaction:
        """Press the button with this label or custom id, or choose `values` in a menu. Raises LookupError if there is
        none."""
        for candidate in message.buttons:
            if button in (candidate.get("label"), candidate.get("custom_id")) and "custom_id" in candidate:
                if candidate.get("disabled"):
                    raise LookupError(f"The button {button!r} cannot be pressed any more.")
                return self.forge_press(message, user, candidate["custom_id"], kind=candidate["type"], values=values)
        raise LookupError(f"Message {message.id} has no button {button!r}.")

    def forge_press(
        self, message: Message, user: User, custom_id: str, *, kind: int = 2, values: Sequence[str] = ()
    ) -> Interaction:
        """Press a button that is not there (any more): clients can send what they like."""
        data: dict[str, Any] = {"custom_id": custom_id, "component_type": kind, "id": 1}
        if kind != 2:
            data["values"] = list(values)
        return self._cloud.interactions.start(Asking.COMPONENT, user, message.channel, data, message)

    def fill_in(self, opened: Interaction, user: User, text: str) -> Interaction:
        """Send the form that a press opened. Raises LookupError if it opened none."""
        if opened.modal is None:
            raise LookupError("This press opened no form.")
        (row,) = opened.modal["components"]
        inputs = [{"type": each["type"], "custom_id": each["custom_id"], "value": text} for each in row["components"]]
        data = {"custom_id": opened.modal["custom_id"], "components": [{"type": 1, "components": inputs}]}
        return self._cloud.interactions.start(Asking.MODAL, user, opened.channel, data, opened.message)

    def failed(self, interaction: Interaction) -> bool:
        """Say whether the person reads that the application did not respond."""
        return self._cloud.interactions.failed(interaction)

    # -- what no documentation knows --------------------------------------------------------------

    def odd(self, event: str, data: Any, *, in_guild: bool = False) -> None:
        """Discord tells of something in a shape of its own."""
        for session in self._cloud.sessions.values():
            session.tell(event, data, in_guild=in_guild)

    # -- moods -------------------------------------------------------------------------------------

    def block(self, user: User, *, blocked: bool = True) -> None:
        """Let no bot write to oneself any more, or again."""
        user.closed = blocked

    def type(self, channel: Channel, user: User) -> None:
        """Be seen typing."""
        channel.typing[user.id] = self._cloud.clock.monotonic() + 10
        body = {"channel_id": str(channel.id), "user_id": str(user.id), "timestamp": int(self._cloud.clock.now())}
        if channel.guild is not None:
            member = channel.guild.members[user.id].as_json(with_user=True)
            body |= {"guild_id": str(channel.guild.id), "member": member}
        self._cloud.tell("TYPING_START", body, guild=channel.guild, channel=channel)

    def join(self, guild: Guild, user: User) -> None:
        """Come into a guild."""
        member = self._cloud.join(guild, user)
        body = {**member.as_json(with_user=True), "guild_id": str(guild.id)}
        self._cloud.tell("GUILD_MEMBER_ADD", body, guild=guild)

    def kick_bot(self, guild: Guild) -> None:
        """Throw the bot out of a guild."""
        self._cloud.tell("GUILD_DELETE", {"id": str(guild.id)}, guild=guild)
        guild.members.pop(self._cloud.bot.id, None)

    def outage(self, guild: Guild, *, over: bool = False) -> None:
        """A guild cannot be reached for a while, or can again."""
        guild.available = over
        if over:
            self._cloud.tell("GUILD_CREATE", guild.as_json(self._cloud.bot), guild=guild)
        else:
            self._cloud.tell("GUILD_DELETE", {"id": str(guild.id), "unavailable": True}, guild=guild)

    def forbid(self, channel: Channel, permission: int, *, who: User | Role | None = None) -> None:
        """Take a permission from everybody in a channel, or from one person or role."""
        self._overwrite(channel, permission, who, allowed=False)

    def permit(self, channel: Channel, permission: int, *, who: User | Role | None = None) -> None:
        """Give a permission to everybody in a channel, or to one person or role."""
        self._overwrite(channel, permission, who, allowed=True)

    def _overwrite(self, channel: Channel, permission: int, who: User | Role | None, *, allowed: bool) -> None:
        assert channel.guild is not None
        seen = channel.seen_by(self._cloud.bot)
        identity = who.id if who is not None else channel.guild.id
        allow, deny = channel.overwrites.get(identity, (0, 0))
        if allowed:
            allow, deny = allow | permission, deny & ~permission
        else:
            allow, deny = allow & ~permission, deny | permission
        channel.overwrites[identity] = (allow, deny)
        guild = channel.guild
        event = "CHANNEL_UPDATE"
        if seen and not channel.seen_by(self._cloud.bot):
            event = "CHANNEL_DELETE"  # for whoever may not see it any more
        elif not seen:
            event = "CHANNEL_CREATE"
        if seen or channel.seen_by(self._cloud.bot):
            self._cloud.tell(event, channel.as_json(), guild=guild)


def _named(command: dict[str, Any]) -> dict[str, Any]:
    named = {"id": command["id"], "name": command["name"], "type": 1}
    return {**named, "guild_id": command["guild_id"]} if "guild_id" in command else named
