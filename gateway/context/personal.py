"""Which sentences tell something of the person who says them: who they are, whom they have, what they must not have,
what they own, like and decided.

A sentence is read from its beginning, or from where a clause begins. In ten languages; in doubt a sentence is none.
"""

from __future__ import annotations

import re
from typing import Final

LASTING, PLAIN = 2.0, 1.0
LONGEST: Final = 180  # characters of a sentence
_LEAST: Final = 3  # words

_LEAD: Final = (
    r"(?:\W|\b(?:and|but|so|well|also|oh|ok(?:ay)?|hi|hello|hey|yes|yeah|no|thanks|btw|by the way|fyi|actually"
    r"|unfortunately|note that|remember(?: that)?|just so you know|for (?:context|the record|your information)"
    r"|correction|update|one more thing|you should know(?: that)?|und|aber|also|übrigens|hallo|ja|nein|leider|y|pero"
    r"|además|hola|sí|et|mais|au fait|bonjour|oui|e|ma|anche|ciao|и|а|но|кстати|да|нет)\b)*+"
)
_CLAUSE: Final = (
    r"(?:.{1,80}?(?:[,;:–，]| and| but| so| because| since| und| weil| y| et| porque| parce que| потому что) ?)?"
)
KIN: Final = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc\w+|son|daughter|kids?|child(?:ren)?|baby|mother|father|mom|mum"
    r"|dad|parents?|brother|sister|twins?|uncle|aunt|niece|nephew|grand\w+|family|dogs?|cats?|\w+-in-law|boss|doctor"
    r"|name|birthday|anniversary|job|allerg\w+|diet|blood \w+|pronouns)"
)
_NEVER_EN: Final = (
    r"(?:eat|drink|drive|swim|fly|smoke|have|own|speak|tolerate|take|work|wear|touch|use|like|hear|see well)"
)
_LASTING: Final = (
    # English
    r"i(?:['’]m| am) (?:\w+ly )?(?:an?(?! (?:bit|little|lot|few|huge|big|moment|minute))|allergic|intolerant|vegan"
    r"|vegetarian|diabetic|pregnant|left-handed|right-handed|deaf|blind|colou?r|coeliac|celiac|asthmatic|married"
    r"|divorced|single|widowed|retired|from|based|born|\d+|afraid of|scared of|on (?:medication|a diet))\b",
    r"(?:i|we)(?:['’]ve| have)? (?:never |finally |already )?(?:decided|chosen|chose|settled|picked|promised|agreed"
    r"|grew|moved|quit|got married|married|retired)\b",
    rf"i (?:can(?:no|['’])t|don['’]?t|do not|never|no longer|won['’]t) {_NEVER_EN}\b",
    r"i(?:['’]ve never| have never| never)\b",
    r"i (?:live|lived|work|worked|study|teach|speak|was born|suffer)\b",
    r"i (?:have|['’]ve got) (?:\w+ ){0,2}(?:diabet|asthma|migraine|wheelchair)",
    rf"(?:my|our) (?:\w+ ){{0,2}}{KIN}\b",
    rf"(?:i|we)(?:['’]ve)? (?:have|got|own|adopted) (?:an?|one|two|three|four|\d+|no) (?:\w+ ){{0,2}}{KIN}\b",
    r"(?:call me|i go by)\b",
    rf".{{1,60}}\b(?:is|was|are|were) (?:my|our) {KIN}\b",
    r".{1,60}\b(?:gives?|makes?) me (?:an? )?(?:rash|hives|sick|ill|sneeze|itch|headache|migraine|panic)",
    # German
    r"ich (?:bin (?!(?:mir|gespannt|gerade|nicht sicher|wieder|da\b|noch|dabei|froh|müde|dran))|heiße|wohne|lebe"
    r"|arbeite|studiere|vertrage|esse kein|trinke kein|habe (?:mich (?:für|gegen)|\w+ (?:kinder|söhne|töchter)))",
    r"(?:mein|unser)e?[rsnm]? (?:\w+ )?(?:frau|mann|sohn|tochter|kind|kinder|mutter|vater|eltern|bruder|schwester"
    r"|hund|katze|name|chef|geburtstag|partner\w*)\b",
    # Spanish
    r"(?:yo )?(?:soy|vivo|trabajo en|estudio|me llamo|no como|no bebo|no puedo (?:comer|beber)|he decidido|decidí"
    r"|nací)\b",
    r"(?:mi|nuestr[oa]) (?:mujer|esposa|marido|esposo|hij[oa]s?|madre|padre|herman[oa]|perr[oa]|gat[oa]|nombre"
    r"|jef[ea]|cumpleaños|novi[oa]|pareja)\b",
    # French
    r"je (?:suis (?!(?:désolé|sûr|content|d['’]accord|en train|prêt|là|de retour|curieu))|m['’]appelle|vis|travaille"
    r"|ne mange|ne bois|ne peux pas (?:manger|boire)|parle)",
    r"j['’](?:habite|étudie|ai décidé|ai choisi|ai \d+ ans|ai (?:un|une|deux|trois) (?:fils|fille|enfant|chien|chat))",
    r"(?:mon|ma|notre|mes|nos) (?:femme|mari|fils|fille|enfants?|mère|père|frère|s[oœ]e?ur|chien\w*|chat\w*|nom"
    r"|patron\w*|anniversaire|copain|copine|compagn\w+)\b",
    # Italian
    r"(?:sono (?!(?:contento|d['’]accord|pronto|qui|sicur))|vivo|lavoro|mi chiamo|non mangio|non bevo|ho deciso"
    r"|ho \d+ anni)",
    r"(?:mi[ao]|nostr[oa]) (?:moglie|marito|figli[oa]|madre|padre|fratello|sorella|cane|gatt[oa]|nome|capo"
    r"|compleanno)\b",
    # Russian
    r"я (?:живу|работаю|учусь|родил|не (?:ем|пью|люблю|переношу|курю)|решил|говорю на|аллерг)",
    r"(?:мой|моя|моё|мои|наш\w?) (?:жена|муж|сын|дочь|дочка|дети|мама|мать|папа|отец|брат|сестра|собака|кот|кошка"
    r"|имя|день рождения|начальни\w+)",
    r"(?:меня зовут|мне \d+|у (?:меня|нас) (?:есть |аллергия|двое|трое|\w+ (?:дет|сын|дочер|собак|кош|кот)))",
    # Chinese and Japanese
    r"我(?:是(?!说|想|不是)|叫|住|在\S{1,8}(?:工作|上班|上学|长大)|对\S{1,12}过敏|不(?:吃|喝|能吃|能喝|会开|抽)"
    r"|有\S{0,4}(?:孩子|儿子|女儿|猫|狗)|决定|已经决定|今年\d)",
    r"(?:我|我们|咱)(?:家)?的?(?:妻子|老婆|太太|丈夫|老公|先生|儿子|女儿|孩子|妈妈|母亲|爸爸|父亲|哥哥|弟弟|姐姐"
    r"|妹妹|狗|猫|名字|老板|生日|男朋友|女朋友)",
    r"(?:私|僕|俺|わたし)(?:は|の(?:妻|夫|娘|息子|子供|母|父|兄|弟|姉|妹|犬|猫|名前|誕生日))",
)
_PLAIN: Final = (
    r"(?:i|we)(?:['’](?:m|ve|re)| am| are| have)? (?!(?:think|guess|hope|wonder|mean|see|know|believe|suppose"
    r"|understand|can|want|need|would|['’]d|wanted|was wondering|tried|asked|just|could|should|might|am trying"
    r"|got it)\b)\w",
    r"(?:my|our) (?!(?:bad|mistake|apolog\w+|question|problem|guess|point|pleasure|god|goodness|turn)\b)\w",
    r"(?:ich|wir) (?!(?:denke|glaube|meine|hoffe|möchte|will|wollte|weiß|brauche|verstehe|frage|hätte|würde|finde|bin"
    r"|habe (?:eine|noch) frage)\b)\w",
    r"(?:mein|unser)e?[rsnm]? (?!(?:frage|problem|fehler)\b)\w",
    r"(?:tengo|tenemos|llevo|me gusta|no me gusta|prefiero)\b(?! (?:una? )?(?:pregunta|duda|problema))",
    r"(?:mi|mis|nuestr[oa]s?) (?!(?:pregunta|problema|error)\b)\w",
    r"(?:j['’]ai|nous avons|on a|j['’]aime|je n['’]aime|je préfère)\b(?! (?:une? )?(?:question|problème|doute))",
    r"(?:mon|ma|mes|notre|nos) (?!(?:question|problème|erreur)\b)\w",
    r"(?:ho|abbiamo|preferisco)\b(?! (?:una? )?(?:domanda|problema|dubbio))",
    r"(?:il mio|la mia|i miei|le mie) (?!(?:domanda|problema)\b)\w",
    r"(?:у (?:меня|нас) (?!(?:вопрос|проблема))|я (?:люблю|предпочитаю|купил|езжу))",
    r"(?:мой|моя|моё|мои|наш\w?) (?!(?:вопрос|проблема|ошибка))\w",
    r"(?:我|我们)(?:有(?!个?问题|点)|喜欢|不喜欢|更喜欢|买了|每\S{1,3}|选了|最喜欢)",
    r"(?:うちの|私たちは)",
)
# "I'm back", "I have a question": they tell of the moment.
_MOMENTARY: Final = re.compile(
    r"\b(?:i(?:['’]m| am) (?:\w+ly )?(?:sorry|fine|good|ok(?:ay)?|glad|happy to|not|sure|looking|trying|thinking"
    r"|wondering|going to|about to|back|here|ready|curious|confused|interested|stuck|done|just|still|so|in a hurry"
    r"|asking|planning|getting|having|writing|working on|using|seeing|aware|afraid (?:that|so|not|i)|lost)"
    r"|i (?:have|['’]ve got) (?:an?(?:other)? )?(?:\w+ )?(?:question|problem|issue|request|idea|feeling|doubt|look"
    r"|moment|minute|few|couple)|i (?:have|had) to\b"
    r"|(?:we|i) (?:don['’]?t|do not) (?:know|think|understand|see|mind|care|remember|want|need|get|have (?:time|the))"
    r"|i (?:appreciate|agree|see|understand)|thank|(?:we|i) can\b)",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"[?？][\s)\"'”’»」）]*\Z|\A\W*(?:could|can|would|will|please|what|how|why|where|which|do|does)\b", re.IGNORECASE
)
_IS_LASTING: Final = re.compile(rf"{_LEAD}{_CLAUSE}(?:{'|'.join(_LASTING)})", re.IGNORECASE)
_IS_PLAIN: Final = re.compile(rf"{_LEAD}(?:{'|'.join(_PLAIN)})", re.IGNORECASE)
_DENSE: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")


def worth(said: str) -> float:
    """Return `LASTING` or `PLAIN` for a sentence that tells something of its speaker, else 0.0."""
    if len(said) > LONGEST or _ASKS.search(said):
        return 0.0
    if len(said.split()) < _LEAST and not _DENSE.search(said):
        return 0.0
    if _IS_LASTING.match(said):
        return LASTING
    return PLAIN if _IS_PLAIN.match(said) and not _MOMENTARY.search(said) else 0.0
