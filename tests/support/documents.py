"""PDF files, files of Office and e-books, made byte by byte after their standards: no reader here has written them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

_DOCX_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="word/document.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
}
_BODY = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'


def pdf(*pages: str, locked: bool = False) -> bytes:
    """A PDF with these texts, a line of each an own one; `locked`: with a password that nobody knows."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for text in pages:
        lines = " ".join(f"({_literal(line)}) Tj 0 -14 Td" for line in text.split("\n"))
        stream = f"BT /F1 11 Tf 60 780 Td {lines} ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects)} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    more = ""
    if locked:
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /O ({'o' * 32}) /U ({'u' * 32}) /P -4 >>")
        more = f" /Encrypt {len(objects)} 0 R /ID [<00> <00>]"
    out, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    out += f"xref\n0 {count}\n0000000000 65535 f \n{table}"
    out += f"trailer << /Size {count} /Root 1 0 R{more} >>\nstartxref\n{out.rindex('xref')}\n%%EOF\n"
    return out.encode("cp1252")


def _literal(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def docx(*parts: str | Sequence[Sequence[str]], body: str | None = None) -> bytes:
    """A DOCX file of paragraphs and of tables (rows of cells); `body`: its XML instead."""
    if body is None:
        body = _BODY.format("".join(_paragraph(part) if isinstance(part, str) else _table(part) for part in parts))
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        for name, content in {**_DOCX_PARTS, "word/document.xml": body}.items():
            file.writestr(name, content)
    return buffer.getvalue()


def _paragraph(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    made = ("".join(f"<w:tc>{_paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in made) + "</w:tbl>"


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return buffer.getvalue()


_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="{_OFFICE}"'
)


def _related(*kinds_and_targets: tuple[str, str]) -> str:
    made = (
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(kinds_and_targets, start=1)
    )
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(made)
        + "</Relationships>"
    )


def xlsx(**sheets: Sequence[Sequence[str | float]]) -> bytes:
    """An XLSX file of sheets by their names, each of rows of cells."""
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, start=1))
    parts = {
        "_rels/.rels": _related(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _related(
            *(("worksheet", f"worksheets/{n}.xml") for n in range(1, len(sheets) + 1))
        ),
    }
    for number, rows in enumerate(sheets.values(), start=1):
        made = "".join(f'<row r="{at}">{"".join(map(_value, row))}</row>' for at, row in enumerate(rows, start=1))
        parts[f"xl/worksheets/{number}.xml"] = f'<worksheet xmlns="{_SHEETS}"><sheetData>{made}</sheetData></worksheet>'
    return packed(parts)


def _value(cell: str | float) -> str:
    if isinstance(cell, str):
        return f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    return f"<c><v>{cell}</v></c>"


def pptx(*slides: str, notes: str = "") -> bytes:
    """A PPTX file whose slides say this, kept in the opposite order; `notes`: of the first."""
    count = len(slides)
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in range(1, count + 1))
    parts = {
        "ppt/presentation.xml": f"<p:presentation {_SLIDES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _related(*(("slide", f"slides/slide{count - n}.xml") for n in range(count))),
        f"ppt/slides/_rels/slide{count}.xml.rels": _related(("notesSlide", "../notesSlides/notesSlide1.xml")),
        "ppt/notesSlides/notesSlide1.xml": _slide(notes),
    }
    return packed(parts | {f"ppt/slides/slide{count - n}.xml": _slide(text) for n, text in enumerate(slides)})


def _slide(text: str) -> str:
    return f"<p:sld {_SLIDES}><a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p></p:sld>"


def odt(body: str) -> bytes:
    """An ODT file with this XML as its text."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:document-content {spaces}>{text}</office:document-content>"
    return packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def epub(*chapters: str) -> bytes:
    """An EPUB file with these chapters, kept in the opposite order."""
    items = "".join(f'<item id="c{n}" href="ch%20{n}.xhtml"/>' for n in reversed(range(len(chapters))))
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    opf = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{order}</spine></package>'
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/a.opf"/></rootfiles></container>'
    )
    pages = {
        f"OEBPS/ch {n}.xhtml": f"<html><body><p>{escape(text)}</p></body></html>" for n, text in enumerate(chapters)
    }
    return packed(
        {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "OEBPS/a.opf": opf, **pages}
    )
