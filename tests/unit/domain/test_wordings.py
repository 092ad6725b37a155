"""200 wordings and more in eight languages: each is read rightly, or not at all. Read on Wednesday, 2026-03-25, 14:30
in Berlin."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.when import BadTime, NoTime, read

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 25, 14, 30, tzinfo=BERLIN).timestamp()

ENGLISH = """
in 20 minutes tea | 03-25 14:50 | tea
tea in 20 minutes | 03-25 14:50 | tea
in 20 minutes buy 3 eggs | 03-25 14:50 | buy 3 eggs
buy 3 eggs in 20 minutes | 03-25 14:50 | buy 3 eggs
10m tea | 03-25 14:40 | tea
1h30m check the oven | 03-25 16:00 | check the oven
in 1 hour and 30 minutes check | 03-25 16:00 | check
in half an hour x | 03-25 15:00 | x
me to call mom tomorrow at 9 | 03-26 09:00 | call mom
tomorrow call mom at 9 | 03-26 09:00 | call mom
tomorrow at 9 call mom | 03-26 09:00 | call mom
tomorrow morning jog | 03-26 09:00 | jog
tonight take out trash | 03-25 20:00 | take out trash
at 9 stand up | 03-26 09:00 | stand up
at 5pm stand up | 03-25 17:00 | stand up
monday 18:30 gym | 03-30 18:30 | gym
next monday gym | 03-30 09:00 | gym
call Ann tomorrow 9 | 03-26 09:00 | call Ann
friday pay rent | 03-27 09:00 | pay rent
in 3 days at 8 x | 03-28 08:00 | x
this evening x | 03-25 19:00 | x
this report tomorrow at 9 | 03-26 09:00 | this report
lunch at noon | 03-26 12:00 | lunch
at 10:00 in the evening x | 03-25 22:00 | x
x tomorrow at 9. | 03-26 09:00 | x
tomorrow at nine call mum | 03-26 09:00 | call mum
at eight in the evening dinner | 03-25 20:00 | dinner
tomorrow at 8: summarise the news | 03-26 08:00 | summarise the news
tomorrow at 9 o'clock x | 03-26 09:00 | x
tomorrow at one party | 03-26 01:00 | party
tomorrow at a party | 03-26 09:00 | at a party
tomorrow 2.30pm dentist | 03-26 14:30 | dentist
each weekday at 8: what is new? | 03-26 08:00 | every weekday | what is new?
every day at nine pills | 03-26 09:00 | every day | pills
every weekday at 8 what is new | 03-26 08:00 | every weekday | what is new
daily at 8 pills | 03-26 08:00 | every day | pills
take pills every day at 8:30 | 03-26 08:30 | every day | take pills
every monday and thursday at 7 bins | 03-26 07:00 | every Monday and Thursday | bins
every 2 hours drink | 03-25 16:30 | every 2 hours | drink
every other day at 9 x | 03-27 09:00 | every 2 days | x
tomorrow evening at 8 call mum | 03-26 20:00 | call mum
tonight at 8 bins | 03-25 20:00 | bins
this evening at 7:30 dinner | 03-25 19:30 | dinner
tomorrow afternoon at 3 meeting | 03-26 15:00 | meeting
tomorrow morning at 8 run | 03-26 08:00 | run
call mum at 8 tomorrow evening | 03-26 20:00 | call mum
tomorrow evening call mum at 8 | 03-26 20:00 | call mum
tonight at 11:30 pm sleep | 03-25 23:30 | sleep
on the 15th at 10 dentist | 04-15 10:00 | dentist
next week friday at 5pm beer | 04-03 17:00 | beer
friday next week at 5pm beer | 04-03 17:00 | beer
next week on tuesday bins | 03-31 09:00 | bins
every last day of the month at 10 pay rent | 03-31 10:00 | every month on the last day | pay rent
on the last day of every month at 10 pay rent | 03-31 10:00 | every month on the last day | pay rent
on the 1st of every month at 9 rent | 04-01 09:00 | every month on the 1st | rent
every 1st of the month rent | 04-01 09:00 | every month on the 1st | rent
every first Monday of the month at 9 report | 04-06 09:00 | every month on the first Monday | report
every month on the first monday report | 04-06 09:00 | every month on the first Monday | report
every last friday of the month at 17:30 beer | 03-27 17:30 | every month on the last Friday | beer
every last friday at 17:30 beer | 03-27 17:30 | every month on the last Friday | beer
on the second tuesday of every month at 8 patch | 04-14 08:00 | every month on the second Tuesday | patch
the 4th wednesday of each month at 14:00 club | 04-22 14:00 | every month on the fourth Wednesday | club
every 2nd tuesday of the month patch | 04-14 09:00 | every month on the second Tuesday | patch
every 3 months on the third thursday at 10 filter | 04-16 10:00 | every 3 months on the third Thursday | filter
pay the rent every first monday of the month at 9 | 04-06 09:00 | every month on the first Monday | pay the rent
every morning at 7 run | 03-26 07:00 | every day | run
every evening at 8 pills | 03-25 20:00 | every day | pills
every night at 10 pills | 03-25 22:00 | every day | pills
every evening pills | 03-25 19:00 | every day | pills
pills every morning | 03-26 09:00 | every day | pills
weekdays at 9 standup | 03-26 09:00 | every weekday | standup
call mum in the evening | 03-25 19:00 | call mum
every other day pills | 03-27 09:00 | every 2 days | pills
every friday evening at 6 beer | 03-27 18:00 | every Friday | beer
sunday evening at 9 call | 03-29 21:00 | call
remind me tomorrow at 7pm to feed the cat | 03-26 19:00 | feed the cat
in 45 min check laundry | 03-25 15:15 | check laundry
next monday morning submit report | 03-30 09:00 | submit report
submit report by friday noon | 03-27 12:00 | submit report
every tuesday and thursday evening at 7 choir | 03-26 19:00 | every Tuesday and Thursday | choir
on May 2 at 3pm vet | 05-02 15:00 | vet
2nd of May vet | 05-02 09:00 | vet
on the first day of every month budget | 04-01 09:00 | every month on the 1st | budget
an hour from now leave | 03-25 15:30 | leave
in ten minutes tea | 03-25 14:40 | tea
a week from now x | 04-01 14:30 | x
two days from now at noon x | 03-27 12:00 | x
tonight at midnight x | 03-26 00:00 | x
today at midnight x | 03-26 00:00 | x
tonight at 2 x | 03-26 02:00 | x
tonight at 12 x | 03-26 00:00 | x
tomorrow night at 12 x | 03-27 00:00 | x
friday night at 1 x | 03-28 01:00 | x
on the 31st at 9 x | 03-31 09:00 | x
morning run tomorrow at 7 | 03-26 07:00 | morning run
at 7 walk in the sun | 03-26 07:00 | walk in the sun
every month on the last day at 8 x | 03-31 08:00 | every month on the last day | x
tomorrow at 9 - call Ann | 03-26 09:00 | call Ann
sun cream tomorrow | 03-26 09:00 | sun cream
sat at 9 gym | 03-28 09:00 | gym
10m to stretch | 03-25 14:40 | stretch
30 min nach Hause gehen | 03-25 15:00 | nach Hause gehen
tomorrow by 5pm send the report | 03-26 17:00 | send the report
tomorrow around 7pm call Ann | 03-26 19:00 | call Ann
send the report by 17:00 | 03-25 17:00 | send the report
at 12 at night x | 03-26 00:00 | x
at 3 at night x | 03-26 03:00 | x
at 11 at night x | 03-25 23:00 | x
tomorrow at 12 at night x | 03-27 00:00 | x
in twenty-five minutes tea | 03-25 14:55 | tea
every month on the 1st and 15th at 17:30 rent | 04-01 17:30 | every month on the 1st and the 15th | rent
on the 1st and the 15th of every month at 9 rent | 04-01 09:00 | every month on the 1st and the 15th | rent
every other tuesday at 17:00 meeting | 03-31 17:00 | every 2 weeks on Tuesday | meeting
every 2 weeks on tuesday at 17:00 meeting | 03-31 17:00 | every 2 weeks on Tuesday | meeting
every first working day of the month at 17:00 report | 04-01 17:00 | every month on the first weekday | report
every year on december 24 at 9 gifts | 12-24 09:00 | every year in December on the 24th | gifts
monday to friday at 8 news | 03-26 08:00 | every weekday | news
every weekend at 10 pancakes | 03-28 10:00 | every Saturday and Sunday | pancakes
tomorrow: buy 3 apples | 03-26 09:00 | buy 3 apples
"the meeting at 5pm is off" tomorrow at 9 | 03-26 09:00 | the meeting at 5pm is off
tomorrow at 9 “every day counts” | 03-26 09:00 | every day counts
2026-04-01T09:00Z pay | 04-01 11:00 | pay
2026-04-01T09:00:00.000+05:30 pay | 04-01 05:30 | pay
tomorrow at 9 America/New_York call | 03-26 14:00 | call
tomorrow at 9am UTC-8 call | 03-26 18:00 | call
every day at 9 GMT pills | 03-26 10:00 | every day | pills
""".strip().splitlines()

# Wordings of other languages, which are the model's to read.
ELSEWHERE = """
morgen um neun Mama anrufen
morgen um halb neun Zahnarzt
mañana a las nueve llamar
demain à neuf heures appeler
demain dîner à trois
завтра в девять позвонить
in 10 Minuten Tee
morgen um 9 Uhr Mama anrufen
morgen früh Zahnarzt
übermorgen Zahnarzt um 10:30
am Freitag um 18 Uhr Sport
через 10 минут чай
через час чай
завтра в 9 позвонить маме
послезавтра в 18:00 театр
в понедельник в 10 встреча
в 6 вечера ужин
dentro de 10 minutos té
mañana a las 9 llamar
a las 9 de la tarde cenar
demain à 9h30 appeler
10分钟后喝茶
半小时后开会
两小时后开会
明天早上9点开会
后天下午3点半看牙医
下周一10点开会
晚上8点看电影
大后天上午八点开会
明早七点吃药
morgen 14.30 Zahnarzt
Zahnarzt morgen 14.30
14.30 Uhr Zahnarzt
завтра 14.30 врач
morgen 2.50 Euro mitbringen
jeden Tag um 8 Tabletten
jeden Montag um 8 Müll
alle 2 Stunden trinken
werktags um 8 Nachrichten
каждый день в 8 таблетки
каждые 2 часа пить
по будням в 8 новости
todos los días a las 8 pastillas
chaque jour à 8h médicaments
tous les lundis à 8h poubelle
每天早上8点吃药
每周一9点开会
每2小时喝水
每个工作日8点新闻
jeden ersten Montag im Monat um 9 Bericht
jeden Monat am letzten Freitag Bier
am ersten Dienstag jedes Monats um 18 Uhr Chor
el primer lunes de cada mes a las 9 informe
cada último viernes del mes a las 9 informe
chaque premier lundi du mois à 9h rapport
le dernier vendredi de chaque mois à 9h rapport
каждый первый понедельник месяца в 9 отчёт
每月第一个周一9点开会
每个月最后一个星期五下午3点开会
heute Abend um 8 Müll
morgen Abend um 8 Müll
morgen Nachmittag um 3 Kaffee
heute Abend 20 Uhr Müll
jeden Werktag um 8:30 Uhr Standup
morgen um 8:30 Uhr Standup
morgen um 8.30 Uhr Standup
um 18:45 Uhr los
in anderthalb Stunden Kuchen
in eineinhalb Stunden Kuchen
in 1,5 Stunden Kuchen
in einer Viertelstunde Tee
am 15. um 10 Uhr Zahnarzt
jeden Abend um 8 Tabletten
jeden Morgen um 7 laufen
am letzten Tag des Monats Miete
am Monatsende Miete
am letzten Tag jedes Monats Miete
am 1. jedes Monats um 9 Miete
jeden 1. des Monats Miete
nächste Woche Dienstag um 9 Müll
ce soir à 8h poubelles
demain soir à 20h poubelles
dans une heure et demie gâteau
dans un quart d'heure thé
le 15 à 10h dentiste
à la fin du mois loyer
le dernier jour du mois loyer
le 1er de chaque mois loyer
tous les matins à 7h courir
tous les soirs à 8h pilule
mardi prochain à 9h poubelles
du lundi au vendredi à 9h réunion
esta noche a las 8 basura
mañana por la tarde a las 5 café
en hora y media pastel
en una hora y media pastel
en un cuarto de hora té
el día 15 a las 10 dentista
el último día del mes alquiler
a fin de mes alquiler
el 1 de cada mes alquiler
todas las noches a las 10 pastilla
todas las mañanas a las 7 correr
el próximo martes a las 9 basura
сегодня вечером в 8 мусор
завтра вечером в 8 мусор
через полтора часа пирог
через час пирог
через четверть часа чай
15 числа в 10 зубной
в последний день месяца аренда
в конце месяца аренда
каждый вечер в 8 таблетки
каждое утро в 7 бег
1 числа каждого месяца аренда
на следующей неделе во вторник мусор
今晚8点倒垃圾
明晚8点倒垃圾
明天晚上八点半倒垃圾
一个半小时后拿蛋糕
一刻钟后喝茶
15号上午10点看牙医
月底交房租
这个月最后一天交房租
每月1号交房租
每月最后一天交房租
每天早上7点跑步
每晚8点吃药
每天晚上吃药
下周五下午5点喝啤酒
下周一开会
下星期三上午10点开会
这周五下午5点喝啤酒
本周五下午5点喝啤酒
明天9点15分开会
明天9点一刻开会
erinnere mich morgen um 7 an die Katze
in einer Stunde los
nächsten Montag um 9 Bericht
um viertel nach sechs Bob anrufen
jeden Dienstag und Donnerstag um 19 Uhr Chor
am 2. Mai um 15 Uhr Tierarzt
Freitagmittag Essen
morgen Mittag Essen
in 14 Tagen Müll
heute um Mitternacht x
rappelle-moi demain à 19h de nourrir le chat
dans dix minutes thé
lundi prochain à 9h rapport
le 2 mai à 15h vétérinaire
demain matin à 8h30 courir
vendredi à midi déjeuner
toutes les 2 heures boire
dans 15 jours poubelle
tous les mardis et jeudis à 19h chorale
à 18h30 Bob
recuérdame mañana a las 7 de la tarde dar de comer al gato
en diez minutos té
el lunes por la mañana informe
el 2 de mayo a las 15:00 veterinario
cada 2 horas beber
los martes y jueves a las 19:00 coro
el viernes al mediodía comer
a las 6 y media cena
dentro de una semana x
напомни завтра в 7 вечера покормить кота
через десять минут чай
в понедельник утром отчёт
2 мая в 15:00 ветеринар
по вторникам и четвергам в 19:00 хор
через неделю x
в следующую пятницу в 12 обед
сегодня в 18:30 Боб
提醒我明天晚上7点喂猫
十分钟后喝茶
周一早上交报告
5月2日下午3点看兽医
每两小时喝水
每周二和周四晚上7点合唱
周五中午吃饭
一周后x
今天下午六点半找Bob
二十五分钟后喝茶
Montagabend um 8 x
下个月3号 x
in 2,25 hours x
zweieinhalb Stunden lesen morgen um 9
in zweieinhalb Stunden x
fin de mes informe mañana a las 9
demain à 9h d'appeler maman
um fünf vor zwölf anrufen
um 10 nach 9 anrufen
a las nueve y diez llamar
a las 9 menos veinte llamar
demain à neuf heures moins dix appeler
mon rendez-vous demain à 9h
每周一三五健身
每周一、三、五健身
每周二四晚上8点健身
每周六日打扫
每周一一起吃饭
每周一三点开会
每周三日报
10分钟前往机场
demain vers 19h appeler Ann
mañana sobre las 9 llamar
завтра около 9 позвонить
a las 12 de la noche x
um 12 Uhr abends x
à 12h du soir x
每周五晚上12点睡觉
am 28. des nächsten Monats zahlen
am Ende des nächsten Monats zahlen
le 28 du mois prochain payer
à la fin du mois prochain payer
el 28 del próximo mes pagar
28 числа следующего месяца оплатить
下个月底交税
domani alle 9 chiamare Anna
ogni lunedì alle 18 palestra
fra 20 minuti tè
il 15 di ogni mese alle 10 affitto
ogni due giorni alle 9 pastiglia
tutti i giorni tranne la domenica alle 17:30 corsa
明日の朝7時に薬
3時間後に薬
毎週月曜日の午前9時に会議
毎月15日の10時に家賃
一日おきに朝9時に薬
来週の金曜日17時に打ち合わせ
""".strip().splitlines()

# Each holds more than what can be read of it.
TRAPS = """
every day but Sunday at 17:30 x
every day for 5 days at 17:30 x
every Tuesday of the month at 17:30 x
every second Tuesday at 9 x
every day at 8 and 20 pills
every day at 8, 12 and 18 pills
every day 8:00, 20:00 pills
every monday except holidays at 9 x
every weekday except friday at 9 x
every evening at 8 and every morning at 7 x
every day until friday at 9 pills
every day starting monday at 9 pills
every hour on weekdays x
every 2 hours from 9 to 17 water
every month on the first and third monday at 9 x
every month on the 1st and on the last day at 9 x
twice a day at 9 pills
every day three times at 9 pills
every fifth monday of the month at 9 x
tomorrow at 5 or 6 call
tomorrow buy 3 apples
tomorrow remind Bob that the meeting at 5pm is off
tomorrow at 0730 train
tomorrow at 9 for 30 minutes walk
tomorrow 14-15 meeting
tomorrow at 3-4 pm meeting
tomorrow before 8 call
tomorrow from 2 to 3 meeting
at 5pm call mum tomorrow
noon meeting tomorrow at 11
not tomorrow at 9 but friday x
call Ann not tomorrow at 9
in two weeks on friday x
in 2 h und 10 Minuten Tee
in 10min5 tea
in 2 h et 10 min thé
in 2 h y 10 té
in 20 minutes 3 eggs
in 2 hours 30 tea
in 1h305 tea
pay every second tuesday at 9
call Ann every other tomorrow at 9
5 August um 9 Uhr Zahnarzt
9 am Freitag Arzt
at 9 jeden Montag Müll
17:30 mañana llamar
llamar mañana 17:30
2027-01-31 08:00 jeden Monat Miete
9:00 каждый день таблетки
таблетки каждый день 9:00
每两周的周二17点开会
每月第一个工作日下午5点
每隔一天早上9点吃药
每天 17:30
jeden Monat am 1. und 15. um 17:30 Miete
jeden zweiten Tag um 9 Tabletten
todos los días menos el domingo a las 17:30
un jour sur deux à 9h médicament
через день в 9 таблетки
12/5/2026 9:00 x
next friday lunch
at 9am PST call
tomorrow at 9 IST call
tomorrow at 9am London time call
in a while tea
10 minutes before noon tea
2 days before christmas
17:30 go home
tomorrow at half past nine x
a quarter to six pm x
in an hour and a half stretch
in 1.5 hours stretch
in one and a half hours stretch
in a quarter of an hour tea
in a couple of hours tea
next month pay
on the last day of the month pay rent
at the end of the month pay rent
the first of every month rent
at quarter past six call Bob
at the weekend mow the lawn
on the 3rd floor meet Tom tomorrow at 9
end of the month report tomorrow at 9
next month on the 3rd x
tomorrow at 9, 3 people come
at ten past nine call
at 20 to nine tomorrow call
at five to six in the evening call
tomorrow at 9 and then call
tomorrow and 20 more
mon gym
tomorrow after lunch call
tomorrow from home call
every friday night at 1 x
on the 28th of next month pay
on the 28th next month at 10 pay
at the end of next month pay
9h30 médecin
14h15 réunion
tomorrow at five thirty dinner
dinner tomorrow at five thirty
tomorrow at sunrise walk
every day at lunch stretch
friday at lunchtime call Ann
call Ann friday lunchtime
tomorrow early call Ann
tomorrow eod report
2026-12-05 9:00 下午 吃药
2026-12-05 8:00 abends Tablette
2026-12-05 8:00 Uhr abends Tablette
2026-12-05 9:00 du soir médecin
2026-12-05 9:00 de la noche médico
2026-12-05 8:00 di sera pillola
2026-12-05 9:00 da noite remédio
2026-12-05 9:00 вечера врач
2026-12-05 9:00 مساء طبيب
at 9:00 내일 약
at 9:00 来週 会議
at 9 星期五开会
at 9:00 los lunes médico
at 9:00 yarın doktor
""".strip().splitlines()


def as_read(text: str) -> str:
    when = read(text, NOW, BERLIN)
    local = f"{datetime.fromtimestamp(when.due, BERLIN):%m-%d %H:%M}"
    return " | ".join([text, local, *([when.rule.said] if when.rule else []), when.rest])


def test_a_time_and_what_is_to_be_said():
    assert [as_read(line.split(" | ")[0]) for line in ENGLISH] == ENGLISH


@pytest.mark.parametrize("texts", [ELSEWHERE, TRAPS], ids=["other languages", "traps"])
def test_what_is_not_read_whole_is_not_read(texts: list[str]):
    guessed = []
    for text in texts:
        try:
            guessed.append(as_read(text))
        except (BadTime, NoTime):
            continue
    assert not guessed, "\n".join(guessed)
