"""The name of a session and its last words, for people who look for a session. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from gateway.domain.chat import in_a_line, straight
from gateway.domain.message import Message, is_request, last_requests, said_in, summaries_in, text_of
from gateway.domain.notes import GOAL, sections_of

_LONGEST: Final = 60  # characters of a title
_MOST_READ: Final = 2_000  # characters of an answer
_MOST_NAME: Final = 100  # characters of a title that somebody wrote; a model's longer line is no title
_MARKUP: Final = re.compile(r"<[^<>]{0,200}>|[*_`#~|]+")
_LABEL: Final = re.compile(
    r"\A\s*(?:title|titel|titre|título|titolo|название|标题|標題|タイトル)\s*[:：]\s*", re.IGNORECASE
)
_AROUND: Final = " \t\"'“”„‚‘’«»「」『』.。:;,-–—"
_QUOTED: Final = 280  # characters of what was said last: a telephone shows them without a scroll
_LOOKED_AT: Final = 5  # requests
_HEAD: Final = 100  # messages, among which a compaction leaves its notes
_SENTENCE: Final = re.compile(r".+?(?:[.!?…](?=\s)|[。！？])|.+", re.DOTALL)
_WORDS: Final = 3  # a greeting has fewer, and tells no session from another


def title_of(messages: Sequence[Message]) -> str:
    """A few words that tell a session from others: the aim that a compaction noted, else the first sentence of the
    first request that is more than a greeting. Empty if nobody said anything."""
    for message in summaries_in(messages[:_HEAD]):
        if goal := _first_line(sections_of(text_of(message)).get(GOAL, "")):
            return clipped(goal, _LONGEST)
    requests = list(islice(filter(None, map(_first_line, _requests(messages))), _LOOKED_AT))
    telling = filter(_is_telling, requests)
    return clipped(next(telling, requests[0] if requests else ""), _LONGEST)


def name_in(answer: str) -> str:
    """The title in a model's answer, without markup; "" if the answer is not one."""
    lines = [line for each in answer[:_MOST_READ].splitlines() if (line := " ".join(each.split()))]
    if len(lines) > 1 and lines[0].endswith((":", "：")):  # words before it, which nobody asked for
        del lines[0]
    if not lines or len(lines[0]) > _MOST_NAME:
        return ""
    bare = _LABEL.sub("", shown_in_a_list(_MARKUP.sub(" ", lines[0])))
    return clipped(bare.strip(_AROUND), _LONGEST)


def shown_in_a_list(name: str, most: int = _MOST_NAME) -> str:
    """A title in a form for lists, whoever wrote it: one line, without invisible characters."""
    return in_a_line(straight(name), most)


def last_words(messages: Sequence[Message]) -> str:
    """The last thing that a person said, clipped."""
    requests = last_requests(messages, 1)
    return clipped(" ".join(said_in(messages[requests[0]]).split()), _LONGEST) if requests else ""


def last_exchange(messages: Sequence[Message]) -> list[str]:
    """The last thing that a person said and the answer to it, clipped, a line each; what there is of both."""
    requests = last_requests(messages, 1)
    if not requests:
        return []
    asked = said_in(messages[requests[0]])
    behind = messages[requests[0] + 1 :]
    answers = [text_of(each) for each in behind if each["role"] == "assistant" and text_of(each).strip()]
    lines = [f"You: {quoted(asked)}"]
    return [*lines, f"Me: {quoted(answers[-1])}"] if answers else lines


def quoted(text: str) -> str:
    """A text in one line, as much of it as a person needs to know it again."""
    return clipped(" ".join(text.split()), _QUOTED)


def clipped(text: str, most: int) -> str:
    """At most `most` characters of a line, cut between words where there are any."""
    if len(text) <= most:
        return text
    whole = text[: most + 1].rpartition(" ")[0]
    return f"{whole if len(whole) > most // 2 else text[:most]}…"


def _requests(messages: Sequence[Message]) -> Iterable[str]:
    return (said_in(message) for message in messages if is_request(message))


def _first_line(text: str) -> str:
    """The first sentence of a text, in one line and without its full stop."""
    found = _SENTENCE.match(text.strip().removeprefix("- "))
    return " ".join(found[0].split()).rstrip(".") if found else ""


def _is_telling(words: str) -> bool:
    return len(words.split()) >= _WORDS or (not words.isascii() and len(words) > 2 * _WORDS)
