"""The words of PDF and DOCX files."""

from __future__ import annotations

import pytest

from gateway.agent.files import documents
from gateway.agent.files.documents import DAMAGED, LOCKED, PICTURES_ONLY, document_text
from gateway.agent.files.kinds import is_document
from tests.support.documents import docx, pdf

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


def test_another_zip_is_no_document() -> None:
    assert not is_document(b"PK\x03\x04 xl/workbook.xml")
    assert not is_document(b"%PD")
