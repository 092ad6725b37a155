"""The methods of the Web API: https://docs.slack.dev/reference/methods"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from tests.emulators.slack import blocks
from tests.emulators.slack.world import Channel, File, Json, Message, User, World


class Refusal(Exception):
    """`ok: false`. `violation`: a bot that keeps to the rules would not have asked."""

    def __init__(self, error: str, *, violation: str = "", **more: Any) -> None:
        super().__init__(error)
        self.body = {"ok": False, "error": error, **more}
        self.violation = violation


Told = Callable[[Channel, Json], None]
Method = Callable[["Methods", Json], Json]


class Methods:
    """Carries calls out. `told`: an event about a channel."""

    def __init__(self, world: World, told: Told) -> None:
        self.world, self.told = world, told
        self.root = ""
        self._uploads: dict[str, File] = {}

    def call(self, method: str, given: Json) -> Json:
        """The answer. Raises Refusal."""
        if method not in METHODS:
            raise Refusal("unknown_method", violation=f"{method} is unknown to the emulator")
        function, scopes = METHODS[method]
        needed = [each.replace("KIND", self._kind(given)) for each in scopes]
        held = self.world.settings.scopes
        if needed and not held.intersection(needed):
            raise Refusal("missing_scope", needed=",".join(needed[:1]), provided=",".join(sorted(held)))
        return {"ok": True, **function(self, given)}

    def _kind(self, given: Json) -> str:
        return "im" if str(given.get("channel", "")).startswith("D") else "channels"

    # -- checks -----------------------------------------------------------------------------

    def channel(self, given: Json, *, inside: bool = True) -> Channel:
        """The channel of a call."""
        channel = self.world.channels.get(given.get("channel") or given.get("channel_id") or "")
        if channel is None:
            raise Refusal("channel_not_found")
        if inside and self.world.bot not in channel.members:
            raise Refusal("not_in_channel")
        return channel

    def content(self, given: Json, longest: int) -> tuple[str, list[Json]]:
        """The text and the blocks of a call."""
        text, shown = given.get("text", ""), json.loads(given.get("blocks") or "[]")
        if not text and not shown:
            raise Refusal("no_text", violation="a message without text")
        if len(text) > longest:
            raise Refusal("msg_too_long", violation=f"{len(text)} characters")
        if problems := list(blocks.faults(shown)):
            raise Refusal("invalid_blocks", violation=str(problems), response_metadata={"messages": problems})
        for sign in ("<!channel", "<!here", "<!everyone"):
            if sign in text:
                raise Refusal("restricted_action", violation="a text that pings everybody")
        return text, shown

    # -- methods ----------------------------------------------------------------------------

    def test(self, given: Json) -> Json:
        """auth.test"""
        bot, settings = self.world.bot, self.world.settings
        told = {"url": "https://emulated.slack.com/", "team": "Emulated", "user": bot.name.lower()}
        told |= {"team_id": settings.team, "user_id": bot.id, "bot_id": bot.bot_id}
        return told | ({"enterprise_id": settings.enterprise} if settings.enterprise else {})

    def post(self, given: Json) -> Json:
        """chat.postMessage"""
        channel = self.channel(given)
        if channel.archived:
            raise Refusal("is_archived")
        text, shown = self.content(given, blocks.LONGEST_TEXT)
        thread = given.get("thread_ts")
        if thread and channel.find(thread) is None:
            raise Refusal("thread_not_found")
        metadata = json.loads(given["metadata"]) if given.get("metadata") else None
        message = Message(
            ts=self.world.ts(),
            channel=channel,
            user=self.world.bot,
            texts=[text],
            blocks=shown,
            thread_ts=thread,
            metadata=metadata,
        )
        channel.messages.append(message)
        channel.status = ""
        self.told(channel, message.json())
        return {"channel": channel.id, "ts": message.ts, "message": message.json()}

    def whisper(self, given: Json) -> Json:
        """chat.postEphemeral"""
        channel, user = self.channel(given), self.world.users.get(given.get("user", ""))
        if user not in channel.members:
            raise Refusal("user_not_in_channel")
        text, shown = self.content(given, blocks.LONGEST_TEXT)
        message = Message(ts=self.world.ts(), channel=channel, user=self.world.bot, texts=[text], blocks=shown)
        message.only_for, message.thread_ts = user, given.get("thread_ts")
        channel.messages.append(message)
        return {"message_ts": message.ts}

    def update(self, given: Json) -> Json:
        """chat.update"""
        channel = self.channel(given, inside=False)
        message = channel.find(given.get("ts", ""))
        if message is None:
            raise Refusal("message_not_found")
        if message.user is not self.world.bot:
            raise Refusal("cant_update_message")
        text, message.blocks = self.content(given, blocks.LONGEST_EDIT)
        message.texts.append(text)
        message.edited = self.world.ts()
        return {"channel": channel.id, "ts": message.ts, "text": text}

    def history(self, given: Json) -> Json:
        """conversations.history: the newest first"""
        channel = self.channel(given)
        roots = [each for each in channel.messages if not each.thread_ts and not each.deleted and not each.only_for]
        return self._page(given, roots[::-1])

    def replies(self, given: Json) -> Json:
        """conversations.replies: the oldest first"""
        channel = self.channel(given)
        root = channel.find(given.get("ts", ""))
        if root is None:
            raise Refusal("thread_not_found")
        if root.thread_ts:  # of a reply only itself is told
            return {"messages": [root.json()], "has_more": False}
        page = self._page(given, channel.replies(root.ts))
        if not given.get("cursor"):
            page["messages"].insert(0, root.json())
        return page

    def _page(self, given: Json, found: list[Message]) -> Json:
        oldest, latest = float(given.get("oldest") or 0), float(given.get("latest") or 1e18)
        limit = int(given.get("limit") or 100)
        if limit > 999:
            raise Refusal("invalid_limit", violation="limit above 999")
        within = [each for each in found if oldest < float(each.ts) < latest]
        first = int(given.get("cursor") or 0)
        page = within[first : first + limit]
        more = first + limit < len(within)
        metadata = given.get("include_all_metadata") == "true"
        return {
            "messages": [each.json(metadata=metadata) for each in page],
            "has_more": more,
            "response_metadata": {"next_cursor": str(first + limit) if more else ""},
        }

    def info(self, given: Json) -> Json:
        """conversations.info"""
        channel = self.channel(given, inside=False)
        return {"channel": {"id": channel.id, "name": channel.name, "is_im": channel.kind == "im"}}

    def open(self, given: Json) -> Json:
        """conversations.open"""
        user = self.world.users.get(given.get("users", ""))
        if user is None:
            raise Refusal("user_not_found")
        return {"channel": {"id": self.world.direct(user).id}}

    def mine(self, given: Json) -> Json:
        """users.conversations"""
        types = str(given.get("types", "public_channel")).split(",")
        found = [each for each in self.world.channels.values() if self.world.bot in each.members]
        found = [each for each in found if ("im" if each.kind == "im" else "public_channel") in types]
        found = [each for each in found if not each.archived or given.get("exclude_archived") != "true"]
        first, limit = int(given.get("cursor") or 0), int(given.get("limit") or 100)
        more = first + limit < len(found)
        told = [{"id": each.id, "name": each.name} for each in found[first : first + limit]]
        return {"channels": told, "response_metadata": {"next_cursor": str(first + limit) if more else ""}}

    def person(self, given: Json) -> Json:
        """users.info"""
        user = self.world.users.get(given.get("user", ""))
        if user is None:
            raise Refusal("user_not_found")
        profile = {"display_name": user.name, "real_name": user.name}
        return {"user": {"id": user.id, "name": user.name.lower(), "profile": profile}}

    def file(self, given: Json) -> Json:
        """files.info"""
        file = self.world.files.get(given.get("file", ""))
        if file is None:
            raise Refusal("file_not_found")
        return {"file": file.json()}

    def upload(self, given: Json) -> Json:
        """files.getUploadURLExternal"""
        if not given.get("filename") or int(given.get("length") or 0) < 1:
            raise Refusal("invalid_arguments", violation="no filename, or no length")
        file = File(id=self.world.new("F"), name=given["filename"], mime="", content=b"")
        self._uploads[file.id] = file
        return {"upload_url": f"{self.root}/upload/v1/{file.id}", "file_id": file.id}

    def uploaded(self, file: str, content: bytes) -> bool:
        """The bytes came."""
        if file not in self._uploads:
            return False
        self._uploads[file].content = content
        return True

    def complete(self, given: Json) -> Json:
        """files.completeUploadExternal"""
        channel, named = self.channel(given), json.loads(given["files"])
        done = [self._uploads.pop(each["id"], None) for each in named]
        if any(each is None or not each.content for each in done):
            raise Refusal("file_not_found")
        shown = json.loads(given.get("blocks") or "[]")
        if problems := list(blocks.faults(shown)):
            raise Refusal("invalid_blocks", violation=str(problems))
        files = [each for each in done if each is not None]
        self.world.files |= {each.id: each for each in files}
        text = given.get("initial_comment", "")
        message = Message(ts=self.world.ts(), channel=channel, user=self.world.bot, texts=[text], blocks=shown)
        message.files, message.thread_ts = files, given.get("thread_ts")
        channel.messages.append(message)
        self.told(channel, message.json() | {"subtype": "file_share"})
        return {"files": [each.json() for each in files]}

    def status(self, given: Json) -> Json:
        """assistant.threads.setStatus"""
        channel = self.channel(given)
        channel.status = given.get("status", "")
        return {}

    def react(self, given: Json) -> Json:
        """reactions.add"""
        message = self.channel(given).find(given.get("timestamp", ""))
        if message is None:
            raise Refusal("message_not_found")
        mark = (given.get("name", ""), self.world.bot)
        if mark in message.reactions:
            raise Refusal("already_reacted")
        message.reactions.append(mark)
        return {}

    def unreact(self, given: Json) -> Json:
        """reactions.remove"""
        message = self.channel(given).find(given.get("timestamp", ""))
        mark = (given.get("name", ""), self.world.bot)
        if message is None or mark not in message.reactions:
            raise Refusal("no_reaction")
        message.reactions.remove(mark)
        return {}

    def publish(self, given: Json) -> Json:
        """views.publish"""
        user: User | None = self.world.users.get(given.get("user_id", ""))
        view = json.loads(given["view"])
        if user is None or view.get("type") != "home" or (problems := list(blocks.faults(view["blocks"]))):
            raise Refusal("invalid_arguments", violation=str(view) + str(problems))
        user.home = view["blocks"]
        return {}

    def open_view(self, given: Json) -> Json:
        """views.open"""
        view = json.loads(given["view"])
        trigger = given.get("trigger_id", "")
        user, since = self.world.triggers.get(trigger, (None, None))
        if user is None:
            raise Refusal("invalid_trigger_id")
        if since is None:
            raise Refusal("exchanged_trigger_id")
        if self.world.clock.now() - since > 3.0:
            raise Refusal("expired_trigger_id")
        if problems := list(blocks.view_faults(view)):
            raise Refusal("invalid_arguments", violation=str(problems))
        self.world.triggers[trigger] = (user, None)
        user.form = view | {"id": self.world.new("V")}
        return {"view": user.form}

    def prompts(self, given: Json) -> Json:
        """assistant.threads.setSuggestedPrompts"""
        prompts = json.loads(given["prompts"])
        if not 1 <= len(prompts) <= 4 or not all(each.get("title") and each.get("message") for each in prompts):
            raise Refusal("invalid_arguments", violation=str(prompts))
        channel = self.channel(given)
        if channel.find(given.get("thread_ts", "")) is None:
            raise Refusal("invalid_thread_ts")
        channel.prompts[given["thread_ts"]] = [each["message"] for each in prompts]
        return {}


METHODS: Final[dict[str, tuple[Method, tuple[str, ...]]]] = {
    "auth.test": (Methods.test, ()),
    "chat.postMessage": (Methods.post, ("chat:write",)),
    "chat.postEphemeral": (Methods.whisper, ("chat:write",)),
    "chat.update": (Methods.update, ("chat:write",)),
    "conversations.history": (Methods.history, ("KIND:history",)),
    "conversations.replies": (Methods.replies, ("KIND:history",)),
    "conversations.info": (Methods.info, ("KIND:read",)),
    "conversations.open": (Methods.open, ("im:write",)),
    "users.conversations": (Methods.mine, ("channels:read",)),
    "users.info": (Methods.person, ("users:read",)),
    "files.info": (Methods.file, ("files:read",)),
    "files.getUploadURLExternal": (Methods.upload, ("files:write",)),
    "files.completeUploadExternal": (Methods.complete, ("files:write",)),
    "assistant.threads.setStatus": (Methods.status, ("chat:write",)),
    "reactions.add": (Methods.react, ("reactions:write",)),
    "reactions.remove": (Methods.unreact, ("reactions:write",)),
    "views.publish": (Methods.publish, ()),
    "views.open": (Methods.open_view, ()),
    "assistant.threads.setSuggestedPrompts": (Methods.prompts, ("assistant:write",)),
}
