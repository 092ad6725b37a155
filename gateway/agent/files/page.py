"""The text of a web page.

The page may be hostile, so `page_text` runs in a separate process, which is ended if a page takes too long. resiliparse
(https://resiliparse.chatnoir.eu) does the work: it parses HTML5, detects the encoding, and makes a text with lists,
tables and links. Parts that a browser would not show, and a site's navigation, are left out.
"""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from resiliparse.parse.html import HTMLTree

from gateway.runtime.download import Download

_HTML: Final = ("text/html", "application/xhtml+xml")
_TEXTS: Final = (
    "application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/yaml",
    "application/toml",
)  # fmt: skip
_UNSEEN: Final = (
    "script", "style", "template", "noscript", "svg", "[hidden]", "[aria-hidden=true]", '[style*="display:none" i]',
    '[style*="display: none" i]', '[style*="visibility:hidden" i]', '[style*="visibility: hidden" i]',
)  # fmt: skip
_AROUND: Final = ("nav", "footer", "aside", "[role=navigation]")
_LITTLE: Final = 200  # characters; a page with less beside its navigation is shown whole
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Page(NamedTuple):
    """The words of a page."""

    title: str
    text: str


def is_readable(mime: str) -> bool:
    """Whether a file of this type has text; "" is an unknown type."""
    return not mime or mime.startswith("text/") or mime in (*_HTML, *_TEXTS) or mime.endswith(("+json", "+xml"))


def html_text(content: bytes) -> str:
    """The text of an HTML file of unknown origin."""
    page = page_text(Download(url="", mime=_HTML[0], charset="", content=content, cut=False))
    return "" if page is None else page.text


def page_text(download: Download) -> Page | None:
    """The text of a fetched page; None if it is not a page."""
    content, mime = download.content, download.mime
    is_html = mime in _HTML or (not mime and content.lstrip()[:1] == b"<")
    text = content.decode(_encoding(download, is_html=is_html), "replace").removeprefix("\ufeff")
    if not is_html:
        return None if not mime and "\0" in text else Page(title="", text=text)
    tree = HTMLTree.parse(text)
    shown = _shown(tree, (*_UNSEEN, *_AROUND))
    return Page(
        title=" ".join((tree.title or "").split()), text=shown if len(shown) > _LITTLE else _shown(tree, _UNSEEN)
    )


def _shown(tree: HTMLTree, without: tuple[str, ...]) -> str:
    return extract_plain_text(
        tree, preserve_formatting=True, alt_texts=False, links=True, skip_elements=without
    ).strip()


def _encoding(download: Download, *, is_html: bool) -> str:
    """The encoding that the content itself, its server or, last of all, a guess says."""
    for mark, name in _BOMS:
        if download.content.startswith(mark):
            return name
    named = download.charset and map_encoding_to_html5(download.charset, False)
    name = named or detect_encoding(download.content, from_html_meta=is_html) or "utf-8"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"
