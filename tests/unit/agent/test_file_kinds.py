"""The kinds of files, by their bytes."""

from __future__ import annotations

import pytest

from gateway.agent.files.kinds import NOT_TEXT, FileText, is_opaque, is_sound, picture_type, sound_format, text_in
from gateway.domain.chat import Attachment
from tests.emulators.telegram.people import PIXEL


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (PIXEL, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
        (b"BM......", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_a_picture_is_told_by_its_first_bytes(content: bytes, wanted: str | None) -> None:
    assert picture_type(content) == wanted


@pytest.mark.parametrize(
    ("content", "mime", "wanted"),
    [
        (b"OggS\x00", "", "ogg"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/ogg", "wav"),
        (b"ID3\x04", "", "mp3"),
        (b"\xff\xfb\x90", "audio/mpeg", "mp3"),
        (b"FORM\x00\x00\x00\x00AIFF", "", "aiff"),
        (b"fLaC", "", "flac"),
        (b"\x00\x00\x00 ftypM4A ", "audio/mp4; codecs=x", "m4a"),
        (b"hello", "text/plain", None),
    ],
)
def test_a_sound_is_told_by_its_bytes_and_else_by_its_type(content: bytes, mime: str, wanted: str | None) -> None:
    assert sound_format(content, mime) == wanted


WORDS = "第一行：你好\nsecond line\tÜ \U0001f600\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_is_read_in_every_unicode_encoding(encoding: str) -> None:
    assert text_in(WORDS.encode(encoding)) == FileText(text=WORDS)


def test_a_mark_of_either_byte_order_is_read_and_left_out() -> None:
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        assert text_in(mark + WORDS.encode(encoding)) == FileText(text=WORDS)


def test_line_ends_of_windows_become_plain_ones() -> None:
    assert text_in(b"a\r\nb\r\n").text == "a\nb\n"


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"text with a \x00 in it",
        b"gr\xfc\xdfe\x01",
        b"PK\x03\x04\x14\x00",
        b"\x7fELF\x02\x01\x01",
        "half a pair \ud800".encode("utf-16-le", "surrogatepass"),
        b"\xff\xfea",
        bytes(range(256)),
    ],
)
def test_what_is_no_text_is_not_taken_for_one(content: bytes) -> None:
    assert text_in(content) == FileText(problem=NOT_TEXT)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Grüße aus Köln, die Rechnung liegt bei.\nÀ bientôt, garçon! El año que viene"),
        ("cp1252", "The “quoted” price is 40 € – naïve café"),
        ("gb18030", "你好，这是一个测试文件，包含中文内容。会议在明天下午三点。"),
        ("big5", "你好，這是一個測試文件，包含中文內容。會議在明天下午三點。"),
        ("shift_jis", "これはテストです。会議は明日の午後三時からです。"),
        ("euc-kr", "안녕하세요 회의는 내일 오후 세 시입니다"),
        ("koi8-r", "Привет, встреча завтра в три часа дня"),
        ("cp1251", "Привет, встреча завтра в три часа дня"),
    ],
)
def test_an_older_encoding_is_guessed_and_said(encoding: str, text: str) -> None:
    found = text_in(text.encode(encoding))
    assert found.text == text
    assert "guessed" in found.how


def test_what_is_said_of_a_file_decides_only_whether_it_is_fetched() -> None:
    def document(mime: str) -> Attachment:
        return Attachment(kind="document", ref="r", mime=mime)

    assert is_opaque(document("Application/GZIP; x=1"))
    assert is_opaque(document("application/msword"))
    assert is_opaque(document("application/vnd.ms-powerpoint"))
    assert not is_opaque(document("application/vnd.ms-excel"))
    assert not is_opaque(document("application/vnd.ms-powerpoint.presentation.macroEnabled.12"))
    assert not is_opaque(document("application/zip"))
    assert not is_opaque(document("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))
    assert not is_opaque(document("application/pdf"))
    assert not is_opaque(document("application/vnd.openxmlformats-officedocument.wordprocessingml.document"))
    assert document("video/mp4").is_video
    assert not is_opaque(document("application/octet-stream"))
    assert not is_opaque(document(""))
    assert is_sound(document("audio/mpeg"))
    assert is_sound(Attachment(kind="voice", ref="r"))
    assert not is_sound(document("text/plain"))
