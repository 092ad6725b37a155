"""The words of documents."""

from __future__ import annotations

import pytest

from gateway.agent.files import documents
from gateway.agent.files.documents import DAMAGED, LOCKED, PICTURES_ONLY, document_text
from gateway.agent.files.kinds import NOT_TEXT, is_document
from gateway.agent.files.packed import TOO_LARGE
from tests.support.documents import docx, epub, odt, packed, pdf, pptx, xlsx

BOMB = (
    '<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {name} "{10 * f"&{before};"}">' for before, name in zip("abcdefghi", "bcdefghij", strict=True))
    + ']><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    "<w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:body></w:document>"
)


def test_a_pdf_is_read_page_by_page() -> None:
    found = document_text(pdf("Quarterly report (draft)\nNorth 1,200 1,340", "The code word is HERON-77."))
    assert found.text == (
        "[page 1]\nQuarterly report (draft)\nNorth 1,200 1,340\n\n[page 2]\nThe code word is HERON-77."
    )
    assert found.how == "2 pages"


def test_one_page_needs_no_number() -> None:
    found = document_text(b"\n junk before it\n" + pdf("Grüße"))
    assert (found.text, found.how) == ("Grüße", "1 page")


def test_a_long_pdf_is_read_as_far_as_is_sensible_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_PAGES", 3)
    found = document_text(pdf(*(f"Leaf {number}" for number in range(1, 6))))
    assert found.text is not None
    assert found.text.endswith("[page 3]\nLeaf 3")
    assert found.how == "5 pages, the first 3 of them read"
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 8)
    assert document_text(pdf(*["five!"] * 4)).how == "4 pages, the first 2 of them read"


def test_a_docx_keeps_its_lists_and_the_rows_of_its_tables() -> None:
    found = document_text(docx("Vertrag <4711>", [["Posten", "Preis"], ["Schrauben", "34,50 €"]], "北京公司"))
    assert found.text is not None
    lines = [line.split() for line in found.text.splitlines() if line]
    assert lines == [["Vertrag", "<4711>"], ["Posten", "Preis"], ["Schrauben", "34,50", "€"], ["北京公司"]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (pdf("secret", locked=True), LOCKED),
        (pdf("", ""), PICTURES_ONLY),
        (b"%PDF-1.7", DAMAGED),
        (pdf("words")[:200], DAMAGED),
        (docx("words")[:300] + b"word/document.xml", DAMAGED),
        (docx(body="<not-closed>"), DAMAGED),
        (docx(body=BOMB), DAMAGED),
    ],
)
def test_a_document_that_cannot_be_read_says_why(content: bytes, problem: str) -> None:
    assert is_document(content)
    found = document_text(content)
    assert (found.text, found.problem) == (None, problem)


def test_a_workbook_is_read_sheet_by_sheet() -> None:
    found = document_text(xlsx(Budget=[["Item", "Cost"], ["Rent\nand heat", 1200.5], ["Food", 300]], Empty=[]))
    assert found.text == "[sheet Budget]\nItem\tCost\nRent and heat\t1200.5\nFood\t300\n\n[sheet Empty]"
    assert found.how == "2 sheets"


def test_a_workbook_without_end_is_read_as_far_as_is_sensible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 1_000)
    found = document_text(xlsx(A=[[number, "some words"] for number in range(3_000)]))
    assert len(found.text or "") == 1_000
    assert found.how == "1 sheet, not read to the end"


def test_slides_come_in_the_order_of_the_show_with_their_notes() -> None:
    found = document_text(pptx("Welcome", "The end", notes="Smile first"))
    assert found.text == "[slide 1]\nWelcome\nSmile first\n\n[slide 2]\nThe end"
    assert found.how == "2 slides"


def test_an_opendocument_text_keeps_its_rows_and_leaves_out_what_was_deleted() -> None:
    found = document_text(
        odt(
            "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h>Head</text:h>"
            "<text:p>one<text:tab/>two<text:line-break/>three</text:p><table:table><table:table-row><table:table-cell>"
            "<text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell>"
            "</table:table-row></table:table>"
        )
    )
    assert found.text == "Head\none\ttwo\nthree\na\tb"


def test_a_book_is_read_in_the_order_of_its_chapters() -> None:
    assert document_text(epub("In the beginning", "The end")).text == "In the beginning\n\nThe end"


MAIL = b"""Received: from a
From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>
Subject: =?utf-8?b?5L2g5aW9?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: %b

%b
--x
Content-Type: application/pdf; name=bill.pdf
Content-Disposition: attachment; filename=bill.pdf

x
--x--
"""


@pytest.mark.parametrize(
    ("mime", "body"),
    [
        (b"text/plain; charset=latin-1", "Grüße".encode("latin-1")),
        (b"text/plain; charset=nobody-knows", "Grüße".encode("latin-1")),
        (b"text/html; charset=utf-8", "<p>Grüße</p><script>x()</script>".encode()),
    ],
)
def test_a_mail_shows_its_headers_its_text_and_what_is_attached(mime: bytes, body: bytes) -> None:
    content = MAIL % (mime, body)
    assert is_document(content)
    assert document_text(content).text == (
        "From: Jürgen <j@example.org>\nSubject: 你好\nAttached, not shown: bill.pdf\n\nGrüße"
    )


def test_a_long_page_is_read_without_its_source_and_a_short_one_with_it() -> None:
    page = b"<!DOCTYPE html><html><head><script>" + b"x" * 30_000 + b"</script></head><body><p>Words</p></body></html>"
    assert document_text(page).text == "Words"
    assert not is_document(b"<html><body><p>Words</p></body></html>")


def test_an_archive_is_listed_and_what_can_be_read_is_read() -> None:
    inner = packed({"deeper.txt": "never seen"})
    content = packed({"a.txt": "alpha", "x/b.docx": docx("beta"), "c.zip": inner, "d.png": b"\x89PNG\r\n\x1a\n\0"})
    found = document_text(content)
    assert found.text is not None
    listed, *texts = found.text.split("\n\n")
    assert [line.split(" (")[0] for line in listed.split("\n")] == ["- a.txt", "- x/b.docx", "- c.zip", "- d.png"]
    assert texts == ["[a.txt]\nalpha", "[x/b.docx]\nbeta"]
    assert found.how == "4 files, 2 of them read"


def test_an_archive_of_many_files_is_read_as_far_as_is_sensible() -> None:
    found = document_text(packed({f"{number}.txt": "word " * 200 for number in range(1_000)}))
    assert found.text is not None
    assert "- … and 800 more" in found.text
    assert len(found.text) < 350_000
    assert found.how == "1,000 files, 300 of them read"


def test_what_unpacks_to_too_much_is_left_out_or_refused() -> None:
    bomb = bytes(60_000_000)
    assert document_text(packed({"bomb.txt": bomb, "a.txt": "alpha"})).how == "2 files, 1 of them read"
    assert document_text(packed({"ppt/presentation.xml": bomb})).problem == TOO_LARGE


def _locked_zip() -> bytes:
    content = bytearray(packed({"a.txt": "alpha"}))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def test_a_locked_archive_is_listed_and_says_so() -> None:
    found = document_text(_locked_zip())
    assert (found.text, found.how) == ("- a.txt (5 bytes)", f"1 file, 0 of them read; {LOCKED}")


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (OLE + "EncryptedPackage".encode("utf-16-le"), LOCKED),
        (OLE + "Workbook".encode("utf-16-le"), DAMAGED),
        (OLE + "WordDocument".encode("utf-16-le"), NOT_TEXT),
        (b"PK\x03\x04 and on", DAMAGED),
        (packed({"xl/workbook.xml": "<workbook"}), DAMAGED),
        (packed({"ppt/presentation.xml": BOMB}), DAMAGED),
        (packed({"META-INF/container.xml": "<container/>"}), DAMAGED),
        (
            packed(
                {
                    "mimetype": "application/vnd.oasis.opendocument.text",
                    "META-INF/manifest.xml": "<encryption-data/>",
                    "content.xml": "?",
                }
            ),
            LOCKED,
        ),
    ],
)
def test_a_hostile_or_locked_file_is_one_sentence(content: bytes, problem: str) -> None:
    assert is_document(content)
    found = document_text(content)
    assert (found.text, found.problem) == (None, problem)


def test_a_text_is_no_document() -> None:
    assert not is_document(b"%PD")
    assert not is_document(b"From: me\nTo: you\n\nReceived: nothing")
    assert not is_document(b"a:" * 1_000_000)
