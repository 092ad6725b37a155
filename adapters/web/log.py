"""What a chat shows: the words that were accepted and the rows of the outbox, in the order of their times.

A page has no state of its own: every entry is made of the store, so a page that was cut off is brought up to what a
reload would show. A digest names what a page shows up to an entry. A page that comes back says the last digest it was
given; where that is a beginning of the present entries, it is sent the rest, and else all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Final, Self
from urllib.parse import quote

from msgspec import Struct, field

from adapters.web.markup import Child, Html, el, joined
from adapters.web.rendering import LARGEST, all_rendered, rendered, verbatim
from gateway.domain.chat import Attachment, Outbound, OutboundState, Source
from gateway.domain.views import Said, Views, Word
from gateway.runtime.aside import RunsAside
from gateway.runtime.errors import TookTooLong
from gateway.runtime.structs import replace

SHOWN: Final = 80  # entries of a page; more can be asked for
MOST_SHOWN: Final = 480
MOST_WORDS: Final = 200  # messages of an earlier conversation on one page
_LONGEST: Final = 8_000  # characters of a person's message; all of them are in its session
_MOST_KEPT: Final = 2_000  # entries that were made, of all chats
_MARKDOWN: Final = ("reply", "remark", "reminder")
_COLUMNS: Final = re.compile(r"\S {2,}\S")
_SKEW: Final = 60.0  # seconds by which clocks of several processes may differ
_LAST: Final = "~"  # sorts a draft behind every time
_PICTURES: Final = re.compile(r"image/(png|jpeg|gif|webp)\Z")
_WHO: Final = {
    "reply": "Legato",
    "remark": "Legato",
    "reminder": "Reminder",
    "command": "Legato",
    "notice": "Note",
    "question": "Question",
    "error": "Error",
}


class Entry(Struct, frozen=True, kw_only=True):
    """One message on the page. `place` sorts it, as text; `version` names what it shows."""

    id: str
    place: str
    html: Html
    version: str

    @classmethod
    def of(cls, id_: str, place: str, html: Html) -> Self:
        """An entry that shows this."""
        return cls(
            id=id_, place=place, html=html, version=sha256(f"{place}{html}".encode(errors="replace")).hexdigest()[:12]
        )


class State(Struct, frozen=True, kw_only=True):
    """All entries of a page, oldest first. `digests`: for every number of entries from none on, the digest of so many
    of the first."""

    entries: list[Entry]
    digests: list[str]

    @classmethod
    def of(cls, entries: list[Entry]) -> Self:
        """The state with these entries."""
        running, digests = sha256(), ["0"]
        for entry in entries:
            running.update(f"{entry.id} {entry.version}\n".encode())
            digests.append(running.hexdigest()[:24])
        return cls(entries=entries, digests=digests)


class Log(Struct, kw_only=True):
    """Makes entries. `aside` reads Markdown, which may be a stranger's. `_made` keeps those that were made."""

    aside: RunsAside
    _made: dict[str, tuple[object, Entry]] = field(default_factory=dict)

    async def state(self, views: Views, source: Source, most: int) -> State:
        """The newest entries of a person's chat. Raises StoreUnavailable."""
        words = list(reversed(await views.said(source, most)))
        rows = list(reversed(in_place(await views.shown(source, most))))
        after = _set_back([each.at for each in words])
        since = {each.event_id: times for each, times in zip(words, after, strict=True)}
        said = [self._said(each, since[each.event_id]) for each in words]
        shown = [
            await self.of_row(row, after=max(times, since.get(row.answers or "", 0)))
            for row, times in zip(rows, _set_back([row.created_at for row in rows]), strict=True)
        ]
        return State.of(sorted([*said, *shown], key=lambda entry: entry.place)[-most:])

    def _said(self, said: Said, after: int) -> Entry:
        known = self._made.get(said.event_id)
        if known is not None and known[0] == (said, after):
            return known[1]
        whole = len(said.text) <= _LONGEST
        shown = el("p", cut(said.text, _LONGEST), class_="plain" if whole else "plain cut", dir="auto")
        body: list[Child] = [shown] if said.text.strip() else []
        entry = Entry.of(
            said.event_id,
            _place(after, said.at, 0, said.event_id),
            _article("said", "You", said.at, [*body, [_file(each) for each in said.files]]),
        )
        return self._kept(said.event_id, (said, after), entry)

    async def of_row(self, row: Outbound, *, draft: bool = False, after: int = 0) -> Entry:
        """The entry of a row, or of a reply as far as it is written. `after`: how often the
        clock had been set back by then."""
        made_of = (row.text, row.kind, row.buttons, row.file, row.created_at, draft, after)
        known = self._made.get(row.id)
        if known is not None and known[0] == made_of:
            return known[1]
        body = await self._markdown(row.text) if row.kind in _MARKDOWN else _plain(row.text)
        buttons = [
            el("button", button.label, type="submit", form="press", name="token", value=button.token)
            for line in row.buttons
            for button in line
        ]
        kind, file = row.kind, None
        if row.file is not None:
            kind, file = "reply", _link(row.file.ref, row.file.name, row.file.mime, row.file.size)
        entry = Entry.of(
            row.id,
            _LAST if draft else _place(after, row.created_at, 1, row.id),
            _article(
                f"{kind} draft" if draft else kind,
                _WHO[kind],
                None if draft else row.created_at,
                [body if row.text.strip() else None, file, el("p", buttons, class_="buttons") if buttons else None],
            ),
        )
        return self._kept(row.id, made_of, entry)

    async def words(self, found: Sequence[Word], *, most: int = LARGEST) -> list[tuple[Word, Html]]:
        """Stored messages, each with what is shown of it. All of them are read in one call."""
        texts = tuple(cut(each.text, most) for each in found if each.role == "assistant")
        try:
            answers = iter([Html(each) for each in await self.aside(all_rendered, texts)])
        except TookTooLong:
            answers = iter([verbatim(each) for each in texts])
        return [
            (each, next(answers) if each.role == "assistant" else verbatim(cut(each.text, min(most, _LONGEST))))
            for each in found
        ]

    async def _markdown(self, text: str) -> Html:
        try:
            return Html(await self.aside(rendered, text))
        except TookTooLong:
            return verbatim(text)

    def _kept(self, id_: str, made_of: object, entry: Entry) -> Entry:
        self._made.pop(id_, None)
        self._made[id_] = (made_of, entry)
        if len(self._made) > _MOST_KEPT:
            del self._made[next(iter(self._made))]
        return entry


def cut(text: str, most: int) -> str:
    """The beginning of a text, which says how long the whole is."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def in_place(rows: Sequence[Outbound]) -> list[Outbound]:
    """The rows, with those that edit an earlier one in its place."""
    by_id = {row.id: row for row in rows}
    for row in reversed(rows):  # oldest first: the last edit stands
        if row.edits in by_id:
            edited = by_id[row.edits]
            by_id[row.edits] = replace(edited, text=row.text, buttons=row.buttons)
            del by_id[row.id]
    return [row for row in by_id.values() if row.state != OutboundState.REFUSED]


def _set_back(times: Sequence[float]) -> list[int]:
    """How often the clock had been set back before each of these times, which are in the store's order: what is said
    after that must not be sorted into the past."""
    steps = [int(now < before - _SKEW) for before, now in pairwise(times)]
    return list(accumulate(steps, initial=0))[: len(times)]


def _place(after: int, at: float, rank: int, id_: str) -> str:
    return f"{after} {at:017.6f} {rank} {id_}"


def _plain(text: str) -> Html:
    """A text of the gateway's own; one with columns keeps them."""
    kind = "plain columns" if _COLUMNS.search(text) else "plain"
    return el("p", text, class_=kind, dir="auto")


def _article(kind: str, who: str, at: float | None, body: Child) -> Html:
    """`at` None: it is being written, and a screen reader waits for its end."""
    head = el("header", el("span", who, class_="who"), moment(at) if at is not None else None)
    return el("article", head, el("div", body, class_="body"), class_=kind, aria_busy="true" if at is None else None)


def moment(at: float) -> Html:
    """A time, which the page's script writes in the reader's own zone."""
    when = datetime.fromtimestamp(at, UTC)
    return el("time", f"{when:%Y-%m-%d %H:%M} UTC", datetime=when.isoformat(timespec="seconds"))


def _file(file: Attachment) -> Html:
    return _link(f"web:{file.ref}", file.name, file.mime, file.size or 0)


def _link(ref: str, name: str, mime: str, size: int) -> Html:
    """A file to be opened: pictures are shown."""
    address = f"/files/{quote(ref, safe='')}"
    shown = el("img", src=address, alt=name, loading="lazy") if _PICTURES.match(mime) else None
    told = f"{name or 'file'} ({max(1, size // 1000):,} kB)"
    return el(
        "p", el("a", shown, el("span", told, dir="auto"), href=address, target="_blank", rel="noopener"), class_="file"
    )


def joined_entries(entries: Sequence[Entry]) -> Html:
    """Entries as they stand in a page."""
    return joined([el("li", each.html, id=f"e-{each.id}", data_place=each.place) for each in entries])
