"""The page plays other platforms: a conversation, and a text of one's own, as their apps would show them.

What is in a message, and where the next one begins, the platform's own package says; the looks are this page's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from adapters.web.log import beside
from adapters.web.markup import Child, Html, el, hidden, is_address, joined, section, submit
from adapters.web.rendering import rendered
from gateway.domain.chat import Button
from gateway.domain.platform import Bubble, Mark

SAMPLE: Final = """# The harbour
The **ferry** leaves at *seven*; the office opens at `nine`. See [the map](https://example.org/map).

| day | opens |
|---|---|
| Monday | 9:00 |
| Sunday | closed |

```python
print("all aboard")
```
> Nobody swims here.

2*3*4 is 24, and ||the answer is hidden||."""
MOST: Final = 20_000  # characters of a text that is tried
_ELEMENTS: Final = {
    "bold": "strong",
    "italic": "em",
    "underline": "u",
    "strikethrough": "s",
    "code": "code",
    "text_link": "a",
}


Played = tuple[bool, Sequence[Bubble], Sequence[Sequence[Button]]]
"""A message: whether it is the person's, its bubbles, and the rows of its buttons."""


def stage(name: str, stages: Mapping[str, str], played: Sequence[Played], tried: Child, chat: str) -> Child:
    """A platform's page."""
    tabs = [
        el("a", title, href=beside(f"/as/{each}", chat), aria_current="page" if each == name else None)
        for each, title in stages.items()
    ]
    bubbles = [each for mine, shown, buttons in played for each in _message(shown, buttons, mine=mine)]
    shown = el("ol", bubbles, class_="stage") if bubbles else el("p", "Nothing yet.")
    return [
        el("p", tabs, class_="tabs"),
        section("A text of your own", tried),
        section("Your conversation", shown),
    ]


def trial(name: str, csrf: str, text: str, bubbles: Sequence[Bubble], chat: str) -> Child:
    """A form for a text, and what would be sent of it."""
    field = el("textarea", text, name="text", rows=10, dir="auto", aria_label="Markdown", maxlength=MOST)
    form = el(
        "form",
        hidden(csrf=csrf, chat=chat),
        field,
        submit("Try"),
        method="post",
        action=f"/as/{name}",
        class_="trial",
    )
    return [form, el("ol", _message(bubbles, (), mine=False), class_="stage")]


def _message(bubbles: Sequence[Bubble], buttons: Sequence[Sequence[Button]], *, mine: bool) -> list[Html]:
    below = [el("div", [el("span", each.label) for each in line], class_="buttons") for line in buttons]
    return [
        el(
            "li",
            el(
                "div",
                el("p", f"📎 {each.file}", class_="file") if each.file else None,
                _shown(each),
                class_="bubble",
                dir="auto",
            ),
            below if number == len(bubbles) - 1 else None,
            None if mine or not each.most else el("small", _fill(each, number, len(bubbles))),
            class_="mine" if mine else None,
        )
        for number, each in enumerate(bubbles)
    ]


def _fill(bubble: Bubble, number: int, of: int) -> str:
    part = f"message {number + 1} of {of}, " if of > 1 else ""
    return f"{part}{bubble.units:,} of {bubble.most:,} characters"


def _shown(bubble: Bubble) -> Child:
    return rendered(bubble.text) if bubble.as_markdown else marked(bubble.text, bubble.marks)


def marked(text: str, marks: Sequence[Mark]) -> Html:
    """A text with its marked places, whose elements are cut where another mark begins or ends."""
    bounds = sorted({0, len(text), *(place for each in marks for place in (each.start, each.end))})
    pieces = []
    for start, end in pairwise(bounds):
        piece: Child = text[start:end]
        for each in reversed([each for each in marks if each.start <= start and end <= each.end]):
            piece = _within(each, piece)
        pieces.append(el("span", piece))
    return joined(pieces)


def _within(mark: Mark, inner: Child) -> Html:
    name = _ELEMENTS.get(mark.kind)
    if name == "a":
        safe = mark.target if is_address(mark.target) else None
        return el("a", inner, href=safe, target="_blank", rel="noopener noreferrer") if safe else el("span", inner)
    return el(name, inner) if name else el("span", inner, class_=f"mark-{mark.kind.rpartition('_')[2]}")
