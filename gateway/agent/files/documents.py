"""The words of documents: PDF, Office files, e-books, e-mails, pages and archives.

Such a file may be hostile. So `document_text` runs in a separate process, which is ended if a file takes too long and
may take only so much memory. PDFium (pypdfium2), the engine of Chromium, reads PDFs; mammoth turns DOCX files into
HTML, which resiliparse makes plain; calamine reads tables; `packed` reads the other kinds of ZIP archives.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as modern
from typing import Any, Final
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

import mammoth
from pypdfium2 import PdfDocument, PdfiumError
from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
from python_calamine import CalamineError, CalamineWorkbook, PasswordError
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from gateway.agent.files import packed
from gateway.agent.files.kinds import NOT_TEXT, FileText, is_document, is_long_page, is_mail, is_ole, is_pdf, text_in
from gateway.agent.files.packed import LOCKED, Package
from gateway.agent.files.page import html_text
from gateway.domain.chat import one_line
from gateway.domain.wording import counted

MOST_PAGES: Final = 2_000
MOST_CHARACTERS: Final = 3_000_000  # of one document: some 1,000 pages

_BROKEN: Final = (
    BadZipFile, ExpatError, ParseError, LookupError, AttributeError, TypeError, ValueError, OSError, RuntimeError,
    StopIteration, EOFError, zlib.error, CalamineError,
)  # fmt: skip
_HEADERS: Final = ("From", "To", "Cc", "Date", "Subject")
DAMAGED: Final = "it is damaged"
PICTURES_ONLY: Final = "its pages contain only pictures, no text"
PAGE: Final = "[page {number}]\n{text}"


def document_text(content: bytes, *, inside: bool = False) -> FileText:
    """The words of a file (`kinds.is_document`), or why there are none. `inside`: it lies in an archive, so an archive
    stays closed."""
    if is_pdf(content):
        return _pdf(content)
    try:
        found = _read(content, inside=inside)
    except PasswordError:
        return FileText(problem=LOCKED)
    except OverflowError:
        return FileText(problem=packed.TOO_LARGE)
    except _BROKEN:
        return FileText(problem=DAMAGED)
    if found.text is not None and len(found.text) > MOST_CHARACTERS:
        how = f"{found.how}, not read to the end".removeprefix(", ")
        return FileText(text=found.text[:MOST_CHARACTERS], how=how)
    return found


def _read(content: bytes, *, inside: bool) -> FileText:
    if is_ole(content):
        return _ole(content)
    if is_long_page(content):
        return FileText(text=html_text(content))
    if is_mail(content):
        return _mail(content)
    with ZipFile(io.BytesIO(content)) as file:
        package = Package(file)
        if "word/document.xml" in package.names:
            return _docx(content)
        if "ppt/presentation.xml" in package.names:
            return packed.slides(package)
        if package.names & {"xl/workbook.xml", "xl/workbook.bin"} or package.mime().endswith(".spreadsheet"):
            return _tables(content)
        if package.mime().startswith("application/vnd.oasis.opendocument."):
            return packed.open_document(package)
        if "META-INF/container.xml" in package.names:
            return packed.book(package)
        return FileText(problem=NOT_TEXT) if inside else packed.archive(package, _inner)


def _inner(content: bytes) -> FileText:
    return document_text(content, inside=True) if is_document(content) else text_in(content)


def _pdf(content: bytes) -> FileText:
    try:
        with PdfDocument(content) as document:
            pages = len(document)
            read = list(_pages(document, min(pages, MOST_PAGES)))
    except PdfiumError as error:
        locked = getattr(error, "err_code", None) in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY)
        return FileText(problem=LOCKED if locked else DAMAGED)
    if not any(read):
        return FileText(problem=PICTURES_ONLY if pages else DAMAGED)
    how = f"{pages:,} pages" if pages != 1 else "1 page"
    if len(read) < pages:
        how += f", the first {len(read):,} of them read"
    marked = (PAGE.format(number=number, text=text) for number, text in enumerate(read, start=1))
    return FileText(text="\n\n".join(marked) if pages > 1 else read[0], how=how)


def _pages(document: PdfDocument, most: int) -> Iterator[str]:
    """The text of one page after another; "" of a page that is damaged."""
    length = 0
    for number in range(most):
        try:
            page = document[number]
            text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").replace("\0", "").strip()
            page.close()
        except PdfiumError:
            text = ""
        yield text
        length += len(text)
        if length > MOST_CHARACTERS:
            return


def _docx(content: bytes) -> FileText:
    without_pictures = mammoth.images.img_element(lambda _: {})
    html = mammoth.convert_to_html(io.BytesIO(content), convert_image=without_pictures).value
    tree = HTMLTree.parse(html)
    for cell in tree.body.query_selector_all("td, th") if tree.body else ():
        cell.text = " ".join(part.text or "" for part in cell.query_selector_all("p"))  # so that a row is one line
    return FileText(text=extract_plain_text(tree, preserve_formatting=True, alt_texts=False, links=True).strip())


def _ole(content: bytes) -> FileText:
    if "EncryptedPackage".encode("utf-16-le") in content:
        return FileText(problem=LOCKED)
    is_table = any(name.encode("utf-16-le") in content for name in ("Workbook", "Book\0"))
    return _tables(content) if is_table else FileText(problem=NOT_TEXT)


def _tables(content: bytes) -> FileText:
    """The sheets of a workbook, a row in a line, its cells between tabs."""
    with CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
        names = book.sheet_names
        lines, length = list[str](), 0
        for name in names:
            lines.append(f"\n[sheet {one_line(name)}]")
            for row in book.get_sheet_by_name(name).iter_rows():
                if line := "\t".join(map(_cell, row)).rstrip():
                    lines.append(line)
                    length += len(line)
                if length > MOST_CHARACTERS:
                    break
    return FileText(text="\n".join(lines).lstrip(), how=counted(len(names), "sheet"))


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # a workbook has no other numbers
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def _mail(content: bytes) -> FileText:
    """The headers that people read, the text, and the names of what is attached."""
    mail: EmailMessage = message_from_bytes(content, policy=modern)
    lines = [f"{name}: {' '.join(str(mail[name]).split())}" for name in _HEADERS if mail[name]]
    names = [one_line(part.get_filename() or "") or part.get_content_type() for part in mail.iter_attachments()]
    attached = [f"Attached, not shown: {', '.join(names)}"] if names else []
    return FileText(text="\n".join([*lines, *attached, "", _body(mail)]))


def _body(mail: EmailMessage) -> str:
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes), "it is not multipart"
    if part.get_content_subtype() == "html":
        return html_text(payload)
    try:
        return payload.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:
        return payload.decode("latin-1")
