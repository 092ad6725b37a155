"""LaTeX as a chat can show it: in Unicode if possible, otherwise as written. telegramify-markdown turns `\frac{a}{b}`
into a/b and `\alpha` into α, but drops some letters on the way.

So its text is used only if it still has every letter and digit of the formula.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from telegramify_markdown import RenderConfig, convert

_LONGEST: Final = 1_000  # characters; the converter calls itself for every brace
_SIGNS: Final = re.compile(r"\\[A-Za-z]+|[\^_]|[\w)}\]]\s*[=<>+*≤≥≈≠-]\s*[\w(\\{\[-]")
_SINGLE: Final = re.compile(r"[A-Za-zα-ωΑ-Ω](?:'?|\([\w +-]{1,20}\))")  # x, or O(n)
_COMMAND: Final = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+")
_ROOT: Final = re.compile("([√∛∜])((?:.\u0305)+)")  # the converter draws the bar of a root over each character
_SCRIPT: Final = re.compile(r"(?P<sign>[\^_])(?:\{(?P<several>[^{}]+)\}|(?P<one>[A-Za-z0-9]))")
_RAISED: Final = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
_LOWERED: Final = str.maketrans("0123456789+-=()aeox", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓ")
_CONFIG: Final = RenderConfig.isolated()


def is_formula(latex: str) -> bool:
    """Whether the text between two dollar signs is mathematics, and not two prices or variables."""
    return bool(_SIGNS.search(latex) or _SINGLE.fullmatch(latex))


def readable(latex: str) -> str:
    """`latex` as people write it without LaTeX; `latex` itself if that would lose something."""
    source = latex.strip()
    if not any(sign in source for sign in "\\^_") or "$" in source or "||" in source or len(source) > _LONGEST:
        return source
    try:
        text, entities = convert(f"${' '.join(source.split())}$", latex_escape=False, config=_CONFIG)
    except (LookupError, RecursionError, TypeError, ValueError):
        return source  # the converter's own mistakes are not the reader's
    if "\\" in text or [entity.type for entity in entities] != ["code"]:
        return source
    text = _SCRIPT.sub(_in_place, _ROOT.sub(_without_bar, text)).strip()
    return unicodedata.normalize("NFC", text) if _holds(text, _COMMAND.sub(" ", source)) else source


def script(sign: str, text: str) -> str:
    """`text` raised ("^") or lowered ("_"), if Unicode has all of its characters in that form, because `x²` is not
    `x2`."""
    table = _RAISED if sign == "^" else _LOWERED
    if all(ord(character) in table for character in text):
        return text.translate(table)
    return f"{sign}({text})" if len(text) > 1 else sign + text


def _in_place(match: re.Match[str]) -> str:
    return script(match["sign"], match["several"] or match["one"])


def _without_bar(root: re.Match[str]) -> str:
    sign, under = root.group(1), root.group(2).replace("\u0305", "")
    return f"{sign}{under}" if len(under) == 1 else f"{sign}({under})"


def _holds(text: str, wanted: str) -> bool:
    """Whether `text` has all letters and digits of `wanted`, in this order, however they are written."""
    shown = iter(unicodedata.normalize("NFKD", text.replace("∛", "3√").replace("∜", "4√")))
    return all(letter in shown for letter in unicodedata.normalize("NFKD", wanted) if letter.isalnum())
