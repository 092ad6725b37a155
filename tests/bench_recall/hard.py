"""Questions as people ask them: with slips of the pen, with a part of a compound, behind other talk, of many words."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from tests.bench_recall.dialogues import Dialogue, Question

_FIRST_KEPT: Final = 1  # letters of a word in which nobody slips
_SHORTEST: Final = 5  # letters of a word that has a slip
_BEFORE: Final = (
    "The weather was strange again and we stayed in most of the week, cooking soup and watching films about rivers.",
    "Work is busy, the printer broke twice and somebody from the clinic next door keeps asking about our elevator.",
    "I finally cleaned the roof, it took two days, and my shoulders still hurt whenever I lift the box with the lamps.",
    "The children want to see the harbour lights, so we may take the late train if the tickets are not too expensive.",
)
# German: what was said, and a question with another part of a compound. Arabic: with and without what is joined.
_COMPOUNDS: Final = (
    ("Die Haftpflichtversicherung kostet 84 Euro im Jahr.", "Was zahlen wir für die Versicherung?"),
    ("Der Zahnarzttermin ist am Freitag um neun.", "Wann habe ich einen Termin?"),
    ("Unsere Wohnungstür klemmt seit gestern.", "Was war mit der Tür?"),
    ("Die Waschmaschine steht im Keller rechts.", "Wo sind die Maschinen?"),
    ("Der Mietvertrag läuft bis Ende März.", "Bis wann geht der Vertrag?"),
    ("Ich habe den Schlüssel der Nachbarin gegeben.", "Wer hat den Wohnungsschlüssel?"),
    ("Die Rechnung der Werkstatt liegt in der blauen Mappe.", "Wo ist die Werkstattrechnung?"),
    ("Im Kühlschrank ist noch Suppe.", "Wo ist die Gemüsesuppe?"),
    ("Das Konzert beginnt um acht.", "Wann fängt das Klavierkonzert an?"),
    ("Die Kinderärztin heißt Frau Brandt.", "Wie heißt die Ärztin?"),
)
_ARABIC: Final = (
    ("اشتريت السيارة من دمشق", "من أين سيارة؟"),
    ("موعد الطبيب يوم الخميس", "متى طبيب؟"),
    ("المفتاح عند جارتنا سلمى", "أين مفتاح؟"),
    ("دفعنا الفاتورة أمس", "متى دفعنا فاتورة؟"),
    ("مدرسة ابنتي قريبة من النهر", "أين المدرسة؟"),
    ("حجزت فندق الواحة لليلتين", "كم ليلة في الفندق؟"),
)


def slips(life: Dialogue, seed: int) -> Dialogue:
    """The questions of a dialogue, with a slip in each of the two longest words."""
    rng = random.Random(f"slips {seed}")
    return replace(life, questions=[replace(each, text=_slipped(each.text, rng)) for each in life.questions])


def behind_talk(life: Dialogue, seed: int) -> Dialogue:
    """The same behind two messages about something else."""
    rng = random.Random(f"talk {seed}")
    return replace(
        life, questions=[replace(each, text=" ".join([*rng.sample(_BEFORE, 2), each.text])) for each in life.questions]
    )


def compounds(life: Dialogue, seed: int) -> Dialogue:
    """Sentences with compounds among those of a dialogue, and questions with a part of them."""
    return _among(life, _COMPOUNDS, seed)


def arabic(life: Dialogue, seed: int) -> Dialogue:
    """Sentences in Arabic among those of a dialogue."""
    return _among(life, _ARABIC, seed)


def _among(life: Dialogue, pairs: tuple[tuple[str, str], ...], seed: int) -> Dialogue:
    rng = random.Random(f"among {seed}")
    places = rng.sample(range(10, len(life.messages)), len(pairs))
    messages = list(life.messages)
    for place, (said, _) in zip(places, pairs, strict=True):
        messages[place] = ("user", messages[place][1], said)
    asked = [Question("single-hop", text, (place,)) for place, (_, text) in zip(places, pairs, strict=True)]
    return Dialogue(messages, asked)


def _slipped(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    longest = sorted(range(len(words)), key=lambda place: -len(words[place]))[:2]
    for place in longest:
        if len(words[place].strip("?.,")) >= _SHORTEST:
            words[place] = _slip(words[place], rng)
    return " ".join(words)


def _slip(word: str, rng: random.Random) -> str:
    place = rng.randrange(_FIRST_KEPT, len(word.rstrip("?.,")) - 1)
    other = rng.choice("abcdefghijklmnopqrstuvwxyz")
    return rng.choice(
        (
            word[:place] + word[place + 1 :],
            word[:place] + other + word[place:],
            word[:place] + other + word[place + 1 :],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        )
    )


CHINESE_TALK: Final = (
    "最近工作很忙，打印机坏了两次，隔壁诊所的人一直问我们电梯的事情。",
    "周末我们去了河边，孩子们想看港口的灯光。",
)
_CHINESE: Final = (
    ("我把备用钥匙交给了楼下的王阿姨。", "备用钥匙在谁那里？"),
    ("牙医的预约改到下周四上午十点。", "牙医的预约是什么时候？"),
    ("冰箱保修期到明年三月为止。", "冰箱的保修期到什么时候？"),
    ("我们给奶奶买了一台收音机当生日礼物。", "奶奶的生日礼物是什么？"),
    ("车停在火车站后面的停车场三楼。", "车停在停车场几楼？"),
    ("房东同意我们养一只猫。", "房东同意我们养什么？"),
)


def chinese(life: Dialogue, seed: int) -> Dialogue:
    """Sentences in Chinese among many others, and questions of over 25 characters that ask at their end."""
    rng = random.Random(f"chinese {seed}")
    found = _among(life, _CHINESE, seed)
    talk = iter(rng.choices(CHINESE_TALK, k=len(found.messages)))
    messages = [each if place % 3 else (each[0], each[1], next(talk)) for place, each in enumerate(found.messages)]
    for each in found.questions:
        messages[each.evidence[0]] = found.messages[each.evidence[0]]
    asked = [replace(each, text="".join([*rng.sample(CHINESE_TALK, 2), each.text])) for each in found.questions]
    return Dialogue(messages, asked)


HARD: Final = {
    "slips of the pen": slips,
    "behind other talk": behind_talk,
    "parts of compounds": compounds,
    "Arabic": arabic,
    "long Chinese questions": chinese,
}
