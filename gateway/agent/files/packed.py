"""The words of files that are ZIP archives: presentations, OpenDocument texts, e-books, and archives themselves.
Nothing is unpacked to disk, an archive inside an archive stays closed, and what would unpack to too much is not
read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from zipfile import ZipFile, ZipInfo

from gateway.agent.files.kinds import FileText
from gateway.agent.files.page import html_text
from gateway.domain.chat import one_line
from gateway.domain.wording import counted

_MOST_UNPACKED: Final = 50_000_000  # bytes of all that is read of one archive
_MOST_LISTED: Final = 200  # files of an archive
_MOST_SHOWN: Final = 300_000  # characters of the files in an archive
_ENCRYPTED: Final = 1  # of an entry's flags: APPNOTE.TXT 4.4.4
_RELATED: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_UNSHOWN: Final = ("tracked-changes", "annotation")
_SPACES: Final = {"tab": "\t", "br": "\n", "line-break": "\n", "s": " "}

TOO_LARGE: Final = "it unpacks to more than I can read"
LOCKED: Final = "it is protected by a password"


class Package:
    """The parts of such a file, by their names. `room`: the bytes that may still be read of it."""

    def __init__(self, archive: ZipFile) -> None:
        self.names = frozenset(archive.namelist())
        self.entries = [each for each in archive.infolist() if not each.is_dir()]
        self._archive = archive
        self.room = _MOST_UNPACKED

    def part(self, name: str | ZipInfo) -> bytes:
        """The content of a part. Raises OverflowError where all that is read becomes too much."""
        with self._archive.open(name) as file:
            content = file.read(self.room + 1)
        self.room -= len(content)
        if self.room < 0:
            raise OverflowError
        return content

    def xml(self, name: str) -> Element:
        """A part that is XML."""
        return ElementTree.fromstring(self.part(name))

    def mime(self) -> str:
        """The type that OpenDocument files and e-books say."""
        return self.part("mimetype").decode("latin-1").strip() if "mimetype" in self.names else ""

    def related(self, name: str) -> dict[str, str]:
        """The parts that one refers to, by their ids there."""
        folder, _, plain = name.rpartition("/")
        if (listed := f"{folder}/_rels/{plain}.rels") not in self.names:
            return {}
        return {each.get("Id", ""): _joined(folder, each.get("Target", "")) for each in self.xml(listed)}


def slides(package: Package) -> FileText:
    """The slides of a presentation in their order, each with its notes."""
    order = package.related("ppt/presentation.xml")
    shown = [
        order.get(each.get(_RELATED, ""), "")
        for each in package.xml("ppt/presentation.xml").iter()
        if _tag(each) == "sldId"
    ]
    texts = []
    for number, name in enumerate((each for each in shown if each in package.names), start=1):
        notes = [each for each in package.related(name).values() if "/notesSlides/" in each and each in package.names]
        lines = [line for part in (name, *notes) for line in _lines(package.xml(part))]
        texts.append("\n".join([f"[slide {number}]", *lines]))
    return FileText(text="\n\n".join(texts), how=counted(len(texts), "slide"))


def open_document(package: Package) -> FileText:
    """The text of an OpenDocument file."""
    if "META-INF/manifest.xml" in package.names and b"encryption-data" in package.part("META-INF/manifest.xml"):
        return FileText(problem=LOCKED)
    return FileText(text="\n".join(_lines(package.xml("content.xml"))))


def book(package: Package) -> FileText:
    """The chapters of an e-book (EPUB) in their order."""
    listed = next(
        each.get("full-path", "") for each in package.xml("META-INF/container.xml").iter() if _tag(each) == "rootfile"
    )
    contents = list(package.xml(listed).iter())
    items = {each.get("id"): each.get("href", "") for each in contents if _tag(each) == "item"}
    order = [items.get(each.get("idref"), "") for each in contents if _tag(each) == "itemref"]
    names = [_joined(posixpath.dirname(listed), unquote(each)) for each in order]
    texts = [html_text(package.part(name)) for name in names if name in package.names]
    return FileText(text="\n\n".join(filter(None, texts)))


def archive(package: Package, read: Callable[[bytes], FileText]) -> FileText:
    """The list of an archive's files, and the text of those that can be read, as far as there is room."""
    entries = package.entries
    lines = [f"- {one_line(each.filename)} ({each.file_size:,} bytes)" for each in entries[:_MOST_LISTED]]
    if len(entries) > _MOST_LISTED:
        lines.append(f"- … and {len(entries) - _MOST_LISTED:,} more")
    texts = list(_texts(package, read))
    locked = any(each.flag_bits & _ENCRYPTED for each in entries)
    how = f"{counted(len(entries), 'file')}, {len(texts)} of them read" + (f"; {LOCKED}" if locked else "")
    return FileText(text="\n\n".join(["\n".join(lines), *texts]), how=how)


def _texts(package: Package, read: Callable[[bytes], FileText]) -> Iterator[str]:
    room = _MOST_SHOWN
    for entry in package.entries:
        if room <= 0 or entry.flag_bits & _ENCRYPTED or entry.filename.startswith("__MACOSX/"):
            continue
        text = None if entry.file_size > package.room else read(package.part(entry)).text
        if text and not text.isspace():
            text = text[:room]
            room -= len(text)
            yield f"[{one_line(entry.filename)}]\n{text}"


def _lines(element: Element) -> Iterator[str]:
    """The paragraphs below an element; a table row is one line."""
    tag = _tag(element)
    if tag in ("tr", "table-row"):
        yield "\t".join(" ".join(_lines(cell)) for cell in element)
    elif tag in ("p", "h"):
        if line := "".join(_runs(element)).strip():
            yield line
    elif tag not in _UNSHOWN:
        for child in element:
            yield from _lines(child)


def _runs(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        tag = _tag(child)
        yield _SPACES.get(tag, "")
        if tag not in _UNSHOWN:
            yield from _runs(child)
        yield child.tail or ""


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _joined(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
