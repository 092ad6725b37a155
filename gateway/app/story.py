"""What a person's conversations tell of their messages: which stand, which were said or answered anew, and what tools
did for each. Pure.

Sessions that began as a copy of another are one family, a tree of requests. A request that stands behind the same
message as another is another version of it. The newest session of a family says which versions stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from gateway.domain.deeds import deed_in_words
from gateway.domain.message import Message, is_request, is_summary, note_of, said_in, text_of
from gateway.domain.session import Session, families, is_continuation
from gateway.domain.views import Branch, Deed, Story

_MOST_SHOWN: Final = 4_000  # characters of a result, or of an argument
_LONGEST_SECRET: Final = 4_000  # characters; such as those of a private key
_FAILED: Final = re.compile(r"Error: |exit code (?!0\b)|ended (?:by signal|after) ")  # how results begin then

Transcripts = Mapping[str, Sequence[Message]]


def story_of(sessions: Sequence[Session], transcripts: Transcripts, redact: Callable[[str], str]) -> Story:
    """What these sessions tell; `transcripts` has those of all of them."""
    trees = [_Tree(family, transcripts) for family in families(sessions)]
    newest = max(trees, key=attrgetter("tip.started_at"), default=None)
    return Story(
        hidden=frozenset(event for tree in trees for event in tree.left()),
        branches={event: each for tree in trees for event, each in tree.branches(of_answers=False)},
        answers={event: each for tree in trees for event, each in tree.branches(of_answers=True)},
        words={event: said_in(each) for tree in trees for event, each in tree.requests.values()},
        deeds={event: deeds for tree in trees for event, deeds in tree.deeds(redact).items()},
        asked_again=newest.asked_again() if newest is not None else "",
        forked=newest is not None and newest.forked,
    )


class _Tree:
    """The requests of a family by the ids of their messages, each with its event and its message."""

    def __init__(self, family: Sequence[Session], transcripts: Transcripts) -> None:
        self.tip = family[-1]
        self.requests: dict[str, tuple[str, Message]] = {}
        self._transcripts = transcripts
        self._sessions = {each.id: each for each in family}
        self._holder: dict[str, str] = {}  # the newest session that holds a request
        self._behind: dict[str, str] = {}  # the message that a request stands behind
        self._versions: dict[str, list[str]] = {}  # the requests behind a message
        for session in family:
            before = ""
            for message in transcripts[session.id]:
                name = _name(message)
                if is_request(message) and (event := note_of(message).get("event")):
                    self._holder[name] = session.id
                    if name not in self.requests:
                        self.requests[name] = (event, message)
                        self._behind[name] = before
                        self._versions.setdefault(before, []).append(name)
                before = name
        self._stand = [
            name for each in self._path() for name in map(_name, transcripts[each.id]) if name in self.requests
        ]
        self.forked = bool(self._versions.get(_last(transcripts[self.tip.id]))) and len(family) > 1

    def _path(self) -> Iterator[Session]:
        """The newest session, and those whose messages were compressed into it."""
        here = self.tip
        yield here
        while (above := self._sessions.get(here.parent_id or "")) is not None:
            if is_continuation(above, here):
                yield above
            here = above

    def left(self) -> Iterator[str]:
        """The events of requests that no longer count."""
        stand = set(self._stand)
        return (event for name, (event, _) in self.requests.items() if name not in stand)

    def branches(self, *, of_answers: bool) -> Iterator[tuple[str, Branch]]:
        """The versions of each present request that has several, by what it says: each stands for all its answers, the
        present one or the last. Or those `of_answers` to the same words."""
        for name in self._stand:
            words = {each: said_in(self.requests[each][1]) for each in self._versions[self._behind[name]]}
            same = [each for each in words if words[each] == words[name]]
            last = {said: each for each, said in words.items()} | {words[name]: name}
            versions = same if of_answers else list(last.values())
            if len(versions) > 1:
                at = versions.index(name)
                yield (
                    self.requests[name][0],
                    Branch(
                        number=at + 1,
                        of=len(versions),
                        before=self._holder[versions[at - 1]] if at else None,
                        after=self._holder[versions[at + 1]] if at + 1 < len(versions) else None,
                    ),
                )

    def asked_again(self) -> str:
        """The words that /retry asks, while it does: those that went, or are about to go."""
        if self.forked:
            return said_in(self.requests[self._versions[_last(self._transcripts[self.tip.id])][-1]][1])
        own = [each for each in self._transcripts[self.tip.id] if _name(each) in self.requests]
        return said_in(own[-1]) if own else ""

    def deeds(self, redact: Callable[[str], str]) -> Mapping[str, Sequence[Deed]]:
        """What tools did for the present requests, and what was thought, by their events. A turn may continue after a
        compaction."""
        found: dict[str, dict[str, Deed]] = {}
        for session in reversed(list(self._path())):
            messages = self._transcripts[session.id]
            results = {each["tool_call_id"]: text_of(each) for each in messages if each["role"] == "tool"}
            event = ""
            for message in messages:
                event = note_of(message).get("event", "") if is_request(message) else event
                thoughts = _shown(message.get("reasoning_content", ""), redact)
                if thoughts and "tool_calls" not in message:
                    deed = Deed(tool="", arguments="", result="", thoughts=thoughts)
                    found.setdefault(event, {})[_name(message)] = deed
                for at, call in enumerate(message.get("tool_calls", ())):
                    result, tool = results.get(call["id"]), call["function"]["name"]
                    given = _given(call["function"]["arguments"], redact)
                    found.setdefault(event, {})[call["id"]] = Deed(
                        tool=tool,
                        told=deed_in_words(tool, given, result, over=result is not None),
                        arguments=_readable(given),
                        result=None if result is None else _shown(result, redact),
                        words="" if at else _cut(text_of(message).strip()),
                        thoughts="" if at else thoughts,
                        failed=result is not None and _FAILED.match(result) is not None,
                    )
        return {event: tuple(each.values()) for event, each in found.items()}


def _name(message: Message) -> str:
    """The id of a message, or of the one that it was rewritten from."""
    note = note_of(message)
    origin = () if is_summary(message) else note.get("derived_from", ())
    return origin[-1] if origin else note.get("id", "")


def _last(messages: Sequence[Message]) -> str:
    return _name(messages[-1]) if messages else ""


def _given(arguments: str, redact: Callable[[str], str]) -> Mapping[str, Any]:
    """The arguments of a call by name, without secrets; under "" those that are no object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = arguments
    given = given if isinstance(given, dict) else {"": arguments}
    return {
        name: _shown(each, redact) if isinstance(each, str) else _plain(each, redact) for name, each in given.items()
    }


def _plain(value: Any, redact: Callable[[str], str]) -> Any:
    """A value that is no text, unless it holds a secret."""
    written = json.dumps(value, ensure_ascii=False)
    shown = _shown(written, redact)
    return value if shown == written else shown


def _readable(given: Mapping[str, Any]) -> str:
    """Arguments, a line each."""
    values = {
        name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in given.items()
    }
    return _cut("\n".join(f"{name}: {value}" if name else value for name, value in values.items()))


def _shown(text: str, redact: Callable[[str], str]) -> str:
    """The beginning of a text without secrets. It is cut after that, so that no half of a secret stands at its end."""
    most = _MOST_SHOWN + _LONGEST_SECRET
    shown = redact(text[:most])
    if len(text) <= _MOST_SHOWN:
        return shown
    shown = shown[:-_LONGEST_SECRET] if len(text) > most else shown
    return f"{shown[:_MOST_SHOWN]} … ({len(text):,} characters)"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} … ({len(text):,} characters)"
