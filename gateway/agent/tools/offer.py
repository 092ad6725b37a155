"""The tools on offer in a session.

They depend on the installed tools, on the person of the turn, and on the tools that the session has shown so far. A
session keeps its tools in the same order for life, so that providers find its prompts in their caches: a new tool comes
last. A tool that goes keeps its place and its schema, and answers each call by saying that it is gone. A tool that
somebody may not use is not shown to them and cannot be called. If all schemas would take too much of the window, the
rarely used ones are hidden until `find_tools` finds them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field

from gateway.agent.prompt import TEMPORARY
from gateway.agent.provenance import Kept
from gateway.agent.tools.arguments import Arguments
from gateway.agent.tools.base import Keeps, NeedsApproval, Tool
from gateway.domain.chat import Source, one_line
from gateway.domain.message import ToolCall
from gateway.domain.place import is_person, names, narrowest
from gateway.domain.session import Session
from gateway.runtime.errors import ConfigError, ToolError
from gateway.runtime.structs import replace

OWN: Final = "legato"  # the origin of tools that are there from start to end
FIND: Final = "find_tools"  # on offer while tools are hidden
_LONGEST_ORIGIN: Final = 100  # characters
_MOST_MADE: Final = 64  # offers that are remembered
# What a helper has not, of the tools that keep nothing.
_CALLERS_ALONE: Final = ("ask_person", "delegate", "make_image", "make_poll", "send_file", "todo")
# What a temporary chat has not, beside the tools that keep words: these leave something behind.
_LASTING: Final = ("delegate", "patch", "shell", "write_file")
SHARE: Final = 0.20  # of the window, for schemas; beyond, rarely used tools are hidden


class Caller(Struct, frozen=True, kw_only=True):
    """The person of a turn, and their place. `admin`: whether they administer the bot."""

    source: Source
    admin: bool = False


def member(session: Session) -> Caller:
    """Somebody who may speak in this session, nothing else being known of them."""
    key = session.key
    return Caller(
        source=Source(
            platform=key.platform,
            chat=key.chat,
            chat_type=session.chat_type,
            user=key.user or "",
            thread=key.thread,
            within=session.places,
        )
    )


Rule = Callable[[str, Caller], bool]
"""Whether a tool may be on offer to somebody. A tool needs the yes of every rule."""


def listed(name: str, names: Sequence[str]) -> bool:
    """Whether a list takes a tool in. `*` stands for any characters, and `-name` takes a tool out; a list of such
    entries alone takes in all others."""
    out = [each[1:] for each in names if each.startswith("-")]
    taken = [each for each in names if not each.startswith("-")]
    if any(fnmatchcase(name, each) for each in out):
        return False
    return any(fnmatchcase(name, each) for each in taken) or bool(out and not taken)


class OfferRule(Struct, frozen=True, kw_only=True):
    """The rule of the configuration. `offered`: lists of tools by whom they are for; of the entries that fit, the
    closest counts. `admins_only`: the list of tools that only admins have. `mail_ids`: platforms where people's ids
    hold an `@`."""

    offered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    admins_only: Sequence[str] = ()
    mail_ids: Collection[str] = ()

    def __call__(self, name: str, caller: Caller) -> bool:
        """Whether the tool may be on offer to the caller."""
        if not caller.admin and self.admins_only and listed(name, self.admins_only):
            return False
        if not self.offered:
            return True
        entries = _closest_first(caller.source, mail_ids=caller.source.platform in self.mail_ids)
        names = next((self.offered[each] for each in entries if each in self.offered), ("*",))
        return listed(name, names)


def place_rule(lists: Mapping[str, Sequence[str]]) -> Rule:
    """The rule of single chats: lists of tools, by place; the narrowest counts."""

    def may(name: str, caller: Caller) -> bool:
        found = narrowest(lists, caller.source.platform, names(caller.source))
        return found is None or listed(name, found.value)

    return may


def _closest_first(source: Source, *, mail_ids: bool) -> Iterator[str]:
    """The names of entries that fit a source: a person in a chat, a person, a chat, a platform, everybody."""
    chats = (source.chat, *([source.renamed] if source.renamed else []), *source.within, "*")
    people = (source.user, *source.roles)
    yield from (f"{source.platform}:{person}@{chat}" for person in people for chat in chats)
    yield from (f"{source.platform}:{person}" for person in people if is_person(person, mail_ids=mail_ids))
    yield from (f"{source.platform}:*@{chat}" for chat in chats)
    yield from (f"{source.platform}:*", source.platform, "*")


class Offered(Struct, frozen=True, kw_only=True):
    """A registered tool, and its description for a model. `asking` is the tool, if a person must allow calls of it;
    `keeping`: the tool, if it keeps words. `brings`: as the
    tool says it. `refers`: it names the message that the turn answers. `gone`: its origin
    took it away since."""

    tool: Tool
    asking: NeedsApproval | None
    keeping: Keeps | None
    brings: str
    refers: bool
    origin: str
    schema: dict[str, Any]
    tokens: int
    arguments: Arguments
    gone: bool = False


class Offer(Struct, frozen=True, kw_only=True, dict=True):
    """The tools on offer in one session to one person now. `order`: the names with which the session continues.
    `hidden`: those without room in the prompt, with their descriptions. `version`: the toolbox's, when it was asked."""

    order: tuple[str, ...]
    offered: Mapping[str, Offered]
    hidden: Mapping[str, str] = {}
    version: int = 0

    @property
    def names(self) -> list[str]:
        """The tools that can be called, in the session's order."""
        return [name for name, each in self.offered.items() if not each.gone]

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """The schemas for the model, in the session's order."""
        return [each.schema for each in self.offered.values()]

    @cached_property
    def tokens(self) -> int:
        """Return the tokens that the schemas take of a prompt."""
        return sum([each.tokens for each in self.offered.values()])

    def there(self, name: str) -> Offered | None:
        """The tool of this name, if it is on offer and there, with what is known of it."""
        each = self.offered.get(name)
        return None if each is None or each.gone else each

    def get(self, name: str) -> Tool | None:
        """The same, the tool alone."""
        each = self.there(name)
        return None if each is None else each.tool

    @cached_property
    def keepers(self) -> frozenset[str]:
        """The names of the tools that may keep words beyond their conversation."""
        return frozenset([name for name, each in self.offered.items() if each.keeping is not None])

    def kept(self, name: str, arguments: str) -> Kept | None:
        """What a call of the tool of this name keeps. Raises ToolError for arguments that cannot be read."""
        each = self.there(name)
        return None if each is None or each.keeping is None else each.keeping.kept(each.arguments.read(arguments))

    def brings(self, call: ToolCall) -> str:
        """Whose words the result of a call is, in a few words; "" for none but the conversation's."""
        each = self.offered.get(call["function"]["name"])
        if each is None:
            return ""  # an engine's tool, which repeats the conversation, or none
        if "{" not in each.brings:
            return each.brings
        try:
            arguments = each.arguments.read(call["function"]["arguments"])
        except ToolError:
            return ""  # it was not run
        return one_line(each.brings.format_map(defaultdict(str, arguments))[:_LONGEST_ORIGIN])

    def refers(self, calls: Iterable[ToolCall]) -> bool:
        """Whether a tool of these calls names the message that the turn answers."""
        return any((each := self.there(call["function"]["name"])) is not None and each.refers for call in calls)

    def why_not(self, name: str) -> str:
        """The reason why no tool of this name can be called, for the model."""
        if name in self.offered:
            return f"{name!r} is not available at the moment. Go on without it, and say so if it was needed."
        if name in self.hidden:
            return f"{name!r} is not shown to you yet: find it with {FIND} first."
        return f"There is no tool named {name!r}. The tools are: {', '.join(self.names)}."


class Toolbox:
    """Every tool of the program, those that come and go included. `rules` decide which tools a person is offered;
    `count` gives the tokens of schemas. A toolbox belongs to one event loop."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        rules: Sequence[Rule] = (),
        count: Callable[[Iterable[Mapping[str, Any]]], int] = lambda _: 0,
    ) -> None:
        self._offered: dict[str, Offered] = {}
        self.rules = rules
        self.count = count
        self._calls: Counter[str] = Counter()  # since the start
        self.version = 0  # rises with every change
        self._made: dict[tuple[tuple[str, ...], int, tuple[str, ...], tuple[str, ...]], Offer] = {}
        self._needs: dict[str, str] = {}  # of the tools that rest
        self._unless: dict[str, str] = {}  # of those that can be switched off
        self.register(OWN, tools)

    def register(self, origin: str, tools: Iterable[Tool]) -> None:
        """Make these the tools of an origin, in place of those that it had. Running sessions see the change at their
        next step. Raises ConfigError, with nothing changed, if a name belongs to another origin or is there twice."""
        new: dict[str, Tool] = {}
        for tool in tools:
            other = self._offered.get(tool.name)
            if tool.name in new or (other is not None and other.origin != origin and not other.gone):
                raise ConfigError([f"tools: two tools are named {tool.name!r}; rename or remove one"])
            new[tool.name] = tool
        self.version += 1
        for name, each in self._offered.items():
            if each.origin == origin:  # what is in a session's prompt stays there
                self._offered[name] = replace(each, gone=True)
        for tool in new.values():
            if hasattr(tool, "needs"):
                self._needs[tool.name] = tool.needs
            if hasattr(tool, "unless"):
                self._unless[tool.name] = tool.unless
            schema = _schema(tool)
            self._offered[tool.name] = Offered(
                tool=tool,
                asking=tool if isinstance(tool, NeedsApproval) else None,
                brings=getattr(tool, "brings", f"the tool {tool.name}"),
                keeping=tool if isinstance(tool, Keeps) else None,
                refers=hasattr(tool, "refers"),
                origin=origin,
                schema=schema,
                tokens=self.count([schema]),
                arguments=Arguments(tool.name, tool.parameters),
            )

    def count_anew(self) -> None:
        """Count the tokens of all schemas again, because the first counts were rough. A running turn continues with
        what it was offered, whose counts its conversation knows."""
        self._made.clear()
        for name, each in self._offered.items():
            self._offered[name] = replace(each, tokens=self.count([each.schema]))

    def taken(self, origin: str) -> list[str]:
        """The names that tools of other origins have."""
        return [name for name, each in self._offered.items() if each.origin != origin and not each.gone]

    @property
    def installed(self) -> list[str]:
        """The present tools of all people."""
        return [name for name, each in self._offered.items() if not each.gone]

    def offer(self, order: Sequence[str], caller: Caller, window: int, prompt: str = "") -> Offer:
        """The tools for a caller in a session that has shown those in `order` until now, to a model that reads so many
        tokens at once. `prompt`: the session's, which wakes those that rest, or switches some off."""
        rest: tuple[str, ...] = ()
        for name, needs in self._needs.items():
            if needs not in prompt:
                rest = (*rest, name)
        if TEMPORARY in prompt:
            rest = (*rest, *_LASTING, *(name for name, each in self._offered.items() if each.keeping is not None))
        off = tuple([name for name, text in self._unless.items() if text in prompt]) if self._unless else ()
        asked = (tuple(order), window, rest, off)
        made = None if self.rules else self._made.get(asked)
        if made is None or made.version != self.version:
            made = self._make(order, caller, window, rest, off)
            if not self.rules and not made.hidden:  # the same for all callers, and whatever was used
                if len(self._made) >= _MOST_MADE:
                    self._made.clear()
                self._made[asked] = made
        return made

    def _make(
        self, order: Sequence[str], caller: Caller, window: int, rest: Sequence[str], off: Sequence[str]
    ) -> Offer:
        known = set(order)
        allowed = self._offered
        if self.rules or off:
            allowed = {name: each for name, each in allowed.items() if name not in off and self.allows(name, caller)}
        out = {*known, *rest, FIND}
        new = [name for name, each in allowed.items() if name not in out and not each.gone]
        room = int(SHARE * window) - sum([allowed[name].tokens for name in order if name in allowed])
        fitting = self._fitting(new, room, found=FIND in known)
        hidden = [name for name in new if name not in fitting]
        finder = [FIND] if hidden and FIND not in known else []
        order = (*order, *[name for name in new if name in fitting], *finder)
        return Offer(
            order=order,
            offered={name: allowed[name] for name in order if name in allowed},
            hidden={name: allowed[name].tool.description for name in hidden},
            version=self.version,
        )

    def _fitting(self, new: Sequence[str], room: int, *, found: bool) -> Collection[str]:
        """Return the new tools whose schemas have room, the most used first."""
        finder = self._offered.get(FIND)
        if finder is None or sum([self._offered[name].tokens for name in new]) <= room:
            return new
        room -= 0 if found else finder.tokens
        fitting: set[str] = set()
        for name in sorted(new, key=lambda name: -self._calls[name]):
            if (tokens := self._offered[name].tokens) <= room:
                fitting.add(name)
                room -= tokens
        return fitting

    def used(self, names: Iterable[str]) -> None:
        """Note that these tools were called: the most used are hidden last."""
        self._calls.update(name for name in names if name in self._offered)

    def allows(self, name: str, caller: Caller) -> bool:
        """Whether somebody may use a tool of this name, if there is one."""
        return name == FIND or all(rule(name, caller) for rule in self.rules)

    def for_helper(self, names: Collection[str]) -> Toolbox:
        """Return a toolbox for a helper with these tools (none named: all), but without those that keep words for good
        or show the person something, because nobody reads what a helper does."""
        use = copy(self)

        def may(name: str, _: Caller) -> bool:
            each = self._offered.get(name)
            keeps = each is not None and each.keeping is not None
            return not keeps and name not in _CALLERS_ALONE and (not names or name in names)

        use.rules = [*self.rules, may]
        return use

    def has(self, name: str, caller: Caller) -> bool:
        """Whether somebody could call a tool of this name now."""
        each = self._offered.get(name)
        return each is not None and not each.gone and self.allows(name, caller)

    def tokens(self, session: Session, window: int) -> int:
        """How many tokens a session's tools take of its prompts, before it is known who the turn is for."""
        names = session.tools or self.offer((), member(session), window, session.system_prompt).order
        return sum([self._offered[name].tokens for name in names if name in self._offered])


def _schema(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
