"""Which sentences tell something of the person who says them, and how much it is worth to remember.

Who somebody is, whom they have, what they must not have and what they decided is worth most; then what they do and have
as a rule; then what happened once, and what is said of anything else. Questions, requests, wishes and talk of the
moment tell nothing. A clause of theirs may: "since my brother moved to Lyon, which train …". Then it is kept alone, as
the best clause of a long sentence is. A sentence is read where each of its clauses begins, in a dozen languages.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gateway.context.statements import DENSE
from gateway.runtime.patterns import late

LASTING, DECIDED, PLAIN, NAMED, TOLD = 2.0, 1.5, 1.25, 0.75, 0.5
LONGEST: Final = 240  # characters of a sentence of which nothing is cut off; of twice as many one clause may be kept
_WHOLE: Final = 100  # characters of a sentence that is kept whole, whatever else it says
_LEAST: Final = 2  # words
_LEAST_TOLD: Final = 6  # words of a statement that is not about its speaker
_LEAST_DENSE: Final = 5  # characters of one in a script without spaces
_CLAUSES: Final = 8  # of a sentence that are read
_PART: Final = 3  # words of a clause that is kept alone; "I'm" is two

_LEAD: Final = (
    r"(?:[^\w¿]|\b(?:and|but|so|well|also|oh|ok(?:ay)?|hi|hello|hey|yes|yeah|no|thanks|btw|by the way|fyi|actually"
    r"|unfortunately|note that|remember(?: that)?|just so you know|for (?:context|the record|your information)"
    r"|correction|update|one more thing|you should know(?: that)?|because|since|as|that|now|given|und|aber|also"
    r"|übrigens"
    r"|hallo|ja|nein|leider|dass|weil|y|pero|además|hola|sí|que|et|mais|au fait|bonjour|oui|e|ma(?= (?:io|non|sono"
    r"|ho)\b)|anche|ciao|che|и|а|но"
    r"|кстати|да|нет|что)\b)*+"
)
_OPENS: Final = late(
    r"[,;:–—(،；，、!?？] ?|\b(?:and|but|so|because|since|as|that|for|with|und|aber|weil|da|denn|für|y|e|et|porque|para"
    r"|como|que|parce que|puisque|comme|car|pour|perché|per|потому что|так как|и|но|для|لأن) |因为|既然|なので",
    re.IGNORECASE,
)
_CLOSES: Final = late(
    r"[,;:–—)،；，!?？。](?! ?(?:who|whose|which|she|he|they|qui|dont|quien|котор\w+)\b)| (?:and|but|so|und|aber|y|et|e"
    r"|и|но) (?=(?:i|we|it|that|could|can|would|please|what|which|how|where|when|who"
    r"|ich|wir|kannst|was|wie|wo|je|tu|peux|quel|yo|puedes|qué|я|мы|что|как)\b)",
    re.IGNORECASE,
)
_BLOOD: Final = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc\w+|sons?|daughters?|kids?|child(?:ren)?|baby|mother|father|mom"
    r"|mum|dad|parents?|brothers?|sisters?|siblings?|twins?|twin \w+|triplets|uncle|aunt|nieces?|nephews?|cousins?"
    r"|grand\w+|family|god(?:mother|father|son|daughter|child)|\w+-in-law|step\w+|flatmate|roommate|ex|dogs?|cats?"
    r"|horse|pony|rabbits?|parrot)"
)
_KIN: Final = (
    rf"(?:{_BLOOD}|neighbours?|neighbors?|boss|doctor|dentist|therapist|accountant|landlord|landlady|name|nickname"
    r"|birthday|anniversary|job|profession|allerg\w+|diet|blood \w+|pronouns|mother tongue|native language|religion)"
)
_ILL: Final = (
    r"(?:allerg\w+|intoleran\w+|asthma|diabet\w+|migraines?|epilep\w+|dyslexi\w+|adhd|autis\w+|arthritis|coeliac"
    r"|celiac\w*|hay fever|tinnitus|vertigo|anxiety|wheelchair|hearing aids?|pacemaker|prosthe\w+|walking stick)"
)
_NEVER_EN: Final = (
    r"(?:eat|drink|drive|swim|fly|smoke|have|own|speak|tolerate|take|work|wear|touch|use|like|hear|stand|bear|digest"
    r"|stomach|read|cook|cycle|ride|dance|walk|climb|see (?:well|colou?rs|in the))"
)
_NUMBER: Final = r"(?:one|two|three|four|five|six|seven|\d+)"
_OFTEN: Final = r"(?:(?:always|usually|often|never|only|mostly|rarely|also|still|both|really) ){0,2}"
_LASTING: Final = (
    # English
    r"i(?:['’]m| am) (?:\w+ly )?(?:an?(?! (?:bit|little|lot|few|huge|big|moment|minute|mess|fan))|allergic|intolerant"
    r"|vegan|vegetarian|diabetic|pregnant|deaf|blind|colou?r\W?blind|\w+[- ](?:handed|footed|sighted|blind)|hard of"
    r"|coeliac|celiac|asthmatic|dyslexic|autistic|epileptic|married|engaged|divorced|single|widowed|retired|from|based"
    r"|born|\d+|afraid of|scared of|terrified of|on (?:\w+ ){0,2}(?:medication|diet|pills|insulin|nights?|shifts?|leave"
    r"|pension)|in (?:my|the) \w+ (?:year|form|grade)|not (?:a|an|allowed|able to (?:eat|drink|drive)))\b",
    r"(?:i|we)(?:['’]ve| have)? (?:never |finally |already |just )?(?:decided|chosen|chose|settled|picked|promised"
    r"|agreed"
    r"|grew|moved|quit|got married|married|retired|adopted|given up|gave up|lived|been \w+ for \w+ years)\b",
    rf"i (?:can(?:no|['’])t|don['’]?t|do not|never|no longer|won['’]t|am not able to) {_NEVER_EN}\b",
    r"i never\b",
    r"i (?:live|lived|work|worked|study|teach|speak|was born|suffer)\b",
    r"we (?:live|lived)\b",
    rf"(?:(?:i|we) )?(?:have|has|['’]ve got|use|get|with|wear) (?:\w+ ){{0,3}}{_ILL}\b",
    rf"(?:my|our) (?:\w+ ){{0,2}}(?:{_KIN}|{_ILL})\b",
    r"(?:my|our) (?:\w+ )?(?!(?:with|for|to|in|from|of|and|at|on)\b)\w+,? (?-i:(?:Mrs?\. |Dr\. )?[A-Z][a-zß-ÿ]{2,})\b",
    rf"(?:i|we)(?:['’]ve)? (?:have|got|own|adopted|keep)(?: got)? (?:an?|no|{_NUMBER}) (?:\w+ ){{0,2}}{_KIN}\b",
    r"(?:please )?(?:call me|i go by)\b",
    rf".{{1,60}}\b(?:is|was|are|were) (?:my|our) {_KIN}\b",
    r".{1,60}\b(?:gives?|makes?) me (?:an? )?(?:rash|hives|sick|ill|sneeze|itch|headache|migraine|panic)",
    # German
    r"ich (?:bin (?!(?:mir|gespannt|gerade|nicht sicher|wieder|da\b|noch|dabei|froh|müde|dran|genervt|unsicher|langsam"
    r"|gestern|heute|sicher|fertig|so|etwas|ein bisschen|sehr|total|völlig))|heiße|wohne|lebe|arbeite|studiere|vertrage"
    r"|esse (?:kein|nie)|trinke (?:kein|nie)|fahre kein|rauche|hasse|habe (?:noch )?nie\b|habe (?:mich (?:für|gegen)"
    r"|\w+ (?:kinder|söhne|töchter|hunde?|katzen?)))",
    r"(?:mein|unser)e?[rsnm]? (?:\w+ )?(?:frau|mann|sohn|söhne|tochter|töchter|kind|kinder|mutter|vater|mama|papa"
    r"|eltern"
    r"|brüder|bruder|schwester|oma|opa|groß\w+|enkel\w*|neffe|nichte|onkel|tante|cousine?|schwieger\w+|freundin|hund"
    r"|katze|kater|name|chef|geburtstag|partner\w*|nachbar\w*|allergie|muttersprache)\b",
    # Spanish and Portuguese
    r"(?:yo )?(?:soy|vivo|trabajo en|estudio|me llamo|no (?:como|bebo|soporto|aguanto|tolero|conduzco|fumo)"
    r"|no puedo (?:comer|beber)|tengo (?:alergia|\w+ (?:hij|perr|gat|herman|años))|he decidido|decidí|nací)\b",
    r"(?:mis?|nuestr[oa]s?) (?:mujer|esposa|marido|esposo|hij[oa]s?|madre|padres?|mamá|papá|herman[oa]s?|abuel[oa]s?"
    r"|suegr[oa]s?|ti[oa]s?|prim[oa]s?|sobrin[oa]s?|niet[oa]s?|perr[oa]s?|gat[oa]s?|nombre|jef[ea]|cumpleaños|novi[oa]"
    r"|pareja|vecin[oa]|alergia)\b",
    r"(?:eu )?(?:sou|moro|me chamo|não (?:como|bebo)|minha (?:mãe|filha|mulher|irmã)|meu (?:pai|filho|marido|irmão))\b",
    # French
    r"je (?:suis (?!(?:désolé|sûr|content|d['’]accord|en train|prêt|là|de retour|curieu|fatigué|perdu|inqui|un peu"
    r"|pas sûr"
    r"|très|allé|passé))|m['’]appelle|vis|travaille|ne (?:mange|bois|supporte|conduis|fume)|porte|déteste"
    r"|ne peux pas (?:manger|boire)|parle)",
    r"j['’](?:habite|étudie|enseigne|ai décidé|ai choisi|ai \d+ ans|ai (?:un|une|deux|trois) (?:fils|fille|enfant|chien"
    r"|chat))",
    r"(?:mon|ma|notre|mes|nos) (?:femme|mari|fils|filles?|enfants?|mère|père|parents?|frères?|s[oœ]e?urs?|grand\W\w+"
    r"|tante"
    r"|oncle|cousine?|nièce|neveu|beau\W\w+|belle\W\w+|chien\w*|chat\w*|nom|patron\w*|anniversaire|copain|copine"
    r"|compagn\w+|voisine?|allergie)\b",
    # Italian
    r"(?:sono (?!(?:contento|d['’]accord|pronto|qui|sicur|stanc|un po))|vivo|lavoro|mi chiamo|non (?:mangio|bevo"
    r"|sopporto)"
    r"|ho deciso|ho \d+ anni)",
    r"(?:mi[ao]|nostr[oa]) (?:moglie|marito|figli[oa]|madre|padre|fratello|sorella|nonn[oa]|cane|gatt[oa]|nome|capo"
    r"|compleanno)\b",
    # Dutch
    r"ik (?:ben (?:een|allergisch|\d+|getrouwd)|heet|woon|werk|eet geen|drink geen)\b"
    r"|mijn (?:vrouw|man|zoon|dochter|moeder|vader|broer|zus|hond|kat|naam)\b",
    # Russian
    r"я (?:живу|работаю|учусь|родил|не (?:ем|пью|люблю|переношу|курю|вожу)|решил|говорю на|аллерг|ношу|левша)",
    r"(?:мо\w{1,3}|наш\w{0,2}) (?:\w+ )?(?:жен|муж|сын|доч|дет|мам|мат|пап|отец|отц|брат|сестр|бабушк|дедушк|внук|внучк"
    r"|тёт|дяд|племянни|тёщ|свекров|собак|кот|кошк|имя|имени|день рождения|начальни)\w*",
    r"(?:меня зовут|мне \d+|у (?:меня|нас) (?:есть |аллергия|двое|трое|\w+ (?:дет|сын|дочер|собак|кош|кот))"
    r"|у мо\w{1,2} \w+ )",
    # Chinese and Japanese
    r"我(?:是(?!说|想|不是)|叫|住|在\S{1,8}(?:工作|上班|上学|长大)|对\S{1,12}过敏|不(?:吃|喝|能吃|能喝|会开|抽)"
    r"|有\S{0,4}(?:孩子|儿子|女儿|猫|狗)|决定|已经决定|今年\d)",
    r"(?:我|我们|咱)(?:家)?的?(?:妻子|老婆|太太|丈夫|老公|先生|儿子|女儿|孩子|妈妈|母亲|爸爸|父亲|哥哥|弟弟|姐姐"
    r"|妹妹|爷爷|奶奶|外公|外婆|狗|猫|名字|老板|生日|男朋友|女朋友)",
    r"(?:私|僕|俺|わたし)(?:は|の(?:妻|夫|娘|息子|子供|母|父|兄|弟|姉|妹|犬|猫|名前|誕生日))"
    r"|(?:うちの|私たちの)?(?:妻|夫|娘|息子|母|父|祖母|祖父|犬|猫)(?:は|の名前は|が)",
    # Arabic
    r"(?:أنا (?!لست متأكد|أفكر|أريد|أحاول|أبحث|هنا|آسف)|أسكن|أعيش|أعمل|أدرس|أعاني|اسمي|عمري|ولدت|قررت"
    r"|لا (?:آكل|أشرب|أحب|أتحمل|أدخن|أستطيع (?:أكل|شرب|القيادة))|لدي (?:حساسية|\S+ (?:أطفال|أولاد|بنات))|عندي حساسية"
    r"|(?:ابن|ابنت|بنت|زوج|زوجت|أم|أب|والد|والدت|أخ|أخت|جد|جدت|خال|خالت|عم|عمت|كلب|قطت)ي )",
)
# Verbs of the moment, of wishes and of doubts.
_TENTATIVE: Final = (
    r"(?:(?:i|we)(?: just| really| honestly| still)?(?:['’](?:m|re|d|ll|ve|m not)| am| are| was| were| would| will"
    r"| could| should| might| may| can| have"
    r"| had| do| don['’]?t| did| didn['’]?t)? (?:not |\w+ly |also |just |still |kinda |kind of |sort of |a (?:bit"
    r"|little) "
    r"|so |always |now |never |even |ever |very |too |as ){0,3}(?:think|thought|thinking|consider\w*|debat\w+|wonder\w*"
    r"|hop(?:e|ed|ing)|guess|mean|meant|know|knew|understand|understood|believe|suppose\w*|want\w*|need\w*|wish\w*"
    r"|see(?! (?-i:[A-Z]))|saw|tried|try|trying|ask\w*|look(?:ed|ing)?|worri\w+|worry\w*|concern\w+|nervous|excited"
    r"|unsure|sure|torn|curious"
    r"|confused|stuck|tired|ready|back|here|sorry|glad|happy|fine|feel\w*|felt|plan\w*|aim\w*|struggl\w+|helping"
    r"|reading"
    r"|writing|working on|getting|going|about to|asked|told|tempted|suspicious|aware|convinced|annoyed|upset"
    r"|overwhelmed"
    r"|disappointed|interested|flattered|exhausted|motivated|sceptical|skeptical|puzzled|bored|lost|done|appreciate"
    r"|agree"
    r"|care|mind|remember|forgot|realis\w+|realiz\w+|notic\w+|get (?:it|that|the|what|a|an)|got (?:it|that|the)|like to"
    r"|love to|hate to|rather|prefer (?:to|if|that)|must|have to|had to|has to|assum\w+|expect\w*|doubt\w*|end up"
    r"|keep)\b"
    r"|(?:i|we)(?:['’](?:d|ll)| would| will| could| should| might| may| can)\b"
    r"|(?:i|we) (?:have|['’]ve got) (?:an?(?:other)? )?(?:\w+ )?(?:question|problem|issue|request|idea|feeling|doubt"
    r"|look"
    r"|moment|minute|few|couple|time)\b"
    r"|(?:i|we)(?:['’]ve| have)(?: got)? (?:\w+ ){1,2}(?:minutes|hours|days|weeks|months) "
    r"|(?:my|our) (?:bad|mistake|apolog\w+|question|problem|guess|point|pleasure|god|goodness|turn|idea|goal)\b"
    r"|(?:ich|wir) (?:denke|glaube|meine|hoffe|möchte|will|wollte|weiß|brauche|verstehe|frage|hätte|würde|finde|bin"
    r"|suche"
    r"|überlege|versuche|muss|müsste|kann|könnte|sollte|sehe|habe? (?:eine|noch|keine) (?:frage|ahnung|idee))\b"
    r"|(?:mein|unser)e?[rsnm]? (?:frage|problem|fehler|idee|plan)\b"
    r"|(?:je (?:pense|crois|sais|veux|voudrais|me demande|cherche|dois|peux|comprends|ne (?:sais|comprends|vois))|j['’]"
    r"(?:aimerais|espère|essaie|ai (?:peur|besoin|envie|hâte|une question|un problème|un doute|\d+ (?:jours|heures"
    r"|minutes))))\b"
    r"|(?:mon|ma) (?:question|problème|erreur|idée)\b"
    r"|(?:yo )?(?:(?:no )?(?:quiero|necesito|creo|pienso|espero|entiendo|sé|busco|puedo|veo)|estoy (?:pensando"
    r"|buscando)"
    r"|me (?:pregunto|preocupa|gustaría)|tengo (?:que|una? (?:pregunta|duda|problema)))\b"
    r"|(?:mi) (?:pregunta|problema|error)\b|(?:vorrei|voglio|penso|credo|spero|devo|ho (?:una? )?(?:domanda|problema"
    r"|dubbio)"
    r")\b|(?:il mio|la mia) (?:domanda|problema)\b"
    r"|я (?:не (?:уверен|знаю|думаю|понимаю)|думаю|хочу|могу|понимаю|надеюсь|пытаюсь|ищу|вижу|тут|боюсь|прошу|жду)"
    r"|у (?:меня|нас) (?:есть )?(?:вопрос|проблема|идея)|мо[йя] (?:вопрос|проблема|ошибка)"
    r"|我(?:们)?(?:想|觉得|认为|希望|需要|在考虑|最近在|有个?问题|有点|不(?:太|知道|明白|懂|确定))"
    r"|أنا (?:أفكر|أريد|أحاول))"
)
# What happened once: a past tense of the speaker's.
_ONCE: Final = (
    r"(?:(?:i|we|(?:my|our)(?: (?!(?:is|are|has|have)\b)\w+){1,2}?)(?:['’](?:ve|d)| have| has| had| was| were"
    r"| did)? (?:\w+ly |also |just |even |already )?"
    r"(?:\w{2,}ed|been|got(?! (?:an?|no|two|three|four|\d+)\b)|haven['’]?t|didn['’]?t|went|gone|had|was|were|did|done"
    r"|said|told|saw|seen|made|took|taken|came|found|gave|given"
    r"|left|put|ran|read|sat|sent|spent|slept|spoke|wrote|written|bought|brought|broke|ate|eaten|drank|drove|forgot"
    r"|heard"
    r"|held|kept|knew|lost|met|paid|sold|set|shut|sang|stood|stole|swam|taught|threw|woke|wore|won|began|became|built"
    r"|caught|cut|drew|fell|fought|flew|hid|hurt|led|let|meant|showed|shook|stuck|understood|rewrote|rode|thinks?"
    r"|says?|wants?)\b"
    r"|(?:ich|wir) (?:hab\w*|bin|sind) .*(?:ge\w+(?:t|en)|\w{2,}iert|(?:be|ver|er|ent)\w+(?:t|en))\b"
    r"|(?:ich|wir) (?:war|waren|hatten?|ging\w*|kam\w*|sah\w*)\b"
    r"|(?:j['’]ai|nous avons|on a|je suis|nous sommes) (?:\w+ ){0,2}\w+(?:é|ée|és|i|is|it|u|us)\b"
    r"|(?:he|hemos) (?:\w+ ){0,2}\w+[aií]do\b|(?:yo )?(?:me )?\w{2,}(?:é|í|imos|amos)\b"
    r"|(?:я|мы) (?:\w+ )?(?:не )?\w{2,}(?:л|ла|ли|лся|лась)\b|昨天|昨日)"
)
_TODAY: Final = late(
    r"\b(?:today|yesterday|tomorrow|tonight|this (?:morning|afternoon|evening|week\w*|time)|last (?:night|time|week\w*)"
    r"|next week|right now|at the moment|lately|ago|heute|gestern|morgen|gerade|hier soir|aujourd['’]hui|demain|ayer"
    r"|hoy"
    r"|вчера|сегодня|завтра)\b|昨天|今天|明天|刚才|最近|昨日|今日|明日|أمس|اليوم|غدا",
    re.IGNORECASE,
)
_PLAIN: Final = (
    rf"(?:i|we) {_OFTEN}(?!(?:am|was|were|would|will|could|should|might|may|can|do|did|don|didn|have (?:to|it|\w+ed)"
    rf"|had)\b)"
    r"[a-z]",
    r"(?:i|we)(?:['’]ve got| have) (?!to\b|\w+ed\b|been\b)\w|i(?:['’]ve| have) never\b",
    rf"(?:we are|we['’]re) (?:an? |from |{_NUMBER}\b)",
    r"(?:mine|ours|(?:my|our)(?: [\w-]+){1,3}?) (?:is|are|has|have|can(?:no|['’])t|do(?:es)?n['’]t|\w+[^su\W]s)\b",
    r"(?:ich|wir) \w",
    r"(?:mein|unser)e?[rsnm]? \w",
    r"(?:tengo|tenemos|llevo|me gusta|no me gusta|prefiero|odio|detesto|toco|juego|hablo|uso|conduzco|duermo|cuido)\b",
    r"(?:mis?|nuestr[oa]s?) \w",
    r"(?:j['’]ai|nous avons|on a|j['’]aime|je n['’]aime|je \w+|j['’]\w+)\b",
    r"(?:mon|ma|mes|notre|nos) \w",
    r"(?:ho|abbiamo|preferisco|odio|suono|parlo)\b",
    r"(?:il mio|la mia|i miei|le mie) \w",
    r"(?:ik|wij?) \w|(?:mijn|onze|ons) \w",
    r"(?:у (?:меня|нас) |(?:я|мы) (?:не )?(?:люблю|предпочитаю|купил|езжу|\w+[юу](?:сь)?\b))",
    r"(?:мо\w{1,3}|наш\w{0,2}) \w",
    r"(?:我|我们)(?:有|喜欢|不喜欢|讨厌|更喜欢|买了|每\S{1,3}|选了|最喜欢|怕|会|用|家)",
    r"(?:うち|私たち|我が家)(?:の|は)",
    r"(?:أحب|أكره|أفضل|ألعب|أعزف|أتكلم|لدي|عندي|لدينا|عندنا) ",
)
_ASKS: Final = late(r"[?？؟;][\s)\"'”’»」）]*\Z|\A\W*(?:could|can|would|will|do|does) (?:you|we|i)\b", re.IGNORECASE)
# What is asked for, and what only keeps a talk going.
_REQUESTS: Final = late(
    rf"\A{_LEAD}(?:please|pls|tell|show|give|write|make|add|find|list|explain|help|check|look|go|try|don['’]?t|do|let"
    r"|use|put|send|draft|remind|create|set|open|read|translate|summari[sz]e|compare|describe|what|how|why|when|where"
    r"|which"
    r"|who|any|maybe|suggest|recommend|book|order|keep|take|turn|play|search|run|fix|see|say|speak|think|imagine|pick"
    r"|choose|bitte|mach|schreib|zeig|erklär|gib|such|finde?|hilf|kannst|könntest|wie|was|wann|wo|warum|welche|schau"
    r"|erinnere?|übersetze?|aide|écris|donne|montre|fais|peux|pourrais|comment|quel|où|pourquoi|note|explique"
    r"|ayúdame|escribe|dame|haz|puedes|cómo|qué|dónde|cuál|busca|explica|ponme|aiutami|scrivi|dammi|fammi|puoi|come"
    r"|cosa|dove|помоги|напиши|покажи|сделай|можешь|можно|как|что|где|почему|когда|скажи|объясни|давай"
    r"|thank|thx|sounds|great|cool|nice|perfect|awesome|wow|haha|lol|good (?:morning|night|idea|point)|makes sense"
    r"|sure|right|true|exactly|never mind|sorry|genau|danke|super|gut|klar|weiter|vale|gracias|claro|merci|d['’]accord"
    r"|moment|keine ahnung|espera|no (?:estoy|sé)|bonne|grazie|va bene|perfetto|спасибо|хорошо|ладно|понятно"
    r"|отлично|супер)\b"
    r"|\A\W*(?:请|帮|给我|能不能|可以|怎么|什么|为什么|哪|告诉|写|好的?|谢谢|是的|嗯|继续|再给|ありがとう|はい"
    r"|هل|كيف|ماذا|متى|أين|لماذا|من فضلك|شكرا|حسنا|اكتب|أعطني|ساعدني|اشرح|ابحث)"
    r"|(?:ください|教えて|して)[。！!]*\Z",
    re.IGNORECASE,
)
_MOMENT: Final = late(rf"{_LEAD}{_TENTATIVE}", re.IGNORECASE)
_PASSED: Final = late(rf"{_LEAD}{_ONCE}", re.IGNORECASE)
_NAMED: Final = late(r"\d|(?<=[^.!?\s]\s)[A-ZÄÖÜÉÈÀА-Я][\w’'-]+")
_IS_LASTING: Final = late(rf"{_LEAD}(?:{'|'.join(_LASTING)})", re.IGNORECASE)
_IS_PLAIN: Final = late(rf"{_LEAD}(?:{'|'.join(_PLAIN)})", re.IGNORECASE)
_LEADING: Final = late(_LEAD, re.IGNORECASE)
_WORD: Final = late(r"\w+")
# A past tense that tells of a state.
_STATE: Final = late(
    r"\b(?:decided|chosen|chose|settled|picked|promised|agreed|grew|moved|quit|married|retired|adopted|born|lived"
    r"|worked"
    r"|died|passed away|never|given up|gave up|divorced|graduated|entschieden|décidé|choisi|decidido|decidí|nací|deciso"
    r"|решил\w*|родил\w*|决定)\b|决定",
    re.IGNORECASE,
)

_CHOICE: Final = late(
    r"\b(?:decided|chosen|chose|settled|picked|promised|agreed|für|gegen|décidé|choisi|decidido|decidí|deciso|решил)"
    r"|决定",
    re.IGNORECASE,
)


class Said(NamedTuple):
    """What a sentence tells, in its own words, and its worth."""

    text: str
    worth: float


def told(said: str) -> Said | None:
    """Return what a sentence tells: all of it, or one clause; None if it tells nothing."""
    dense = DENSE.search(said) is not None
    words = len(said.split())
    if len(said) > 2 * LONGEST or (words < _LEAST and not dense):
        return None
    asks = _ASKS.search(said) is not None
    starts = [0]
    for opened in _OPENS.finditer(said):
        if len(starts) == _CLAUSES:
            break
        starts.append(opened.end())
    worth, start = max((_worth(said, each), -each) for each in starts)
    if worth:
        whole = not asks and len(said) <= _WHOLE and not _MOMENT.match(said)
        text = said if whole else _clause(said, -start)
        return Said(text, min(worth, NAMED) if _TODAY.search(text) else worth) if _enough(text, dense=dense) else None
    if asks or len(said) > LONGEST or _REQUESTS.search(said) or _MOMENT.match(said):
        return None
    if dense:
        return Said(said, NAMED if _NAMED.search(said) else TOLD) if len(said) >= 2 * _LEAST_DENSE - 1 else None
    if words > _LEAST and _NAMED.search(said):
        return Said(said, NAMED)
    return Said(said, TOLD) if words >= _LEAST_TOLD else None


def worth(said: str) -> float:
    """Return `LASTING`, `PLAIN`, `NAMED` or `TOLD` for a sentence that tells something, else 0.0."""
    found = told(said)
    return found.worth if found else 0.0


def _worth(said: str, start: int) -> float:
    """Return what the clause of a sentence that begins at `start` is worth as a statement of its speaker about
    themselves, 0.0 if it is none."""
    lasting = _IS_LASTING.match(said, start)
    if not lasting and (_MOMENT.match(said, start) or not _IS_PLAIN.match(said, start)):
        return 0.0
    once = _PASSED.match(said, start)
    if once and not _STATE.search(said, start, once.end()):
        return NAMED if lasting else TOLD
    if lasting:
        return DECIDED if _CHOICE.search(lasting[0]) else LASTING
    return PLAIN


def _clause(said: str, start: int) -> str:
    """Return the clause of a sentence that begins at `start`, to its first end behind enough words."""
    start = _LEADING.match(said, start).end()  # type: ignore[union-attr]
    end = next(
        (each.start() for each in _CLOSES.finditer(said, start) if _enough(said[start : each.start()], dense=None)),
        len(said),
    )
    return said[start:end].strip(" .")


def _enough(text: str, *, dense: bool | None) -> bool:
    """Say whether a clause says enough to stand alone."""
    if dense if dense is not None else DENSE.search(text):
        return len(text) >= _LEAST_DENSE
    return sum(1 for _ in _WORD.finditer(text)) >= _PART
