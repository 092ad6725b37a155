"""Questions as people write them, about a long talk: with slips of the pen, parts of German compounds, Arabic, other
words, several hops, lists, and long questions with the matter at their end.

What is generated comes from a seed; what is written stands here. A session is a run of `SESSION` messages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.recall.dialogues import dialogue

SESSION: Final = 20
_SAID_BEFORE: Final = 2  # unrelated messages before a long question

# (said, asked): the question has a part of the word, or the parts of it.
_COMPOUNDS: Final = (
    ("Der Wohnungsschlüssel liegt bei Frau Brandt.", "Wo liegt der Schlüssel?"),
    ("Meine Krankenversicherung kostet jetzt 412 Euro.", "Was zahle ich der Versicherung?"),
    ("Der Zahnarzttermin wurde verschoben auf Donnerstag.", "Wann muss ich zum Zahnarzt?"),
    ("Die Geschwindigkeitsbegrenzung vor der Schule gilt bis 17 Uhr.", "Welche Begrenzung gilt dort?"),
    ("Unser Gartenhaus bekommt ein Dach aus Zink.", "Woraus wird das Dach im Garten?"),
    ("Die Waschmaschine schleudert wieder nicht.", "Welche Maschine ist kaputt?"),
    ("Ich habe die Steuererklärung am Sonntag abgeschickt.", "Wann ging die Erklärung weg?"),
    ("Das Sommerfest fällt wegen Sturm aus.", "Warum gibt es kein Fest?"),
    ("Der Kinderwagen steht im Keller hinten links.", "In welchem Raum ist der Wagen?"),
    ("Opa braucht neue Batterien fürs Hörgerät.", "Für welches Gerät sind die Zellen?"),
    ("Die Miete für den Stellplatz steigt auf 80 Euro.", "Wie hoch ist die Stellplatzmiete?"),
    ("Im Büro wird der Drucker am Montag getauscht.", "Wann kommt der neue Bürodrucker?"),
    ("Die Reise nach Bozen dauert neun Tage.", "Wie lang ist die Bozenreise?"),
    ("Mein Fahrradschloss klemmt seit gestern.", "Was ist mit dem Schloss?"),
)
_ARABIC: Final = (
    ("موعد الطبيب يوم الثلاثاء الساعة التاسعة.", "متى زيارتي لطبيب الأسنان؟"),
    ("أضعت مفاتيح السيارة في المقهى القديم.", "أين ضاعت مفاتيحي؟"),
    ("تدرس أختي الهندسة في جامعة القاهرة.", "ماذا تدرس الأخت في الجامعة؟"),
    ("اشترينا ثلاجة جديدة بسعر ثمانمئة دينار.", "كم سعر الثلاجه؟"),
    ("القطار إلى الإسكندرية يغادر من الرصيف الرابع.", "من أي رصيف يغادر قطار الاسكندرية؟"),
    ("والدي يحب قهوة بالهيل كل صباح.", "كيف يشرب الوالد قهوته؟"),
    ("سننتقل إلى البيت الجديد في شهر مارس.", "متى ننتقل للبيت؟"),
    ("ابني عنده حساسية من الفول السوداني.", "ما حساسيه ابني؟"),
    ("رقم المكتب الجديد هو خمسة وعشرون.", "ما رقم مكتبي؟"),
)
_PARAPHRASES: Final = (
    ("My car is an old Volvo estate.", "What do I drive?"),
    ("I am allergic to shellfish.", "Which food makes me ill?"),
    ("My daughter plays the oboe.", "What instrument did my child take up?"),
    ("We rent a flat above a bakery.", "Where do I live?"),
    ("I work nights as a nurse.", "What is my job?"),
    ("My wife was born in Tromsø.", "Where does my spouse come from?"),
    ("I quit smoking two years ago.", "When did I give up cigarettes?"),
    ("The doctor put me on beta blockers.", "Which medicine do I take?"),
    ("Our dog is called Biscuit.", "What is the name of my pet?"),
    ("I earn 3,100 a month after tax.", "How big is my salary?"),
)
_CHINESE: Final = (
    ("我把护照放在书房左边第二个抽屉里。", "护照放在哪个抽屉"),
    ("小女儿下周三要去牙科拔智齿。", "女儿哪天拔智齿"),
    ("阳台上的柠檬树每十天浇一次水。", "柠檬树多久浇水"),
    ("上海那套公寓的月租是六千八百元。", "上海公寓月租多少"),
    ("老王借走了我的电钻，说月底还。", "谁借走了电钻"),
    ("奶奶对青霉素过敏，病历上写着。", "奶奶对什么药过敏"),
    ("去敦煌的火车票已经订在九号。", "敦煌火车票是几号"),
    ("公司把年会改到了植物园。", "年会改在哪里"),
)
_CHINESE_TALK: Final = (
    "今天外面一直下雨，我没有出门，在家里看了一整天的老电影，晚饭也只是随便吃了一点面条。",
    "昨天和同事聊了很久，大家都说最近工作很忙，周末只想好好休息，什么地方都不想去。",
    "天气终于变好了，早上在公园里走了一圈，看到很多人在打太极，还有孩子们在放风筝。",
    "最近睡得不太好，总是半夜醒来，不知道是不是咖啡喝得太多，也许应该早一点上床。",
)
_LISTS: Final = (
    ("Which sports has {who} tried?", ("{who} had a go at {x} on Sunday.", ("judo", "fencing", "curling", "golf"))),
    ("Which towns did {who} visit?", ("{who} came home from {x} today.", ("Oslo", "Vigo", "Bari", "Łódź"))),
    ("What has {who} lent me?", ("I still have the {x} that {who} lent me.", ("ladder", "projector", "drill", "tent"))),
    ("Which dishes does {who} cook?", ("We ate {x}, and {who} cooked.", ("paella", "pierogi", "goulash", "dal"))),
)
_LISTED: Final = ("Ana", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hiro")
_UNRELATED: Final = (
    "I spent the whole evening sorting old photographs into boxes, and half of them turned out to be blurred anyway.",
    "The printer is jammed again, so please remind me to order toner before the quarterly figures are due on Friday.",
    "Somebody parked across our gate this morning; I waited forty minutes until the driver came back with a sandwich.",
    "I tried that new yoghurt with cardamom, which everyone at the office praises, and honestly it tastes like soap.",
    "My phone updated itself overnight, and since then the keyboard covers the lower third of every form I fill in.",
    "We had a power cut during the storm, so I finished the novel by candlelight and slept much better than usual.",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the places of the messages that answer together."""

    kind: str
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """What was said, in order, and questions about it."""

    texts: list[str]
    questions: list[Asked]


def talk(seed: int) -> Talk:
    """A year's talk with everything that is asked for in it."""
    rng = random.Random(seed)
    life = dialogue(seed)
    texts = [text for _, _, text in life.messages]
    every = {place for question in life.questions for place in question.evidence}
    free = [place for place in range(10, len(texts) - 10) if place not in every]
    rng.shuffle(free)
    questions = []
    for kind, said, asked in _written(rng):
        places = tuple(sorted(free.pop() for _ in said))
        for place, text in zip(places, said, strict=True):
            texts[place] = text
        questions.append(Asked(kind, asked, places))
    singles = [each for each in life.questions if each.kind == "single-hop"]
    for each in rng.sample(singles, 40):
        questions.append(Asked("slips", slipped(each.text, rng), each.evidence))
        before = " ".join(rng.sample(_UNRELATED, _SAID_BEFORE))
        questions.append(Asked("long", f"{before} {each.text}", each.evidence))
        questions.append(Asked("clean", each.text, each.evidence))
    questions += [Asked("hops", each.text, each.evidence) for each in life.questions if each.kind == "multi-hop"]
    return Talk(texts, questions)


def slipped(text: str, rng: random.Random) -> str:
    """A text with a slip of the pen in each of its two longest words; first letters stand."""
    words = text.split(" ")
    for place in sorted(range(len(words)), key=lambda each: -len(words[each].strip("?.,")))[:2]:
        words[place] = _slip(words[place], rng)
    return " ".join(words)


def _slip(word: str, rng: random.Random) -> str:
    if len(word.strip("?.,")) < 4:
        return word
    at = rng.randrange(1, len(word.strip("?.,")) - 1)
    letter = rng.choice("aeinrst")
    forms = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
        word[:at] + letter + word[at + 1 :],
    )
    return rng.choice(forms)


def _written(rng: random.Random) -> Iterator[tuple[str, Sequence[str], str]]:
    for kind, pairs in (("compounds", _COMPOUNDS), ("Arabic", _ARABIC), ("paraphrases", _PARAPHRASES)):
        for said, asked in pairs:
            yield kind, (said,), asked
    for said, asked in _CHINESE:
        before = "".join(rng.sample(_CHINESE_TALK, _SAID_BEFORE))
        yield "long Chinese", (said,), f"{before}对了，我想问一下，{asked}？"
    for said in _CHINESE_TALK:
        yield "small talk", (said,), said
    for place, who in enumerate(rng.sample(_LISTED, len(_LISTED))):
        asked, (line, things) = _LISTS[place % len(_LISTS)]
        yield "lists", [line.format(who=who, x=each) for each in things], asked.format(who=who)
