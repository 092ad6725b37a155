"""Standing instructions: sentences of people that are to hold for good.

"From now on …", "whenever I ask …", "always …", "never …": such a sentence says itself that it is not about now. Only
the person's own words are read, because nobody else's bind. The sentences are found once, when a message is stored
(`found`, kept in the host's note). The module `standing` knows which of them still hold.

In doubt a sentence is an instruction: a superfluous line does less harm than a lost rule. A text may be anything, so
only the edges of a long text are read, sentence by sentence, and each pattern begins where its sentence begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from gateway.context.identifiers import EDGE
from gateway.context.statements import sentences
from gateway.domain.message import ends, is_request, note_of, own_words
from gateway.domain.rule import states_rule
from gateway.runtime.patterns import late

_LONGEST: Final = 300  # characters of a sentence; a longer one is no rule
_SHORTEST: Final = 4
_EACH: Final = 8  # of one message

_QUOTE: Final = late(r"[ \t]{0,8}[>|\"“„«「『`]")  # at the beginning of a line that repeats somebody's words
_FENCE: Final = late(r"^[ \t]{0,8}(?:```|~~~)", re.MULTILINE)
_SPEAKER: Final = late(r"\[([^\[\]\n]{1,80})\] ")

# One of these is in every instruction and in every sentence that takes one back. In lower case.
_HINTS: Final = (
    "always", "never", "ever ", "from now", "from here", "from this", "going forward", "henceforth", "future",
    "every ", "all answers", "all your", "all replies", "each ", "any answer", "comes up", "come up", "subject",
    "topic", "mentioned", "discussed", "concerned", "involved", "wenn es um", "every time", "each time", "any time",
    "everytime", "anytime", "when i ", "when we", "whenever", "if i ", "if we", "when i'", "if i'", "when i’",
    "if i’", "do not", "don't", "don’t", "dont ", "avoid", "for the rest", "at all times", "unless i", "as soon as",
    "no longer", "any more", "anymore", "forget", "stop ", "again", "scrap", "cancel", "immer", "stets", "nie ",
    "niemals", "nicht mehr", "ab jetzt", "ab sofort", "von jetzt", "von nun", "zukunft", "jedes mal", "wenn ich",
    "vergiss", "toujours", "jamais", "partir de", "chaque fois", "quand", "lorsque", "si je", "oublie", "plus",
    "siempre", "nunca", "en adelante", "desde ahora", "cada vez", "cuando", "ya no", "olvida", "sempre", "mai ",
    "ora in poi", "ogni volta", "dimentica", "agora em diante", "toda vez", "mais", "altijd", "nooit", "vanaf nu",
    "voortaan", "telkens", "als ik", "wanneer ik", "vergeet", "niet meer", "needn", "lift ", "no need", "t needed",
    "t necessary", "allowed", "no more", "feel free", "okay to", "ok to", "fine to", "you may", "drop the", "wieder",
    "keine ", "no ", "okay now", "ok now", "fine now",
    "kein ", "keinen ", "brauchst", "musst", "nicht", "pas ", "besoin", "de nouveau", "no uses", "por favor", "puedes",
    "hace falta", "non ", "geen ",
)  # fmt: skip
_FOREIGN_HINTS: Final = (
    "künftig", "désormais", "dorénavant", "più", "esqueça", "всегда", "никогда", "отныне", "впредь",
    "с этого момента", "каждый раз", "когда я", "если я", "больше не", "забудь", "снова", "отмен", "以后", "以後",
    "从现", "從現", "从今", "從今", "从此", "從此", "每次", "每当", "每當", "当我", "當我", "如果我", "只要",
    "总是", "總是", "始终", "始終", "永远", "永遠", "绝", "絕", "务必", "務必", "一律", "必须", "必須", "不要",
    "别再", "別再", "禁止", "今后", "今後", "不用", "不再", "取消", "忘", "これから", "必ず", "絶対", "いつも",
    "毎回", "не ", "можно", "ないで", "やめて", "可以",
    "别用", "别提", "من الآن", "دائم", "لا ت", "أبد", "كلما", "تجنب", "عندما أ", "يمكنك", "لا داعي",
    "मत ", "지 마", "अब से", "हमेशा", "कभी", "जब भी", "앞으로", "항상", "절대", "매번", "때마다",
)  # fmt: skip

_LETTERS: Final = late(r"[a-z]+")
_HINTING: Final = frozenset(max(_LETTERS.findall(hint), key=len) for hint in _HINTS)

_LEAD: Final = (
    r"(?:(?:please|also|and|but|so|ok(?:ay)?|oh|hey|btw|by the way|one more thing|note|remember|rule|important|just"
    r"|bitte|und|aber|also|außerdem|wichtig|s['’]il (?:te|vous) pla[iî]t|et|mais|aussi|por favor|y|pero|también"
    r"|per favore|e|ma|anche|alsjeblieft|en|maar|ook|пожалуйста|и|но|а|также|ещё|важно)\b[,:;.– -]{1,4}){0,4}"
)
# Words with which a statement begins, and no request.
_TELLS: Final = (
    r"(?:i|we|he|she|it|they|the|a|an|this|that|these|those|there|my|our|his|her|its|their|some|most|all|everyone"
    r"|nobody|what|why|how|who|where|is|are|was|were|has|have|had|did|does)\b"
)
# What follows "always" or "never" where nothing is asked for.
_NO_VERB: Final = (
    r"(?:mind|again|a|an|the|been|heard|had|got|seen|saw|knew|known|thought|said|did|done|was|were|is|are|has|have"
    r"|happy|good|nice|great|glad|fun|on|in|at|with|so|that|this|there|i|we|it|they|he|she|less|more|before|mine|yours"
    r"|works?|fails?|crash(?:es)?|say never|\w{2,20}ed|\w{2,20}ing)\b"
)
_LATER: Final = (
    r"(?:from (?:now|here|this (?:point|moment|day)) on(?:wards?)?|going forward|henceforth|in (?:the )?future"
    r"|for the rest of (?:this|our|the) (?:chat|conversation|session))"
)
TIMES: Final = r"(?:when(?:ever)?|if|(?:every|each|any) ?time|as soon as|unless)"
_I_ASK: Final = (
    rf"\b{TIMES} (?:that )?(?:i|we)(?:['’]m|['’]re| am| are| do| ever)? ?(?:ask|want|need|request|say|type|write"
    r"|mention|send|share|paste|discuss|talk|speak|refer|inquire|enquire|query|bring|call|give|look|work|use|tell)"
    r"\w{0,3}\b"
)
_YOU: Final = (
    r"\b(?:you (?:must|should|shall|have to|need to|are to|will|ought to)|(?:make|be) sure|ensure|remember to|please"
    r"|i (?:want|need|expect|would like|prefer) (?:for )?you|i['’]d (?:like|prefer|want) (?:for )?you"
    r"|(?:can|could|would|will) you)\b"
)
# A prohibition with one of these is about this time alone; so is one of a certain thing with a reason behind it.
_ONCE: Final = late(
    r"\b(?:yet|today|tonight|tomorrow|(?<!from )now(?! on)|this (?:time|once|week|month|morning|afternoon|evening"
    r"|round)|until"
    r"|till|before (?:i|we|he|she|it|the|that)|while|as long as|at the moment|already|still|later"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|noch nicht|heute|morgen|jetzt(?! an)|gerade|diesmal|bevor|bis"
    r"|vorerst|solange|encore|aujourd['’]hui|demain|cette fois|ce soir|avant|pour l['’]instant|tant que|todavía|aún"
    r"|hoy|mañana"
    r"|esta vez|hasta|antes de|ancora|oggi|domani|stavolta|finché|ainda|hoje|amanhã|vandaag|nog niet|пока|сегодня"
    r"|завтра"
    r"|сейчас|ещё|уже|до того)\b|今天|今晚|明天|现在(?![起开])|这次|先(?:不|别)|暂时|还没"
    r"|今日|明日|今は|まだ|今回|الآن(?! فصاعد)|اليوم|غدا|بعد$"
    r"|\b(?:the|this|that|these|those|his|her|page|row|line|room|item|step|table|chapter)\b.*(?:,| because"
    r"| since) (?:i|it|there|the|she|he|we|they)(?:['’]| )",
    re.IGNORECASE,
)
_FORBIDS: Final = (
    rf"{_LEAD}(?:do not|don['’]?t|avoid) (?!(?:worry|forget|know|think|mind|care|understand|see|bother|get me|have"
    r"|need|want|remember|be (?:sorry|afraid)|tell me (?:that|you)|leave|start|go|wait|panic|hurry|rush)\b)\w",
    rf"{_LEAD}no (?:more )?\w+(?: \w+){{0,4}},? please\b",
    r"(?:bitte|und|aber|also|auch)[,:]? (?:keine?[nrms]?|nicht \w+en\b)(?! (?:panik|sorge|ahnung|umstände|eile"
    r"|angst))\b.{3}"
    r"|keine?[nrms]? \w+(?: \w+){0,3},? bitte\b",
    rf"{_LEAD}(?:verwend|benutz|nutz|schreib|nenn|erwähn|gib|mach|sag|schlag|setz|füg|antwort|sprich|schick|empfiehl"
    rf"|nimm)"
    r"e?\b(?: (?!ich\b)\w+){0,4} (?:keine?[nrms]?|nicht)\b",
    rf"{_LEAD}(?:vermeide?|verzichte?)\b",
    rf"{_LEAD}n(?:e |['’])(?!(?:t['’]inquiète|vous inquiétez|oublie|t['’]en|sais|suis|ai|est|quittez?)\b)"
    r"(?:me |nous )?\w+(?:-\w+)? (?:pas|plus|aucune?)\b|pas d(?:e |['’])\w+(?: \w+){0,3},? s['’]il (?:te|vous)"
    rf"|{_LEAD}évite[zr]?\b",
    rf"{_LEAD}no (?:me |nos |le )?(?:uses?|utilices?|pongas?|menciones?|escribas?|digas?|hables?|respondas?"
    rf"|contestes?|incluyas?"
    r"|añadas?|inventes?|recomiendes?|sugieras?|envíes?|borres?|toques?|llames?|compres?|reserves?|canceles?|hagas?)\b"
    rf"|{_LEAD}evita\b|(?:nada de|sin) \w+,? por favor",
    rf"{_LEAD}non (?:mi |ci )?(?:us|utilizz|scriv|menzion|cit|parl|rispond|mand|invi|propor|suggeri|aggiung"
    rf"|mett)\w*re\b"
    rf"|{_LEAD}(?:não|nunca) (?:use|utilize|escreva|mencione|fale|responda|envie|sugira|inclua|coloque|invente)\b",
    rf"{_LEAD}(?:gebruik|schrijf|noem|stuur|geef|zet)(?: \w+){{0,3}} (?:geen|niet)\b"
    rf"|geen \w+(?: \w+){{0,3}} alsjeblieft",
    rf"{_LEAD}не (?!(?:забуд|волну|беспоко|пережива|бой|торопи|спеши|говори глуп|стесня)\w*)\w{{2,20}}(?:й|йте|ите|и"
    rf"|ь|ьте)\b"
    rf"|{_LEAD}(?:пожалуйста,? )?без \w+(?: \w+){{0,2}},? пожалуйста|{_LEAD}избега\w+",
    r"(?:[请請]|麻[烦煩])?[你您]?[别別](?:再|用|提|说|說|发|發|写|寫|加|放|给|給)(?!急)|(?:[请請])?避免"
    r"|\S{0,6}[里中时時]不要(?:用|提|写|说|加)",
    r"(?!心配|気にし|無理).{2,80}(?:ないで(?:ください|くれ|ね)?|禁止(?:です)?|やめて(?:ください)?|しないこと)[。！]?\Z",
    r".{2,80}(?:지 마(?:세요|십시오|라|요)?)[.!]?\Z|.{2,80} मत (?:करो|करना|करें|लिखो|लिखना|लिखें|दो|देना|दें|बताना)",
    r"(?:من فضلك |رجاء،? |أرجوك |و)?(?:لا ت(?!زال|وجد|قلق|نس|هتم|عمل|فهم)\S+|تجنب|ممنوع)",
)
_SENTENCES: Final = (
    # English: the instruction alone; with "from now on" before or behind it; for a case; in the middle of a sentence.
    rf"{_LEAD}(?:always|never(?: ever)?|(?:do not|don['’]?t) ever)\b[, ]{{1,2}}(?!{_NO_VERB})\w",
    rf"{_LEAD}{_LATER}\b[, :]{{1,2}}(?!{_TELLS})\w",
    rf"{_LEAD}{_LATER}\b[, :]{{1,2}}i(?: would|['’]d)? (?:want|need|like|expect|prefer)\b",
    rf"{_LEAD}(?!{_TELLS})\w.{{0,250}}\b{_LATER}\W{{0,3}}\Z",
    rf"{_LEAD}(?!{_TELLS}|{TIMES}\b|need|want|looking|trying)\w.{{0,250}}{_I_ASK}",
    rf"{_LEAD}(?:{_LATER}[, ]{{1,2}})?{_I_ASK}.{{0,200}}?[,:] {{0,2}}(?:then )?(?!{_TELLS})\w",
    rf".{{0,120}}{_YOU}.{{0,80}}\b(?:always|never|at all times|{TIMES} i|{_LATER})\b",
    # Whenever something happens; about every answer; where a subject comes up.
    rf"{_LEAD}(?:whenever|(?:every|each|any) ?time)\b[^,:]{{1,120}}[,:] {{0,2}}(?:then )?(?!{_TELLS})\w",
    rf"{_LEAD}(?!{_TELLS})\w{{2,20}}\b.{{0,60}}\b(?:every|each|all|any)(?: of)?(?: your)?"
    r" (?:answers?|repl(?:y|ies)|responses?|messages?|summar(?:y|ies)|reports?)\b",
    rf"(?:.{{0,80}}{_YOU}|{_LEAD}(?!{_TELLS})\w).{{0,120}}\b(?:when(?:ever)?|if|(?:each|every|any) ?time) .{{1,60}}"
    r"\b(?:comes? up|(?:is|are) (?:the )?(?:subject|topic|mentioned|discussed|concerned|involved|at issue))\b",
    # German
    rf"{_LEAD}(?:immer|stets|nie(?:mals)?|ab (?:jetzt|sofort)|von (?:jetzt|nun) an|künftig|in zukunft"
    r"|jedes mal,? wenn ich|(?:immer,? )?wenn ich)\b(?! (?:ich|wir|es|er|der|die|das|war|ist)\b)",
    rf"{_LEAD}(?!(?:ich|wir|er|es|das|der|die)\b)\w{{2,30}}(?<!en)(?: (?:mir|mich|uns|bitte|dich)){{0,2}}"
    r" (?:immer|stets|nie(?:mals)?|ab (?:jetzt|sofort)|künftig)\b(?! ab\b)",
    rf"{_LEAD}\w{{2,30}}e? (?:mir|mich|uns) .{{1,60}}\b(?:immer|stets|nie(?:mals)?|künftig)\b",
    rf"{_LEAD}(?:immer,? )?wenn es um .{{1,60}} geht,",
    r".{0,120}\b(?:du (?:sollst|musst|darfst|solltest)|sie (?:sollen|müssen|sollten)|möchte,? dass (?:du|sie))\b.{0,80}"
    r"\b(?:immer|stets|nie(?:mals)?|künftig|jedes mal|wenn ich)\b",
    # French
    rf"{_LEAD}(?:toujours|ne jamais|jamais|désormais|dorénavant|à partir de maintenant|chaque fois que je"
    r"|(?:quand|lorsque|si) je (?:te |vous )?demande)\b(?! (?:je|nous|il|elle|le|la|les)\b)",
    rf"{_LEAD}(?!(?:je|nous|il|elle|on|le|la|les|ce|c['’]est|un|une)\b)(?:n['’]|ne )?(?:me |nous |m['’])?"
    r"\w{2,30}(?:-\w{2,5})? (?:plus )?(?:toujours|jamais)\b",
    # Spanish
    rf"{_LEAD}(?:siempre|nunca|a partir de ahora|de ahora en adelante|desde ahora"
    r"|(?:cada vez que|cuando)(?: yo)?(?: te| le)? (?:pregunt|pid)\w{1,4})\b(?! (?:he|hemos|es|está|el|la|los|las)\b)",
    rf"{_LEAD}(?!(?:yo|nosotros|él|ella|el|la|los|las|un|una|es|no)\b)\w{{2,30}} (?:siempre|nunca)\b",
    # Italian and Portuguese
    rf"{_LEAD}(?:sempre|mai|non .{{2,40}} mai|d['’]ora in poi|ogni volta che|quando (?:ti |vi )?chiedo"
    r"|a partir de agora|de agora em diante|toda vez que eu|sempre que eu|quando eu (?:te |lhe )?(?:pedir|perguntar))\b"
    r"(?! (?:ho|abbiamo|è|il|lo|la|eu|nós|foi|o|os|as)\b)",
    rf"{_LEAD}(?!(?:io|noi|lui|lei|il|lo|la|eu|nós|ele|ela|o|a|os|as|um|uma|é)\b)\w{{2,30}} (?:sempre|mai|nunca)\b",
    # Dutch
    rf"{_LEAD}(?:altijd|nooit|vanaf nu|voortaan|telkens als ik|(?:als|wanneer) ik (?:\w{{1,20}} ){{0,3}}vraag)\b"
    r"(?! (?:ik|we|wij|het|de)\b)",
    rf"{_LEAD}(?!(?:ik|we|wij|hij|zij|het|de|een|er|dit|dat)\b)\w{{2,30}}(?: (?:me|mij|ons))?"
    r" (?:altijd|nooit|voortaan)\b",
    # Russian
    rf"{_LEAD}(?:всегда|никогда|отныне|впредь|с этого момента|каждый раз,? когда я"
    r"|(?:когда|если) я (?:спр|про|по)\w{1,12})\b(?! (?:я|мы|он|она|оно|они|был\w?)\b)",
    rf"{_LEAD}(?:не )?\w{{2,20}}(?:й|йте|ите|и|ь|ьте|йся|йтесь)(?: (?:мне|меня|нам))?"
    r" (?:всегда|никогда|впредь|каждый раз)\b",
    r".{0,120}\b(?:ты долж\w{1,3}|вы должны|хочу,? чтобы (?:ты|вы))\b.{0,80}\b(?:всегда|никогда|впредь|каждый раз)\b",
    # Chinese
    r"(?:[请請]|麻[烦煩]|另外|[还還]有|[记記]住|注意)?[,，:：]?[请請]?[你您]?(?:以[后後]|今[后後]|[从從](?:现在|現在"
    r"|今|此)(?:起|[开開]始|以[后後])"
    r"|每[次当當](?:我|[提说說谈談][到起])|[当當]我.{0,30}[时時]|如果我|只要(?:我|[提说說谈談][到起])|永[远遠]"
    r"|始[终終]|一律|[务務]必|[绝絕][对對]?不|必[须須]|[总總]是"
    r"|禁止|不要再?|[别別]再)"
    r"(?!我(?![问問说說提要])|[他她它])",
    # Japanese, Hindi, Korean
    r"(?:今後|これから)(?:は|、).{2,}(?:ください|こと|て|な)。?\Z"
    r"|.{0,80}(?:必ず|絶対に|いつも|毎回).{1,80}(?:ください|こと|しろ|するな|しないで)",
    r"(?:कृपया )?(?:अब से|हमेशा|जब भी मैं)|.{0,80}कभी (?:भी )?.{0,80}(?:मत|न |नहीं)",
    # Arabic
    r"(?:من فضلك |رجاء،? |و)?(?:من الآن فصاعد\S*|دائم\S*|كلما|في كل مرة|أبد\S* لا|لا ت\S+ أبد|عندما أ(?:سأل|طلب)\S*)",
    r"(?:앞으로|항상|절대|매번|제가 .{1,40}때마다).{2,}(?:세요|십시오|마|해줘|줘|하라)[.!]?\Z",
)
_OPENED: Final = late(r"(?:, (?:so|therefore|also|und|daher|deshalb)|[:;]| [–—-]) (?=\w)|：")
_STANDS: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _SENTENCES)
_FORBIDDEN: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _FORBIDS)
_ASKS: Final = late(r"(?:[?？؟]|(?<=[\u0370-\u03ff])[;\u037e])[)\"'”’»」）]{0,3}\Z|[吗嗎呢么麼][。.]?\Z")
_POLITE: Final = late(
    rf"\A{_LEAD}(?:can|could|would|will) you\b.{{0,80}}\b(?:always|never|{_LATER}|{TIMES} i)\b", re.IGNORECASE
)
# What was forbidden may be again, or what was wanted need not be any more.
_PERMITS: Final = (
    r"\b(?:(?:is|are|it['’]s) (?:\w+ly |now |perfectly )?(?:fine|ok(?:ay)?|allowed|welcome|permitted|all ?right)"
    r"(?: (?:with|by|for) \w+)?"
    r"(?: (?:again|now|to|from now on|once more))+|feel free to|you(?:['’]re| are) (?:allowed|welcome) to|(?:not"
    r"|no longer|isn['’]t|aren['’]t) (?:needed"
    r"|necessary|required)"
    r"|no (?:more )?(?:\w+ ){1,4}(?:needed|necessary|required)|no need (?:to|for)|(?:can|may|could) (?:now "
    r"|also )?(?:leave|drop|skip|omit"
    r"|stop|ignore)|you may|no more|you (?:can|may) (?:\w{1,20} ){0,6}again|(?:kannst|darfst) (?:\w{1,20} ){0,6}wieder"
    r"|wieder (?:okay|ok|erlaubt|gut|in ordnung|gern\w*|möglich|willkommen)|(?:kannst"
    r"|darfst) (?:\w+ ){0,4}(?:weglassen|auslassen)"
    r"|(?:musst|brauchst) (?:\w+ ){0,6}nicht|nicht (?:mehr )?nötig|(?:peux|pouvez) (?:\w+ ){0,2}(?:de nouveau"
    r"|à nouveau)"
    r"|(?:plus|pas) besoin|n['’]est plus nécessaire|ya (?:no )?(?:puedes|hace falta|es necesari\w+|son necesari\w+"
    r"|tienes que)"
    r"|no hace falta"
    r"|puoi (?:di nuovo|ancora)|non (?:serve|devi|è necessario) più|(?:pode|podes) (?:\w+ )?(?:de novo|novamente"
    r"|voltar)"
    r"|não (?:precisa|é preciso) mais|mag (?:\w+ ){0,3}weer|hoef(?:t|je)? (?:\w+ ){0,4}niet|снова можно|можно снова"
    r"|(?:уже )?не (?:нужно|надо|обязательно))\b|(?:现在|又|以后)?可以(?=.*了)"
    r"|可以再|没必要|もう.{0,20}なくて(?:も)?(?:いい|大丈夫)"
    r"|また.{0,20}(?:てもいい|大丈夫)"
    r"|(?:يمكنك|بإمكانك) .*(?:من جديد|مرة أخرى|مجدد)|لا داعي|لم يعد (?:من الضروري|ضروري)"
)
_PERMITTING: Final = late(_PERMITS, re.IGNORECASE)
_WITHDRAWS: Final = late(
    r"\b(?:no longer|any ?more|(?<!n['’]t )(?<!not )(?:forget (?:the|about|my|what|that|all)"
    r"|cancel (?:the|my|that|all))|scrap|stop \w{1,20}ing"
    r"|(?:can|may) (?:\w{1,20} ){0,6}again|don['’]?t (?:have|need) to|needn['’]t"
    r"|nicht mehr|vergiss (?:die|das|den|alle|meine)|(?:kannst|darfst|könnt) (?:\w{1,20} ){0,6}wieder"
    r"|ne \w{1,20} plus|oublie[zr]? (?:la|le|les|ce|ma|mes)|ya no|olvida (?:la|el|lo|mi)"
    r"|puedes (?:\w{1,20} ){0,6}(?:otra vez|de nuevo)|dimentica (?:la|il|le)|non \w{1,20} più|esqueça (?:a|o|as|os)"
    r"|não \w{1,20} mais|niet meer|vergeet (?:de|het|mijn))\b"
    rf"|больше не (?:надо|нужно|обязательно)|(?<!не )забудь|можешь снова|отменя|{_PERMITS}|不用再"
    r"|不再需要|可以不用|取消"
    r"|忘[掉记記](?:那|这|這|所有|之前|刚才|我)",
    re.IGNORECASE,
)


def found(message: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a person's message that are standing instructions or take one back, for the host to keep
    with the message. One of a shared chat begins with its speaker's name in brackets. Any shape is taken."""
    if not is_request(message):
        return []
    text = ends(own_words(message), EDGE)
    if not _hints(text):
        return []
    told = ((by, said) for by, said in read(text, _QUOTE, sentences) if stands(said) or withdraws(said))
    return list(dict.fromkeys(f"[{by}] {said}" if by else said for by, said in told))[:_EACH]


def of(message: Mapping[str, Any]) -> list[str]:
    """Return the sentences that the host noted when the message was stored, or those of a fresh search."""
    noted = note_of(message).get("instructions")
    return [each for each in noted if isinstance(each, str)] if isinstance(noted, list) else found(message)


@lru_cache(maxsize=1024)
def stands(said: str) -> bool:
    """Say whether a sentence is a standing instruction."""
    if not _SHORTEST <= len(said) <= _LONGEST or not _hints(said):
        return False
    if _ASKS.search(said):
        return _POLITE.match(said) is not None
    if states_rule(said) or any(one.match(clause) for clause in _clauses(said) for one in _STANDS):
        return True
    forbids = any(one.match(clause) for clause in _clauses(said) for one in _FORBIDDEN)
    return forbids and _ONCE.search(said) is None


def _clauses(said: str) -> Iterator[str]:
    """Return a sentence, and its rest after a colon, or after a reason."""
    yield said
    opened = _OPENED.search(said)
    if opened:
        yield said[opened.end() :]


def _hints(text: str) -> bool:
    """Say whether a text may hold an instruction, or the end of one."""
    lowered = text.lower()
    # Their longest words are compared first: that takes a tenth of the time.
    if not _HINTING.isdisjoint(_LETTERS.findall(lowered)) and any(map(lowered.__contains__, _HINTS)):
        return True
    return not lowered.isascii() and any(map(lowered.__contains__, _FOREIGN_HINTS))


def withdraws(said: str) -> bool:
    """Say whether a sentence takes an instruction back."""
    return len(said) <= _LONGEST and _hints(said) and _WITHDRAWS.search(said) is not None and not _ASKS.search(said)


def permits(said: str) -> bool:
    """Say whether a sentence allows something again, or says that it need not be done."""
    return _PERMITTING.search(said) is not None


def parted(said: str) -> tuple[str, str]:
    """Return the name in brackets with which a line of a shared chat begins, "" for none, and the rest of the line."""
    named = _SPEAKER.match(said)
    return (named[1], said[named.end() :]) if named else ("", said)


def read(text: str, quote: re.Pattern[str], cut: Callable[[str], Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Yield (its speaker, "" for nobody named; the plain sentence) for each sentence of a text, as `cut` tells them.
    Blocks of code and lines that begin with a `quote` are left out."""
    by = ""
    for line in "\n".join(_FENCE.split(text)[::2]).splitlines():
        speaker, line = parted(line)
        by = speaker or by
        if line and not quote.match(line):
            for sentence in cut(line):
                yield by, " ".join(sentence.split()).lstrip("-*•– ")
