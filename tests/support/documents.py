"""PDF and DOCX files, made byte by byte after ISO 32000 and ECMA-376: no reader here has written them."""

from __future__ import annotations

import io
from collections.abc import Sequence
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
