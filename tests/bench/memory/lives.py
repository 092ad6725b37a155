"""Seeded lives: ten people who tell a bot about themselves over months, in English or Chinese.

Every value is invented and belongs to one person and one chat, so a value tells whose it is wherever it turns up. A
fact changes, is said once in passing, or belongs to somebody else: a friend, or whoever wrote what is forwarded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

Language = Literal["en", "zh"]
How = Literal["plain", "passing", "asked", "forwarded", "friend", "chatter"]

PEOPLE: Final = 10
SESSIONS: Final = 9
_ASKED: Final = 8  # of what has not changed
_BOOKS: Final = 3  # read between two sessions
_CHANGING: Final = 3  # every third topic changes, some of them twice

# What is said, the fact that a model writes of it, and how it is asked for later.
_TOPICS: Final[dict[Language, tuple[tuple[str, str, str], ...]]] = {
    "en": (
        ("I live in {v} now", "Lives in {v}", "Where do I live?"),
        ("I work for {v} these days", "Works for {v}", "Which company do I work for?"),
        ("my dentist is called {v}", "Dentist is called {v}", "What is my dentist called?"),
        ("my cat is called {v}", "Has a cat called {v}", "What is the name of my cat?"),
        ("the car I drive is a {v}", "Drives a {v} car", "What car do I drive?"),
        ("my sister is {v}", "Sister is named {v}", "What is my sister named?"),
        ("the tea I like best is {v}", "Favourite tea is {v}", "Which tea is my favourite?"),
        ("I am allergic to {v}", "Is allergic to {v}", "What am I allergic to?"),
        ("my landlord is Mr {v}", "Landlord is Mr {v}", "Who is my landlord?"),
        ("my daughter goes to the {v} school", "Daughter goes to the {v} school", "Which school is my daughter at?"),
        ("I bank with {v}", "Has an account at the bank {v}", "Which bank do I use?"),
        ("the project I lead is {v}", "Leads the project {v}", "What is the project that I lead?"),
        ("my boss is {v}", "Boss is {v}", "Who is my boss?"),
        ("I see doctor {v} for my back", "Doctor for the back is {v}", "Which doctor looks after my back?"),
        ("my bicycle comes from {v}", "Bicycle comes from {v}", "Where does my bicycle come from?"),
        ("every summer we go to {v}", "Goes to {v} every summer", "Where do I go in summer?"),
        ("I take piano lessons with {v}", "Takes piano lessons with {v}", "Who teaches me the piano?"),
        ("I only write in the editor {v}", "Prefers the editor {v}", "Which editor do I prefer?"),
        ("I run with the {v} club", "Runs with the {v} club", "Which club do I run with?"),
        ("my phone is with {v}", "Phone contract is with {v}", "Who is my phone contract with?"),
        ("we insured the house at {v}", "House is insured at {v}", "Where is my house insured?"),
        ("my accountant is {v}", "Accountant is {v}", "Who is my accountant?"),
    ),
    "zh": (
        ("我现在住在{v}", "住在{v}", "我住在哪里？"),
        ("我现在在{v}公司上班", "在{v}公司上班", "我在哪个公司上班？"),
        ("我的牙医叫{v}", "牙医叫{v}", "我的牙医叫什么？"),
        ("我家的猫叫{v}", "猫叫{v}", "我的猫叫什么名字？"),
        ("我开的车是{v}牌的", "开{v}牌的车", "我开什么牌的车？"),
        ("我姐姐叫{v}", "姐姐叫{v}", "我姐姐叫什么？"),
        ("我最爱喝{v}茶", "最爱喝{v}茶", "我最爱喝什么茶？"),
        ("我对{v}过敏", "对{v}过敏", "我对什么过敏？"),
        ("我的房东姓{v}", "房东姓{v}", "我的房东姓什么？"),
        ("女儿在{v}小学读书", "女儿在{v}小学读书", "女儿在哪个小学读书？"),
        ("我的钱存在{v}银行", "存款在{v}银行", "我用哪家银行？"),
        ("我负责的项目叫{v}", "负责的项目叫{v}", "我负责的项目叫什么？"),
        ("我的老板是{v}", "老板是{v}", "我的老板是谁？"),
        ("我看腰的医生是{v}", "看腰的医生是{v}", "哪个医生给我看腰？"),
        ("我的自行车是{v}买的", "自行车是在{v}买的", "我的自行车是在哪里买的？"),
        ("每年夏天我们去{v}", "每年夏天去{v}", "我夏天去哪里？"),
        ("我跟{v}老师学钢琴", "跟{v}老师学钢琴", "谁教我钢琴？"),
        ("我只用{v}编辑器", "喜欢用{v}编辑器", "我喜欢哪个编辑器？"),
        ("我在{v}俱乐部跑步", "在{v}俱乐部跑步", "我在哪个俱乐部跑步？"),
        ("我的手机套餐是{v}的", "手机套餐是{v}的", "我的手机套餐是哪家的？"),
        ("我们的房子在{v}保险", "房子在{v}保险", "房子在哪里保险？"),
        ("我的会计叫{v}", "会计叫{v}", "我的会计叫什么？"),
    ),
}
# What is said again and again, and of which each fact stands beside the others: it crowds the snapshot.
_READ: Final[dict[Language, tuple[str, str]]] = {
    "en": ("I have just finished reading {v}", "Has read the novel {v}"),
    "zh": ("我刚刚看完了小说{v}", "看过小说{v}"),
}
_FRIEND: Final[dict[Language, tuple[str, str]]] = {
    "en": ("a friend of mine, {w}, is moving to {v}", "Friend {w} is moving to {v}"),
    "zh": ("我的朋友{w}要搬到{v}去", "朋友{w}要搬到{v}"),
}
_PASSING: Final[dict[Language, str]] = {
    "en": (
        "Could you look over this paragraph for me? It is for the newsletter, about two hundred words, and I am late "
        "with it as always; {said}, so mornings are a bit of a rush. Anyway, the paragraph should sound friendlier."
    ),
    "zh": "帮我看看这段文字，是给简报写的，我又拖到最后一天了；{said}，所以早上总是很赶。总之，语气要亲切一点。",
}
_CHATTER: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "How do I get red wine out of a carpet?",
        "Write me a short thank-you note for the neighbours, please.",
        "What is the difference between a comet and an asteroid?",
        "Make that shorter.",
        "Thanks, that helps.",
        "Give me three ideas for dinner with lentils.",
        "Is it going to be a long winter, what do people say?",
    ),
    "zh": (
        "红酒洒在地毯上怎么办？",
        "帮我给邻居写一张感谢卡。",
        "彗星和小行星有什么区别？",
        "再短一点。",
        "谢谢，很有用。",
        "用扁豆做晚饭有什么好主意？",
        "大家都说今年冬天会很长，是吗？",
    ),
}
_SYLLABLES: Final = re.findall("[A-Z][a-z]+", "BaDoKeLiMoNuPraQuoRiSelTaVorWenXanZilGruHemJosFenCal")
_SIGNS: Final = "彬晟翰琪璐萱颖霖鑫懿瑾珂蔚岚澜骞禹昊霏潼婕烨铭筠黛旻"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a life. `value`: what it says of `topic`, which is none in chatter."""

    text: str
    how: How
    topic: int = -1
    value: str = ""


@dataclass(slots=True, kw_only=True)
class Life:
    """A person in one chat: the messages of each session, and at its end what holds and what held."""

    person: str
    chat: str
    in_group: bool
    language: Language
    sessions: list[list[Said]]
    current: dict[int, str] = field(default_factory=dict)
    former: set[str] = field(default_factory=set)
    books: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)  # values of somebody else's facts, said or forwarded by this person

    @property
    def values(self) -> set[str]:
        """Everything that may be known here and nowhere else."""
        return {*self.current.values(), *self.former, *self.books, *self.others}

    def questions(self, rng: random.Random) -> Iterator[tuple[str, str]]:
        """Some questions, each with its answer; all about what has changed are among them."""
        changed = {said.topic for session in self.sessions for said in session if said.value in self.former}
        others = [topic for topic in self.current if topic not in changed]
        for topic in sorted({*changed, *rng.sample(others, min(len(others), _ASKED))}):
            yield _TOPICS[self.language][topic][2], self.current[topic]


def lives(seed: int) -> list[Life]:
    """The direct chats of all people, and what half of them say in a group."""
    rng = random.Random(seed)
    taken: set[str] = set()
    made: list[Life] = []
    for number in range(PEOPLE):
        language: Language = "zh" if number % 2 else "en"
        made.append(_life(rng, taken, f"p{number}", f"dm{number}", language, range(len(_TOPICS[language])), SESSIONS))
        if number % 3 == 0:
            topics = rng.sample(range(len(_TOPICS[language])), 5)
            made.append(_life(rng, taken, f"p{number}", "group", language, topics, 3))
    return made


def facts_in(text: str) -> list[tuple[str, str]]:
    """(the fact's words without its value, the fact) of everything that a text says in a known form: what a model that
    reads well would make of it."""
    found = [
        (match.start(), fact.replace("{v}", ""), fact.format(v=match["v"]))
        for language, topics in _TOPICS.items()
        for said, fact, _ in topics
        for match in _form(said, language).finditer(text)
    ]
    return [(frame, fact) for _, frame, fact in sorted(found)]


def also_in(text: str) -> list[tuple[str, str]]:
    """(what it is about, the fact) of everything that takes nothing else's place: books, and notes on somebody else."""
    return [
        (about, fact.format_map(match.groupdict()))
        for about, forms in (("person", _READ), ("notes", _FRIEND))
        for language, (said, fact) in forms.items()
        for match in _form(said, language).finditer(text)
    ]


def frame_of(fact: str) -> str | None:
    """A fact's words without its value; None: it has none of the known forms."""
    for language, topics in _TOPICS.items():
        for _, form, _ in topics:
            if _form(form, language).fullmatch(fact):
                return form.replace("{v}", "")
    return None


_SIGN: Final[dict[Language, str]] = {"en": r"[A-Z][a-z]{4,16}", "zh": f"[{_SIGNS}]{{3}}"}


VALUES: Final = re.compile("|".join(_SIGN.values()))  # what may be a value of a life


@cache
def _form(text: str, language: Language) -> re.Pattern[str]:
    sign = _SIGN[language]
    return re.compile(re.escape(text).replace(r"\{v\}", f"(?P<v>{sign})").replace(r"\{w\}", f"(?P<w>{sign})"))


def _life(
    rng: random.Random,
    taken: set[str],
    person: str,
    chat: str,
    language: Language,
    topics: Sequence[int],
    sessions: int,
) -> Life:
    life = Life(
        person=person, chat=chat, in_group=chat == "group", language=language, sessions=[[] for _ in range(sessions)]
    )
    for topic in topics:
        versions = 1 + (topic % _CHANGING == 0) + (topic % (2 * _CHANGING) == 0)
        places = sorted(rng.sample(range(sessions), min(versions, sessions)))
        for place in places:
            value = _value(rng, taken, language)
            if topic in life.current:
                life.former.add(life.current[topic])
            life.current[topic] = value
            life.sessions[place].append(_telling(rng, language, topic, value))
    for place in range(sessions):
        for value in (_value(rng, taken, language) for _ in range(_BOOKS)):
            life.books.add(value)
            life.sessions[place].append(Said(text=_READ[language][0].format(v=value), how="plain", value=value))
    for place in range(1, sessions, 4):  # somebody else's
        who, value, theirs = (_value(rng, taken, language) for _ in range(3))
        life.others |= {who, value, theirs}
        life.sessions[place].append(Said(text=_FRIEND[language][0].format(w=who, v=value), how="friend", value=value))
        topic = rng.choice(list(topics))
        said = _TOPICS[language][topic][0].format(v=theirs)
        life.sessions[place].append(Said(text=f"[forwarded]\n{said}", how="forwarded", topic=topic, value=theirs))
    for session in life.sessions:
        session += [Said(text=text, how="chatter") for text in rng.sample(_CHATTER[language], 2)]
        order = [each for each in session if each.how != "chatter"]
        for each in [each for each in session if each.how == "chatter"]:
            order.insert(rng.randint(0, len(order)), each)  # what is told keeps its order
        session[:] = order
    return life


def _telling(rng: random.Random, language: Language, topic: int, value: str) -> Said:
    said = _TOPICS[language][topic][0].format(v=value)
    how = rng.choice(("plain", "passing", "asked"))
    match how:
        case "passing":
            text = _PASSING[language].format(said=said)
        case "asked":
            text = f"Remember this please: {said}" if language == "en" else f"请记住：{said}"
        case _:
            text = said
    return Said(text=text, how=how, topic=topic, value=value)  # type: ignore[arg-type]


def _value(rng: random.Random, taken: set[str], language: Language) -> str:
    while True:
        if language == "en":
            value = "".join(rng.choice(_SYLLABLES) for _ in range(3)).capitalize()
        else:
            value = "".join(rng.sample(_SIGNS, 3))
        if not any(value in other or other in value for other in taken):
            taken.add(value)
            return value
