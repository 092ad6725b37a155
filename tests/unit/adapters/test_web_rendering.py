"""Markdown as elements: what each form becomes, and what nothing becomes."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.web.formulas import ATTRIBUTES, ELEMENTS
from adapters.web.markup import Html, el, is_address, joined
from adapters.web.rendering import LARGEST, finished, rendered
from tests.support.markdown_pieces import replies, shredded


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("so $$\\frac{1}", "so "),
        ("so \\[ \\begin{matrix} a \\\\[2pt] b", "so "),
        ("so \\(x", "so "),
        ("$$a$$ and $$b$$ so $$c", "$$a$$ and $$b$$ so "),
        ("$$a$$ and \\(b\\) so", "$$a$$ and \\(b\\) so"),
        ("the shell's $$, as said\n\nand", "the shell's $$, as said\n\nand"),
        ("```sh\necho $$", "```sh\necho $$"),
        ("it costs $5", "it costs $5"),
        ("$$" + "a" * 3_000, "$$" + "a" * 3_000),
    ],
)
def test_a_formula_that_has_only_begun_is_held_back(written: str, shown: str) -> None:
    assert finished(written) == shown


@pytest.mark.parametrize(
    ("markdown", "markup"),
    [
        ("a *b* **c** ~~d~~ `e`", '<em>b</em> <strong>c</strong> <s>d</s> <code dir="ltr">e</code>'),
        ("# Title", '<h3 dir="auto">Title</h3>'),
        ("##### Small", '<h6 dir="auto">Small</h6>'),
        ("one\ntwo", "one<br/>two"),
        ("3. c\n4. d", '<ol start="3" dir="auto"><li>c</li>'),
        ("- [x] done", '<ul dir="auto"><li><span class="task">☑</span> done</li></ul>'),
        ("> said", '<blockquote dir="auto"><p>said</p></blockquote>'),
        ("```nobody\nx < 1\n```", '<code data-language="nobody">x &lt; 1\n</code>'),
        ("```py\nx < '<b>'\n```", '&lt; <span class="t-text">&#x27;</span><span class="t-text">&lt;b&gt;</span>'),
        ("    x", '<pre dir="ltr" tabindex="0"><code>x</code></pre>'),
        (
            "[a](https://b.example)",
            '<a href="https://b.example" rel="noopener noreferrer nofollow" target="_blank">a</a>',
        ),
        ("See https://b.example/c_d?e=1&f=2.", 'See <a href="https://b.example/c_d?e=1&amp;f=2" rel="noopener '),
        ("**(https://b.example/C_(d))!**", ">https://b.example/C_(d)</a>)!</strong>"),
        ("参见https://b.example/c。", ">https://b.example/c</a>。"),
        ("[https://b.example](https://c.example)", ' target="_blank">https://b.example</a></p>'),
        ("`https://b.example`", '<code dir="ltr">https://b.example</code>'),
        ("    https://b.example", "<code>https://b.example</code>"),
        ("javascript://b.example https:// https://b\u202e", ">javascript://b.example https:// https://b\u202e<"),
        ("[a](/etc/passwd)", "a (/etc/passwd)"),
        ("![a](https://b.example/c.png)", '<a href="https://b.example/c.png"'),
        ("<details><summary>More</summary>hidden</details>", "<strong>More</strong><br/>hidden"),
        ("||hidden||", '<span class="spoiler" tabindex="0">hidden</span>'),
        ("$x^2$", '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'),
        ("$$\\frac{1}{3}$$", '<math display="block"><mrow><mfrac>'),
        (
            "$$\\begin{aligned}[t] a &= b \\\\ c &\\le d \\end{aligned}$$",
            '<mtd columnalign="right"><mi>c</mi></mtd><mtd columnalign="left"><mi></mi><mo>≤</mo><mi>d</mi></mtd>',
        ),
        (
            "$$\\begin{gather*} a \\\\ b \\end{gather*}$$",
            "<mtr><mtd><mi>a</mi></mtd></mtr><mtr><mtd><mi>b</mi></mtd></mtr>",
        ),
        ("$$\\begin{dcases} a & b \\end{dcases}$$", '{</mo><mtable><mtr><mtd columnalign="left"><mi>a</mi></mtd>'),
        (
            "$$\\lim_{n} a_n$$",
            '<munder><mo movablelimits="true">lim</mo><mrow><mi>n</mi></mrow></munder><msub><mi>a</mi>',
        ),
        ("$$\\operatorname*{argmax}_x^y$$", '<munderover><mo movablelimits="true">argmax</mo>'),
        ("$\\sin x$", '<mo lspace="0.1em" rspace="0.1em">sin</mo><mi>x</mi>'),
        ("$\\hat{x}$", '<mo stretchy="false">^</mo></mover>'),
        (
            "$(\\begin{matrix} a \\end{matrix})\\begin{bmatrix} b \\end{bmatrix} c$",  # each grows with its own table
            "<mrow><mo>[</mo><mtable><mtr><mtd><mi>b</mi></mtd></mtr></mtable><mo>]</mo></mrow><mi>c</mi>",
        ),
        ("$n\\to\\infty$", "<mo>→</mo><mi>∞</mi>"),
        ("$a^b^c$", '<code class="math" dir="ltr">'),  # nobody can set that
        ("$\\href{javascript:alert(1)}{x^2}$", "<mrow><mrow><msup>"),
        ("$\\text{<b>hi</b>} x^2$", "<mtext>&lt;b&gt;hi&lt;/b&gt;</mtext>"),
        ("$5 and 10$", "$5 and 10$"),
        ("|a|b|\n|-|-:|\n|1|2|", '<td class="right">2</td>'),
        ("<b>x</b> <T>", "<strong>x</strong> &lt;T&gt;"),
        ("a[^1]\n\n[^1]: note", '<div class="footnote" dir="auto">[1] '),
        ("---", "<hr/>"),
    ],
)
def test_each_form_is_shown(markdown: str, markup: str) -> None:
    assert markup in rendered(markdown)


def test_what_is_too_long_to_read_is_shown_as_it_is() -> None:
    longest = "*a*".ljust(LARGEST, ".")
    assert "<em>a</em>" in rendered(longest)
    assert rendered(f"{longest}.").startswith('<p class="plain" dir="auto">*a*')


class Balance(HTMLParser):
    """Counts what is open; knows the tags that may stand here."""

    ALLOWED = frozenset((
        "p", "br", "hr", "h3", "h4", "h5", "h6", "em", "strong", "s", "u", "sub", "sup", "code", "pre", "ul", "ol",
        "li", "blockquote", "a", "span", "div", "table", "tr", "th", "td",
    ))  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in self.ALLOWED | ELEMENTS
        assert {name for name, _ in attributes} <= ATTRIBUTES | {
            "class", "dir", "tabindex", "href", "rel", "target", "start", "data-language",
        }  # fmt: skip
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ("br", "hr")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@given(st.one_of(replies, shredded, st.text()))
def test_whatever_is_written_the_markup_is_whole_and_known(text: str) -> None:
    parser = Balance()
    parser.feed(rendered(text))
    parser.close()
    assert parser.open == []


@given(st.text())
def test_a_text_stays_a_text(text: str) -> None:
    parts: list[str] = []

    class Words(HTMLParser):
        def handle_data(self, data: str) -> None:
            parts.append(data)

        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert (tag, dict(attributes).get("title")) == ("p", text.replace("\r\n", "\n").replace("\r", "\n"))

    markup = el("p", text, title=text)
    if "\r" not in text and "\0" not in text:
        parser = Words()
        parser.feed(markup)
        parser.close()
        assert "".join(parts) == text


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " javascript:x",
        "java\nscript:x",
        "data:text/html,x",
        "vbscript:x",
        "//evil",
        "x",
        "",
        "\x01https://a",
    ],
)
def test_an_address_that_could_run_something_is_left_out(url: str) -> None:
    assert not is_address(url)
    assert el("a", "x", href=url) == "<a>x</a>"


def test_elements_hold_elements_and_texts() -> None:
    assert joined(["<", Html("<b>"), None, [1, "&"]]) == "&lt;<b>1&amp;"
    assert el("input", value='"', disabled=True, hidden=False) == '<input value="&quot;" disabled/>'
