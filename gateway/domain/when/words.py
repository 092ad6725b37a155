"""The words for times in English, German, Spanish, French, Russian and Chinese, as patterns that know no case.

No pattern here has a named group, so that `when` can put several together.
"""

from __future__ import annotations

from typing import Final

from gateway.domain.recurrence import Unit

# "in two hours", "через два часа", "两小时后"
NUMBERS: Final[dict[int, str]] = {
    1: "an?|one|eine[rmn]?|ein|un[ae]?|один|одну|一",
    2: "two|a couple of|zwei|dos|deux|дв[ае]|二|两|兩",
    3: "three|drei|tres|trois|три|三",
    4: "four|vier|cuatro|quatre|четыре|四",
    5: "five|fünf|cinco|cinq|пять|五",
    6: "six|sechs|seis|шесть|六",
    7: "seven|sieben|siete|sept|семь|七",
    8: "eight|acht|ocho|huit|восемь|八",
    9: "nine|neun|nueve|neuf|девять|九",
    10: "ten|zehn|diez|dix|десять|十",
    11: "eleven|elf|once|onze|одиннадцать|十一",
    12: "twelve|zwölf|doce|douze|двенадцать|十二",
    15: "fifteen|fünfzehn|quince|quinze|пятнадцать|十五",
    20: "twenty|zwanzig|veinte|vingt|двадцать|二十",
    25: "twenty[- ]five|fünfundzwanzig|veinticinco|vingt-cinq|двадцать пять|二十五",
    30: "thirty|dreißig|treinta|trente|тридцать|三十",
    40: "forty|vierzig|cuarenta|quarante|сорок|四十",
    45: "forty[- ]five|fünfundvierzig|cuarenta y cinco|quarante-cinq|сорок пять|四十五",
    50: "fifty|fünfzig|cincuenta|cinquante|пятьдесят|五十",
}

UNITS: Final[dict[Unit | str, str]] = {
    "second": r"seconds?|secs?|sekunden?|segundos?|secondes?|секунд[уы]?|сек|秒钟?|秒鐘|s",
    "minute": r"minutes?|mins?|minuten?|minutos?|минут[уы]?|мин|分钟|分鐘|分|m",
    "hour": r"hours?|hrs?|stunden?|std|horas?|heures?|час(?:а|ов)?|ч|个?小时|個?小時|个?钟头|個?鐘頭|h",
    "day": r"days?|tage?n?|d[ií]as?|jours?|день|дня|дней|天|d",
    "week": r"weeks?|wochen?|semanas?|semaines?|недел[юиьяе]|недель|个?星期|個?星期|个?礼拜|個?禮拜|周|週|w",
    "month": r"months?|monate?n?|mes(?:es)?|mois|месяц(?:а|ев)?|个月|個月",
    "year": r"years?|jahre?n?|años?|ans|ann[ée]es?|год(?:а)?|лет|年",
}

HALF_HOUR: Final = (
    "half an hour|half hour|einer halben stunde|(?:eine )?halbe stunde|media hora|(?:une )?demi-heure|полчаса"
    "|半个?小时|半個?小時"
)
# Other lengths of time, in minutes.
PARTS_OF_AN_HOUR: Final[dict[int, str]] = {
    30: HALF_HOUR,
    15: "(?:a )?quarter of an hour|(?:eine[r]? )?viertelstunde|(?:un )?cuarto de hora|(?:un )?quart d['’]heure"
    "|четверть часа|一刻[钟鐘]",
    45: "three[- ]quarters of an hour|(?:eine[r]? )?dreiviertelstunde|tres cuartos de hora|trois quarts d['’]heure"
    "|三刻[钟鐘]",
    90: "anderthalb stunden|hora y media|полтора часа",
}
# "two and a half hours", "zweieinhalb Stunden"; "deux heures et demie"
AND_A_HALF_BEFORE: Final = r"\s*and a half\s+|\s*½\s*|\s*einhalb\s+|\s+с половиной\s+|\s*[个個]?半"
AND_A_HALF_BEHIND: Final = "and a half|et demie?|y media"
IN: Final = "in|dentro de|en|dans|через"
AFTERWARDS: Final = "from now|后|後|之后|之後|以后|以後"
AND: Final = "and|und|y|et|и"

# The number of an hour behind "at". French has its own word behind the number: "à trois" alone is no time.
HOUR_NUMBERS: Final = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    "|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
    "|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce"
    "|два|три|четыре|пять|шесть|семь|восемь|девять|десять|одиннадцать|двенадцать"
)
HOURS_IN_FULL: Final = f"{HOUR_NUMBERS}|une|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze"
# Before the number of an hour; how many minutes are added to it.
PARTS_OF_HOUR: Final[dict[int, str]] = {
    30: "half past",
    15: "(?:a )?quarter (?:past|after)|viertel nach",
    -15: "(?:a )?quarter (?:to|before|of)|viertel vor",
    -30: "halb",
}
# The same behind "at": "at ten past nine", "um fünf vor zwölf". Without "at" these may be hours: "five to nine".
MINUTES_OF_HOUR: Final[dict[int, str]] = {
    sign * minutes: rf"(?:{NUMBERS[minutes]}|{minutes})(?: minutes?| minuten?)? (?:{where})"
    for minutes in (5, 10, 20, 25)
    for sign, where in ((1, "past|after|nach"), (-1, "to|before|vor"))
}
# Behind the number of an hour: "a las seis y media".
PARTS_OF_HOUR_BEHIND: Final[dict[int, str]] = {
    30: "y media|et demie?",
    15: "y cuarto|et quart",
    -15: "menos cuarto|moins le quart",
    **{minutes: f"y (?:{NUMBERS[minutes]})" for minutes in (5, 10, 20, 25)},
    **{-minutes: f"(?:menos|moins) (?:{NUMBERS[minutes]})" for minutes in (5, 10, 20, 25)},
}

AT: Final = "at|by|around|@|um|gegen|(?:a|sobre|hacia) las?|à|vers|в|к|около|以"
OF_DAY: Final[dict[str, str]] = {  # what stands behind or, in Chinese, before an hour
    "am": r"a\.?m\b\.?|in the morning|morgens|früh|vormittags|de la mañana|du matin|утра|ночи",
    "pm": (r"p\.?m\b\.?|in the afternoon|nachmittags|de la tarde|de l['’]après-midi|дня"),
    "evening": "in the evening|abends|du soir|вечера",
    "night": "at night|de la noche",
}
OF_DAY_BEFORE: Final[dict[str, str]] = {"am": "早上|早晨|上午|凌晨|清晨", "pm": "下午|晚上|傍晚|晚间|晚間"}
HOURS: Final = r"uhr|o['’]?clock|heures?|h|час(?:а|ов)?|点钟?|點鐘?|时|時(?!間)"  # behind the number of an hour

THIS: Final = "this|diese[nrs]?|est[ae]|ce(?:t(?:te)?)?|эт(?:от|у|ой|о)|[这這本]个?"  # "this evening", "this friday"
# Times of day that have a name, as hour and minute.
NAMED_TIMES: Final[dict[str, str]] = {
    "12:00": "noon|midday|mittags?|zu mittag|mediod[ií]a|al mediod[ií]a|midi|полдень|中午|正午",
    "00:00": "midnight|mitternachts?|medianoche|minuit|полночь|午夜|半夜",
}
# Parts of a day, with the time that each means alone: "tomorrow evening". Beside an hour, they say which half of the
# day the hour is in: "tomorrow evening at 8".
PARTS_OF_DAY: Final[dict[str, str]] = {
    "09:00": (
        "in the morning|morning|früh|morgens?|vormittags?|am morgen|am vormittag|por la mañana|le matin|matin|утром"
        "|早上|上午"
    ),
    "15:00": "in the afternoon|afternoon|nachmittags?|am nachmittag|por la tarde|après-midi|днём|днем|下午",
    "19:00": "in the evening|evening|abends?|am abend|le soir|soir|вечером|晚上|傍晚",
    "21:00": "at night|night|nachts|por la noche|la nuit|ночью|夜里|夜裡",
}
EVERY_PART_OF_DAY: Final[dict[str, str]] = {  # behind "every"
    "09:00": "mornings?|morgen|vormittag|mañanas?|matins?|утро|早|早上|早晨|上午",
    "15:00": "afternoons?|nachmittag|tardes?|après-midis?|下午",
    "19:00": "evenings?|abend|soirs?|вечер|晚|晚上|傍晚",
    "21:00": "nights?|nacht|noches?|nuits?|ночь|夜",
}

DAYS: Final[dict[int, str]] = {  # from today
    -1: "yesterday|gestern|ayer|вчера|昨天|昨日",
    0: "today|heute|hoy|aujourd['’]hui|сегодня|今天|今日",
    1: "tomorrow|tmrw|morgen|mañana|demain|завтра|明天|明日|明早上?",
    2: "(?:the )?day after tomorrow|übermorgen|pasado mañana|après-demain|послезавтра|后天|後天",
    3: "大后天|大後天",
}
AMOUNTS: Final = "euros?|eur|usd|chf|dollars?|kg|g|km|m|l|liters?|litros?|litres?|prozent|percent"  # behind a number
ORDINALS_OF_HOURS: Final = "перв|втор|трет|четв|пят|шест|седьм|восьм|девят|десят|одиннадц|двенадц"  # полвосьмого
NIGHTS: Final[dict[int, str]] = {0: "tonight|heute nacht|esta noche|cette nuit|今晚", 1: "明晚"}  # from today

WEEKDAYS: Final[tuple[str, ...]] = (
    r"mon(?:days?)?|montags?|lunes|lundis?|понедельник(?:ам)?|пн|(?:周|週|星期|礼拜|禮拜)一",
    r"tue(?:s|sdays?)?|dienstags?|martes|mardis?|вторник(?:ам)?|вт|(?:周|週|星期|礼拜|禮拜)二",
    r"wed(?:s|nesdays?)?|mittwochs?|mi[ée]rcoles|mercredis?|сред[уаы]м?|средам|ср|(?:周|週|星期|礼拜|禮拜)三",
    r"thu(?:rs|rsdays?)?|donnerstags?|jueves|jeudis?|четверг(?:ам)?|чт|(?:周|週|星期|礼拜|禮拜)四",
    r"fri(?:days?)?|freitags?|viernes|vendredis?|пятниц[уаы]м?|пятницам|пт|(?:周|週|星期|礼拜|禮拜)五",
    r"sat(?:urdays?)?|(?:at |on |over )?(?:the )?weekend|wochenende|week-end|fin de semana"
    r"|周末|週末|samstags?|sonnabends?|s[áa]bados?|samedis?|суббот[уаы]м?|субботам|сб|(?:周|週|星期|礼拜|禮拜)六",
    r"sun(?:days?)?|sonntags?|domingos?|dimanches?|воскресень[еяюем]+|вс|(?:周|週|星期|礼拜|禮拜)[日天]",
)
NEXT: Final = "next|nächsten?r?s?|kommenden?|pr[óo]xim[oa]|prochaine?|следующ(?:ий|ую|ее)|下个?|下個?"
NEXT_BEHIND: Final = "prochaine?|pr[óo]xim[oa]|que viene"  # "mardi prochain"
NEXT_WEEK: Final = (
    "next week|(?:in der )?nächsten? woche|kommenden? woche|la semaine prochaine|la pr[óo]xima semana"
    "|la semana que viene|на следующей неделе|下个?(?:周|星期|礼拜)|下個?(?:週|星期|禮拜)"
)
ON: Final = "on|by|am|el|los|le|les|во?|по"

MONTHS: Final[tuple[str, ...]] = (
    "jan(?:uary|uar|vier)?|enero|января",
    "feb(?:ruary|ruar)?|febrero|février|февраля",
    "mar(?:ch)?|märz|marzo|mars|марта",
    "apr(?:il)?|abril|avril|апреля",
    "may|mai|mayo|мая",
    "june?|juni|junio|juin|июня",
    "july?|juli|julio|juillet|июля",
    "aug(?:ust)?|agosto|août|августа",
    "sept?(?:ember)?|septiembre|septembre|сентября",
    "oct(?:ober)?|okt(?:ober)?|octubre|octobre|октября",
    "nov(?:ember)?|noviembre|novembre|ноября",
    "dec(?:ember)?|dez(?:ember)?|diciembre|décembre|декабря",
)

EVERY_ON: Final = r"по(?=\s+\w+[ая]м\b)|(?:on|am|los|les)(?=\s+\w+s\b)"  # "on mondays"
EXCEPT: Final = "except|but not|außer|ausser|excepto|menos|sauf|кроме|除了?"
# Behind "每周一": days that are said by their numbers alone, "每周一三五"; not if a number of something else begins.
MORE_DAYS: Final = (
    "(?:[、和及]?(?:[二三四五六]|(?<=六)日|(?<=六[、和及])日)){1,6}"
    "(?![点點时時刻次回遍个個号號月年天人级一二三四五六七八九十])"
)
EVERY: Final = (
    "every|each|jede[nrsm]?|alle|cada|tod[oa]s l[oa]s|chaque|tou(?:s|tes) les|кажд(?:ый|ую|ое|ые)|每隔?个?|每個?"
)
# "the last day of the month", and whose month that is
OF_NEXT_MONTH: Final = (
    "(?:of )?next month|(?:des )?nächsten monats|del pr[óo]ximo mes|del mes que viene|du mois prochain"
    "|следующего месяца"
)
LAST_DAY: Final = "last day|letzte[rn]? tag|[úu]ltimo d[ií]a|dernier jour|последний день|最后一天|最後一天"
FIRST_DAY: Final = "first(?: day)?|erste[rn]?(?: tag)?|primer d[ií]a|premier(?: jour)?|первый день|第一天"
MONTH_END: Final = (
    "(?:at )?(?:the )?end|(?:am |zum )?ende|(?:a |à la |en )?fin(?:al(?:es)?|es)?|в конце|в последний день"
)
OF_MONTH: Final = (
    "of (?:the|this) month|de[sr] monats|dieses monats|del? (?:este )?mes|d(?:u|e ce) mois|(?:этого )?месяца"
)
OF_EVERY_MONTH: Final = (
    "of (?:every|each|any) month|(?:eines )?jede[sn] monats?|de cada mes|de chaque mois|каждого месяца"
)
MONTH_END_ALONE: Final = "(?:am |zum )?monatsende|(?:en )?fin de mois|[这這本]?个?月[底末]"
NEXT_MONTH_END_ALONE: Final = "下[个個]?月[底末]"
THIS_MONTH: Final = "这个?月|這個?月|本月"
OTHER: Final = "other|second|zweite[nrs]?|второй|вторую"
# Rules in one word or two.
RULES: Final[dict[str, str]] = {
    "1 week on mon,tue,wed,thu,fri": (
        "(?:every |each |on )?(?:week|work(?:ing )?)days?|(?:jeden |an )?(?:werk|wochen|arbeits)tags?|unter der woche"
        "|(?:an )?(?:werk|wochen|arbeits)tagen|mon(?:day)?s?(?: to | through | till |-|–)fri(?:day)?s?"
        "|(?:von )?(?:montags? bis freitags?|mo(?:-|–| bis )fr)"
        "|(?:du )?lundi au vendredi|(?:chaque )?jour ouvr(?:é|able)"
        "|(?:de )?lunes a viernes|en semaine|(?:каждый )?(?:будний|рабочий) день|с понедельника по пятницу"
        "|(?:по|в) будн(?:ям|и|ие дни)|(?:每个?)?(?:周|星期)一[到至](?:周|星期)?五|每?个?工作日"
    ),
    "1 week on sat,sun": "(?:every|each) weekend|(?:on )?weekends|jedes wochenende|an wochenenden|по выходным"
    "|每个?(?:周|週)末|(?:todos )?los fines de semana|cada fin de semana|tous les week-ends|chaque week-end",
    "1 day": "daily|täglich|diariamente|a diario|quotidiennement|ежедневно|每[天日]",
    "1 hour": "hourly|stündlich|ежечасно|每小时|每小時",
    "1 week": "weekly|wöchentlich|semanalmente|еженедельно",
    "1 month": "monthly|monatlich|mensualmente|ежемесячно|每个?月|每個月",
    "1 year": "yearly|annually|jährlich|anualmente|ежегодно|每年",
}

# What may stand between a time and what is to be said: "remind me to …".
LEAD: Final = (
    "remind me(?: to| about| that)?|erinnere? mich(?: daran| an)?|rappelle-moi(?: de| que)?|recuérdame(?: que| de)?"
    "|напомни(?: мне)?(?: о)?|me to|me about|me that|me|that|to|about"
    "|mich daran|mich an|mich|dass|daran|an|zu|que|de|a|что|о|чтобы|提醒我|我|要"
)

# -- what makes another time of a time, and is not known ------------------------------------------

BEFORE_OR_AFTER: Final = (  # "10 minutes before noon"
    r"\s+(?:before|after|past|vor|nach(?=\s+\d)|avant|après|antes|después|до|перед|после)(?!\w)|\s*[之以]?前(?!往)"
)
NO_ONE_TIME: Final = (  # "tomorrow before 8", "tomorrow from 2 to 3"
    "before|after|from|between|until|till|vor|nach|von|ab|bis|zwischen|(?:antes|después) de las?|(?:desde|entre) las?"
    "|avant|après|entre|до|после|между|с"
)
# "every first monday of the month": which one of its weekdays; 0 is none that each month has
ORDINALS: Final[dict[int, str]] = {
    1: "first|1(?:st|er|\\.)|erste[nrs]?|primer|premier|перв[а-я]+|第一个?|第一個",
    2: "second|2(?:nd|\\.)|zweite[nrs]?|segundo|deuxième|втор[а-я]+|第二个?|第二個",
    3: "third|3(?:rd|\\.)|dritte[nrs]?|tercer|troisième|треть?[а-я]+|第三个?|第三個",
    4: "fourth|4(?:th|\\.)|vierte[nrs]?|cuarto|quatrième|четв[её]рт[а-я]+|第四个?|第四個",
    -1: "last|letzte[nrs]?|[úu]ltimo|dernier|последн[а-я]+|最后一?个?|最後一?個?",
    0: "fifth|5(?:th|\\.)|fünfte[nrs]?|quinto|cinquième|пят(?:ый|ую|ое)|第五个?|第五個",
}
IN_MONTH: Final = f"{OF_MONTH}|im monat"
