"""LaTeX as MathML, which browsers set as books do; where it cannot be read, as a chat without formulas shows it.

latex2mathml passes attributes and markup of a text on as they were written. So its tree is built anew: of elements and
attributes that only set a formula, with every word escaped. It does not know all names of LaTeX's environments, and
sets what belongs below a limit beside it; both are mended here.
"""

from __future__ import annotations

import re
from html import unescape
from importlib import import_module
from typing import Any, Final
from xml.etree.ElementTree import Element

from adapters.web.markup import Html, el
from gateway.delivery.markdown.formulas import readable

_LONGEST: Final = 2_000  # characters; the converter calls itself for every brace
_ENVIRONMENTS: Final = re.compile(
    r"\\(begin|end)\{(?:((?:align(?:ed|at|edat)?|eqnarray)\*?)|(gather(?:ed)?\*?|multline\*?)|([dr]cases))\}"
    r"(?:\[[tcb]\])?(?(2)(?:\{\d\})?)"
)
_ALIKE: Final = ("split", "matrix", "cases")  # one for each group of them
_BELOW: Final = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
_LIMITS: Final = frozenset((*"⋃⋂⋁⋀⨁⨂", "lim", "max", "min", "sup", "inf", "det", "gcd", "Pr", "argmax", "argmin"))
_OPENS: Final = frozenset(("(", "[", "{", "|", "‖", "∥"))
_CLOSES: Final = frozenset((")", "]", "}", "|", "‖", "∥"))
ELEMENTS: Final = frozenset((
    "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt",
    "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
))  # fmt: skip
ATTRIBUTES: Final = frozenset((
    "accent", "columnalign", "display", "displaystyle", "fence", "form", "largeop", "linethickness",
    "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rspace", "scriptlevel", "separator",
    "stretchy", "width",
))  # fmt: skip


def formula(latex: str, *, display: bool) -> Html:
    """A formula, in a line or on lines of its own."""
    source = latex.strip()
    try:
        if not 0 < len(source) <= _LONGEST:
            raise ValueError
        converter: Any = import_module("latex2mathml.converter")  # by name: most conversations have no formulas
        source = _ENVIRONMENTS.sub(_known, source).replace(r"\operatorname*", r"\operatorname")
        tree = converter.convert_to_element(source, display="block" if display else "inline")
        return _built(tree)
    except _unreadable():
        code = el("code", readable(latex), class_="math", dir="ltr")
        return el("pre", code, class_="math", dir="ltr") if display else code


def _unreadable() -> tuple[type[Exception], ...]:
    """The converter's own errors, which have no class in common, and those of a formula that it was not made for."""
    own = vars(import_module("latex2mathml.exceptions")).values()
    return (*(each for each in own if isinstance(each, type)), AttributeError, LookupError, RecursionError, ValueError)


def _known(found: re.Match[str]) -> str:
    """The beginning or the end of an environment, by a name that the converter knows."""
    name = next(alike for alike, group in zip(_ALIKE, found.groups()[1:], strict=True) if group)
    return f"\\{found[1]}{{{name}}}"


def _built(tree: Element) -> Html:
    if tree.tag not in ELEMENTS:
        raise ValueError(tree.tag)
    tag, text = tree.tag, _sign(tree)
    if tag in _BELOW and (_sign(tree[0]) in _LIMITS or tree[0].get("movablelimits") == "true"):
        tree[0].set("movablelimits", "true")
        tag = _BELOW[tag]
    elif tag == "mover" and tree.get("accent") == "true":
        tree[1].set("stretchy", "false")  # \hat; \widehat is no accent
    elif tag == "mi" and len(text) > 1 and text.isascii():  # sin, log: with room for what they are of
        tag, tree.attrib["lspace"], tree.attrib["rspace"] = "mo", "0.1em", "0.1em"
    elif text == "∞":  # a quantity: an operator has room at its sides
        tag = "mi"
    attributes: dict[str, Any] = {name: value for name, value in tree.attrib.items() if name in ATTRIBUTES}
    return el(tag, text, [_built(each) for each in _fenced(list(tree))], **attributes)


def _sign(element: Element) -> str:
    return unescape(element.text or "")


def _lacks_end(row: Element) -> bool:
    return row.tag == "mrow" and len(row) == 2 and row[1].tag == "mtable"


def _fenced(children: list[Element]) -> list[Element]:
    """Each table in one row with its brackets: they grow with all that is in their row."""
    found = list[Element]()
    for each in children:
        before = found[-1] if found else None
        if each.tag == "mtable" and before is not None and _sign(before) in _OPENS:
            found[-1] = row = Element("mrow")
            row.extend((before, each))
        elif before is not None and _lacks_end(before) and _sign(each) in _CLOSES:
            before.append(each)
        else:
            found.append(each)
    return found if len(found) > 1 else children  # they are such a row
