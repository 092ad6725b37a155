"""A chat on paper: bubbles with their text, files and buttons, as a telephone shows them; on Discord lines without
bubbles."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from tests.docs import lettering
from tests.docs.svg import Ink, box, disc, flow, image, picture, text
from tests.emulators.discord import Channel, DiscordServer
from tests.emulators.discord.snowflakes import moment_of
from tests.emulators.telegram import Message, TelegramServer
from tests.emulators.telegram.units import Ruler

_SCREEN: Final = 460  # pixels of width
_SIZE: Final = 15
_LINE: Final = 20
_EDGE: Final = 12  # pixels between a bubble and the screen
_PAD: Final = 11  # pixels between a bubble and its text
_WIDEST: Final = 360  # pixels of a line
_WIDE_FILE, _HIGH_FILE = 190, 44
_STAMP: Final = 11  # the size of the time
_GAP: Final = 8
_BAR: Final = 52
_WIDE_PICTURE, _HIGH_PICTURE = 150, 100
_PLAIN: Final = Ink(fill="#10161d")
_WHITE: Final = Ink(fill="#ffffff", bold=True)
_FAINT: Final = Ink(fill="#8796a1")
_LINK: Final = Ink(fill="#2a7bb8")
_CODE: Final = Ink(fill="#35567a", mono=True)
_BLOCK: Final = Ink(fill="#2f4a68", mono=True)  # a line of code by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Skin:
    """The looks of a platform. `bubbles`: one's own words stand on the right."""

    name: str
    bubbles: bool
    bar: str
    backdrop: str
    mine: str
    theirs: str
    button: str
    ink: Ink


TELEGRAM: Final = Skin(name="Telegram", bubbles=True, bar="#4b7fa6", backdrop="#cfe0d4", mine="#e2fdd0",
                       theirs="#ffffff", button="#8fae99", ink=_PLAIN)  # fmt: skip
DISCORD: Final = Skin(name="Discord", bubbles=False, bar="#2b2d31", backdrop="#313338", mine="#313338",
                      theirs="#313338", button="#4e5058", ink=Ink(fill="#dbdee1"))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message. `files`: sign, name, and what stands below; `poll`: answers and their counts; `rows`: buttons;
    `note`: what the model reads of it, which nobody sees."""

    words: str = ""
    entities: Sequence[dict[str, Any]] = ()
    who: str = ""
    at: str = ""
    mine: bool = False
    service: bool = False
    note: bool = False
    pictures: Sequence[bytes] = ()
    files: Sequence[tuple[str, str, str]] = ()
    poll: Sequence[tuple[str, int]] = ()
    rows: Sequence[Sequence[str]] = ()
    reactions: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Text of one look."""

    words: str
    ink: Ink

    @property
    def size(self) -> float:
        return _SIZE - 1 if self.ink.mono else _SIZE

    @property
    def width(self) -> float:
        return lettering.width(self.words, self.ink, self.size)

    @property
    def room(self) -> float:
        return lettering.room(self.words, self.ink, self.size)


_Line = list[_Run]


def draw(said: Sequence[Said], skin: Skin = TELEGRAM, title: str = "Legato") -> str:
    """The messages from top to bottom."""
    parts: list[str] = []
    y = float(_BAR + _GAP)
    for each in said:
        drawn, y = _line(each, y, skin) if each.service or each.note else _bubble(each, y, skin)
        parts += drawn
        y += _GAP
    bar = [
        box(0, 0, _SCREEN, _BAR, skin.bar),
        disc(34, _BAR / 2, 17, "#7fb0d3"),
        text(34, _BAR / 2 + 6, title.lstrip("#")[0], _WHITE, size=17, at="middle"),
        text(62, _BAR / 2 - 2, title, _WHITE, size=16),
        text(62, _BAR / 2 + 15, "bot" if title == "Legato" else "group", Ink(fill="#d7e6f1"), size=13),
    ]
    backdrop = box(0, 0, _SCREEN, y + 4, skin.backdrop)
    return picture(_SCREEN, y + 4, f"A chat with the bot on {skin.name}", [backdrop, *bar, *parts])


def on_telegram(telegram: TelegramServer, messages: Sequence[Message], *, me: int, named: bool = False) -> list[Said]:
    """What a person sees of messages; those of an album are one. `named`: with their writers."""
    shown: list[Said] = []
    albums: dict[str, int] = {}
    for message in messages:
        content, who = message.content, message.sender
        if topic := content.get("forum_topic_created"):
            shown.append(
                Said(words=f"{who.first_name if who else ''} created the topic “{topic['name']}”", service=True)
            )
            continue
        poll, photo = content.get("poll") or {}, content.get("photo")
        pictures = [telegram.cloud.files.take("photo", photo[-1]["file_id"]).content] if photo else []
        mine = who is not None and who.id == me
        name = who.first_name if named and who is not None and not mine else ""
        one = Said(
            words=poll.get("question", message.text),
            entities=message.entities,
            who=name,
            at=("edited " if message.edited else "") + time.strftime("%H:%M", time.gmtime(message.date)),
            mine=mine,
            pictures=pictures,
            files=[_about(content)] if "document" in content or "voice" in content else [],
            poll=[(each["text"], each["voter_count"]) for each in poll.get("options", ())],
            rows=[[b["text"] for b in row] for row in (message.reply_markup or {}).get("inline_keyboard", ())],
            reactions=[*message.reactions, *(emoji for each in message.of_people.values() for emoji in each)],
        )
        album = content.get("media_group_id", "")
        if album in albums:
            before = shown[albums[album]]
            both = [*before.pictures, *one.pictures], [*before.files, *one.files]
            shown[albums[album]] = replace(before, pictures=both[0], files=both[1])
            continue
        albums |= {album: len(shown)} if album else {}
        shown.append(one)
    return shown


def _about(content: dict[str, Any]) -> tuple[str, str, str]:
    if voice := content.get("voice"):
        return "▶", "Voice message", f"0:{voice['duration']:02}"
    return "↓", content["document"]["file_name"], f"{content['document']['file_size']} B"


def on_discord(discord: DiscordServer, channel: Channel) -> list[Said]:
    """The same of a channel."""
    shown = []
    for message in channel.visible:
        poll = message.poll or {}
        counts = {each["id"]: each["count"] for each in (poll.get("results") or {}).get("answer_counts", ())}
        seen = [each for each in message.attachments if each.name.endswith(".png")]
        words, entities = _marked(message.content.replace(f"<@{discord.cloud.bot.id}>", "@Legato"))
        shown.append(
            Said(
                words=poll["question"]["text"] if poll else words,
                entities=entities,
                who=message.author.display or message.author.name,
                at=time.strftime("%H:%M", time.gmtime(moment_of(message.id))),
                pictures=[discord.cloud.files._contents[each.path] for each in seen],
                files=[
                    ("▶", "Voice message", "0:01") if each.is_voice else ("↓", each.name, f"{each.size} B")
                    for each in message.attachments
                    if each not in seen
                ],
                poll=[(a["poll_media"]["text"], counts.get(a["answer_id"], 0)) for a in poll.get("answers", ())],
                rows=[_labels(row) for row in message.components],
                reactions=list(message.reactions),
            )
        )
    return shown


def _labels(row: dict[str, Any]) -> list[str]:
    (first, *_) = row["components"]
    if "options" in first:
        return [f"▾ {' · '.join(each['label'] for each in first['options'])}"]
    return [each["label"] for each in row["components"]]


def _marked(words: str) -> tuple[str, list[dict[str, Any]]]:
    """A text of Discord's without its marks, and where it is bold or code."""
    plain, entities = "", list[dict[str, Any]]()
    for part in re.split(r"(\*\*.+?\*\*|`[^`]+`)", re.sub(r"\\([^\w\s])", r"\1", words)):
        kind = "bold" if part.startswith("**") else "code" if part.startswith("`") else ""
        part = part.strip("*`") if kind else part
        if kind:
            entities.append({"type": kind, "offset": len(plain), "length": len(part)})
        plain += part
    return plain, entities


def _line(said: Said, y: float, skin: Skin) -> tuple[list[str], float]:
    """What stands across the screen: what happened, or what the model reads."""
    if said.service:
        wide = lettering.room(said.words, _WHITE, 13) + 24
        left = (_SCREEN - wide) / 2
        words = text(_SCREEN / 2, y + 17, said.words, _WHITE, size=13, at="middle")
        return [box(left, y, wide, 24, skin.button, radius=12), words], y + 24
    ink = Ink(fill="#5b4a00", mono=True)
    head = text(_EDGE + _PAD, y + 18, "The model reads:", Ink(fill="#8a7200", bold=True), size=12)
    lines = [line for each in said.words.split("\n") for line in lettering.wrapped(each, ink, 12, _SCREEN - 60)]
    high = 30 + 17 * len(lines)
    parts = [box(_EDGE, y, _SCREEN - 2 * _EDGE, high, "#fff6d6", radius=8), head]
    return [
        *parts,
        *(text(_EDGE + _PAD, y + 36 + 17 * n, line, ink, size=12) for n, line in enumerate(lines)),
    ], y + high


def _bubble(said: Said, y: float, skin: Skin) -> tuple[list[str], float]:
    """One message, and where it ends."""
    runs = [replace(run, ink=replace(skin.ink, bold=run.ink.bold)) if run.ink.fill == _PLAIN.fill else run
            for run in _runs(said.words, said.entities)]  # fmt: skip
    lines = list(_lines(runs))
    stamp = lettering.room(said.at, _FAINT, _STAMP)
    end = _wide(lines[-1]) + _GAP + stamp if lines else 0.0
    above = bool(said.poll or said.reactions)
    beside = bool(lines) and end <= _WIDEST and not _is_block(lines[-1]) and not above  # the time is behind the text
    across = min(2, len(said.pictures))
    high_pictures = (_HIGH_PICTURE + 4) * -(-len(said.pictures) // 2)
    needed = [
        *map(_wide, lines),
        float(_WIDE_FILE if said.files else 0),
        end if beside else 0.0,
        float(across * (_WIDE_PICTURE + 4)),
        240.0 if said.poll else 0.0,
        lettering.room(said.who, _WHITE, 13) + stamp,
        34.0 * len(said.reactions) + stamp,
    ]
    wide = 2 * _PAD + max(needed)
    high = 2 * 8 + _HIGH_FILE * len(said.files) + high_pictures + _LINE * len(lines) + (0 if beside else 12)
    high += (18 if said.who else 0) + 34 * len(said.poll) + (20 if said.reactions else 0)
    x = _SCREEN - _EDGE - wide if said.mine and skin.bubbles else float(_EDGE)
    parts = [box(x, y, wide, high, skin.mine if said.mine else skin.theirs, radius=12)]
    top = y + 8
    if said.who:
        named = Ink(fill="#2a7bb8" if skin.bubbles else "#ffffff", bold=True)
        parts.append(text(x + _PAD, top + 11, said.who, named, size=13))
        top += 18
    for number, content in enumerate(said.pictures):
        left, down = x + _PAD + number % 2 * (_WIDE_PICTURE + 4), top + number // 2 * (_HIGH_PICTURE + 4)
        data = f"data:image/png;base64,{b64encode(content).decode()}"
        parts.append(image(left, down, _WIDE_PICTURE, _HIGH_PICTURE, data))
    top += high_pictures
    for file in said.files:
        parts += _file(*file, x + _PAD, top, skin.ink)
        top += _HIGH_FILE
    for line in lines:
        if _is_block(line):
            parts += [box(x + 6, top, wide - 12, _LINE, "#edf2f7"), box(x + 6, top, 3, _LINE, "#5a8fbf")]
        parts += [_drawn(line, x + _PAD, top + 15)] if line else []
        top += _LINE
    parts += _poll(said.poll, x + _PAD, top, wide - 2 * _PAD, skin)
    top += 34 * len(said.poll)
    for number, emoji in enumerate(said.reactions):
        parts.append(box(x + _PAD + 34 * number, top + 2, 30, 20, skin.button, radius=10))
        parts.append(text(x + _PAD + 15 + 34 * number, top + 17, emoji, _WHITE, size=13, at="middle"))
    parts.append(text(x + wide - _PAD, y + high - 8, said.at, _FAINT, size=_STAMP, at="end"))
    below = y + high
    for row in said.rows:
        parts += _buttons(row, x, below + 4, max(wide, 240), skin)
        below += 40
    return parts, below


def _poll(answers: Sequence[tuple[str, int]], x: float, y: float, room: float, skin: Skin) -> list[str]:
    total = sum(count for _, count in answers) or 1
    parts = []
    for number, (answer, count) in enumerate(answers):
        top = y + 34 * number
        parts += [text(x, top + 15, f"○ {answer}", skin.ink, size=_SIZE - 1)]
        parts += [text(x + room, top + 15, f"{count}", _FAINT, size=12, at="end")] if count else []
        parts += [box(x, top + 22, room, 4, "#c9d3da", radius=2)]
        parts += [box(x, top + 22, room * count / total, 4, "#4b7fa6", radius=2)] if count else []
    return parts


def _file(sign: str, name: str, below: str, x: float, y: float, ink: Ink) -> list[str]:
    return [
        disc(x + 18, y + 19, 18, "#5fa8d8"),
        text(x + 18, y + 26, sign, Ink(fill="#ffffff", bold=True), size=20, at="middle"),
        text(x + 46, y + 16, name, replace(ink, bold=True), size=_SIZE),
        text(x + 46, y + 33, below, _FAINT, size=13),
    ]


def _buttons(labels: Sequence[str], x: float, y: float, room: float, skin: Skin) -> list[str]:
    each, size = (room - 4 * (len(labels) - 1)) / len(labels), 14 if len(labels) < 3 else 12
    parts: list[str] = []
    for place, label in enumerate(labels):
        left = x + place * (each + 4)
        parts.append(box(left, y, each, 34, skin.button, radius=8))
        parts.append(text(left + each / 2, y + 22, label, Ink(fill="#ffffff", bold=True), size=size, at="middle"))
    return parts


def _drawn(line: _Line, x: float, y: float) -> str:
    return flow(x, y, [(run.words, run.ink, run.size) for run in line], sum(run.width for run in line))


def _wide(line: _Line) -> float:
    return sum(run.room for run in line)


def _is_block(line: _Line) -> bool:
    return any(run.ink == _BLOCK for run in line)


# -- text ----------------------------------------------------------------------------------------------------

_INKS: Final = {"code": _CODE, "pre": _BLOCK, "bot_command": _LINK, "url": _LINK, "text_link": _LINK, "mention": _LINK}


def _runs(words: str, entities: Sequence[dict[str, Any]]) -> list[_Run]:
    """A text cut where its look changes."""
    ruler = Ruler(words)
    spans = [
        (ruler.index(entity["offset"]) or 0, ruler.index(entity["offset"] + entity["length"]) or 0, entity["type"])
        for entity in entities
    ]
    edges = sorted({0, len(words), *(edge for start, end, _ in spans for edge in (start, end))})
    return [_Run(words=words[start:end], ink=_ink(spans, start, end)) for start, end in pairwise(edges)]


def _ink(spans: Sequence[tuple[int, int, str]], start: int, end: int) -> Ink:
    ink = _PLAIN
    for first, last, kind in spans:
        if first <= start and end <= last:
            ink = replace(_INKS.get(kind, ink), bold=ink.bold or kind == "bold", italic=ink.italic or kind == "italic")
    return ink


def _lines(runs: Sequence[_Run]) -> Iterator[_Line]:
    """Broken at line ends, and between words where a line is full."""
    line: _Line = []
    for run in runs:
        for number, part in enumerate(run.words.split("\n")):
            if number:
                yield line
                line = []
            for word in _words(part):
                piece = _Run(words=word, ink=run.ink)
                if line and _wide(line) + replace(piece, words=word.rstrip()).room > _WIDEST:
                    yield line
                    line = []
                line = _joined(line, piece)
    if line:
        yield line


def _words(part: str) -> list[str]:
    """In pieces that end with their space."""
    pieces = part.split(" ")
    return [f"{piece} " for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _joined(line: _Line, piece: _Run) -> _Line:
    if line and line[-1].ink == piece.ink:
        return [*line[:-1], replace(piece, words=line[-1].words + piece.words)]
    return [*line, piece]
