"""What a platform that keeps no messages of its own may read: a page shows the store, and nothing else.

Every view of `Views` is asked for by a `Source` and shows only what is under that person's own key. `Inside` is for
operators; its caller makes sure that an admin asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from gateway.domain.adapter import MenuEntry
from gateway.domain.chat import Attachment, KeptFile, Outbound, OutboundKind, Source
from gateway.domain.message import Message
from gateway.domain.platform import Bubble
from gateway.domain.session import Project


class Said(Struct, frozen=True, kw_only=True):
    """What a person said, as it was accepted at `at` (seconds since the epoch)."""

    event_id: str
    text: str
    at: float
    files: tuple[Attachment, ...] = ()


class SessionLine(Struct, frozen=True, kw_only=True):
    """A session in a list of a person's own. `present`: the next message in its `thread` goes there, where it `works`
    now, or `waits` for the person's answer; `seen_at`: when they last saw that (seconds since the epoch; None: nobody
    knows). `pinned`: it stands above; then come those of each `project`, by its id. `model`: the one that
    answers there. `title` "": it is in a project, and nothing was said there yet. `until`: when a temporary chat is
    deleted, in which nothing more is said; None: another chat."""

    id: str
    title: str
    messages: int
    last_active_at: float
    present: bool = False
    thread: str | None = None
    works: bool = False
    waits: bool = False
    seen_at: float | None = None
    pinned: bool = False
    project: str = ""
    model: str = ""
    until: float | None = None


class Word(Struct, frozen=True, kw_only=True):
    """A stored message for people to read. `role` is as in the transcript; `note` for what a compaction wrote. `event`:
    as which a person said it."""

    id: str
    session_id: str
    role: Literal["user", "assistant", "tool", "note"]
    text: str
    at: float
    event: str = ""


class Branch(Struct, frozen=True, kw_only=True):
    """A message, or an answer, is version `number` of `of`. `before` and `after`: sessions that hold the others, for
    /resume."""

    number: int
    of: int
    before: str | None
    after: str | None


class Deed(Struct, frozen=True, kw_only=True):
    """A call of a tool; `told`: what it does or did, in a person's words. `result` None: it runs. `words`: what the
    model said before it, and `thoughts`, what it thought before, as far as it tells. `tool` "": it called none."""

    tool: str
    arguments: str
    result: str | None
    told: str = ""
    words: str = ""
    thoughts: str = ""
    failed: bool = False


class Story(Struct, frozen=True, kw_only=True):
    """What is known of messages by their events. `hidden`: they were taken back, or another version of them stands.
    `branches`: the versions of what was said, and `answers` those of what was answered to the same words. `words`: what
    they asked, whatever was typed, and `asked_again` what a /retry asks that is about to. `forked`: the next message
    may become another version of one."""

    hidden: frozenset[str] = frozenset()
    branches: Mapping[str, Branch] = {}
    answers: Mapping[str, Branch] = {}
    words: Mapping[str, str] = {}
    deeds: Mapping[str, Sequence[Deed]] = {}
    asked_again: str = ""
    forked: bool = False


class Spent(Struct, frozen=True, kw_only=True):
    """What an answer took: the models that were asked for it, with their calls, tokens and cost (`usd` None: no price
    is known), and the seconds from the message to its last words."""

    models: tuple[str, ...]
    calls: int
    read: int
    cached: int
    written: int
    usd: float | None
    seconds: float


class ModelLine(Struct, frozen=True, kw_only=True):
    """A model to choose: its window in tokens, and US dollars per million tokens read and written, as far as anybody
    says."""

    name: str
    window: int | None = None
    read_usd: float | None = None
    write_usd: float | None = None


class WindowShares(Struct, frozen=True, kw_only=True):
    """What fills the window, in tokens: `parts` by name. `threshold`: at how many it is compacted (0: never),
    `automatic`: unasked."""

    window: int
    used: int
    parts: tuple[tuple[str, int], ...]
    threshold: int
    automatic: bool
    messages: int
    compactions: int


class Pass(Struct, frozen=True, kw_only=True):
    """One compaction of the present conversation: its notes, what was `corrected` in them, and the original messages
    that it `kept` or `dropped` from the window. `work`: what it did and took, in a sentence. `last`: it is the one that
    /compress undo takes back."""

    at: float
    trigger: str
    messages: tuple[int, int]
    tokens: tuple[int, int]
    work: str
    notes: str
    corrected: tuple[str, ...]
    kept: tuple[Word, ...]
    dropped: tuple[Word, ...]
    last: bool


class Memo(Struct, frozen=True, kw_only=True):
    """A fact of the memory, by the number that /memory forget takes."""

    number: int
    text: str
    said_at: float
    said_by: str


class Coming(Struct, frozen=True, kw_only=True):
    """A reminder or a scheduled prompt that may still fire, by the number that /reminders takes. `when` in words."""

    number: int
    text: str
    when: str
    made_by: str


class FileLine(Struct, frozen=True, kw_only=True):
    """A file of the workspace, and its size in bytes."""

    path: str
    size: int


class FileChange(Struct, frozen=True, kw_only=True):
    """A file that changed in a session: the lines that came and went, and its unified diff where both are text."""

    path: str
    how: Literal["new", "changed", "removed"]
    came: int = 0
    went: int = 0
    diff: str = ""


class WorkspaceView(Struct, frozen=True, kw_only=True):
    """The workspace of a conversation: its first files by name, and what changed in the present session. `size`: of all
    files, in bytes; `count`: their number."""

    files: Sequence[FileLine]
    changes: Sequence[FileChange]
    size: int
    count: int


class SkillLine(Struct, frozen=True, kw_only=True):
    """A skill of a conversation, and where it is from. It is `on` or `off` there, or `waits` in the workspace for a
    person's yes."""

    name: str
    state: Literal["on", "off", "waits"]
    about: str = ""
    source: str = ""


class Views(Protocol):
    """The views of a person's own conversations. Each raises StoreUnavailable."""

    async def said(self, source: Source, limit: int) -> Sequence[Said]:
        """What the person said, newest first."""

    async def shown(self, source: Source, limit: int) -> Sequence[Outbound]:
        """The rows of their chat that have words or a file, newest first."""

    async def rows(self, source: Source, ids: Sequence[str]) -> Sequence[Outbound]:
        """These rows of the person's chat, in any thread, as they are now, oldest first."""

    async def story(self, source: Source, since: float) -> Story:
        """What the conversations tell of messages that were said since then (seconds since the epoch)."""

    async def spent(self, source: Source, event_id: str) -> Spent | None:
        """What the answer to a message took; None: nothing is known of it."""

    async def since(self, source: Source, event_id: str) -> int:
        """How many exchanges /undo takes back for this message and all that followed to go; 0: it cannot."""

    async def ended(self, source: Source, event_id: str) -> bool:
        """Whether the message of this event has had its turn."""

    async def sessions(self, source: Source) -> Sequence[SessionLine]:
        """The present sessions of all chats that the person has alone with the bot, and those that /resume goes back
        to, newest first, the pinned ones above; one for all versions of a conversation."""

    async def seen(self, source: Source, at: float | None) -> None:
        """Note when the person saw the present session of this chat (seconds since the epoch; None: nothing of it is
        left)."""

    async def shelve(
        self,
        source: Source,
        session_id: str,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        project: str | None = None,
    ) -> None:
        """Name a conversation in their list, pin it there, or put it into the project of this name ("": none), which is
        made if there is none. Raises SessionNotFound and UserError."""

    async def projects(self, source: Source) -> Sequence[Project]:
        """Their projects, by name."""

    async def keep_project(self, source: Source, project_id: str, name: str, instructions: str) -> Project:
        """Make a project ("" as its id), or give one this name and these instructions. Raises UserError."""

    async def drop_project(self, source: Source, project_id: str) -> None:
        """Take a project away; its conversations stay."""

    async def zoned(self, source: Source, zone: str) -> None:
        """Keep this as the person's time zone if they never said one, and it is one."""

    async def thread(self, source: Source, session_id: str) -> str | None:
        """The thread of one of their conversations. Raises SessionNotFound."""

    async def title(self, source: Source, session_id: str) -> str | None:
        """The title of one of their conversations; None if it is not theirs, or no longer exists."""

    async def words(self, source: Source, session_id: str) -> tuple[str, Sequence[Word]]:
        """The title of one of their conversations and all original messages of it. Raises SessionNotFound."""

    async def search(self, source: Source, words: str) -> Sequence[Word]:
        """The original messages that /recall finds, best first."""

    async def shares(self, source: Source) -> WindowShares | None:
        """What fills the window; None: there is no session."""

    async def passes(self, source: Source) -> Sequence[Pass]:
        """The compactions of the present conversation, newest first."""

    async def memory(self, source: Source) -> Sequence[Memo]:
        """What is remembered of them."""

    async def reminders(self, source: Source) -> Sequence[Coming]:
        """What is to come in their conversation, soonest first."""

    async def pins(self, source: Source) -> Sequence[str]:
        """Their rules, in the order of their numbers."""

    async def keep(self, source: Source, ref: str, name: str, mime: str, content: bytes) -> None:
        """Keep a file that came with a message, under the attachment's `ref`. Raises FileRefused."""

    async def file(self, source: Source, ref: str) -> tuple[KeptFile, bytes] | None:
        """A kept file of theirs by its full ref."""

    async def workspace(self, source: Source) -> WorkspaceView | None:
        """The workspace of their conversation; None: there are none here."""

    async def workspace_file(self, source: Source, path: str) -> tuple[KeptFile, bytes] | None:
        """A file of it."""

    async def skills(self, source: Source) -> Sequence[SkillLine] | None:
        """The skills of their conversation; None: they are switched off."""

    def stages(self) -> Mapping[str, str]:
        """The platforms that replies can be rehearsed for: their titles by name."""

    async def rehearsed(
        self, platform: str, text: str, kind: OutboundKind = "reply", file: KeptFile | None = None
    ) -> Sequence[Bubble]:
        """The messages that a text, and a file with it, would become there. Raises KeyError for a name of no stage."""

    async def commands(self, source: Source) -> Sequence[MenuEntry]:
        """The commands that are theirs to give."""

    async def embed(self, source: Source, texts: Sequence[str]) -> tuple[str, Sequence[Sequence[float]], int] | None:
        """The model for searches by meaning, its vectors of these texts, and the tokens that it read; None: there is
        no such model. They pay. Raises ProviderError, TimeoutError and SpendCapReached."""

    async def model(self, source: Source) -> tuple[str, bool]:
        """The name of the model that answers them, and whether it is embedded and only shows how things work."""

    async def hears(self, source: Source) -> bool:
        """Whether what they record reaches the model that answers them: it hears, or another writes down for it."""

    async def web(self, source: Source) -> Literal["", "on", "off", "auto"]:
        """Whether the web is searched in their chat: for all facts, never, or as the model sees fit; "": it cannot
        be."""

    async def models(self, source: Source) -> Sequence[ModelLine]:
        """The models that they may choose from, the configured one first; of a server that does not answer, that."""

    def takes(self, source: Source) -> Collection[str]:
        """The settings that can be chosen for one turn of theirs, by the names of Chat Completions."""

    async def role(self, source: Source) -> Literal["reader", "person", "admin"]:
        """A reader may look, a person may talk, too, and an admin may look inside."""


class Stuck(Struct, frozen=True, kw_only=True):
    """A message that was given up (`verbs` replay, bury) or a row that is not shown (retry, drop)."""

    id: str
    platform: str
    chat: str
    state: str
    text: str
    reason: str
    at: float
    verbs: tuple[str, ...]


class Cost(Struct, frozen=True, kw_only=True):
    """The model calls of one day, model or platform: `label` names it."""

    label: str
    calls: int
    tokens: int
    usd: float


class LineageLink(Struct, frozen=True, kw_only=True):
    """A session of a lineage, root first, with the tokens before and after the compaction that opened it."""

    id: str
    started_at: float
    messages: int
    before: int
    after: int


class Filled(Struct, frozen=True, kw_only=True):
    """A session that goes on, with how full the model's window was at its last answer, in tokens."""

    key: str
    id: str
    used: int
    window: int
    messages: int
    last_active_at: float


class Running(Struct, frozen=True, kw_only=True):
    """A turn that runs in this process. `seconds`: for how long. `asks`: it waits for a person's answer."""

    key: str
    doing: str
    step: int
    seconds: float
    asks: bool = False


class Hour(Struct, frozen=True, kw_only=True):
    """An hour of this process: its turns, and within how many seconds 95 of 100 ended; None: nobody knows, because it
    was longer than anything that is counted. What its model calls took, and the share of a window that was full at
    most."""

    began_at: float
    turns: int
    within: float | None
    usd: float = 0.0
    tokens: int = 0
    fullest: float = 0.0


class Inside(Protocol):
    """The gateway as its operator sees it."""

    def hours(self) -> Sequence[Hour]:
        """The last 24 hours of this process, oldest first."""

    async def report(self) -> Mapping[str, Any]:
        """The report of /statusz."""

    async def stuck(self) -> Sequence[Stuck]:
        """The messages that were given up, and the rows that are not shown, newest first."""

    async def order(self, verb: str, id_: str) -> bool:
        """Carry out one of the verbs of a stuck message; False: it is stuck no more."""

    async def turns(self) -> Sequence[Running]:
        """The turns that run in this process, the longest first."""

    async def filled(self, most: int) -> Sequence[Filled]:
        """Of the most recently used sessions, the fullest ones that continue."""

    async def settings(self) -> Sequence[tuple[str, str]]:
        """The settings in force that differ from their defaults, without secrets."""

    async def costs(self, days: int) -> tuple[Sequence[Cost], Sequence[Cost], Sequence[Cost]]:
        """The cost of each of the last days (UTC), oldest first, and of each model and platform in all of them."""

    async def daily_budget(self) -> float | None:
        """What all may spend in a day together, in US dollars; None: no cap is set."""

    async def lineages(self, most: int) -> Sequence[tuple[str, Sequence[LineageLink]]]:
        """The newest lineages with a compaction, each with its key."""


class Blank(Struct, frozen=True, kw_only=True):
    """A field of a form: a setting with its `value` as a person writes it, and its `usual` one. It is one of the
    `choices`, a `flag`, or a text, which may be `long`. Of a `secret`, the form only says whether it `is_set`."""

    name: str
    label: str
    value: str = ""
    is_set: bool = False
    usual: str = ""
    kind: Literal["text", "long", "flag", "choice", "secret"] = "text"
    choices: Sequence[str] = ()


class Part(Struct, frozen=True, kw_only=True):
    """A section of the settings, at the key `at`, with what it says of itself. Of one that holds several by names that
    people choose, `names` are those that are there, and the `fields` are those of the one called `name` ("": of a new
    one)."""

    at: str
    about: str
    fields: Sequence[Blank] = ()
    names: Sequence[str] | None = None
    name: str = ""


class ProviderBlank(Struct, frozen=True, kw_only=True):
    """What there is to say for a model of a provider. `address`: of a server of one's own, or one to be filled in.
    `own`: it is a server of one's own; None: the embedded model, of which there is nothing to say."""

    name: str
    title: str
    key: Blank
    keys_at: str = ""
    example: str = ""
    address: str = ""
    own: bool | None = None


class PlatformBlank(Struct, frozen=True, kw_only=True):
    """What there is to say for a platform, and how somebody gets its tokens (`guide`)."""

    name: str
    title: str
    enabled: bool
    fields: Sequence[Blank]
    guide: str


class SearchBlank(Struct, frozen=True, kw_only=True):
    """What there is to say for a search of the web. `own`: it is a server of one's own, with an address; `example`:
    such as."""

    name: str
    title: str
    key: Blank
    keys_at: str = ""
    own: bool = False
    example: str = ""


class Chosen(Struct, frozen=True, kw_only=True):
    """A model at a provider, or a search, which has no name. `address` "": the provider's own."""

    provider: str
    name: str
    address: str = ""


class Settings(Struct, frozen=True, kw_only=True):
    """The settings that can be changed in the page, and the files that hold them and the secrets. `parts`: all
    sections, without their fields. `keys`: of other programs, each in a line. `example`: somebody's name. `again`:
    Legato can start anew from here. `waits`: the keys whose values hold only from the next start on."""

    file: str
    secrets: str
    model: Chosen
    providers: Sequence[ProviderBlank]
    search: Chosen
    searches: Sequence[SearchBlank]
    platforms: Sequence[PlatformBlank]
    people: Sequence[Blank]
    parts: Sequence[Part]
    keys: Mapping[str, str]
    example: str
    again: bool
    waits: Sequence[str] = ()


class Tried(Struct, frozen=True, kw_only=True):
    """Whether something answers, in a sentence, the models that a server `offered`, and the pages that a search
    `found`, each with its title and its address."""

    ok: bool
    told: str
    offered: Sequence[str] = ()
    found: Sequence[tuple[str, str]] = ()


class Saved(Struct, frozen=True, kw_only=True):
    """The `files` that were written, and the keys that hold `now`, or from the next start on; or nothing was written,
    because of the `problems`."""

    files: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class SettingUp(Protocol):
    """Changes the person's own settings. Its caller makes sure that an admin asks."""

    async def seen(self) -> Settings:
        """The settings as they are written now. Raises ConfigError."""

    async def try_model(self, chosen: Chosen, key: str, *, owner: bool) -> Tried:
        """Ask a model for a word. The key ("": the one that is there) is kept until it is saved."""

    async def try_platform(self, name: str) -> Sequence[Tried]:
        """Ask a platform whether it takes the tokens that are saved."""

    async def save_model(self, chosen: Chosen, key: str, *, owner: bool) -> Saved:
        """Write a model and its key."""

    async def try_search(self, chosen: Chosen, key: str, *, owner: bool) -> Tried:
        """Have a search find something. The key ("": the one that is there) is kept until it is saved."""

    async def save_search(self, chosen: Chosen, key: str, *, owner: bool) -> Saved:
        """Write which search finds pages, and its key. `provider` "": none does."""

    async def part(self, at: str, name: str) -> Part | None:
        """A section with its fields, or one of several by name; None if there is none. Raises ConfigError."""

    async def save(
        self, at: str, name: str, said: Mapping[str, str], shown: Mapping[str, str], *, owner: bool
    ) -> Saved:
        """Write what of a section (at "": of all settings, each with its whole key) is `said` otherwise than it was
        `shown`; an empty text is the default. `owner`: of this machine, who may have it start programs."""

    async def remove(self, at: str, name: str, *, owner: bool) -> Saved:
        """Remove one of several sections."""

    async def add_key(self, name: str, kind: str, cap: str, *, owner: bool) -> tuple[bool, str]:
        """Make a key for another program: whether it was made, and the key, or why not. It can never be read again.
        Only the owner makes one: who has it speaks as the person of its name."""

    async def remove_key(self, name: str) -> bool:
        """Take a key back; False if none has that name."""

    async def start_again(self) -> Saved:
        """Stop cleanly, and start again with the settings as they are written, and with this page. `Settings.again`:
        whether it can."""


@runtime_checkable
class SetsUp(Protocol):
    """Lets an admin change settings. `setting_up` gives what does; None: nothing here can."""

    setting_up: Callable[[], SettingUp] | None


@runtime_checkable
class ShowsStore(Protocol):
    """Shows people what the store holds of their conversations. Both are None until set, before `run` is called."""

    views: Views | None
    inside: Inside | None


class Histories(Protocol):
    """The histories that clients hold themselves, each of a conversation. An exchange of one is known by the event of
    its message. Each method raises StoreUnavailable."""

    async def known(self, source: Source, events: Sequence[str]) -> int:
        """How many of these exchanges, oldest first, are known here, up to the last one that is."""

    async def overlapping(
        self, source: Source, past: Sequence[tuple[str, str, bool]], *, elsewhere: bool
    ) -> tuple[str | None, str] | None:
        """The thread, and the place in it as `Inbound.after` names one, where a client goes on that shows only the end
        of a conversation. `past`: the words and the answer of each exchange, the newest first, and whether transcripts
        may be without it. `elsewhere`: in any conversation of the person. None: nowhere, or who knows where."""

    async def take(self, source: Source, after: str, messages: Sequence[Message]) -> None:
        """Keep what followed an exchange (as `Inbound.after` names one; "": nothing) as a session that has ended. The
        messages of people have the note `event`. The same history is kept once."""

    async def instruct(self, source: Source, text: str) -> None:
        """Make this the persona of a conversation; "": the one that it has without a client's."""


@runtime_checkable
class TakesHistories(Protocol):
    """Its people's clients hold their histories. None until set, before `run` is called."""

    histories: Histories | None
