"""The description of a platform's package, and the host of its adapter.

A package registers a `Platform` under the entry-point group `legato.adapters`. Reading the description loads none of
the platform's libraries: those come with `create`, when the platform is used.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct
from pydantic import Field

from gateway.domain.adapter import Limits, MenuEntry
from gateway.domain.chat import OutboundKind, Source
from gateway.domain.place import AS_USUAL, NOT_SAID, Listen, ListenRules, ShowRules
from gateway.domain.settings import Contradiction, Flag, Section, variable_of
from gateway.runtime.aside import RunsAside, at_once
from gateway.runtime.clock import Clock, Ids

GROUP: Final = "legato.adapters"
POLLS: Final = "Polls can be made here."
"""In the `hint` of a platform with polls: it wakes the tool that makes them."""


class AdapterSettings(Section):
    """The section `adapters.NAME` of a platform: a base for the package's own model."""

    enabled: Flag = Field(False, description="let `legato run` serve it")

    def unset(self, *keys: str) -> Iterator[Contradiction]:
        """Those of these secrets that a platform lacks which is enabled: keys such as "http.secret"."""
        for key in keys if self.enabled else ():
            *above, name = key.split(".")
            section: Section = reduce(getattr, above, self)
            if getattr(section, name) is None:
                variable = variable_of(type(section).model_fields[name])
                told = f'is needed: write "${{{variable}}}" and set that variable, or set enabled to false'
                yield (key, "enabled"), told


def matching(pattern: str, told: str) -> Callable[[str], str | None]:
    """Say `told` of a name that is not of this pattern, as `Platform.person_problem` does."""
    return lambda name: None if re.fullmatch(pattern, name) else told


class Mark(Struct, frozen=True, kw_only=True):
    """A marked place of a bubble: from `start` to `end` in code points. `kind`: bold, italic, underline, strikethrough,
    code, pre, blockquote, spoiler or text_link, whose address is `target`."""

    start: int
    end: int
    kind: str
    target: str = ""


class Bubble(Struct, frozen=True, kw_only=True):
    """One message as a platform would be sent it, without sending. Its app shows `marks`, or, `as_markdown`, reads the
    text itself. `units` of `most`: how full the message is, as the platform counts. `file`: what is said of a file that
    is sent with it; "": none is."""

    text: str
    marks: tuple[Mark, ...] = ()
    as_markdown: bool = False
    units: int
    most: int
    file: str = ""


class LaysOut(Protocol):
    """Makes a part of a text into a message."""

    def __call__(self, part: str, kind: OutboundKind) -> Bubble:
        """The message; a reply is Markdown. Never raises."""


class Stage(Struct, frozen=True, kw_only=True):
    """A platform without a bot. `limits`: how its messages are cut; `bubble` lays one out."""

    limits: Limits
    bubble: LaysOut


class Platform(Struct, frozen=True, kw_only=True):
    """A platform, described.

    `name` is its entry point's, its section's and the one in its people's names ("telegram:12345678"); `title` is for
    sentences. `create` names the function, as "module:function", that is called with the settings and an `AdapterHost`
    and returns the adapter. `settings` None: it has no section in config.yaml. `hint`: a sentence or two for the system
    prompt. `person`: an example of somebody's name, for sentences. `person_problem` says what is wrong with a name that
    nobody can have ("must give a number, …"); `place_problem` says it of a chat's name in `chats` of config.yaml.
    `listens`: the rules by which its groups can be listened to. `limits`: by which any process may run its turns, also
    one without its adapter; None: only one with it may. `in_shell`: it is not served by `legato run` but opened by
    `legato chat`. `beside_shell`: `legato chat` at a terminal serves it, too, where it is enabled; its adapter
    `OpensFirst`. `rehearse` names a `Stage`, in the same way as `create`, which needs no settings; "": there is none.
    `link_file`: where, below `home`, its adapter keeps a link that lets the owner in. `guide`: how somebody gets its
    tokens, in a sentence or two. `logins`: the account whose notes are its people's logins (`LOGIN_NOTE`). `at_once`:
    the keys of its section that its adapter, which then `TakesSettings`, obeys without a new start."""

    name: str
    title: str
    create: str
    settings: type[AdapterSettings] | None = None
    hint: str = ""
    person: str = "12345678"
    person_problem: Callable[[str], str | None] = lambda _: None
    place_problem: Callable[[str], str | None] = lambda _: None
    listens: tuple[Listen, ...] = ()
    limits: Limits | None = None
    in_shell: bool = False
    beside_shell: bool = False
    rehearse: str = ""
    link_file: str = ""
    logins: str = ""
    guide: str = ""
    at_once: tuple[str, ...] = ()

    @property
    def lists_people(self) -> bool:
        """Whether `access` says who may talk there."""
        return self.settings is not None and not (self.limits and self.limits.keyed)


@runtime_checkable
class TakesSettings(Protocol):
    """Obeys other settings without a new start, as far as `Platform.at_once` says."""

    def take_up(self, settings: Any) -> None:
        """Obey these settings of its own section from now on."""


class AdapterHost(Struct, frozen=True, kw_only=True):
    """The parts of the program that an adapter may use.

    `home`: the gateway's own folder. `menu`: all commands. `admins`: ids of the platform's people who are admins.
    `model` and `model_in_full`: names of the configured model. `model_of`: the name of the one that answers a person,
    who may have chosen another. `turns_running`: how many there are. `greeting`: the first sentence for a person who
    comes back, and `farewell` the last one for a person who leaves; "" for none. How `legato chat` was called:
    `as_json`, for programs to read; `question`, the one thing to be asked; `chat`, where it is asked ("": apart from
    the other chats); `fresh`, in a new session. `tell`: shows a line to the person who started the program, where one
    looks. `aside`: carries out functions that read Markdown, for a limited time. `listens`: when the bot answers in
    chats that `chats` of config.yaml names; `Platform.listens` are the rules that may come. `shows`: how messages are
    shown there. `served`: names of the platforms that are enabled."""

    clock: Clock
    ids: Ids
    home: Path
    menu: Sequence[MenuEntry]
    admins: Sequence[str]
    model: str
    model_in_full: str
    turns_running: Callable[[], int]
    greeting: Callable[[Source], Awaitable[str]]
    farewell: Callable[[Source], Awaitable[str]]
    model_of: Callable[[Source], Awaitable[str]]
    as_json: bool = False
    question: str | None = None
    chat: str = ""
    fresh: bool = False
    aside: RunsAside = at_once
    listens: ListenRules = NOT_SAID
    shows: ShowRules = AS_USUAL
    tell: Callable[[str], None] = lambda _: None
    served: Sequence[str] = ()
