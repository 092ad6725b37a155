"""Standing rules in a message: "never …", "always …", "from now on …".

Only a message that is nothing but such an instruction counts: one short sentence that begins with it
and says by itself what is meant. What is missed costs its author a /pin; what is wrongly taken for a
rule would be in every later answer. So an instruction needs one of the verbs below, since "Always
wanted to see Rome" and "Never mind" begin alike.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from msgspec import Struct

from gateway.runtime.patterns import late

_LONGEST: Final = 200  # characters; a longer message is more than a rule
_MOST_MARKED: Final = 3 * _LONGEST  # the same, whose letters and marks are written one by one, as in Vietnamese

# A question, several lines or sentences: part of it would be about now.
_MORE: Final = re.compile(r"[?？¿\n\r]|[.!…]\s+\S|[。！；;]\s*\S|[吗嗎呢么麼][。.]?\Z")
# Words that mean something outside of the message, or tell a story. "When I ask …" tells none: it says when a rule
# holds.
_UNCLEAR: Final = re.compile(
    r"\b(?:that|this|it|so|them|these|those|here|again)[.!]*\Z"
    r"|(?<!\bif )(?<!\bwhen )(?<!\bwhenever )(?<!\bunless )(?<!\btime )\bI\b"
    r"|\bI\s+(?:did|got|had|have|said|told|was|went|wrote|\w+[^e]ed)\b|\b(?:ich|wir|man|hab\w*|hatte\w*|würde\w*)\b"
)
# Every rule has one of these: by them it holds for good. Most messages have none, and are held against no rule.
_FOR_GOOD: Final = re.compile(
    "always|ever|now|immer|stets|nie|jetzt|sofort|nun|künftig|zukunft|siempre|nunca|ahora|toujours|jamais|désormais"
    "|dorénavant|maintenant|всегда|никогда|отныне|впредь|момента|[后後现現今终終远遠必绝絕决決总總]|一律",
    re.IGNORECASE,
)


def states_rule(text: str) -> bool:
    """Say whether the text, in English, Chinese, Russian, Spanish, French or German, sets a rule for good."""
    if len(text) > _MOST_MARKED:  # the marks of a letter are put in order in quadratic time
        return False
    said = unicodedata.normalize("NFC", text.strip())
    if len(said) > _LONGEST or not _FOR_GOOD.search(said) or _MORE.search(said) or _UNCLEAR.search(said):
        return False
    return any(rule.match(said) for rule in _RULES)


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_EN = _any(
    "add address answer apologise apologize ask assume avoid be buy call change cite commit confirm convert delete"
    " deploy edit explain format greet guess ignore include indent install invent keep(?!\\s+\\w+ing\\b) mention merge"
    " modify name offer omit order overwrite print provide push quote recommend refer remind remove reply respond"
    " reveal round run send share show sign skip sort speak spend suggest summarise summarize talk tell test touch"
    " translate use verify write"
)
_EN_NOT = r"(?:do\s+not|don['’]?t)"

_DE_DO = _any(
    "antworte bestelle? duze? erkläre? erwähne? formuliere? frage? gib halte? kaufe? lass lösche? nenne? nimm nutze?"
    " benutze? prüfe? rechne rede runde schicke? schreibe? sende sieze? sprich übersetze? verwende zeige? ändere?"
)
_DE_TO = _any(
    "angeben antworten benutzen bestellen committen duzen erklären erwähnen formatieren formulieren fragen kaufen"
    " löschen nachfragen nennen nutzen prüfen pushen reden runden schicken schreiben senden siezen sprechen testen"
    " zeigen ändern überschreiben übersetzen verwenden"
)
_DE_ALWAYS = r"(?:immer|stets|nie|niemals|nie\s+wieder|nie\s+mehr)"

_ES_DO = _any(
    "añade cita contesta contéstame dime escribe escríbeme explica habla háblame incluye llámame muestra muéstrame"
    " pregunta pregúntame redondea responde respóndeme revisa traduce trátame tutéame usa utiliza"
)
_ES_NOT = r"(?:(?:me|nos|le)\s+)?" + _any(
    "añadas borres cambies compres contestes digas elimines envíes escribas gastes hables incluyas inventes llames"
    " menciones modifiques preguntes respondas toques traduzcas uses utilices"
)

_FR_DO = _any(
    "ajoute appelle cite demande dis donne emploie explique montre parle réponds traduis utilise vérifie écris"
)
_FR_DO_POLITE = _any(
    "ajoutez appelez citez demandez dites donnez employez expliquez montrez parlez répondez traduisez utilisez vérifiez"
    " écrivez tutoie tutoyez vouvoie vouvoyez"
)
_FR = rf"(?:{_FR_DO}|{_FR_DO_POLITE})(?:-moi|-nous)?"
_FR_NOT = (
    rf"(?:ne\s+(?:me\s+|nous\s+)?|n['’])(?:{_FR_DO}|{_FR_DO_POLITE}|"
    + _any(
        "achète achetez change changez efface effacez envoie envoyez invente inventez mentionne mentionnez modifie"
        " modifiez supprime supprimez touche touchez"
    )
    + ")"
)
_FR_TO = _any(
    "changer citer demander effacer employer envoyer expliquer mentionner modifier parler répondre supprimer traduire"
    " tutoyer utiliser vouvoyer vérifier écrire"
)

_RU = _any(
    "добавляй(?:те)? изменяй(?:те)? используй(?:те)? меняй(?:те)? называй(?:те)? обращай(?:ся|тесь) объясняй(?:те)?"
    " отвечай(?:те)? отправляй(?:те)? переводи(?:те)? пиши(?:те)? показывай(?:те)? покупай(?:те)? придумывай(?:те)?"
    " проверяй(?:те)? говори(?:те)? спрашивай(?:те)? трогай(?:те)? удаляй(?:те)? указывай(?:те)? упоминай(?:те)?"
)
_RU_WHOM = r"(?:(?:мне|меня|нам|ко\s+мне)\s+)?"

_ZH_LATER = "(?:以[后後]|今[后後]|[从從][现現]在(?:起|[开開]始)|[从從](?:今|此)以[后後])"
_ZH_DO = "(?:不要|不得|不可以?|[别別]|勿|不准|用|使用|以|回答|回复|回覆|叫我|[称稱]呼我|保持|先|[给給]我|把)"

# Instructions by language, each with the ways in which it is said that they hold for good.
_SENTENCES: Final = (
    (r"please,?\s+", rf"(?:always|never|{_EN_NOT}\s+ever)\s+{_EN}\s+\S.*"),
    (
        r"please,?\s+",
        r"from\s+now\s+on,?\s+(?:please,?\s+)?(?:you\s+(?:must|should|will|shall|are\s+to)\s+)?"
        rf"(?:(?:always|never|only|not|{_EN_NOT}(?:\s+ever)?)\s+)?{_EN}\s+\S.*",
    ),
    (r"bitte,?\s+", rf"{_DE_DO}\s+(?:(?:mir|mich|uns|bitte)\s+)*{_DE_ALWAYS}\s+\S.*"),
    (r"bitte,?\s+", rf"{_DE_ALWAYS}\s+\S.*\s{_DE_TO}[.!]?"),
    (
        r"bitte,?\s+",
        r"(?:ab\s+(?:jetzt|sofort)|von\s+(?:jetzt|nun)\s+an|künftig|in\s+zukunft),?\s+(?:bitte\s+)?"
        rf"(?:{_DE_DO}\s+\S.*|\S.*\s{_DE_TO}[.!]?)",
    ),
    (
        r"por\s+favor,?\s+",
        rf"(?:{_ES_DO}\s+siempre|siempre\s+{_ES_DO}|nunca\s+{_ES_NOT}|no\s+{_ES_NOT}\s+nunca)\s+\S.*",
    ),
    (
        r"por\s+favor,?\s+",
        r"(?:a\s+partir\s+de\s+ahora|de\s+ahora\s+en\s+adelante|desde\s+ahora),?\s+(?:por\s+favor,?\s+)?(?:siempre\s+)?"
        rf"(?:{_ES_DO}|(?:no|nunca)\s+{_ES_NOT})\s+\S.*",
    ),
    (
        r"s['’]il\s+(?:te|vous)\s+pla[iî]t,?\s+",
        rf"(?:{_FR}\s+toujours|{_FR_NOT}\s+(?:plus\s+)?jamais|(?:toujours|ne\s+(?:plus\s+)?jamais)\s+{_FR_TO})\s+\S.*",
    ),
    (
        r"s['’]il\s+(?:te|vous)\s+pla[iî]t,?\s+",
        rf"(?:désormais|dorénavant|à\s+partir\s+de\s+maintenant),?\s+(?:{_FR}|{_FR_NOT}\s+(?:pas|plus|jamais))\s+\S.*",
    ),
    (
        r"пожалуйста,?\s+",
        rf"(?:всегда\s+{_RU_WHOM}|никогда\s+{_RU_WHOM}(?:больше\s+)?не\s+){_RU}\s+\S.*|{_RU}\s+{_RU_WHOM}всегда\s+\S.*",
    ),
    (
        r"пожалуйста,?\s+",
        r"(?:отныне|впредь|с\s+этого\s+момента|теперь\s+всегда),?\s+(?:пожалуйста,?\s+)?"
        rf"(?:всегда\s+|(?:никогда\s+)?не\s+)?{_RU}\s+\S.*",
    ),
    (
        "(?:[请請]|麻[烦煩])",
        rf"[你您]?{_ZH_LATER}[,，]?\s*(?:[请請]|[你您]|都|也|[务務]必|始[终終]|永[远遠]|一律|[总總]是)*{_ZH_DO}.{{2,}}",
    ),
    ("(?:[请請]|麻[烦煩])", rf"[你您]?(?:永[远遠]|始[终終]|一律|[务務]必|[绝絕][对對]?|[决決])都?{_ZH_DO}.{{2,}}"),
    ("", rf"[请請][你您]?[总總]是{_ZH_DO}.{{2,}}"),
)
# Anchored, so that no text is searched from each of its words on.
_RULES: Final = tuple(late(rf"\A(?:{please})?(?:{said})\Z", re.IGNORECASE) for please, said in _SENTENCES)


# -- pins ----------------------------------------------------------------------------------------------


MOST_PINS: Final = 20
LONGEST_PIN: Final = 500  # characters
PINS_SHARE: Final = 0.05  # of the context length: what all pins of a conversation may take together


class Pin(Struct, frozen=True, kw_only=True):
    """One rule in its author's words, and when they set it (seconds since the epoch). `by`: the author, in a
    conversation of several people."""

    text: str
    at: float
    by: str = ""

    @property
    def signed(self) -> str:
        """Return the rule behind its author's name."""
        return f"[{self.by}] {self.text}" if self.by else self.text


class Pins(Struct, frozen=True, kw_only=True):
    """The rules of a key in the order in which they were set; people number them from 1.

    `set_by` is the id of the inbox item that made them what they are, so that another attempt at it
    finds its work done; None: nothing was ever pinned.
    """

    rules: tuple[Pin, ...] = ()
    set_by: str | None = None
