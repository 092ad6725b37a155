"""The facts that the offline model saves: sentences of a few forms, copied and never made up.

A request shows the facts that are known already, a line each, and the conversation, as lines that begin with
`[1] person:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.domain.message import text_of

_SAID: Final = re.compile(r"^\[(\d+)\] person: (?:\[[^\]\n]{1,60}\] )?(.*)$", re.MULTILINE)
_KNOWN: Final = re.compile(r"^- \d{4}-\d\d-\d\d: (?:[^:\n]{1,60}: )??(?P<fact>[^\n]+)$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]{2,300}")
_VALUE: Final = r"(?P<value>[^,;，；]{1,120}?)(?: now| these days| from now on|了)?\s*$"
_FORMS: Final = tuple(
    (re.compile(form, re.IGNORECASE), fact)
    for form, fact in (
        (rf"^(?:please,? )?remember(?: that)?:? (?!me\b|my \w+ is\b){_VALUE}", "{value}"),
        (rf"\b(?:I am|I'm) called {_VALUE}", "Name: {value}"),
        (rf"\bmy (?P<thing>[\w' -]{{2,40}}?) (?:is|are) {_VALUE}", "{thing}: {value}"),
        (rf"\bI (?:now )?(?:live in|have moved to|moved to) {_VALUE}", "Home: {value}"),
        (rf"\bI (?:now )?(?:really )?prefer {_VALUE}", "Prefers {value}"),
        (rf"\bI (?:really )?(?P<how>like|love|hate) {_VALUE}", "{how}s {value}"),
        (rf"\bI (?:don't|do not) like {_VALUE}", "Does not like {value}"),
        (rf"^(?:请)?记住[:：]?{_VALUE}", "{value}"),
        (rf"我(?:的名字)?(?:叫|是叫){_VALUE}", "Name: {value}"),
        (rf"我(?:住在|搬到了?){_VALUE}", "Home: {value}"),
        (rf"我(?P<not>不)?喜[欢歡]{_VALUE}", "{not}喜欢{value}"),
    )
)


def memories(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of the calls that answer a request for facts."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    known = [found["fact"] for found in _KNOWN.finditer(_between(prompt, "memory"))]
    calls: list[dict[str, Any]] = []
    for found in _SAID.finditer(_between(prompt, "conversation")):
        for fact in _facts(found[2]):
            if any(fact.casefold() == each.casefold() for each in known):
                continue
            old = next((each for each in known if _label(each) and _label(each) == _label(fact)), None)
            call = {"action": "add", "about": "person"} if old is None else {"action": "replace", "fact": old}
            calls.append({**call, "text": fact, "message": int(found[1])})
            known = [each for each in known if each != old] + [fact]
    return calls


def remembered(thing: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The value of a thing that the memory in a system prompt names."""
    system = "\n".join(text_of(message) for message in messages if message.get("role") == "system")
    for found in _KNOWN.finditer(_between(system, "memory")):
        label, _, value = found["fact"].partition(": ")
        if value and label.casefold() == thing.casefold():
            return value.rstrip(".")
    return None


def _facts(text: str) -> Iterator[str]:
    """Yield the facts that one message states in one of the forms."""
    for sentence in _SENTENCE.finditer(text):
        said = sentence[0].strip()
        for form, fact in _FORMS:
            if found := form.search(said):
                named = {name: (value or "").strip() for name, value in found.groupdict().items()}
                written = fact.format_map(named)
                yield written[0].upper() + written[1:]
                break


def _label(fact: str) -> str:
    """Return the subject of a fact, where its form names one."""
    label, _, value = fact.partition(": ")
    return label.casefold() if value and len(label) <= 40 else ""


def _between(text: str, tag: str) -> str:
    return text.rpartition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0] if f"<{tag}>\n" in text else ""
