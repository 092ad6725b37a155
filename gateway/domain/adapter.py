"""The adapter port: how a platform's messages come in and go out.

An adapter reads its platform in `run` and hands what it read to `accept`, which returns only
when it is durable; only then may the platform be told. What an adapter can do beyond sending is
a separate Protocol, asked for with isinstance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

from gateway.domain.chat import Attachment, ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.domain.command import Parameter, Proposal

if TYPE_CHECKING:
    from gateway.domain.keys import Key

REPEATED: Final = "↻\n\n"  # before a message that may stand there already; its Markdown begins a line of its own

ADMIN_ROLE: Final = "admin"  # of a source that came by an admin's key


class Limits(Struct, frozen=True, kw_only=True):
    """The limits that a platform declares.

    `text_units`: most text units of one message (None: no limit), counted in `unit`. `split_reply` cuts a reply,
    which is Markdown, into parts that can be shown each by itself (None: as any text). `ambiguous_retries`: how
    often a send whose answer was lost is repeated as it is; further repeats begin with a mark (None: none does,
    because the reader can tell repeats apart by their id). `pauses_when_full`: the adapter stops reading while a
    lane is full, instead of having messages refused. `trusted`: everyone who can reach it is the operator; with an
    `operator`, only the person of this id is, and the access lists hold for others. `file_bytes`: the largest file
    that can be shown (None: none can); `album`: how many one message shows. `fits_caption`: whether a text, which is
    Markdown, can be shown with a file (None: any can). `direct_chat`: the chat in which a person is alone with the
    bot, by their id (None: it cannot be known). `mail_ids`: people's ids hold an `@` inside, as addresses of mail do.
    `keyed`: who reaches it has shown a key of ours, so may talk, and is an admin by the role `ADMIN_ROLE`. `voice`:
    the format of an answer said aloud (opus: in Ogg, as voice messages are), where files can be shown. `reach`: for how
    many seconds after a person's last words they can be shown what they did not just ask for (None: always)."""

    text_units: int | None = None
    unit: Literal["codepoints", "utf16"] = "codepoints"
    split_reply: Callable[[str], Sequence[str]] | None = None
    ambiguous_retries: int | None = 0
    pauses_when_full: bool = False
    trusted: bool = False
    operator: str | None = None
    file_bytes: int | None = None
    fits_caption: Callable[[str], bool] | None = None
    album: int = 1
    direct_chat: Callable[[str], str] | None = None
    mail_ids: bool = False
    keyed: bool = False
    voice: Literal["opus", "mp3"] = "mp3"
    reach: float | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    """The fate of one Inbound handed to `accept`. `told`: the sentence for the person who pressed a button, or whose
    command is refused; "": none. `answers`: the event of the turn whose question it answered, which goes on; "": none.
    `full_for`: seconds for which its writer's plain words there would be refused, too, so that the adapter need not
    hand them over: reading them costs more than refusing them. `said` and `at`: the words and the time (seconds since
    the epoch) with which it is stored."""

    event_id: str
    status: Literal["new", "duplicate", "full", "refused"]
    told: str = ""
    full_for: float = 0.0
    answers: str = ""
    said: str = ""
    at: float = 0.0


Audience = Literal["everybody", "person", "admins"]


class MenuEntry(Struct, frozen=True, kw_only=True):
    """A command in a platform's menu, for `everybody`, for a `person` in their private chat because its answer is
    nobody else's business, or for `admins` in theirs. `parameters`: in the order in which they are written.
    `passes_on`: it is a message in another form, without an answer of its own. `aliases`: its other names, for menus
    that show all."""

    name: str
    help: str
    audience: Audience = "everybody"
    parameters: tuple[Parameter, ...] = ()
    passes_on: bool = False
    aliases: tuple[str, ...] = ()


Accept = Callable[[Sequence[Inbound]], Awaitable[Sequence[Accepted]]]
"""`await accept(batch)`: store what was read. Raises StoreUnavailable: then hand the batch over again; what of it was
taken is known by then."""


class Adapter(Protocol):
    """One platform. `run` returns when there is nothing more to read; after a bug in it, it is called again."""

    name: str
    limits: Limits

    async def run(self, accept: Accept) -> None:
        """Read the platform until it ends or the task is cancelled."""

    async def send(self, outbound: Outbound) -> str:
        """Show a message; returns the platform's id for it. Raises AdapterError."""

    async def aclose(self) -> None:
        """Let go of the platform. Idempotent."""


@runtime_checkable
class HasAccount(Protocol):
    """Reads a platform that only one process at a time may read.

    The process that holds the account's lease calls `run`; if it loses the lease, it cancels `run`, and may call it
    again later. `account` names it within the platform (a bot's id). `waits_for_account`: take over when the other
    reader is gone, instead of giving up at once. `reader_sends`: only the reading process can show messages, as in a
    terminal; otherwise every process that has the adapter sends. Then its input is nobody else's: `run` continues, and
    `accept` raises StoreUnavailable while the lease is away.
    """

    account: str
    waits_for_account: bool
    reader_sends: bool


class _Account(Protocol):
    name: str
    account: str


def account_of(adapter: _Account) -> str:
    """The account under its adapter's name. A platform counts each account by itself, and one process reads it."""
    return f"{adapter.name}:{adapter.account}"


@runtime_checkable
class HasRates(Protocol):
    """Shows messages no faster than its platform allows, all processes together.

    `account`: on whose behalf it sends (a bot's id); the platform counts each account by itself.
    """

    name: str
    account: str

    def rates(self, to: ChatAddress) -> Sequence[Rate]:
        """The limits that a message to `to` counts against, narrowest first: the chat's own, then the whole account's.
        After a RateLimited, the first of them rests, or the last if it concerns all."""


LOGIN_NOTE: Final = "login "  # begins the names of an account's notes about logins: JSON with the `person` of each


class Notebook(Protocol):
    """Notes of one account, small texts by name. They outlive the process, and are the same for all processes."""

    async def read(self) -> Mapping[str, str]:
        """All of them. Raises StoreUnavailable."""

    async def write(self, changes: Mapping[str, str | None]) -> None:
        """Write these, or forget those that are None; all of it or nothing. Raises StoreUnavailable."""


@runtime_checkable
class TakesNotes(Protocol):
    """Remembers facts of its account from one run to the next, such as how far it has read. `account` as in
    HasAccount; `notebook` is None until it is set, before `run` is called."""

    account: str
    notebook: Notebook | None


class Finding(Struct, frozen=True, kw_only=True):
    """One line that `legato check` prints. `ok` None: worth knowing, but not wrong. `public`: its detail may be in a
    report for an issue, because it names nobody and nothing of the person's own."""

    what: str
    ok: bool | None
    detail: str
    public: bool = False


Renamed = Callable[[str, str], Awaitable[None]]
"""`await renamed(before, after)`: the platform calls a chat by another name now. Raises StoreUnavailable."""


@runtime_checkable
class LearnsNames(Protocol):
    """May learn from a call it makes, and from nothing else, that a chat has another name now. `renamed` is None until
    it is set, before anything is sent."""

    renamed: Renamed | None


@runtime_checkable
class ShowsLife(Protocol):
    """Reads in a way that always gives a sign of life, however little is said there.

    A reading that gives none for `longest_silence` seconds is ended and started again. `alive_at`: when the last sign
    came (seconds, monotonic); None: nothing is being read.
    """

    alive_at: float | None
    longest_silence: float


@runtime_checkable
class TellsReach(Protocol):
    """Knows whether its platform can be reached. `unreached_since`: since when no attempt got there (seconds,
    monotonic); None: the last one did, or none was made."""

    unreached_since: float | None


@runtime_checkable
class CountsUnread(Protocol):
    """Can ask its platform's server what it keeps for the bot. If it keeps something for a while and nothing arrives,
    the reader is started again."""

    async def unread(self) -> int:
        """How many updates nobody has read. Raises AdapterError."""


@runtime_checkable
class IsWatched(Protocol):
    """Shows everything at once to a person in front of it. Nothing else may write there, a reply may take its time, and
    once the input has ended nobody is there to answer questions."""

    watched: bool


@runtime_checkable
class IsTerminal(Protocol):
    """Is a person's own terminal or pipe: the program ends with its input, or with its error, which must be seen."""

    is_terminal: Literal[True]


@runtime_checkable
class OpensFirst(Protocol):
    """Takes what it needs of this machine before `run` is called, so that a person can be told before a prompt opens
    where they will type."""

    def open(self) -> str:
        """Take it; returns a line for the person who started the program. Raises AdapterError."""


@runtime_checkable
class HearsInterrupts(Protocol):
    """Has a key that interrupts the work at hand. The key may come as a signal, too, or from another program."""

    def interrupted(self) -> bool:
        """Do what the key does. False: the person has left, and only the program's end is left to wait for."""


@runtime_checkable
class KnowsFailures(Protocol):
    """Knows whether the answer to some message was an error, so that the program's exit status says so, too."""

    failed: bool


@runtime_checkable
class CanBeProbed(Protocol):
    """Can say, before it runs, whether its platform accepts it."""

    async def probe(self) -> Sequence[Finding]:
        """Return the findings of a look at the platform; a failure is a finding, too."""


@runtime_checkable
class CanPing(Protocol):
    """Can find out whether its platform answers at all: a send with a lost answer is repeated only then."""

    async def ping(self) -> None:
        """Make a call that changes nothing; return once the platform itself answered. Raises AdapterError."""


@runtime_checkable
class CanEdit(Protocol):
    """Changes sent messages, so that a reply can be shown while it is being written. `account`: see HasRates."""

    account: str

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        """Replace the text of a message that was sent. Editing twice does no harm, so no error of it is
        Ambiguous. Raises AdapterError; MessageGone if there is nothing to edit."""

    def draft_rates(self, to: ChatAddress) -> Sequence[Rate] | None:
        """Limits for edits of an unfinished reply to `to`, narrowest first; they leave most of the platform's own
        limits to finished messages. None: an unfinished reply is not shown by edits."""


@runtime_checkable
class CanPreview(Protocol):
    """Besides editing, shows a reply while it grows as a preview, which disappears with the next message to its chat,
    or after `preview_seconds`."""

    preview_seconds: float

    async def preview(self, outbound: Outbound) -> None:
        """Show `outbound.text` in place of the reply's preview so far. Raises AdapterError; where the platform
        refuses previews, `preview_rates` is None from then on."""

    def preview_rates(self, to: ChatAddress) -> Sequence[Rate] | None:
        """Limits for previews to `to`, narrowest first, apart from those of finished messages. None: there are no
        previews, so that edits show the reply, if anything does."""


@runtime_checkable
class HasButtons(Protocol):
    """Shows the buttons of an Outbound under it, and shows an edit of it with those that the edit has. A press is an
    Inbound of kind `press` whose text is the button's token; the person is told the sentence in `Accepted`."""

    longest_token: int  # bytes: what a button can carry


Propose = Callable[[Inbound], Awaitable[Sequence[Proposal]]]
"""`await propose(typed)`: values for the argument of the unfinished command `typed`; none for a stranger. Raises
StoreUnavailable."""

Admits = Callable[[Source], Awaitable[bool]]
"""`await admits(writer)`: whether somebody may talk there. Raises StoreUnavailable."""


@runtime_checkable
class AsksFirst(Protocol):
    """Asks its platform for more about some messages, or does something about them there, before it hands them over.
    All that is for those who may talk: a stranger's message is handed over as it is. `admits` is None until it is set,
    before `run` is called."""

    admits: Admits | None


class KnowsKeys(Protocol):
    """Knows the keys that hold."""

    async def holder(self, secret: str) -> Key | None:
        """The key of this secret. Raises StoreUnavailable."""

    def is_strange(self, secret: str) -> bool:
        """Whether nobody has this secret, if that is known without asking the store."""

    async def of(self, person: str) -> Key:
        """The key by which somebody talks. Raises UserError if there is none, StoreUnavailable."""


@runtime_checkable
class AsksForKeys(Protocol):
    """Lets in everybody who has a key. `keys` is None until it is set, before `run` is called."""

    keys: KnowsKeys | None


AnswerMcp = Callable[["Key", SessionKey, Sequence[tuple[str, str]], bytes], Awaitable[tuple[int, str, bytes]]]
"""`await answer(key, own, headers, body)`: the status, type and body of the answer to a POST of this key's program.
`own` is the chat of the key's own person."""


@runtime_checkable
class SpeaksMcp(Protocol):
    """Hands on the requests of MCP's streamable HTTP. `mcp` is None until it is set, before `run` is called."""

    mcp: AnswerMcp | None


@runtime_checkable
class ShowsProposals(Protocol):
    """Shows possible values to a person who types a command. `propose` is None until it is set, before `run`."""

    propose: Propose | None


class Event(Struct, frozen=True, kw_only=True):
    """Something that another program tells a chat. `what`: who tells it, in a short line, such as "an event came from
    NAME". Events of one `id`, or whose id is among `also`, are the same one. `task` None: `text` is shown; else the
    agent is asked, with this task of the operator's ("": to tell what matters). `to` None: the home chat. `person`:
    whose conversation of a group it is for. `lets`: the tools with effects that the agent may use without a yes."""

    what: str
    id: str
    also: tuple[str, ...] = ()
    to: ChatAddress | None
    text: str
    task: str | None = None
    person: str | None = None
    lets: tuple[str, ...] = ()


TakeEvent = Callable[[Event], Awaitable[Literal["new", "duplicate", "full"]]]
"""`await take_event(event)`: it is stored once this returns, but for a `full` lane. Raises UserError where it can never
be, StoreUnavailable where it may be later."""


@runtime_checkable
class TakesEvents(Protocol):
    """Is told by other programs what concerns the chats of any platform. `take_event` is None until it is set, before
    `run` is called."""

    take_event: TakeEvent | None


@runtime_checkable
class CanStream(Protocol):
    """Shows a reply as it comes, without a stored message. Each call gives the whole text so far."""

    async def show_partial(self, outbound: Outbound) -> None:
        """`outbound` is the reply so far. Best effort: errors are the adapter's to swallow."""


@runtime_checkable
class CanType(Protocol):
    """Shows that an answer is being made."""

    async def typing(self, to: ChatAddress, active: bool) -> None:
        """Best effort."""


Sign = Literal["taken", "done", "failed"]

SIGNS: Final[Mapping[Sign, str]] = {"taken": "👀", "done": "✅", "failed": "⚠️"}
"""The signs as emoji, where a platform lets bots use these."""


@runtime_checkable
class CanReact(Protocol):
    """Puts a sign of the bot's on a person's message, and tells of people's reactions to the bot's messages: an Inbound
    of kind `reaction`."""

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        """Show the reaction in place of the one before. `message`: the platform's name for it, an Inbound's `place`.
        Raises AdapterError."""


class Doing(Struct, frozen=True):
    """What a turn does, in `words` for a line. `asks`: it only asks the model; `thinks`: that thinks before it
    answers."""

    words: str
    asks: bool = False
    thinks: bool = False


@runtime_checkable
class CanShowWork(Protocol):
    """Shows the present work of a turn in a status line, which costs no message."""

    def working(self, to: ChatAddress, doing: Doing, again_in: float) -> None:
        """From now on the turn is `doing` this. With `again_in`, it asks the model again in so many seconds. Returns at
        once, and hides its errors."""


@runtime_checkable
class KeepsTyped(Protocol):
    """Keeps what a person typed, to offer it again."""

    def forget_typed(self, goes: Callable[[str], bool]) -> None:
        """Forget every text for which `goes` is true."""


@runtime_checkable
class KeepsLinks(Protocol):
    """Keeps links to conversations."""

    async def end_links(self, chat: str) -> None:
        """End those to conversations of this chat that were forgotten. Raises StoreUnavailable."""


@runtime_checkable
class HasTopics(Protocol):
    """Has topics or threads in its groups, which the bot may open where it has the right."""

    async def open_topic(self, to: ChatAddress, name: str, text: str) -> None:
        """Open a topic in the group of this address. `text`: its first message, if it needs one. Raises
        AdapterError."""

    async def change_topic(self, to: ChatAddress, *, name: str, closed: bool) -> None:
        """Name the one at this address, or close it. Raises AdapterError."""


class Rooms(Protocol):
    """Rooms in which people talk, such as voice channels. Where the bot is in one, an answer said aloud is heard there,
    and not shown."""

    async def join(self, to: ChatAddress, person: str, *, listens: bool) -> str:
        """Go where this person is, and say this chat's answers there; returns the room's name. `listens`: what those
        who are let in say there are messages to this chat. Raises UserError."""

    async def leave(self, to: ChatAddress) -> bool:
        """Leave the room of this chat; False: the bot is in none."""

    def speaks(self, to: ChatAddress) -> bool:
        """Whether the answers of this chat are said in a room, by this process."""

    def hush(self, to: ChatAddress) -> bool:
        """Say no more of the present answer; False: nothing was being said."""


@runtime_checkable
class HasRooms(Protocol):
    """May have such rooms. `rooms` None: that is off."""

    rooms: Rooms | None


@runtime_checkable
class CanFetch(Protocol):
    """Hands over files that came with messages."""

    async def fetch(self, file: Attachment) -> bytes:
        """A file's content. Raises FileRefused if the file can never be fetched (too large for the platform: before
        anything is read); another AdapterError if it may be fetched later."""


@runtime_checkable
class CanSendFiles(Protocol):
    """Shows files. `Limits.file_bytes` says how large they may be, also to a process without the adapter."""

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        """Show `outbound.file` with the text as its caption; returns the platform's id for it. Raises AdapterError."""


@runtime_checkable
class CanSendAlbums(Protocol):
    """Shows up to `Limits.album` files in one message."""

    async def send_album(self, outbound: Outbound, contents: Sequence[bytes]) -> str:
        """Show `outbound.files` with the text as their caption; returns the platform's id for it. Raises
        AdapterError."""


@runtime_checkable
class MakesPolls(Protocol):
    """Shows an Outbound of kind `poll` as one, or as text where that is refused. Its platform's `hint` holds `POLLS`
    (`gateway.domain.platform`)."""

    async def close_poll(self, to: ChatAddress, platform_message_id: str) -> str:
        """End a poll; returns it with the count of each answer, in words. Raises AdapterError."""


# -- rates ---------------------------------------------------------------------------------------------

# A moment that was given away is good for so many seconds after it has come: its taker wakes up a
# little late. Then it must take another one, lest many latecomers send at once.
GRACE: Final = 1.0


class Rate(Struct, frozen=True, kw_only=True):
    """At most `most` messages in any `seconds`, of all that count against `bucket`, a name within
    the account that sends ("all", "chat 5")."""

    bucket: str
    most: int
    seconds: float


def earliest(taken: Sequence[Sequence[float]], rates: Sequence[Rate], at: float) -> float:
    """The first moment from `at` on that no limit forbids. `taken` holds the moments given away
    already, ascending, for each of `rates`; all times are in seconds of one clock."""
    while True:
        moment = at
        for moments, rate in zip(taken, rates, strict=True):
            at = _free(moments, rate, at)
        if at == moment:
            return at


def _free(taken: Sequence[float], rate: Rate, at: float) -> float:
    """Each run of `most` moments shorter than the limit's length forbids another within that length of its ends."""
    for first, last in zip(taken, taken[rate.most - 1 :], strict=False):
        if last - first < rate.seconds and last - rate.seconds < at < first + rate.seconds:
            at = first + rate.seconds
    return at
