"""Messages on their way in and out, the people and places they come from, and the keys of conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Final, Literal
from urllib.parse import quote, unquote

from msgspec import Struct, field
from msgspec.structs import asdict

from gateway.domain.command import CommandCall, parse_command
from gateway.domain.usage import CanonicalUsage
from gateway.runtime.patterns import late
from gateway.runtime.structs import replace

ChatType = Literal["direct", "group", "thread"]
InboundKind = Literal[
    "message",
    "withdrawn",
    "steer",
    "queue",
    "press",
    "expiry",
    "schedule",
    "ended",
    "event",
    "helper",
    "speak",
    "forget",
    "unreadable",
    "overheard",
    "left",
    "joined",
    "renamed",
    "unread",
    "reaction",
]
OutboundKind = Literal["reply", "remark", "notice", "question", "command", "error", "reminder", "poll"]
SAYS: Final = "say "  # begins the token of a suggestion's button
SEVERAL: Final = "several"  # the token of the answers of a poll of which a person may give several
Sharing = Literal["per_user", "shared"]
Finish = Literal["stop", "length", "tool_calls", "content_filter"]

BEGINNING: Final = "0"  # of a conversation, as a place in it
CUT: Final = "cut"  # what looks like the beginning of a longer text, whose white space at the cut is gone
TORN: Final = "torn"  # the same, cut because nothing more fitted: no white space is missing


class ChatAddress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The destination of an Outbound. All parts are opaque outside their adapter."""

    platform: str
    chat: str
    thread: str | None = None


class Source(Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True):
    """Where an Inbound came from, and from whom. `renamed`: the chat's present name on the platform, if `chat` is only
    its first. `within`: names of what the chat lies in, such as a channel around a thread; `roles`: names of what the
    person is there; `chat_name`: what people call a group, if the platform says it. `cap`: the name of a key, and what
    its answers may cost in a day, in US dollars."""

    platform: str
    chat: str
    chat_type: ChatType
    user: str
    thread: str | None = None
    user_name: str = ""
    renamed: str | None = None
    within: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    chat_name: str = ""
    cap: tuple[str, float] | None = None

    @cached_property
    def address(self) -> ChatAddress:
        """Return the address for an answer."""
        return ChatAddress(platform=self.platform, chat=self.chat, thread=self.thread)


class SessionKey(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """The name of a conversation and of its owner.

    `user` is None in a conversation that its participants share. `helper`: the id of a helper that works for this
    conversation, with a lane and sessions of its own. The text form names and escapes every part, so that no two keys
    are written alike.
    """

    platform: str
    chat: str
    thread: str | None = None
    user: str | None = None
    helper: str | None = None

    def __str__(self) -> str:
        return self.text

    @cached_property  # asked a dozen times for every message
    def text(self) -> str:
        """The text form."""
        parts = [("chat", self.chat), ("thread", self.thread), ("user", self.user), ("helper", self.helper)]
        named = [f"{name}={quote(value, safe='')}" for name, value in parts if value is not None]
        return "/".join([quote(self.platform, safe=""), *named])

    @property
    def address(self) -> ChatAddress:
        """Return the address where its messages are shown."""
        return ChatAddress(platform=self.platform, chat=self.chat, thread=self.thread)

    @property
    def caller(self) -> SessionKey:
        """Return the key of the conversation that a helper works for; any other key is its own."""
        return self if self.helper is None else _key(self.platform, self.chat, self.thread, self.user)

    @cached_property
    def is_own(self) -> bool:
        """Whether this is one of the further chats that a person has alone with the bot."""
        return self.helper is None and self.thread is not None and self.thread.startswith(OWN)

    @cached_property
    def owner(self) -> SessionKey:
        """The key whose rules, skills, workspace and search the conversation has: one for all chats that a person has
        alone with the bot. Any other key is its own, a helper's as well."""
        return _key(self.platform, self.chat, None, self.user) if self.is_own else self

    @staticmethod
    @lru_cache(maxsize=8_192)
    def parse(text: str) -> SessionKey:
        """The inverse of `str(key)`. Raises ValueError on anything else."""
        platform, *named = text.split("/")
        parts: dict[str, str] = {}
        for part in named:
            name, separator, value = part.partition("=")
            if not separator or name not in ("chat", "thread", "user", "helper") or name in parts:
                raise ValueError(f"not a session key: {text!r}")
            parts[name] = unquote(value)
        if not platform or "chat" not in parts:
            raise ValueError(f"not a session key: {text!r}")
        key = _key(unquote(platform), parts["chat"], parts.get("thread"), parts.get("user"))
        return replace(key, helper=parts["helper"]) if "helper" in parts else key


@lru_cache(maxsize=8_192)  # so that each writes its text once
def _key(platform: str, chat: str, thread: str | None, user: str | None) -> SessionKey:
    return SessionKey(platform=platform, chat=chat, thread=thread, user=user)


def session_key(source: Source, *, groups: Sharing, threads: Sharing) -> SessionKey:
    """The key a source talks under: a direct chat is its chat, a group is split by user or not."""
    if source.chat_type == "direct":
        user = None
    else:
        sharing = threads if source.chat_type == "thread" else groups
        user = source.user if sharing == "per_user" else None
    return _key(source.platform, source.chat, source.thread, user)


def is_shared(key: SessionKey, source: Source) -> bool:
    """Whether several people may speak under this key."""
    return key.user is None and source.chat_type != "direct"


def spoken(key: SessionKey, source: Source, text: str) -> str:
    """Return a person's text as the model reads it: with their name where several people share a session. A name is
    theirs to choose, so nothing in it may look like the end of it or like another line."""
    if not is_shared(key, source):
        return text
    return f"[{speaker(source)}] {_SPEAKER_MARK.sub(_BENT, text)}"


def speaker(source: Source) -> str:
    """The speaker's name, in a form for brackets on a line of others' words."""
    return " ".join((straight(source.user_name).strip() or source.user).translate(_NO_BRACKETS).split())


def straight(text: str) -> str:
    """A name without the invisible characters that change the direction of what follows."""
    return text if text.isascii() else _TURNS.sub("", text)


def unspoken(key: SessionKey, source: Source, text: str) -> str:
    """Return only the words: the inverse of `spoken`."""
    name, end, words = text.partition("] ")
    return words if spoken(key, source, "") and name.startswith("[") and end else text


_TURNS: Final = late("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NO_BRACKETS = {ord("["): "(", ord("]"): ")"}
# What would read as the beginning of somebody's line; a note of the gateway's own stands alone on its line.
_SPEAKER_MARK: Final = late(
    r"(?:\A|(?<=[\n\r\v\f\x85\u2028\u2029]))(?P<before>[ \t\u00a0\u200b-\u200f\u2060\u3000\ufeff]{0,40}+)"
    r"[\[\uff3b\u3010](?P<name>[^\]\uff3d\u3011\n\r]{1,200}+)[\]\uff3d\u3011](?=[ \t\u00a0\u200b-\u200f\u3000:\uff1a])"
    r"(?=[^\n\r]*\S)"
)
_BENT: Final = r"\g<before>(\g<name>)"


class Attachment(Struct, frozen=True, kw_only=True):
    """A file that came with a message; `ref` is how its adapter fetches it. `seconds`: how long a recording is.
    `preview`: how its adapter fetches a picture of it; of a video that cannot be fetched, the `ref` as well.
    `in_passing`: its sender did not send it, but was heard in a room; without words it is no message."""

    kind: Literal["image", "voice", "document"]
    ref: str
    name: str = ""
    mime: str = ""
    size: int | None = None
    seconds: float | None = None
    preview: str = ""
    in_passing: bool = False

    @property
    def is_video(self) -> bool:
        """Whether its sender declares it as a video."""
        return self.mime.startswith("video/")


class Terms(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds only for one turn. `settings`: for its model calls, by the names of Chat Completions; `max_tokens`:
    for one answer. `tools`: function schemas of the program's own tools, which it runs itself; `must_call`: the answer
    must be a call of them. `results`: results of earlier calls, as (call id, text)."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    must_call: bool = False
    results: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The names of the program's tools."""
        return frozenset([tool["function"]["name"] for tool in self.tools])

    @property
    def wanted(self) -> frozenset[str]:
        """The names of the settings, as `ProviderPlugin.takes` has them."""
        form = self.settings.get("response_format", {}).get("type")
        return frozenset(self.settings) | ({form} & {"json_object"})

    @property
    def words_alone(self) -> bool:
        """Whether a program reads the answer, so that nothing may be added to it."""
        return "response_format" in self.settings


NO_TERMS: Final = Terms()


class Returns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an answer ends, what it used, and which of the program's tools it calls. `fault`: why there is none: the
    `request` cannot be answered as it is, its `length` is too much, or a spend `cap` is reached; "" if there is one, or
    something else failed."""

    fault: Literal["", "request", "length", "cap"] = ""
    finish: Finish = "stop"
    calls: tuple[Mapping[str, Any], ...] = ()
    usage: CanonicalUsage = CanonicalUsage()


class Said(Struct, frozen=True, kw_only=True):
    """What somebody said in a group, not to the bot; a source without `user` is the bot itself. `place` is what the
    platform calls the message."""

    source: Source
    text: str
    at: float  # seconds since the epoch
    place: str | None = None


class Inbound(Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True):
    """One thing a lane must deal with, normalised.

    `event_id` is stable: the same event has the same one, and (platform, event_id) is accepted once. `kind` is one of

        message    what a person sent
        withdrawn  a message that its writer took back; `text` names its events, a line each, if it was answered before
        steer      a text for the running turn        queue      a text for a turn of its own, whatever the busy mode
        press      a button; `text` is its token      schedule   a prompt whose time has come
        speak      an answer to be said aloud         helper     a task that a turn handed on
        ended      the end of something in the background; `woke` says it in a short line
        event      news of another program; `woke` as before, `lets`: its tools with effects that need no yes
        expiry     our own request to end the session whose id is `text`
        forget     our own request to forget what the source's person said under this key
        unreadable one that its store can no longer read

    or, never stored:

        left       the bot can show nothing in the chat any more; `text` says why
        joined     it can again                       renamed    the chat was called `text` before
        unread     a person sent what the bot cannot read; `text` is the sentence that tells them so
        overheard  what a group said, as far as the platform knows not to the bot
        reaction   signs that a person put on the message `reply_to`, or took away: `+👎`, `-👎 +👍`

    `part_of`: more of the same message may follow, because its client sent it in parts. It is `CUT` or `TORN` for a
    text, else the name of a group of files. `only_as_part`: it counts only if it goes on with a message to the bot.
    `place` is what the platform calls the message; `reply_to` names the message that this one answers, so.
    `own`: the words of `text` that the sender said, if others' are among them, which were forwarded, quoted or written
    by another bot. None: all are the sender's. Only a person's own words command, pin or constrain.
    `terms`: what the sending program asks for; None: nothing, or no program sent it.
    `after`, of a client that holds the history itself: the event behind whose answer the message goes on, with `/` and
    that answer's `answer_mark`, or BEGINNING. Of several, the first that is known counts. None: it goes on wherever the
    conversation is.

    Never stored are five more. `before`: what the group said before it, oldest first, if the adapter can look that up.
    `notice`: a sentence for the chat once the message is taken. `can_wait`: while its lane is full its adapter keeps
    it, and offers it again. `amends`: the events of a message's earlier wordings, newest first, if this is its new
    wording or its withdrawal; what waits of them is changed. `parts`: the events of the other parts of a message that
    its client cut.
    """

    event_id: str
    source: Source
    text: str
    kind: InboundKind = "message"
    attachments: tuple[Attachment, ...] = ()
    reply_to: str | None = None
    place: str | None = None
    sent_at: float = 0.0
    part_of: str | None = None
    only_as_part: bool = False
    own: str | None = None
    notice: str = ""
    can_wait: bool = False
    amends: tuple[str, ...] = ()
    woke: str = ""
    after: str | None = None
    lets: tuple[str, ...] = ()
    terms: Terms | None = None
    before: tuple[Said, ...] = ()
    parts: tuple[str, ...] = ()

    @cached_property  # asked again and again on the way to a turn
    def command(self) -> CommandCall | None:
        """The slash command that a message calls."""
        called = parse_command(self.text) if self.kind == "message" and "/" in self.text else None
        return called if self.own is None or parse_command(self.own) else None

    @property
    def typed(self) -> str:
        """The text as its writer typed it. Of /queue and /steer, `text` is only what follows."""
        return f"/{self.kind} {self.text}" if self.kind in ("queue", "steer") else self.text

    @property
    def is_own_request(self) -> bool:
        """Whether the gateway made this message itself; such a message tells nothing of the people in the chat."""
        return self.kind in ("expiry", "schedule", "ended", "event", "helper", "speak", "forget")

    @property
    def is_group_file(self) -> bool:
        """Whether this is a file of several that were sent together."""
        return self.part_of not in (None, CUT, TORN)


def readable(inbound: Inbound) -> str:
    """A message in one text: its words, and a line that names its files."""
    if not inbound.attachments:
        return inbound.text
    note = f"[sent with this message: {'; '.join(map(named, inbound.attachments))}]"
    return f"{inbound.text.rstrip()}\n{note}" if inbound.text.strip() else note


def named(file: Attachment, *, capital: bool = False) -> str:
    """A file in a sentence. Its name is someone else's to choose, so nothing in it may look like the
    end of the line or of its brackets."""
    name = one_line(file.name)
    text = ("a video" if file.is_video else _NAMED[file.kind]) + (f' "{name}"' if name else "")
    return text[0].upper() + text[1:] if capital else text


_NAMED: Final = {"image": "a picture", "voice": "a voice message", "document": "a file"}
_NO_QUOTES: Final = {**_NO_BRACKETS, ord('"'): "'", ord("<"): "(", ord(">"): ")"}
_LONGEST_NAME: Final = 100  # characters of a file's


def one_line(name: str, most: int = _LONGEST_NAME) -> str:
    """A file's name in a form for sentences: no line ends, brackets, quotes or control characters."""
    return in_a_line(name.translate(_NO_QUOTES), most)


def in_a_line(words: str, most: int) -> str:
    """Our own words in a form for sentences: no line ends or control characters."""
    shown = "".join(character if character.isprintable() else " " for character in words)
    return " ".join(shown.split())[:most]


def file_note(file: Attachment) -> dict[str, Any]:
    """An attachment as plain data."""
    return asdict(file)


def file_in(note: Mapping[str, Any]) -> Attachment:
    """The inverse of `file_note`; what a later release may have added is passed over."""
    return Attachment(**{name: note[name] for name in Attachment.__struct_fields__ if name in note})


class Button(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A button under a message.

    Its `token` comes back when somebody presses it; to the platform it means nothing. People choose among several
    `tick`s, and press `send` when done. A platform may show these as a menu: then one press has the token of `send`,
    followed by lines with those of the chosen `tick`s. `words` asks for words; a platform with forms gives them in the
    lines after its token, one without shows no such button.
    """

    label: str
    token: str
    kind: Literal["press", "tick", "send", "words"] = "press"


class OutboundState(StrEnum):
    """The stages of an Outbound. The stores' SQL and Lua take these words from here."""

    STREAMING = "streaming"  # still being written, so without a place in its chat's order
    PENDING = "pending"  # waits for its turn or for its time
    SENDING = "sending"  # a process sends it; after that one's death nobody knows whether it was shown
    SENT = "sent"
    REFUSED = "refused"  # will never be shown
    WITHHELD = "withheld"  # could not be shown, or nobody knows; shown once its person asks for it


# A new state that is not final belongs into one of these; the stores' SQL and Lua ask for a state's group.
WAITING: Final = (OutboundState.PENDING,)  # no process has the row in hand
PLACED: Final = (*WAITING, OutboundState.SENDING)  # the row has a place in its chat's order
UNSENT: Final = (OutboundState.STREAMING, *PLACED)

KEPT: Final[tuple[OutboundKind, ...]] = ("reply", "remark", "question", "command", "reminder")  # beside files

# Sends of a row without an answer, in its place among its chat's rows. With one more the row holds up no other while it
# waits, and goes out as soon as another row of its chat is shown.
MOST_DOUBTS: Final = 5
MOST_PLACE: Final = 4_000_000_000_000_000  # of rows that somebody waits for; until they are claimed, others come behind
# A chat's rows wait in rounds, of a conversation one row in each: the answers of a round, then its notices. Who has no
# row waiting gets into the round behind the next row's, whatever others have waiting. Half a round has so many places.
# Where nothing waits, a row stands behind all that the chat has shown; in Redis by the server's time, of which a round
# takes a fifth of a millisecond.
MOST_IN_ROUND: Final = 100
SCHEDULED: Final = "schedule:"  # the event ids of prompts that run by the clock begin so
ENDED: Final = "ended:"  # the same, of what ran in the background and has ended
HELPER: Final = "helper:"  # the same, of helpers
EVENT: Final = "event:"  # the same, of what other programs told
_ENDED_LOOK: Final = f"{ENDED}heartbeat:"
OWN: Final = "~"  # begins the thread of one of several chats that a person has alone with the bot
ERRANDS: Final = "errands"  # the thread of what a front end asks for itself: no person reads it
HEARTBEAT: Final = "heartbeat:"  # the same, of looks now and then, with the day behind
JOINED: Final = "joined:"  # the same, of words in a group that nobody said to the bot, and that it answers unasked


class Outbound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message to be shown to people, and how far its delivery got.

    `id` is fixed before the first attempt and never changes; `to` and `key` say where it belongs,
    and a difference between them aborts the send. `answers` is the event_id it responds to. A `remark` is
    what the model said before a `question` that its turn waits for; its `reply` is yet to come. A `reminder` was
    asked for long before. A `poll` is a question and its numbered answers; its buttons are the answers. `buttons`
    are rows of them, shown where the platform has buttons. `edits` is the id of an earlier Outbound of
    the chat whose message this one takes the place of, where the platform can edit.
    """

    id: str
    key: SessionKey
    to: ChatAddress
    kind: OutboundKind
    text: str
    session_id: str | None = None
    answers: str | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    edits: str | None = None
    state: OutboundState = OutboundState.PENDING
    platform_message_id: str | None = None
    attempts: int = 0  # sends begun, whatever became of them, but for those that the platform asked to wait
    ambiguous: int = 0  # sends begun whose outcome is unknown
    due_at: float = 0.0  # not before this time (seconds since the epoch)
    created_at: float = 0.0
    error: str | None = None  # why it was refused
    shown_at: float | None = None  # when the platform said that it shows the row
    file: KeptFile | Album | None = None  # shown with the text as its caption
    returns: Returns | None = None  # of a reply to a message with `terms`
    code_at: int = 0  # where in the text of a question a command begins that it is about; 0: nowhere

    @property
    def files(self) -> tuple[KeptFile, ...]:
        """The file, or the files of an album."""
        if self.file is None:
            return ()
        return (self.file, *self.file.others) if isinstance(self.file, Album) else (self.file,)

    @property
    def own_captions(self) -> tuple[str, ...]:
        """The captions of an album's files one by one, if there are several and all are with them."""
        if isinstance(self.file, Album) and self.text == all_of(self.file.captions):
            return self.file.captions
        return ()

    @property
    def unasked(self) -> bool:
        """Whether nobody waits for it, so that the other rows of its chat go first."""
        return self.kind == "reminder" or (self.answers or "").startswith(SCHEDULED)

    @property
    def beside(self) -> bool:
        """Whether people did not wait for it: a notice about a message, the outcome of a look, an answer to words that
        were not said to the bot."""
        answers = self.answers or ""
        return bool(answers) and (self.kind == "notice" or answers.startswith((HEARTBEAT, _ENDED_LOOK, JOINED)))


# -- files ---------------------------------------------------------------------------------------------

OUTPUT: Final = "output:"  # begins the `ref` of what no person sent or was sent: a tool's result
EXPORT: Final = "export"  # begins the `ref` of a copy of a conversation, before a colon
_FOR_PEOPLE: Final = (".txt", ".md", ".markdown", ".csv", ".tsv", ".log")
PICTURE: Final = "picture"  # the same of a picture that was made
VOICE: Final = "voice:"  # begins the `ref` of an answer said aloud
WORDS: Final = "words:"  # begins the `ref` of what is said in a recording, before the recording's digest


def encoded(name: str, text: str) -> bytes:
    """A text as the content of a file of this name. What people open on telephones and in spreadsheets is marked as
    UTF-8, or ğ and 中 are rubble there; what programs read is not, for many refuse the mark."""
    is_marked = not text.isascii() and not text.startswith("\ufeff") and name.lower().endswith(_FOR_PEOPLE)
    return text.encode("utf-8-sig" if is_marked else "utf-8", "replace")


class KeptFile(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="file"):
    """A kept file without its content.

    `ref` is unique within its key: how the file's adapter names it, or who made it. `digest` is the
    SHA-256 of the content, in hex; `size` its bytes. `name` is whatever somebody called it.
    """

    ref: str
    digest: str
    name: str
    mime: str
    size: int
    at: float  # when it was kept, in seconds since the epoch

    @property
    def is_voice(self) -> bool:
        """Whether it is an answer said aloud."""
        return self.ref.startswith(VOICE)


class Album(KeptFile, frozen=True, kw_only=True, tag="album"):
    """The first of several files that one message shows. `captions`: of each, where more than one has one."""

    others: tuple[KeptFile, ...]
    captions: tuple[str, ...] = ()


def all_of(captions: Iterable[str]) -> str:
    """Several captions in one text."""
    return "\n\n".join(filter(None, captions))
