"""The moments at which the hooks of plug-ins are called, and what a hook may answer.

An entry point of the group `legato.hooks` names an object, or a class that is made once, with any of the methods of
`ANSWERS`. A method takes its moment and returns None, an answer, or a tuple of answers. Plain methods run in a thread
of their plug-in's. Of several plug-ins the names of the entry points give the order; each sees a text as the ones
before it left it, and behind a refusal nobody is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.domain.chat import Source
from gateway.domain.message import Message, ToolCall
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage


class Moment(Struct, frozen=True, kw_only=True):
    """Something happens in a session: it began or ended (`on_session_start`, `on_session_end`)."""

    session: Session


class Said(Moment, frozen=True, kw_only=True):
    """A person's message is about to be answered (`on_message`)."""

    source: Source
    text: str
    files: int  # that came with it


class Asked(Moment, frozen=True, kw_only=True):
    """A model is about to be asked (`before_model`). `messages` are a copy of what it is sent, without tools."""

    model: str
    messages: Sequence[Message]


class Answered(Moment, frozen=True, kw_only=True):
    """A model has answered (`after_model`)."""

    model: str
    text: str
    calls: Sequence[ToolCall]
    usage: CanonicalUsage


class Called(Moment, frozen=True, kw_only=True):
    """A tool is about to run (`before_tool`). `arguments` are {} where the model sent none that can be read."""

    tool: str
    arguments: Mapping[str, Any]


class Returned(Called, frozen=True, kw_only=True):
    """A tool has returned `text` (`after_tool`), which begins with "Error: " where it failed."""

    text: str


class Compacting(Moment, frozen=True, kw_only=True):
    """A conversation is about to be compacted (`before_compaction`). `messages` are a copy of all of it."""

    trigger: str
    tokens: int  # of the next request
    messages: Sequence[Message]


class Words(Struct, frozen=True):
    """An answer in words."""

    text: str


class Refuse(Words, frozen=True):
    """Refuse: the person reads the sentence instead of an answer, or the model reads it instead of a result."""


class Note(Words, frozen=True):
    """The model reads this after the person's words, as the plug-in's; 4,000 characters at most."""


class Replace(Words, frozen=True):
    """The model reads this instead of a tool's result."""


class Compact(Struct, frozen=True):
    """Compact before the model is asked again, if the conversation fills half of its threshold."""


ANSWERS: Final[Mapping[str, tuple[type, ...]]] = {
    "on_message": (Refuse, Note, Compact),
    "before_model": (Compact,),
    "after_model": (Compact,),
    "before_tool": (Refuse, Compact),
    "after_tool": (Replace, Compact),
    "before_compaction": (),
    "on_session_start": (),
    "on_session_end": (),
}
