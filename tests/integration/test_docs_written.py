"""The pictures and tables of docs/ show today's program: `make docs` writes them again."""

from itertools import combinations
from xml.etree.ElementTree import Element, parse

import pytest

from tests.docs.__main__ import ROOT, WRITTEN

SVG = "{http://www.w3.org/2000/svg}"


_LONG = ("telegram-media", "telegram-group", "discord-media")  # pictures of what other tests hold


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each[14:-4] in _LONG)) for each in WRITTEN]
)
def test_what_is_drawn_from_the_program_is_as_it_was_drawn(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == WRITTEN[name](), "`make docs` writes it again"


def extent(text: Element) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a text in a viewer that has another font and states no width: DejaVu Sans is 17 %
    wider than Helvetica."""
    size = float((text if "font-size" in text.attrib else text[0]).attrib["font-size"])
    stated = text.attrib.get("textLength")
    mono = "monospace" in "".join(each.attrib.get("font-family", "") for each in text.iter())
    wide = (
        1.16 * float(stated)
        if stated and not mono
        else float(stated or 0) or 0.6 * size * len("".join(text.itertext()))
    )
    anchored = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.attrib.get("text-anchor", "start")]
    x, y = float(text.attrib["x"]) - anchored * wide, float(text.attrib["y"])
    return x, y - 0.7 * size, x + wide, y


@pytest.mark.parametrize("name", ["cost", "rooms", "soak", "telegram"])
def test_no_words_of_a_picture_leave_their_box_or_lie_on_others_in_a_wider_font(name: str) -> None:
    root = parse(ROOT / f"docs/pictures/{name}.svg").getroot()
    boxes = [[float(each.attrib[key]) for key in ("x", "y", "width", "height")] for each in root.iter(f"{SVG}rect")]
    boxes = [each for each in boxes if each[2] > 10]  # the others are lines
    texts = [("".join(each.itertext()), extent(each)) for each in root.iter(f"{SVG}text")]
    for words, (left, top, right, bottom) in texts:
        around = [each for each in boxes if each[0] <= left and each[1] <= top and bottom <= each[1] + each[3]]
        assert right <= around[-1][0] + around[-1][2], words
    for (words, one), (others, other) in combinations(texts, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (words, others)
