"""The words of documents: PDF and DOCX.

Such a file is a stranger's program as much as a text. So `document_text` runs in a process aside, which is ended where
a file takes too long and may not take more than its share of memory. PDFs are read by PDFium (pypdfium2), the engine
of Chromium, and DOCX files by mammoth, as HTML that resiliparse makes plain.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Final
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile

import mammoth
from pypdfium2 import PdfDocument, PdfiumError
from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from gateway.agent.files.kinds import FileText, is_pdf

MOST_PAGES: Final = 2_000
MOST_CHARACTERS: Final = 3_000_000  # of one document: some 1,000 pages

_BROKEN: Final = (
    BadZipFile, ExpatError, KeyError, IndexError, AttributeError, ValueError, OSError, RuntimeError, zlib.error,
)  # fmt: skip
LOCKED: Final = "it is protected by a password"
DAMAGED: Final = "it is damaged"
PICTURES_ONLY: Final = "its pages hold no text, only pictures"
PAGE: Final = "[page {number}]\n{text}"


def document_text(content: bytes) -> FileText:
    """The words of a PDF or of a DOCX file (`kinds.is_document`), or why there are none."""
    return _pdf(content) if is_pdf(content) else _docx(content)


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
    try:
        html = mammoth.convert_to_html(io.BytesIO(content), convert_image=without_pictures).value
    except _BROKEN:
        return FileText(problem=DAMAGED)
    tree = HTMLTree.parse(html)
    for cell in tree.body.query_selector_all("td, th") if tree.body else ():
        cell.text = " ".join(part.text or "" for part in cell.query_selector_all("p"))  # so that a row is one line
    text = extract_plain_text(tree, preserve_formatting=True, alt_texts=False, links=True).strip()
    return FileText(text=text[:MOST_CHARACTERS])
