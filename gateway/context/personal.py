"""Which sentences tell something of the person who says them, and how much it is worth to remember.

Who somebody is, whom they have, what they must not have and what they decided is worth most; then what else they say
of themselves, then a statement with a name or a number, then any other one. Questions, requests and talk of the
moment tell nothing. A sentence is read from its beginning, or from where a clause begins, in ten languages.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.context.statements import DENSE
from gateway.runtime.patterns import late

LASTING, PLAIN, NAMED, TOLD = 2.0, 1.25, 0.75, 0.5
LONGEST: Final = 240  # characters of a sentence
_LEAST: Final = 3  # words
_LEAST_TOLD: Final = 6  # words of a statement that is not about its speaker
_LEAST_DENSE: Final = 9  # characters of one in a script without spaces

_LEAD: Final = (
    r"(?:\W|\b(?:and|but|so|well|also|oh|ok(?:ay)?|hi|hello|hey|yes|yeah|no|thanks|btw|by the way|fyi|actually"
    r"|unfortunately|note that|remember(?: that)?|just so you know|for (?:context|the record|your information)"
    r"|correction|update|one more thing|you should know(?: that)?|und|aber|also|übrigens|hallo|ja|nein|leider|y|pero"
    r"|además|hola|sí|et|mais|au fait|bonjour|oui|e|ma|anche|ciao|и|а|но|кстати|да|нет)\b)*+"
)
_CLAUSE: Final = (
    r"(?:.{1,80}?(?:[,;:–，]| and| but| so| because| since| und| weil| y| et| porque| parce que| потому что) ?)?"
)
_KIN: Final = (
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
    rf"(?:my|our) (?:\w+ ){{0,2}}{_KIN}\b",
    rf"(?:i|we)(?:['’]ve)? (?:have|got|own|adopted) (?:an?|one|two|three|four|\d+|no) (?:\w+ ){{0,2}}{_KIN}\b",
    r"(?:please )?(?:call me|i go by)\b",
    rf".{{1,60}}\b(?:is|was|are|were) (?:my|our) {_KIN}\b",
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
    r"(?:i|we)(?:['’](?:m|ve|re)| am| are| have)? (?!(?:think|guess|hope|wonder|mean|know|believe|suppose"
    r"|understand|can|want|need|would|['’]d|wanted|was wondering|tried|asked|just|could|should|might|am trying"
    r"|got it)\b)\w",
    r"(?:my|our) \w",
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
_MOMENTARY: Final = late(
    r"\b(?:i(?:['’]m| am) (?:\w+ly )?(?:sorry|fine|good|ok(?:ay)?|glad|happy to|not|sure|looking|trying|thinking"
    r"|wondering|going to|about to|back|here|ready|curious|confused|interested|stuck|done|just|still|so|in a hurry"
    r"|asking|planning|getting|having|writing|working on|using|seeing|aware|afraid (?:that|so|not|i)|lost)"
    r"|i (?:have|['’]ve got) (?:an?(?:other)? )?(?:\w+ )?(?:question|problem|issue|request|idea|feeling|doubt|look"
    r"|moment|minute|few|couple)|i (?:have|had) to\b"
    r"|(?:we|i) (?:don['’]?t|do not) (?:know|think|understand|see|mind|care|remember|want|need|get|have (?:time|the))"
    r"|i (?:appreciate|agree|see|understand)|thank|(?:we|i) can\b)",
    re.IGNORECASE,
)
_ASKS: Final = late(r"[?？][\s)\"'”’»」）]*\Z|\A\W*(?:could|can|would|will|do|does) (?:you|we|i)\b", re.IGNORECASE)
# What is asked for, and what only keeps a talk going.
_REQUESTS: Final = late(
    rf"\A{_LEAD}(?:please|pls|tell|show|give|write|make|add|find|list|explain|help|check|look|go|try|don['’]?t|do|let"
    r"|use|put|send|draft|remind|create|set|open|read|translate|summari[sz]e|compare|describe|what|how|why|when|where|which"
    r"|who|any|maybe|suggest|recommend|book|order|keep|take|turn|play|search|run|fix|see|say|speak|think|imagine|pick"
    r"|choose|bitte|mach|schreib|zeig|erklär|gib|such|finde?|hilf|kannst|könntest|wie|was|wann|wo|warum|welche|schau"
    r"|erinnere?|übersetze?|aide|écris|donne|montre|fais|peux|pourrais|comment|quel|où|pourquoi|note|explique"
    r"|ayúdame|escribe|dame|haz|puedes|cómo|qué|dónde|cuál|busca|explica|ponme|aiutami|scrivi|dammi|fammi|puoi|come"
    r"|cosa|dove|помоги|напиши|покажи|сделай|можешь|можно|как|что|где|почему|когда|скажи|объясни|давай"
    r"|thank|thx|sounds|great|cool|nice|perfect|awesome|wow|haha|lol|good (?:morning|night|idea|point)|makes sense"
    r"|sure|right|true|exactly|never mind|sorry|genau|danke|super|gut|klar|weiter|vale|gracias|claro|merci|d['’]accord"
    r"|(?:i|we) (?:think|guess|hope|wonder|mean|know|believe|suppose|understand|want|need|would|tried|asked)"
    r"|(?:my|our) (?:bad|mistake|apolog\w+|question|problem|guess|point|pleasure|god|goodness|turn)"
    r"|(?:tengo|tenemos) (?:una? )?(?:pregunta|duda|problema)|j['’]ai (?:une? )?(?:question|problème|doute)"
    r"|ho (?:una? )?(?:domanda|problema|dubbio)|moment|keine ahnung|ich (?:bin|glaube|denke|hätte|würde|finde|muss)"
    r"|espera|no (?:estoy|sé)|je (?:pense|crois|sais)"
    r"|я (?:не (?:уверен|знаю|думаю)|думаю|тут)|bonne|grazie|va bene|perfetto|спасибо|хорошо|ладно|понятно"
    r"|отлично|супер)\b"
    r"|\A\W*(?:请|帮|给我|能不能|可以|怎么|什么|为什么|哪|告诉|写|好的?|谢谢|是的|嗯|继续|我不(?:太|知道|明白|懂)|再给"
    r"|ありがとう|はい)"
    r"|(?:ください|教えて|して)[。！!]*\Z",
    re.IGNORECASE,
)
_NAMED: Final = late(r"\d|(?<=[^.!?\s]\s)[A-ZÄÖÜÉÈÀА-Я][\w’'-]+")
_IS_LASTING: Final = late(rf"{_LEAD}{_CLAUSE}(?:{'|'.join(_LASTING)})", re.IGNORECASE)
_IS_PLAIN: Final = late(rf"{_LEAD}(?:{'|'.join(_PLAIN)})", re.IGNORECASE)


def worth(said: str) -> float:
    """Return `LASTING`, `PLAIN`, `NAMED` or `TOLD` for a sentence that tells something, else 0.0."""
    if len(said) > LONGEST or _ASKS.search(said):
        return 0.0
    dense, words = DENSE.search(said) is not None, len(said.split())
    if words < _LEAST and not dense:
        return 0.0
    if _IS_LASTING.match(said):
        return LASTING
    if _MOMENTARY.search(said) or _REQUESTS.search(said):
        return 0.0
    if _IS_PLAIN.match(said):
        return PLAIN
    if _NAMED.search(said):
        return NAMED
    return TOLD if (len(said) >= _LEAST_DENSE if dense else words >= _LEAST_TOLD) else 0.0
