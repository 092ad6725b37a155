"""Times in people's words, read on Monday, 2026-11-23, 14:05:30 in Berlin."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.when import BadTime, NoTime, When, read, read_exactly, reading

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 14, 5, 30, tzinfo=BERLIN).timestamp()

ONCE = """
in 20 minutes tea | 23 14:25:30 | tea
tea in 20 minutes | 23 14:25:30 | tea
10m tea | 23 14:15:30 | tea
1h30m check the oven | 23 15:35:30 | check the oven
in 1 hour and 30 minutes check | 23 15:35:30 | check
in half an hour x | 23 14:35:30 | x
me to call mom tomorrow at 9 | 24 09:00:00 | call mom
tomorrow call mom at 9 | 24 09:00:00 | call mom
tomorrow at 9 call mom | 24 09:00:00 | call mom
tomorrow morning jog | 24 09:00:00 | jog
tonight take out trash | 23 20:00:00 | take out trash
at 9 stand up | 24 09:00:00 | stand up
at 5pm stand up | 23 17:00:00 | stand up
17:30 go home | 23 17:30:00 | go home
monday 18:30 gym | 23 18:30:00 | gym
next monday gym | 30 09:00:00 | gym
call Ann tomorrow 9 | 24 09:00:00 | call Ann
friday pay rent | 27 09:00:00 | pay rent
in 3 days at 8 x | 26 08:00:00 | x
this evening x | 23 19:00:00 | x
this report tomorrow at 9 | 24 09:00:00 | this report
lunch at noon | 24 12:00:00 | lunch
at 10:00 in the evening x | 23 22:00:00 | x
x tomorrow at 9. | 24 09:00:00 | x
tomorrow at nine call mum | 24 09:00:00 | call mum
at eight in the evening dinner | 23 20:00:00 | dinner
tomorrow at half past nine x | 24 09:30:00 | x
a quarter to six pm x | 23 17:45:00 | x
tomorrow at 8: summarise the news | 24 08:00:00 | summarise the news
tomorrow at 9 o'clock x | 24 09:00:00 | x
tomorrow at one party | 24 01:00:00 | party
tomorrow at a party | 24 09:00:00 | at a party
morgen um neun Mama anrufen | 24 09:00:00 | Mama anrufen
morgen um halb neun Zahnarzt | 24 08:30:00 | Zahnarzt
mañana a las nueve llamar | 24 09:00:00 | llamar
demain à neuf heures appeler | 24 09:00:00 | appeler
demain dîner à trois | 24 09:00:00 | dîner à trois
завтра в девять позвонить | 24 09:00:00 | позвонить
in 10 Minuten Tee | 23 14:15:30 | Tee
morgen um 9 Uhr Mama anrufen | 24 09:00:00 | Mama anrufen
morgen früh Zahnarzt | 24 09:00:00 | Zahnarzt
übermorgen Zahnarzt um 10:30 | 25 10:30:00 | Zahnarzt
am Freitag um 18 Uhr Sport | 27 18:00:00 | Sport
через 10 минут чай | 23 14:15:30 | чай
через час чай | 23 15:05:30 | чай
завтра в 9 позвонить маме | 24 09:00:00 | позвонить маме
послезавтра в 18:00 театр | 25 18:00:00 | театр
в понедельник в 10 встреча | 30 10:00:00 | встреча
в 6 вечера ужин | 23 18:00:00 | ужин
dentro de 10 minutos té | 23 14:15:30 | té
mañana a las 9 llamar | 24 09:00:00 | llamar
a las 9 de la tarde cenar | 23 21:00:00 | cenar
demain à 9h30 appeler | 24 09:30:00 | appeler
10分钟后喝茶 | 23 14:15:30 | 喝茶
半小时后开会 | 23 14:35:30 | 开会
两小时后开会 | 23 16:05:30 | 开会
明天早上9点开会 | 24 09:00:00 | 开会
后天下午3点半看牙医 | 25 15:30:00 | 看牙医
下周一10点开会 | 30 10:00:00 | 开会
晚上8点看电影 | 23 20:00:00 | 看电影
大后天上午八点开会 | 26 08:00:00 | 开会
明早七点吃药 | 24 07:00:00 | 吃药
morgen 14.30 Zahnarzt | 24 14:30:00 | Zahnarzt
Zahnarzt morgen 14.30 | 24 14:30:00 | Zahnarzt
14.30 Uhr Zahnarzt | 23 14:30:00 | Zahnarzt
tomorrow 2.30pm dentist | 24 14:30:00 | dentist
завтра 14.30 врач | 24 14:30:00 | врач
morgen 2.50 Euro mitbringen | 24 09:00:00 | 2.50 Euro mitbringen
""".strip().splitlines()

REPEATED = """
each weekday at 8: what is new? | 24 08:00 | every weekday | what is new?
every day at nine pills | 24 09:00 | every day | pills
every weekday at 8 what is new | 24 08:00 | every weekday | what is new
daily at 8 pills | 24 08:00 | every day | pills
take pills every day at 8:30 | 24 08:30 | every day | take pills
every monday and thursday at 7 bins | 26 07:00 | every Monday and Thursday | bins
every 2 hours drink | 23 16:05 | every 2 hours | drink
every other day at 9 x | 25 09:00 | every 2 days | x
jeden Tag um 8 Tabletten | 24 08:00 | every day | Tabletten
jeden Montag um 8 Müll | 30 08:00 | every Monday | Müll
alle 2 Stunden trinken | 23 16:05 | every 2 hours | trinken
werktags um 8 Nachrichten | 24 08:00 | every weekday | Nachrichten
каждый день в 8 таблетки | 24 08:00 | every day | таблетки
каждые 2 часа пить | 23 16:05 | every 2 hours | пить
по будням в 8 новости | 24 08:00 | every weekday | новости
todos los días a las 8 pastillas | 24 08:00 | every day | pastillas
chaque jour à 8h médicaments | 24 08:00 | every day | médicaments
tous les lundis à 8h poubelle | 30 08:00 | every Monday | poubelle
每天早上8点吃药 | 24 08:00 | every day | 吃药
每周一9点开会 | 30 09:00 | every Monday | 开会
每2小时喝水 | 23 16:05 | every 2 hours | 喝水
每个工作日8点新闻 | 24 08:00 | every weekday | 新闻
""".strip().splitlines()


# Read on Wednesday, 2026-03-25, 14:30 in Berlin.
EVERYDAY = """
tomorrow evening at 8 call mum | 03-26 20:00 | call mum
tonight at 8 bins | 03-25 20:00 | bins
this evening at 7:30 dinner | 03-25 19:30 | dinner
tomorrow afternoon at 3 meeting | 03-26 15:00 | meeting
tomorrow morning at 8 run | 03-26 08:00 | run
call mum at 8 tomorrow evening | 03-26 20:00 | call mum
tomorrow evening call mum at 8 | 03-26 20:00 | call mum
tonight at 11:30 pm sleep | 03-25 23:30 | sleep
in an hour and a half stretch | 03-25 16:00 | stretch
in 1.5 hours stretch | 03-25 16:00 | stretch
in one and a half hours stretch | 03-25 16:00 | stretch
in a quarter of an hour tea | 03-25 14:45 | tea
in a couple of hours tea | 03-25 16:30 | tea
on the 15th at 10 dentist | 04-15 10:00 | dentist
next week friday at 5pm beer | 04-03 17:00 | beer
friday next week at 5pm beer | 04-03 17:00 | beer
next week on tuesday bins | 03-31 09:00 | bins
next month pay | 04-25 14:30 | pay
on the last day of the month pay rent | 03-31 09:00 | pay rent
at the end of the month pay rent | 03-31 09:00 | pay rent
every last day of the month at 10 pay rent | 03-31 10:00 | every month | pay rent
on the last day of every month at 10 pay rent | 03-31 10:00 | every month | pay rent
on the 1st of every month at 9 rent | 04-01 09:00 | every month | rent
every 1st of the month rent | 04-01 09:00 | every month | rent
the first of every month rent | 04-01 09:00 | every month | rent
every first Monday of the month at 9 report | 04-06 09:00 | every month on the first Monday | report
every month on the first monday report | 04-06 09:00 | every month on the first Monday | report
every last friday of the month at 17:30 beer | 03-27 17:30 | every month on the last Friday | beer
every last friday at 17:30 beer | 03-27 17:30 | every month on the last Friday | beer
on the second tuesday of every month at 8 patch | 04-14 08:00 | every month on the second Tuesday | patch
the 4th wednesday of each month at 14:00 club | 04-22 14:00 | every month on the fourth Wednesday | club
every 2nd tuesday of the month patch | 04-14 09:00 | every month on the second Tuesday | patch
every 3 months on the third thursday at 10 filter | 04-16 10:00 | every 3 months on the third Thursday | filter
pay the rent every first monday of the month at 9 | 04-06 09:00 | every month on the first Monday | pay the rent
jeden ersten Montag im Monat um 9 Bericht | 04-06 09:00 | every month on the first Monday | Bericht
jeden Monat am letzten Freitag Bier | 03-27 09:00 | every month on the last Friday | Bier
am ersten Dienstag jedes Monats um 18 Uhr Chor | 04-07 18:00 | every month on the first Tuesday | Chor
el primer lunes de cada mes a las 9 informe | 04-06 09:00 | every month on the first Monday | informe
cada último viernes del mes a las 9 informe | 03-27 09:00 | every month on the last Friday | informe
chaque premier lundi du mois à 9h rapport | 04-06 09:00 | every month on the first Monday | rapport
le dernier vendredi de chaque mois à 9h rapport | 03-27 09:00 | every month on the last Friday | rapport
каждый первый понедельник месяца в 9 отчёт | 04-06 09:00 | every month on the first Monday | отчёт
每月第一个周一9点开会 | 04-06 09:00 | every month on the first Monday | 开会
每个月最后一个星期五下午3点开会 | 03-27 15:00 | every month on the last Friday | 开会
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
heute Abend um 8 Müll | 03-25 20:00 | Müll
morgen Abend um 8 Müll | 03-26 20:00 | Müll
morgen Nachmittag um 3 Kaffee | 03-26 15:00 | Kaffee
heute Abend 20 Uhr Müll | 03-25 20:00 | Müll
jeden Werktag um 8:30 Uhr Standup | 03-26 08:30 | every weekday | Standup
morgen um 8:30 Uhr Standup | 03-26 08:30 | Standup
morgen um 8.30 Uhr Standup | 03-26 08:30 | Standup
um 18:45 Uhr los | 03-25 18:45 | los
in anderthalb Stunden Kuchen | 03-25 16:00 | Kuchen
in eineinhalb Stunden Kuchen | 03-25 16:00 | Kuchen
in 1,5 Stunden Kuchen | 03-25 16:00 | Kuchen
in einer Viertelstunde Tee | 03-25 14:45 | Tee
am 15. um 10 Uhr Zahnarzt | 04-15 10:00 | Zahnarzt
jeden Abend um 8 Tabletten | 03-25 20:00 | every day | Tabletten
jeden Morgen um 7 laufen | 03-26 07:00 | every day | laufen
am letzten Tag des Monats Miete | 03-31 09:00 | Miete
am Monatsende Miete | 03-31 09:00 | Miete
am letzten Tag jedes Monats Miete | 03-31 09:00 | every month | Miete
am 1. jedes Monats um 9 Miete | 04-01 09:00 | every month | Miete
jeden 1. des Monats Miete | 04-01 09:00 | every month | Miete
nächste Woche Dienstag um 9 Müll | 03-31 09:00 | Müll
ce soir à 8h poubelles | 03-25 20:00 | poubelles
demain soir à 20h poubelles | 03-26 20:00 | poubelles
dans une heure et demie gâteau | 03-25 16:00 | gâteau
dans un quart d'heure thé | 03-25 14:45 | thé
le 15 à 10h dentiste | 04-15 10:00 | dentiste
à la fin du mois loyer | 03-31 09:00 | loyer
le dernier jour du mois loyer | 03-31 09:00 | loyer
le 1er de chaque mois loyer | 04-01 09:00 | every month | loyer
tous les matins à 7h courir | 03-26 07:00 | every day | courir
tous les soirs à 8h pilule | 03-25 20:00 | every day | pilule
mardi prochain à 9h poubelles | 03-31 09:00 | poubelles
du lundi au vendredi à 9h réunion | 03-26 09:00 | every weekday | réunion
esta noche a las 8 basura | 03-25 20:00 | basura
mañana por la tarde a las 5 café | 03-26 17:00 | café
en hora y media pastel | 03-25 16:00 | pastel
en una hora y media pastel | 03-25 16:00 | pastel
en un cuarto de hora té | 03-25 14:45 | té
el día 15 a las 10 dentista | 04-15 10:00 | dentista
el último día del mes alquiler | 03-31 09:00 | alquiler
a fin de mes alquiler | 03-31 09:00 | alquiler
el 1 de cada mes alquiler | 04-01 09:00 | every month | alquiler
todas las noches a las 10 pastilla | 03-25 22:00 | every day | pastilla
todas las mañanas a las 7 correr | 03-26 07:00 | every day | correr
el próximo martes a las 9 basura | 03-31 09:00 | basura
сегодня вечером в 8 мусор | 03-25 20:00 | мусор
завтра вечером в 8 мусор | 03-26 20:00 | мусор
через полтора часа пирог | 03-25 16:00 | пирог
через час пирог | 03-25 15:30 | пирог
через четверть часа чай | 03-25 14:45 | чай
15 числа в 10 зубной | 04-15 10:00 | зубной
в последний день месяца аренда | 03-31 09:00 | аренда
в конце месяца аренда | 03-31 09:00 | аренда
каждый вечер в 8 таблетки | 03-25 20:00 | every day | таблетки
каждое утро в 7 бег | 03-26 07:00 | every day | бег
1 числа каждого месяца аренда | 04-01 09:00 | every month | аренда
на следующей неделе во вторник мусор | 03-31 09:00 | мусор
今晚8点倒垃圾 | 03-25 20:00 | 倒垃圾
明晚8点倒垃圾 | 03-26 20:00 | 倒垃圾
明天晚上八点半倒垃圾 | 03-26 20:30 | 倒垃圾
一个半小时后拿蛋糕 | 03-25 16:00 | 拿蛋糕
一刻钟后喝茶 | 03-25 14:45 | 喝茶
15号上午10点看牙医 | 04-15 10:00 | 看牙医
月底交房租 | 03-31 09:00 | 交房租
这个月最后一天交房租 | 03-31 09:00 | 交房租
每月1号交房租 | 04-01 09:00 | every month | 交房租
每月最后一天交房租 | 03-31 09:00 | every month | 交房租
每天早上7点跑步 | 03-26 07:00 | every day | 跑步
每晚8点吃药 | 03-25 20:00 | every day | 吃药
每天晚上吃药 | 03-25 19:00 | every day | 吃药
下周五下午5点喝啤酒 | 04-03 17:00 | 喝啤酒
下周一开会 | 03-30 09:00 | 开会
下星期三上午10点开会 | 04-01 10:00 | 开会
这周五下午5点喝啤酒 | 03-27 17:00 | 喝啤酒
本周五下午5点喝啤酒 | 03-27 17:00 | 喝啤酒
明天9点15分开会 | 03-26 09:15 | 开会
明天9点一刻开会 | 03-26 09:15 | 开会
remind me tomorrow at 7pm to feed the cat | 03-26 19:00 | feed the cat
in 45 min check laundry | 03-25 15:15 | check laundry
at quarter past six call Bob | 03-26 06:15 | call Bob
next monday morning submit report | 03-30 09:00 | submit report
submit report by friday noon | 03-27 12:00 | submit report
every tuesday and thursday evening at 7 choir | 03-26 19:00 | every Tuesday and Thursday | choir
on May 2 at 3pm vet | 05-02 15:00 | vet
2nd of May vet | 05-02 09:00 | vet
on the first day of every month budget | 04-01 09:00 | every month | budget
an hour from now leave | 03-25 15:30 | leave
in ten minutes tea | 03-25 14:40 | tea
in twenty-five minutes tea | 03-25 14:55 | tea
a week from now x | 04-01 14:30 | x
two days from now at noon x | 03-27 12:00 | x
at the weekend mow the lawn | 03-28 09:00 | mow the lawn
erinnere mich morgen um 7 an die Katze | 03-26 07:00 | die Katze
in einer Stunde los | 03-25 15:30 | los
nächsten Montag um 9 Bericht | 03-30 09:00 | Bericht
um viertel nach sechs Bob anrufen | 03-26 06:15 | Bob anrufen
jeden Dienstag und Donnerstag um 19 Uhr Chor | 03-26 19:00 | every Tuesday and Thursday | Chor
am 2. Mai um 15 Uhr Tierarzt | 05-02 15:00 | Tierarzt
Freitagmittag Essen | 03-27 12:00 | Essen
morgen Mittag Essen | 03-26 12:00 | Essen
alle 2 Stunden trinken | 03-25 16:30 | every 2 hours | trinken
in 14 Tagen Müll | 04-08 14:30 | Müll
heute um Mitternacht x | 03-26 00:00 | x
rappelle-moi demain à 19h de nourrir le chat | 03-26 19:00 | nourrir le chat
dans dix minutes thé | 03-25 14:40 | thé
lundi prochain à 9h rapport | 03-30 09:00 | rapport
le 2 mai à 15h vétérinaire | 05-02 15:00 | vétérinaire
demain matin à 8h30 courir | 03-26 08:30 | courir
vendredi à midi déjeuner | 03-27 12:00 | déjeuner
toutes les 2 heures boire | 03-25 16:30 | every 2 hours | boire
dans 15 jours poubelle | 04-09 14:30 | poubelle
tous les mardis et jeudis à 19h chorale | 03-26 19:00 | every Tuesday and Thursday | chorale
à 18h30 Bob | 03-25 18:30 | Bob
recuérdame mañana a las 7 de la tarde dar de comer al gato | 03-26 19:00 | dar de comer al gato
en diez minutos té | 03-25 14:40 | té
el lunes por la mañana informe | 03-30 09:00 | informe
el 2 de mayo a las 15:00 veterinario | 05-02 15:00 | veterinario
cada 2 horas beber | 03-25 16:30 | every 2 hours | beber
los martes y jueves a las 19:00 coro | 03-26 19:00 | every Tuesday and Thursday | coro
el viernes al mediodía comer | 03-27 12:00 | comer
a las 6 y media cena | 03-26 06:30 | cena
dentro de una semana x | 04-01 14:30 | x
напомни завтра в 7 вечера покормить кота | 03-26 19:00 | покормить кота
через десять минут чай | 03-25 14:40 | чай
в понедельник утром отчёт | 03-30 09:00 | отчёт
2 мая в 15:00 ветеринар | 05-02 15:00 | ветеринар
каждые 2 часа пить | 03-25 16:30 | every 2 hours | пить
по вторникам и четвергам в 19:00 хор | 03-26 19:00 | every Tuesday and Thursday | хор
через неделю x | 04-01 14:30 | x
в следующую пятницу в 12 обед | 03-27 12:00 | обед
сегодня в 18:30 Боб | 03-25 18:30 | Боб
提醒我明天晚上7点喂猫 | 03-26 19:00 | 喂猫
十分钟后喝茶 | 03-25 14:40 | 喝茶
周一早上交报告 | 03-30 09:00 | 交报告
5月2日下午3点看兽医 | 05-02 15:00 | 看兽医
每两小时喝水 | 03-25 16:30 | every 2 hours | 喝水
每周二和周四晚上7点合唱 | 03-26 19:00 | every Tuesday and Thursday | 合唱
周五中午吃饭 | 03-27 12:00 | 吃饭
一周后x | 04-01 14:30 | x
今天下午六点半找Bob | 03-25 18:30 | 找Bob
二十五分钟后喝茶 | 03-25 14:55 | 喝茶
tonight at midnight x | 03-26 00:00 | x
today at midnight x | 03-26 00:00 | x
tonight at 2 x | 03-26 02:00 | x
tonight at 12 x | 03-26 00:00 | x
tomorrow night at 12 x | 03-27 00:00 | x
friday night at 1 x | 03-28 01:00 | x
at the weekend mow the lawn | 03-28 09:00 | mow the lawn
on the 3rd floor meet Tom tomorrow at 9 | 03-26 09:00 | on the 3rd floor meet Tom
on the 31st at 9 x | 03-31 09:00 | x
end of the month report tomorrow at 9 | 03-26 09:00 | end of the month report
morning run tomorrow at 7 | 03-26 07:00 | morning run
at 7 walk in the sun | 03-26 07:00 | walk in the sun
Montagabend um 8 x | 03-30 20:00 | x
next month on the 3rd x | 04-03 09:00 | x
下个月3号 x | 04-03 09:00 | x
in 2,25 hours x | 03-25 16:45 | x
zweieinhalb Stunden lesen morgen um 9 | 03-26 09:00 | zweieinhalb Stunden lesen
in zweieinhalb Stunden x | 03-25 17:00 | x
every month on the last day at 8 x | 03-31 08:00 | every month | x
fin de mes informe mañana a las 9 | 03-26 09:00 | fin de mes informe
demain à 9h d'appeler maman | 03-26 09:00 | appeler maman
tomorrow at 9, 3 people come | 03-26 09:00 | 3 people come
tomorrow at 9 - call Ann | 03-26 09:00 | call Ann
at ten past nine call | 03-26 09:10 | call
at 20 to nine tomorrow call | 03-26 08:40 | call
at five to six in the evening call | 03-25 17:55 | call
um fünf vor zwölf anrufen | 03-26 11:55 | anrufen
um 10 nach 9 anrufen | 03-26 09:10 | anrufen
a las nueve y diez llamar | 03-26 09:10 | llamar
a las 9 menos veinte llamar | 03-26 08:40 | llamar
demain à neuf heures moins dix appeler | 03-26 08:50 | appeler
tomorrow at 9 and then call | 03-26 09:00 | and then call
tomorrow and 20 more | 03-26 09:00 | and 20 more
mon rendez-vous demain à 9h | 03-26 09:00 | mon rendez-vous
sun cream tomorrow | 03-26 09:00 | sun cream
mon gym | 03-30 09:00 | gym
sat at 9 gym | 03-28 09:00 | gym
每周一三五健身 | 03-27 09:00 | every Monday, Wednesday and Friday | 健身
每周一、三、五健身 | 03-27 09:00 | every Monday, Wednesday and Friday | 健身
每周二四晚上8点健身 | 03-26 20:00 | every Tuesday and Thursday | 健身
每周六日打扫 | 03-28 09:00 | every Saturday and Sunday | 打扫
每周一一起吃饭 | 03-30 09:00 | every Monday | 一起吃饭
每周一三点开会 | 03-30 03:00 | every Monday | 开会
每周三日报 | 04-01 09:00 | every Wednesday | 日报
10m to stretch | 03-25 14:40 | stretch
30 min nach Hause gehen | 03-25 15:00 | nach Hause gehen
10分钟前往机场 | 03-25 14:40 | 前往机场
tomorrow after lunch call | 03-26 09:00 | after lunch call
tomorrow from home call | 03-26 09:00 | from home call
tomorrow by 5pm send the report | 03-26 17:00 | send the report
tomorrow around 7pm call Ann | 03-26 19:00 | call Ann
send the report by 17:00 | 03-25 17:00 | send the report
demain vers 19h appeler Ann | 03-26 19:00 | appeler Ann
mañana sobre las 9 llamar | 03-26 09:00 | llamar
завтра около 9 позвонить | 03-26 09:00 | позвонить
at 12 at night x | 03-26 00:00 | x
at 3 at night x | 03-26 03:00 | x
at 11 at night x | 03-25 23:00 | x
tomorrow at 12 at night x | 03-27 00:00 | x
a las 12 de la noche x | 03-26 00:00 | x
um 12 Uhr abends x | 03-26 00:00 | x
à 12h du soir x | 03-26 00:00 | x
every friday night at 1 x | 03-28 01:00 | every Saturday | x
每周五晚上12点睡觉 | 03-28 00:00 | every Saturday | 睡觉
on the 28th of next month pay | 04-28 09:00 | pay
on the 28th next month at 10 pay | 04-28 10:00 | pay
at the end of next month pay | 04-30 09:00 | pay
am 28. des nächsten Monats zahlen | 04-28 09:00 | zahlen
am Ende des nächsten Monats zahlen | 04-30 09:00 | zahlen
le 28 du mois prochain payer | 04-28 09:00 | payer
à la fin du mois prochain payer | 04-30 09:00 | payer
el 28 del próximo mes pagar | 04-28 09:00 | pagar
28 числа следующего месяца оплатить | 04-28 09:00 | оплатить
下个月底交税 | 04-30 09:00 | 交税
""".strip().splitlines()


def found(text: str) -> tuple[str, When]:
    when = read(text, NOW, BERLIN)
    return f"{datetime.fromtimestamp(when.due, BERLIN):%d %H:%M:%S}", when


def as_read(text: str) -> list[str]:
    """Return the rest of a line of the tables."""
    try:
        local, when = found(text)
    except (BadTime, NoTime) as error:
        return [str(error)]
    return [local[:-3], when.rule.said, when.rest] if when.rule else [local, when.rest]


@pytest.mark.parametrize("lines", [ONCE, REPEATED], ids=["once", "again"])
def test_a_time_and_what_is_to_be_said(lines: list[str]):
    wrong = []
    for line in lines:
        text, *expected = line.split(" | ")
        if (read_as := as_read(text)) != expected:
            wrong.append(f"{line}, but read as {read_as}")
    assert not wrong, "\n".join(wrong)


def test_how_people_say_times():
    wednesday, wrong = datetime(2026, 3, 25, 14, 30, tzinfo=BERLIN).timestamp(), []
    for line in EVERYDAY:
        text, *expected = line.split(" | ")
        when = read(text, wednesday, BERLIN)
        local = f"{datetime.fromtimestamp(when.due, BERLIN):%m-%d %H:%M}"
        if (said := [local, *([when.rule.said] if when.rule else []), when.rest]) != expected:
            wrong.append(f"{line}, but read as {said}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("2027-01-31 08:00 x", "2027-01-31 08:00"),
        ("2027-01-31T08:00 x", "2027-01-31 08:00"),
        ("on 2027-01-31 at 08:00 x", "2027-01-31 08:00"),
        ("on 5 December at 10 x", "2026-12-05 10:00"),
        ("december 5th at 10am x", "2026-12-05 10:00"),
        ("5.12. um 10 Uhr x", "2026-12-05 10:00"),
        ("24.12.2026 x", "2026-12-24 09:00"),
        ("29 february x", "2028-02-29 09:00"),
        ("5月3日 x", "2027-05-03 09:00"),
        ("in 2 weeks x", "2026-12-07 14:05"),
        ("in 3 months x", "2027-02-23 14:05"),
        ("every month on the 5th at 9 x", "2026-12-05 09:00"),
        ("monthly on the 31st x", "2026-11-30 09:00"),
        ("every year on december 24 x", "2026-12-24 09:00"),
    ],
)
def test_dates(text: str, due: str):
    _, when = found(text)
    assert f"{datetime.fromtimestamp(when.due, BERLIN):%Y-%m-%d %H:%M}" == due
    assert when.rest == "x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tea",
        "5 apples",
        "call mom",
        "in a while tea",
        "2 days before christmas",
        "10 minutes before noon tea",
        "10分钟前开会",
        "buy cable 5m",
        "am 1. Advent",
        "3号线停运",
        "😀" * 200,
    ],
)
def test_no_time_is_guessed(text: str):
    with pytest.raises(NoTime):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("today at 10 x", "2026-11-23 10:00 is in the past: it is Monday, 2026-11-23 14:05 now (Europe/Berlin)."),
        ("2026-01-31 08:00 x", "2026-01-31 08:00 is in the past"),
        ("yesterday at 9 x", "2026-11-22 09:00 is in the past"),
        ("in 1000000 years x", "too far away"),
        ("in 999999999 days x", "too far away"),
        ("in 999999999 hours x", "too far away"),
        ("1000000-01-01 x", "The year 1000000 is too far away"),
        ("31 february x", "There is no day 31 in the month 2."),
        ("2027-13-01 x", "There is no day 1 in the month 13 of 2027."),
        ("25:00 x", '"25:00" is no time of day'),
        ("every 5000 days x", "a number from 1 to 1,000"),
        ("every 0 minutes x", "a number from 1 to 1,000"),
        ("every 5 seconds x", "more often than each minute"),
        ("at 5pm call mum tomorrow", 'two times, "at 5pm" and "tomorrow"'),
        ("every weekday except friday at 9 x", "I cannot leave out days"),
        (
            "every evening at 8 and every morning at 7 x",
            'two times, and I can keep one at a time: "every evening at 8"',
        ),
        ("tomorrow before 8 call", 'I need one time of day, not "before 8"'),
        ("tomorrow from 2 to 3 meeting", 'not "from 2"'),
        ("tomorrow 3-4 meeting", 'not "3-4"'),
        ("morgen ab 8 Uhr anrufen", 'not "ab 8 Uhr"'),
        ("in two weeks on friday x", "Say its date"),
        ("in 2 Wochen am Freitag x", "Say its date"),
        ("every fifth monday of the month x", "Not every month has a fifth one"),
        ("every month on the 5th friday x", "Not every month has a fifth one"),
        ("every day at 8 and 20 pills", 'keep one at a time: "every day at 8"'),
        ("tomorrow at 5 or 6 call", 'keep one at a time: "tomorrow at 5"'),
        ("morgen um 9 oder 10 Tabletten", "keep one at a time"),
        ("mañana a las 9 o 10 llamar", "keep one at a time"),
        ("每天8点和20点吃药", "keep one at a time"),
        ("每天8点、20点吃药", "keep one at a time"),
        ("tomorrow at 3-4 pm meeting", "one time of day at a time"),
        ("завтра в 14-30 врач", 'behind "завтра в 14"'),
        ("завтра в полвосьмого врач", 'behind "завтра"'),
        ("завтра в половине восьмого врач", 'behind "завтра"'),
        ("tomorrow at 0730 train", 'behind "tomorrow"'),
        ("下个月一号交房租", 'behind "下个月"'),
        ("每周一三五七点跑步", 'behind "每周一"'),
        ("明日の朝7時に薬", 'behind "明日"'),
        ("Montag in einer Woche um 9 Zahnarzt", "cannot tell which day"),
        ("every day at 8, 12 and 18 pills", "one time of day at a time"),
        ("every day 8:00, 20:00 pills", "one time of day at a time"),
        ("noon meeting tomorrow at 11", 'two times, "noon" and "tomorrow at 11"'),
    ],
)
def test_a_time_that_cannot_be_says_why(text: str, sentence: str):
    with pytest.raises(BadTime, match=re.escape(sentence)):
        read(text, NOW, BERLIN)


def test_an_exact_time_has_nothing_beside_it():
    assert read_exactly("2026-11-24T09:00:00+00:00", NOW, BERLIN).start == datetime(2026, 11, 24, 10)
    assert read_exactly("2026-11-24T09:00", NOW, BERLIN).start == datetime(2026, 11, 24, 9)
    assert read_exactly(" tomorrow 09:00 ", NOW, BERLIN).start == datetime(2026, 11, 24, 9)
    with pytest.raises(NoTime):
        read_exactly("tomorrow 09:00 tea", NOW, BERLIN)
    with pytest.raises(NoTime):
        read("3時間後に薬", NOW, BERLIN)  # "in 3 hours", and no 3 o'clock
    with pytest.raises(BadTime):
        read_exactly("2026-11-22T09:00:00Z", NOW, BERLIN)


def test_a_span_goes_by_the_calendar_where_the_clocks_change():
    before = datetime(2026, 10, 24, 12, tzinfo=BERLIN).timestamp()
    assert read("in 1 day x", before, BERLIN).due - before == 25 * 3_600
    assert read("in 24 hours x", before, BERLIN).due - before == 24 * 3_600
    night = datetime(2026, 3, 28, 12, tzinfo=BERLIN).timestamp()
    assert read("tomorrow at 2:30 x", night, BERLIN).due == datetime(2026, 3, 29, 3, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2027-03-28 02:30 x", "2027-03-28 03:00+02:00"),  # the night has no 02:30
        ("2027-10-31 02:30 x", "2027-10-31 02:30+02:00"),  # the night has two
        ("2027-10-31 03:00 x", "2027-10-31 03:00+01:00"),
        ("every day at 2:30 x", "2026-11-24 02:30+01:00"),
    ],
)
def test_a_time_in_the_night_when_the_clocks_change_is_one_moment(said: str, moment: str):
    assert read(said, NOW, BERLIN).due == datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize("unit", ["x", "1 ", "monday ", "每", "in 1h ", " ", "(", "every ", "at 9 ", "1h"])
def test_only_the_two_ends_of_a_long_text_are_read(unit: str, monkeypatch: pytest.MonkeyPatch):
    longest = 0

    def scanned(text: str, at: int) -> Any:
        nonlocal longest
        longest = max(longest, len(text))
        return scan(text, at)

    scan = reading.scan
    monkeypatch.setattr(reading, "scan", scanned)
    with suppress(NoTime, BadTime):
        read(unit * 200_000, NOW, BERLIN)
    assert longest <= 121


@pytest.mark.parametrize(
    "said", ["in 1h30 tea", "tea in 1h30", "in 1 h 30 tea", "dans 1h30 tea", "in 1h30m tea", "1h30m tea"]
)
def test_hours_and_minutes_in_one_word_are_read_whole(said: str) -> None:
    found = read(said, NOW, BERLIN)
    assert (found.due - NOW, found.rest) == (5_400.0, "tea")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("in 1h 30 minutes tea", 5_400),
        ("in 1h 30 min tea", 5_400),
        ("tea in 1h 30 Minuten", 5_400),
        ("en 1 h 30 minutos tea", 5_400),
        ("1h 30 minutes tea", 5_400),
        ("in 1h 30 seconds tea", 3_630),
    ],
)
def test_after_hours_the_name_of_a_unit_belongs_to_its_number(said: str, seconds: int) -> None:
    found = read(said, NOW, BERLIN)
    assert (found.due - NOW, found.rest) == (seconds, "tea")


def test_after_an_hour_of_the_day_they_are_a_time_of_day() -> None:
    assert read("à 14h30 dentiste", NOW, BERLIN).rest == read("14h30 dentiste", NOW, BERLIN).rest == "dentiste"


@pytest.mark.parametrize("said", ["in 10min5 tea", "in 1h305 tea", "in 1h30:5 tea"])
def test_a_time_that_is_not_understood_whole_is_asked_for(said: str) -> None:
    with pytest.raises(BadTime, match="I cannot read all of"):
        read(said, NOW, BERLIN)
