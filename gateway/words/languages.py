"""Words as a search compares them: their stems, and the words that say nothing about a subject.

The stems are Snowball's (https://snowballstem.org). The stop lists are our own. A text's language is the one whose
stop words the text uses most; English, if none stands out. A word of a script that has no stemmer is its own stem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import Stemmer

ENGLISH: Final = "english"
_FEWEST: Final = 2  # stop words of another language than English, before a text is taken for that language

_STOP_LISTS: Final[dict[str, str]] = {
    ENGLISH: """
        a about after again all also am an and any anyone anything are as at be because been before being both but
        by can could did do does doing done dont down during each either else ever every few for from further get
        getting give given go going gone got had has have having he her here hers him his how however i if im in
        into is isnt it its itself ive just know let like ll me might mine more most much must my myself no nor not
        now of off often on once one only or other our ours out over own please re said same say says she should
        shouldnt since so some someone something still such tell than that thats the their theirs them then there
        these they thing things think this those though through to told too under until up upon us use used ve very
        want was wasnt we well went were what whats when where whether which while who whom whose why will with
        within without wont would yes yet you your yours s t d m ve don isn wasn doesn didn couldn wouldn shouldn
        aren weren haven hasn""",
    "german": """
        aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem den denn
        der des dich die dies diese dieser dieses dir doch du durch ein eine einem einen einer eines er es euch euer
        für gab haben habe hat hatte hatten hier ich ihm ihn ihr ihre im in ist ja jede jeder kann kein keine können
        machen man mehr mein meine mich mir mit nach nicht noch nun nur ob oder ohne schon sein seine sich sie sind
        so über um und uns unser unter vom von vor wann war waren warum was weil welche welcher wenn wer werden wie
        wieder wir wird wo wurde zu zum zur zwischen""",
    "french": """
        à ai aie alors au aussi autre aux avec avez avoir avons ce cela ces cet cette chez comme comment dans de des
        deux donc dont du elle elles en entre est et était être eu fait faire il ils je la le les leur leurs lui ma
        mais me même mes moi mon ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle
        quelles quels qui quoi sa sans se ses si son sont sous sur ta te tes toi ton tous tout toute tu un une va
        vos votre vous y c d j l m n s t""",
    "spanish": """
        a al algo alguien algún ante antes aquel así aún bien cada como cómo con contra cual cuál cuando cuándo de
        del desde donde dónde dos el él ella ellas ellos en entre era eran eres es esa ese eso esta está están este
        esto fue fueron ha había hace han has hasta hay he la las le les lo los más me mi mis mucho muy nada ni no
        nos nosotros o para pero por porque qué que quién quien se según ser si sí sin sobre son su sus también tan
        te tiene todo todos tu tus un una uno y ya yo""",
    "italian": """
        a ad al alla alle anche avere aveva c che chi ci cinque come con cosa da dai dal dalla degli dei del della
        delle dello di dove due e è ed era erano gli ha hai hanno ho i il in io l la le lei lo loro lui ma me mi mia
        mio ne nei nel nella no noi non nostro o per perché più poi qual quale quando quanto quel quella quello
        questa questo qui se sei senza si sia sono sta su sua sue sul sulla suo te ti tra tu tua tuo tutti tutto un
        una uno vi voi""",
    "portuguese": """
        à ao aos as às até com como da das de dela dele deles depois do dos e é ela elas ele eles em entre era eram
        essa esse esta está estão este eu foi foram há isso isto já la lhe mais mas me mesmo meu minha muito na não
        nas nem no nos nós nossa nosso num numa o os ou para pela pelo por porque qual quando que quem são se sem
        ser seu sua também te tem têm ter teu tu tua um uma você vocês""",
    "dutch": """
        aan al alles als altijd ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen had
        heb hebben heeft hem het hier hij hoe hun iets ik in is ja je kan kunnen maar me meer men met mij mijn naar
        niet niets nog nu of om omdat onder ons ook op over te tegen toch toen tot u uit van veel voor waar waarom
        wanneer want waren was wat we wel werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo
        zonder zou""",
    "russian": """
        а без более больше был была были было быть в вам вас весь во вот все всего вы где да для до его ее её если
        есть еще ещё же за здесь и из или им их к как какая какой когда кого который кто ли меня мне может мой моя
        мы на над нас наш не него нее ней нет ни них но ну о об он она они от очень по под после потому почему при
        про раз с сам себе себя со так также там тебе тебя тем то тогда тоже только тот ты у уже чего чем что чтобы
        чья эта эти это этот я""",
}
# Pairs of Chinese characters that stand in any question.
_DENSE_STOPS: Final = """
        什么 怎么 为什 么时 时候 哪里 哪个 多少 是不 不是 我们 你们 他们 这个 那个 这些 那些 可以 没有 有没 就是 还是
        但是 因为 所以 如果 一个 一下 的是 了吗 的吗 是什 了什 说过 请问 告诉 诉我 我的 你的 他的 她的"""
_STOPS: Final = MappingProxyType({name: frozenset(words.split()) for name, words in _STOP_LISTS.items()})
_PAIRS: Final = frozenset(_DENSE_STOPS.split())
_CYRILLIC: Final = range(0x0400, 0x0530)
_LATIN_END: Final = 0x0250


def language_of(words: Iterable[str]) -> str:
    """The language of case-folded words, by the stop words among them."""
    counts = dict.fromkeys(_STOPS, 0)
    for word in words:
        for name in _languages_of(word):
            counts[name] += 1
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= max(_FEWEST, counts[ENGLISH] + 1) else ENGLISH


def is_stop(word: str) -> bool:
    """Say whether a case-folded word, or a pair of a dense script, says nothing about a subject."""
    return word in _PAIRS or bool(_languages_of(word))


@lru_cache(maxsize=50_000)
def stems(word: str, language: str) -> tuple[str, ...]:
    """The stems under which a case-folded word is entered and looked for, without accents: that of `language` and that
    of English, because the language of a short question may not be seen. A word with a digit in it stays as it is. A
    word's script decides first: a Russian text may hold English words."""
    if any(map(str.isdigit, word)):
        return (word,)
    first = ord(word[0])
    if first in _CYRILLIC:
        return (_stem(word, "russian"),)
    if first >= _LATIN_END or language in ("russian", ENGLISH):
        return (_stem(word, ENGLISH),)
    return tuple(dict.fromkeys((_stem(word, language), _stem(word, ENGLISH))))


@lru_cache(maxsize=50_000)
def _languages_of(word: str) -> tuple[str, ...]:
    return tuple(name for name, words in _STOPS.items() if word in words)


def _stem(word: str, language: str) -> str:
    # A stemmer works in fields of its own, and two threads stem: each word gets a stemmer.
    plain = unicodedata.normalize("NFD", Stemmer.Stemmer(language, 0).stemWord(word))
    bare = "".join(each for each in plain if not unicodedata.combining(each)) if plain[0] < "\u0250" else plain
    return unicodedata.normalize("NFC", bare) or word
