"""What a chat shows: the words that were accepted and the rows of the outbox, in the order of their times.

A page has no state of its own: every entry is made of the store, so a page that was cut off is brought up to what a
reload would show. A digest names what a page shows. A page that comes back says the last digest it was given; where
that is of a beginning of the present entries, it is sent the rest, and else all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate, pairwise
from math import inf
from operator import attrgetter, itemgetter
from typing import Final, Self, TypeAlias
from urllib.parse import quote

from msgspec import Struct

from adapters.web.icons import icon
from adapters.web.markup import Child, Html, el, joined, link, linked, submit
from adapters.web.rendering import LARGEST, all_rendered, code_blocks, finished, marked, rendered, verbatim
from gateway.domain.approval import LABELS
from gateway.domain.chat import OWN, Button, Outbound, Source
from gateway.domain.turn import BUSY, STOPPED
from gateway.domain.views import Branch, Deed, Said, Story, Views, Word
from gateway.domain.wording import counted
from gateway.runtime.aside import RunsAside
from gateway.runtime.errors import TookTooLong
from gateway.runtime.structs import replace

SHOWN: Final = 80  # entries of a page; more can be asked for
MOST_SHOWN: Final = 480
MOST_WORDS: Final = 200  # messages of an earlier conversation on one page
_LONGEST: Final = 8_000  # characters of a person's message; all of them are in its session
_ANSWERS: Final = ("reply", "error")
_MARKDOWN: Final = ("reply", "remark", "reminder")
_COLUMNS: Final = re.compile(r"\S {2,}\S")
_SKEW: Final = 60.0  # seconds by which clocks of several processes may differ
AGAIN: Final = re.compile(r"\s*/retry\b", re.IGNORECASE)
# Ends of the events of commands that the page itself gives: neither they nor what they say stand in the chat.
FORM: Final = ".form"  # the same of a command that a form of another page gave, which tells even of its refusal
UNSEEN: Final = (
    ".undo",
    ".branch",
    ".name",
    ".stop",
    ".model",
    ".web",
    ".delete",
    ".project",
    ".temporary",
    ".aside",
    FORM,
)
MENU: Final = ".menu"  # the same of a command of a menu, of which the answer stands there
SAID_BY_PAGE: Final = (*UNSEEN, MENU)
_SOURCE: Final = r"\[(\d+)\. ([^\[\]]*?), ([^\[\], ]+)\]\((https?://[^\s()]+)\)"
_SOURCES: Final = re.compile(rf"\n\nSources: ({_SOURCE}(?: · {_SOURCE})*)\Z")
_CITED: Final = re.compile(r"<(pre|code|a|math)\b.*?</\1>|<[^>]*>|\[(?P<number>\d+)\]", re.DOTALL)
_MOST_DEEDS: Final = 60
_NUMBERED: Final = re.compile(r"\A\d+\. ")
# The end of the place of what begins another conversation: page.css hides what stands before it, until that is asked
# for.
ANEW: Final = " new"
BACK: Final = " back"
_BEGINS: Final = ((re.compile(r"\s*/(?:new|reset)\b", re.IGNORECASE), ANEW), (re.compile(r"\s*/resume +\S"), BACK))
_ONCE: Final = "Allow once"
END: Final = "#end"  # of a chat's address: the newest message, also for who has no script
_LAST: Final = "~"  # sorts a draft behind every time; with a place behind it, what waits for that answer
_MOST_BEHIND: Final = 8
_SOUNDS: Final = ("audio/mpeg", "audio/ogg", "audio/webm", "audio/mp4")
_PICTURES: Final = re.compile(r"image/(png|jpeg|gif|webp)\Z")
WHO: Final = {"user": "You", "assistant": "Legato", "tool": "Tool", "note": "Notes"}
_KINDS: Final = {"user": "said", "assistant": "reply", "tool": "tool", "note": "notice"}
# Parts of the settings, by what an error says that they mend.
_MENDED: Final = {"people": re.compile(r"\bbudgets\."), "model": re.compile(r"\b(?:model|provider)\b", re.IGNORECASE)}
_WAYS: Final = {"people": "Change the limit", "model": "Open the model’s settings"}
_CALLS: Final = re.compile(r"(?:\A|\n\n)→ [^\n]+\Z")  # the names of tools below what was said before they ran
_WHO: Final = {
    "reply": "Legato",
    "remark": "Legato",
    "reminder": "Reminder",
    "command": "Legato",
    "notice": "Note",
    "question": "Question",
    "error": "Error",
}


News: TypeAlias = Said | Outbound
"""What may come to a chat without a change of anything else."""


class Worked(Struct, frozen=True, kw_only=True):
    """What tools did for a message."""

    id: str
    deeds: Sequence[Deed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message on the page. `place` sorts it, as text; `mark` names what it shows, and `made_of` is what it was made
    of."""

    id: str
    place: str
    html: Html
    mark: int
    made_of: object = field(compare=False)

    @property
    def at(self) -> float:
        """When it was said or shown (seconds since the epoch)."""
        return float(self.place.split()[1])

    @classmethod
    def of(cls, id_: str, place: str, html: Html, made_of: object) -> Self:
        """An entry that shows this."""
        shown = sha256(f"{id_} {place}{html}".encode(errors="replace")).digest()
        return cls(id=id_, place=place, html=html, mark=int.from_bytes(shown[:12]), made_of=made_of)


class State(Struct, frozen=True, kw_only=True):
    """All entries of a page, oldest first. `latest`: when the last was said, and the last answer was written; None: the
    clock was set back among them. `more`: there are earlier ones. `forked`: what comes next may change others.
    `unanswered`: what was said last, if it has no answer yet, so that what is said next may wait.
    `branches`, `answers` and `hidden`: those of the `Story`, for a message whose turn was quicker than the news of
    it."""

    entries: list[Entry]
    latest: tuple[float, float] | None = None
    more: bool = False
    forked: bool = False
    unanswered: str = ""
    branches: Mapping[str, Branch] = {}
    answers: Mapping[str, Branch] = {}
    hidden: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """The name of what a page with these entries shows."""
        return name_of(sum(entry.mark for entry in self.entries))


def name_of(mark: int) -> str:
    """The digest of entries whose marks add up to this."""
    return f"{mark % 2**96:x}"


class Log(Struct, kw_only=True):
    """Makes entries. `aside` reads Markdown, which may be a stranger's. What was made before is given to it, so that
    nothing is kept of what is forgotten."""

    aside: RunsAside

    async def state(
        self,
        views: Views,
        source: Source,
        most: int,
        made: State | None = None,
        news: Sequence[News] | None = None,
    ) -> State:
        """The newest entries of a person's chat. `made`: what they were, and `news`, what alone came since; without
        it the store is read. Raises StoreUnavailable."""
        thread = source.thread
        grown = None if made is None or news is None else await self._grown(made, news, most, thread)
        if grown is not None:
            return grown
        known = {entry.id: entry for entry in made.entries} if made is not None else {}
        words = (await views.said(source, most))[::-1]
        rows = (await views.shown(source, most))[::-1]
        story = await views.story(source, words[0].at) if words else Story()
        after, later = _set_back([each.at for each in words]), _set_back([row.created_at for row in rows])
        since = {each.event_id: times for each, times in zip(words, after, strict=True)}
        unanswered = _unanswered([each for each in words if each.event_id not in story.hidden], rows)
        since_then = bool(unanswered and rows and rows[-1].created_at > words[-1].at)
        looks = len(unanswered) > 1 or since_then  # else it has just been said
        runs, *behind = (looks and await _open(views, source, unanswered)) or [""]
        waited, waits = ({}, False) if any(after) or any(later) else _waited(words, rows, runs)
        found: list[tuple[str, News | Worked]] = []
        for each, times in zip(words, after, strict=True):
            if each.event_id in story.hidden or each.event_id.endswith(SAID_BY_PAGE):
                continue
            at, rank = waited.get(each.event_id, each.at), 2 if each.event_id in waited else 0
            found.append((_place(times, at, rank, each.event_id, behind=each.event_id in behind), each))
            if deeds := story.deeds.get(each.event_id):
                worked = Worked(id=f"{each.event_id}.deeds", deeds=deeds)
                found.append((_place(times, at, rank, worked.id), worked))
        for row, count in zip(rows, later, strict=True):
            event = row.answers or ""
            told = row.kind == "command" or row.file or (row.kind == "error" and event.endswith(FORM))
            if row.answers in story.hidden or (told and event.endswith(UNSEEN)):
                continue
            late = row.answers in behind or row.created_at < waited.get(row.answers or "", -inf)
            if row.kind == "notice" and row.text == BUSY and late:  # which stands below the message
                continue
            times = max(count, since.get(row.answers or "", 0))
            found.append((_place(times, row.created_at, 1, row.id, behind=row.answers in behind), row))
        answered = {row.answers: row.id for row in rows if row.kind in _ANSWERS}  # the last of each
        decided = {*story.words, *(row.answers for row in rows)}
        entries = []
        for place, each_ in sorted(found, key=itemgetter(0))[-most:]:
            if isinstance(each_, Said):
                asked = story.words.get(each_.event_id) or ("" if each_.event_id in decided else story.asked_again)
                said = replace(each_, text=asked) if asked and AGAIN.match(each_.text) else each_
                branch = story.branches.get(each_.event_id)
                if each_.event_id not in answered:
                    branch = branch or story.answers.get(each_.event_id)
                entries.append(self._said(said, thread, place, known.get(each_.event_id), branch))
            elif isinstance(each_, Worked):
                entries.append(_worked(each_, place, known.get(each_.id)))
            else:
                branch = story.answers.get(each_.answers or "") if answered.get(each_.answers) == each_.id else None
                entries.append(await self.of_row(each_, known.get(each_.id), place=place, branch=branch))
        latest = (words[-1].at if words else 0.0, rows[-1].created_at if rows else 0.0)
        return State(
            entries=entries,
            latest=None if any(after) or any(later) else latest,
            more=len(words) + len(rows) >= most,
            forked=story.forked
            or waits
            or bool(behind)
            or bool(waited)
            or any(AGAIN.match(each.text) for each in words if each.event_id not in decided),
            unanswered=unanswered[-1] if unanswered else "",
            branches=story.branches,
            answers=story.answers,
            hidden=story.hidden,
        )

    async def _grown(self, state: State, news: Sequence[News], most: int, thread: str | None) -> State | None:
        """The state with what came since; None: the clock was set back, so the order is not that of the times, or other
        entries change."""
        if state.latest is None or state.forked:
            return None
        entries, (said_at, shown_at) = {entry.id: entry for entry in state.entries}, state.latest
        unanswered = state.unanswered
        for each in news:
            if (each.event_id if isinstance(each, Said) else each.answers) in state.hidden:
                continue
            if isinstance(each, Said):
                if AGAIN.match(each.text) or each.at < shown_at or unanswered:
                    return None
                unanswered = each.event_id
                place = _place(0, each.at, 0, each.event_id)
                entry = self._said(each, thread, place, entries.get(each.event_id), state.branches.get(each.event_id))
                back, said_at = _is_set_back(said_at, each.at), each.at
            else:
                asked = entries.get(each.answers or "")
                if asked is not None and asked.at < round(said_at, 6):  # as a place has it
                    return None  # what was said meanwhile stands below it
                if each.kind in _ANSWERS and each.answers in state.answers:
                    return None  # the versions leave the question, or the row before, and stand at this one
                unanswered = "" if each.kind in _ANSWERS and each.answers == unanswered else unanswered
                entry = await self.of_row(each, entries.get(each.id))
                back, shown_at = _is_set_back(shown_at, each.created_at), each.created_at
            if back:
                return None
            entries[entry.id] = entry
        newest = sorted(entries.values(), key=attrgetter("place"))[-most:]
        more = state.more or len(entries) > most
        return replace(state, entries=newest, latest=(said_at, shown_at), more=more, unanswered=unanswered)

    def _said(
        self, said: Said, thread: str | None, place: str, known: Entry | None, branch: Branch | None = None
    ) -> Entry:
        if known is not None and known.made_of == (said, place, branch):
            return known
        body: list[Child] = [_own(said.text)] if said.text.strip() else []
        body += [_link(f"web:{each.ref}", each.name, each.mime, each.size or 0, thread) for each in said.files]
        waits = place.startswith(_LAST)
        return Entry.of(
            said.event_id,
            f"{place}{begins(said.text)}",
            _article(
                "said waits" if waits else "said",
                "You",
                said.at,
                body,
                el("p", "Waits until the answer above is finished", class_="waiting") if waits else _versions(branch),
            ),
            (said, place, branch),
        )

    async def of_row(
        self,
        row: Outbound,
        known: Entry | None = None,
        *,
        draft: bool = False,
        place: str = "",
        branch: Branch | None = None,
    ) -> Entry:
        """The entry of a row, or of a reply as far as it is written; `known`, if it is still so. `place`: where it
        stands, if not at its time."""
        place = _LAST if draft else place or _place(0, row.created_at, 1, row.id)
        made_of = (row.text, row.code_at, row.kind, row.buttons, row.file, row.created_at, place, branch)
        if known is not None and known.made_of == made_of:
            return known
        body = await self._body(replace(row, text=finished(row.text)) if draft else row)
        buttons = [
            submit(_label(button, row), form="press", name="token", value=button.token)
            for line in row.buttons
            for button in line
            if button.kind != "words"  # they are written below
        ]
        kind, file = row.kind, None
        if row.file is not None:
            kind, file = "reply", _link(row.file.ref, row.file.name, row.file.mime, row.file.size, row.to.thread)
        of_menu = kind in ("command", "error") and (row.answers or "").endswith(SAID_BY_PAGE)
        state = " notice" if of_menu else " made" if file else ""
        state = " stopped" if kind == "notice" and row.text == STOPPED else state
        state = " draft" if draft else " open" if kind == "question" and row.buttons else state
        return Entry.of(
            row.id,
            place,
            _article(
                f"{kind}{state}",
                _WHO[kind],
                None if draft else row.created_at,
                [body if row.text.strip() else None, file, el("p", buttons, class_=_row_of(row)) if buttons else None],
                [_mends(row.text) if kind == "error" else None, _versions(branch)],
                about=row.answers if row.kind == "reply" and not draft else None,
            ),
            made_of,
        )

    async def _body(self, row: Outbound) -> Child:
        if row.kind == "question":
            return _question(row)
        if row.kind not in _MARKDOWN:
            return _plain(row.text)
        text, sources = _without_sources(row.text) if row.kind == "reply" else (row.text, ())
        return _with_sources(await self._markdown(text), sources)

    async def words(
        self,
        found: Sequence[Word],
        deeds: Mapping[str, Sequence[Deed]],
        *,
        own: bool = True,
        sought: tuple[str, str] = ("", ""),
    ) -> Html:
        """Stored messages as the chat shows them; what tools did for each (`deeds`, by its event) is folded. `own`: the
        person may ask what an answer took. `sought`: the id of a message, and the words of a search that are marked
        in it. All texts are read in one call."""
        kept, event, last = list[tuple[Word, str]](), "", dict[str, str]()
        for each in found:
            event = each.event or event
            folded = any(deed.tool for deed in deeds.get(event, ()))
            text = without_calls(each.text) if folded and each.role == "assistant" else each.text
            if (folded and each.role == "tool") or (each.role == "assistant" and not text.strip()):
                continue
            kept.append((replace(each, text=text), event))
            if each.role == "assistant" and own:
                last[event] = each.id
        parts = [_without_sources(cut(each.text, LARGEST)) for each, _ in kept if each.role == "assistant"]
        read = await self._all_markdown([text for text, _ in parts])
        answers = iter([_with_sources(each, sources) for each, (_, sources) in zip(read, parts, strict=True)])
        items = list[Html]()
        for each, event in kept:
            body: Child = next(answers) if each.role == "assistant" else _own(each.text)
            if each.id == sought[0]:
                body = marked(joined(body), sought[1])
            if each.role == "tool":
                body = el("details", el("summary", "Result of a tool"), body)
            about = event if last.get(event) == each.id else None
            article = _article(_KINDS[each.role], WHO[each.role], each.at or None, body, about=about)
            items.append(el("li", article, id=f"m-{each.id}", data_event=each.event or None))
            # Their words stand among the messages. Thoughts may tell of a person's memory: a stranger sees none.
            done = [
                replace(deed, words="", thoughts=deed.thoughts if own else "")
                for deed in deeds.get(each.event, ())
                if own or deed.tool
            ]
            if done:
                items.append(el("li", _worked(Worked(id=each.event, deeds=done), "", None).html))
        return el("ol", items, class_="log")

    async def _all_markdown(self, texts: Sequence[str]) -> list[Html]:
        try:
            return [Html(each) for each in await self.aside(all_rendered, tuple(texts))]
        except TookTooLong:
            return [verbatim(each) for each in texts]

    async def code(self, text: str, number: int) -> str | None:
        """A block of code of an answer, by its number; None: it has none of that number."""
        with suppress(TookTooLong, IndexError):
            return (await self.aside(code_blocks, text))[number]
        return None

    async def _markdown(self, text: str) -> Html:
        try:
            return Html(await self.aside(rendered, text))
        except TookTooLong:
            return verbatim(text)


def cut(text: str, most: int) -> str:
    """The beginning of a text, which says how long the whole is. It ends between words, and best between lines: half
    a link would be shown as its signs."""
    if len(text) <= most:
        return text
    ends = (text.rfind(mark, most // 2, most) for mark in "\n ")
    end = next((each for each in ends if each != -1), most)
    return f"{text[:end].rstrip()} … ({len(text):,} characters)"


def _own(text: str) -> Html:
    """Words of a person; of many the beginning, marked so that the script asks for all when it needs them."""
    whole = len(text) <= _LONGEST
    return el("p", linked(cut(text, _LONGEST)), class_="plain" if whole else "plain cut", dir="auto")


def _waited(words: Sequence[Said], rows: Sequence[Outbound], runs: str) -> tuple[dict[str, float], bool]:
    """When that was done for which messages waited that were said meanwhile: each stands above its own answer. And
    whether some still wait. `runs`: one that has no answer yet, though it may have notices."""
    ends = dict[str, float]()
    for row in rows:
        if row.answers and row.kind != "command":
            ends[row.answers] = max(row.created_at, ends.get(row.answers, -inf))
    found, before, waits = dict[str, float](), -inf, False
    for each in words:
        if each.event_id == runs and each.at < before:
            found[runs] = before
        elif (end := ends.get(each.event_id, -inf)) > before:
            if each.at < before:
                found[each.event_id] = before
            before, waits = end, False
        elif each.at < before and not each.text.startswith("/"):
            waits = True
    return found, waits


def _unanswered(words: Sequence[Said], rows: Sequence[Outbound]) -> list[str]:
    """The newest messages, of which none has an answer yet."""
    answered = {row.answers for row in rows if row.kind in _ANSWERS}
    last = max((at for at, each in enumerate(words) if each.event_id in answered), default=-1)
    return [
        each.event_id
        for each in words[last + 1 :]
        if not each.text.startswith("/") and not each.event_id.endswith(SAID_BY_PAGE)
    ]


async def _open(views: Views, source: Source, unanswered: Sequence[str]) -> Sequence[str]:
    """Those of these messages whose turn has not ended. All but the first wait: they stand below the answer to it."""
    return [each for each in unanswered[-_MOST_BEHIND:] if not await views.ended(source, each)]


def without_calls(text: str) -> str:
    """What was said, without the names of the tools that ran then."""
    return _CALLS.sub("", text)


def _set_back(times: Sequence[float]) -> list[int]:
    """How often the clock had been set back before each of these times, which are in the store's order: what is said
    after that must not be sorted into the past."""
    steps = [_is_set_back(before, now) for before, now in pairwise(times)]
    return list(accumulate(steps, initial=0))[: len(times)]


def _is_set_back(before: float, now: float) -> bool:
    return now < before - _SKEW


def _place(after: int, at: float, rank: int, id_: str, *, behind: bool = False) -> str:
    return f"{_LAST if behind else ''}{after} {at:017.6f} {rank} {id_}"


def begins(text: str) -> str:
    """ANEW or BACK, if a command begins another conversation; "" if it does not."""
    return next((end for pattern, end in _BEGINS if pattern.match(text)), "")


def _mends(text: str) -> Child:
    """The way to the setting that ends an error; page.css shows it to those who may change settings."""
    at = next((at for at, words in _MENDED.items() if words.search(text)), None)
    return el("p", el("a", _WAYS[at], href=f"/settings#{at}"), class_="mends") if at else None


def _plain(text: str) -> Html:
    """One of the gateway's own texts; if it has columns, they are kept."""
    kind = "plain columns" if _COLUMNS.search(text) else "plain"
    return el("p", linked(text), class_=kind, dir="auto")


def _label(button: Button, row: Outbound) -> str:
    """What stands on a button: beside a yes that lasts, the plain one says that it does not."""
    lasts = len(row.buttons[0]) > 1 and len(row.buttons) > 1
    return _ONCE if button.label == LABELS[0] and lasts else button.label


def _row_of(row: Outbound) -> str:
    """The class of a row of buttons: of options, none is proposed."""
    return "buttons" if row.buttons[0][0].token.startswith("approve") else "buttons options"


def _question(row: Outbound) -> Child:
    """What is asked, with a command as code, and below it how long that stands, or what was answered."""
    asked, _, below = row.text.rpartition("\n\n")
    asks = asked or below
    code = asks[row.code_at :] if row.code_at else ""
    labels = {button.label for line in row.buttons for button in line}  # what stands on buttons is not listed, too
    shown = asks.removesuffix(code).rstrip()
    lines = shown.split("\n") if labels and not code else [shown]
    shown = "\n".join(line for line in lines if not (_NUMBERED.match(line) and _NUMBERED.sub("", line) in labels))
    return [
        _plain(shown),
        el("pre", el("code", code, data_language="command"), tabindex=0) if code else None,
        el("p", below, class_="below") if asked else None,
    ]


def _article(kind: str, who: str, at: float | None, body: Child, below: Child = None, about: str | None = None) -> Html:
    """A draft is being written, and a screen reader waits for its end. `at` None: nobody knows when. `about`: the
    message that it answers."""
    took = _about(about) if about else ""
    head = f'<header><span class="who">{who}</span>{moment(at) if at is not None else ""}{took}</header>'
    busy = ' aria-busy="true"' if kind.endswith(" draft") else ""
    return Html(f'<article class="{kind}"{busy}>{head}<div class="body">{joined(body)}</div>{joined(below)}</article>')


def _about(event: str) -> str:
    told = 'aria-label="What this answer took" title="What this answer took"'
    return f'<a class="about" href="/answer/{quote(event, safe="")}" {told}>i</a>'


def _versions(branch: Branch | None) -> Child:
    if branch is None:
        return None
    ways = (("left", "Version before", branch.before), ("right", "Version after", branch.after))
    before, after = [
        submit(icon(picture), form="command", name="branch", value=to or "", aria_label=label, disabled=not to)
        for picture, label, to in ways
    ]
    told = el("span", f"{branch.number}/{branch.of}")
    return el("p", before, told, after, class_="versions", role="group", aria_label="Versions")


def _worked(worked: Worked, place: str, known: Entry | None) -> Entry:
    """What tools did, folded: each with what was said before it, what it was given, and its result."""
    if known is not None and known.made_of == worked:
        return known
    calls = [each for each in worked.deeds if each.tool]
    runs = [each for each in calls if each.result is None]
    failed = [each for each in calls if each.failed]
    how = f" · {f'{len(failed)} ' if len(calls) > 1 else ''}failed"
    more = f" · {counted(len(calls) - 1, 'more step')}" if len(calls) > 1 else ""
    told: Child = _told((runs or calls)[0]) if calls else el("span", "Thoughts")
    summary = [icon("tool" if calls else "spark"), told, el("span", more) if more else None]
    summary.append(el("span", how, class_="failed") if failed else None)
    if len(worked.deeds) == 1:
        (deed,) = worked.deeds
        fold = el("details", el("summary", summary), _before(deed), _given(deed) if calls else None)
    else:
        deeds = [el("li", _before(each), _deed(each) if each.tool else None) for each in worked.deeds[-_MOST_DEEDS:]]
        fold = el("details", el("summary", summary), el("ol", deeds))
    return Entry.of(worked.id, place, el("article", fold, class_="deeds"), worked)


def _told(deed: Deed) -> Html:
    """What a tool did, in words; of these, code is between backticks."""
    begin, code, end = re.split(r"`(.*)`|\Z", f"{deed.told[:1].upper()}{deed.told[1:]}", maxsplit=1)
    return el("span", begin, el("code", code) if code else None, end, class_="told", dir="auto")


def _deed(deed: Deed) -> Html:
    failed = el("span", " failed", class_="failed") if deed.failed else None
    return el("details", el("summary", _told(deed), failed), _given(deed))


def _before(deed: Deed) -> Child:
    said = (("plain thoughts", deed.thoughts), ("plain", deed.words))
    return [el("p", linked(words), class_=kind, dir="auto") for kind, words in said if words]


def _given(deed: Deed) -> Child:
    result = "It runs." if deed.result is None else deed.result
    name = el("small", el("code", deed.tool))
    if result.startswith("--- "):
        return [name, change(result)]
    return [name, el("pre", deed.arguments, tabindex=0), el("pre", result, tabindex=0, dir="auto")]


def change(text: str) -> Html:
    """Lines that come and go in a file."""
    kinds = {"+": "new", "-": "old", "@": "place"}
    return el(
        "pre",
        [el("span", each or " ", class_=kinds.get(each[:1])) for each in text.split("\n")],
        class_="diff",
        tabindex=0,
    )


def _without_sources(text: str) -> tuple[str, Sequence[tuple[str, str, str, str]]]:
    """An answer without the line of its sources, and these: number, title, name of the site, address."""
    found = _SOURCES.search(text)
    return (text, ()) if found is None else (text[: found.start()], re.findall(_SOURCE, found[1]))


def _with_sources(read: Html, sources: Sequence[tuple[str, str, str, str]]) -> Child:
    """An answer in which the numbers lead to its sources, and these as cards below it."""
    if not sources:
        return read
    named = {number: (title, url) for number, title, _, url in sources}

    def linked(found: re.Match[str]) -> str:
        title, url = named.get(found["number"] or "", ("", ""))
        return link(url, found[0], class_="cite", title=title) if url else found[0]

    cards = [
        # Where it leads, whatever its text says.
        el("li", link(url, el("b", title, dir="auto"), el("small", f"{number} · {_host(url)}")))
        for number, title, _, url in sources
    ]
    return [Html(_CITED.sub(linked, read)), el("ol", cards, class_="sources", aria_label="Sources")]


def _host(url: str) -> str:
    """The host of an address, as a browser reads it."""
    return re.split(r"[/\\?#]", url.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]


def moment(at: float) -> Html:
    """A time, which the page's script writes in the reader's own zone."""
    when = datetime.fromtimestamp(at, UTC)
    return Html(f'<time datetime="{when.isoformat(timespec="seconds")}">{when.day} {when:%B %Y, %H:%M} UTC</time>')


def _link(ref: str, name: str, mime: str, size: int, thread: str | None) -> Html:
    """A file to be opened: pictures are shown, and sounds can be played. Its name and kind let the script send it
    again."""
    again = {"data_name": name or "file", "data_type": mime}
    address = beside(f"/files/{quote(ref, safe='')}", chat_of(thread))
    shown = el("img", src=address, alt=name, loading="lazy") if _PICTURES.match(mime) else None
    if mime in _SOUNDS:
        return el("p", el("audio", src=address, controls=True, preload="none", **again), class_="file")
    told = f"{name or 'file'} ({max(1, size // 1000):,} kB)"
    words = el("span", told, dir="auto")
    return el("p", el("a", shown, words, href=address, target="_blank", rel="noopener", **again), class_="file")


def chat_of(thread: str | None) -> str:
    """The name of a chat in addresses; "" for a person's first one."""
    return (thread or "").removeprefix(OWN)


def path_of(chat: str) -> str:
    """The address of a chat."""
    return f"/c/{chat}"


def beside(address: str, chat: str) -> str:
    """The address of a page that tells of a chat."""
    return f"{address}?chat={chat}" if chat else address


def joined_entries(entries: Sequence[Entry]) -> Html:
    """Entries, as a page has them."""
    return joined([el("li", each.html, id=f"e-{each.id}", data_place=each.place) for each in entries])
