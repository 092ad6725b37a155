"""Messages that are rules for good, and messages that only begin like one."""

from __future__ import annotations

from gateway.domain.rule import states_rule

RULES = """\
Never push to main.
never use emojis
Always answer in French
please always keep your answers under 100 words!
Please, never mention my ex
Don't ever delete files without asking
From now on, call me Captain
From now on you must reply in German
from now on don’t use tables
Always call me "Bob"
Never run `git push --force`
Antworte immer auf Deutsch
Bitte antworte mir immer auf Deutsch.
Schreib nie Emojis
Verwende niemals Tabellen
Immer auf Deutsch antworten
Bitte nie ohne Rückfrage löschen!
Ab jetzt bitte nur noch auf Deutsch antworten
Ab sofort nenn mich Chef
Künftig keine Emojis verwenden
Responde siempre en español
Siempre usa el sistema métrico
Nunca uses emojis
Por favor, no me llames nunca por mi apellido
A partir de ahora, no uses tablas
Réponds toujours en français
N'utilise jamais d'emojis
N’utilisez plus jamais le futur
S'il te plaît, ne mentionne jamais mon âge
Toujours répondre en français
Désormais, tutoie-moi partout
Всегда отвечай по-русски
Пожалуйста, никогда не используй эмодзи
Никогда больше не удаляй файлы
Отвечай мне всегда кратко
Впредь называй меня Иваном
永远不要使用表情符号
请始终用中文回答我。
以后都用中文回复
从现在起，请叫我老王
請總是用繁體中文
绝不要删除文件
務必先問我再刪除
Always include version numbers when I ask about a library
Never use tables if I ask for a summary
From now on answer briefly whenever I write in German
Always show the sources every time I need a figure"""

OTHERS = """\

never
Always
Never mind
Never again!
Always include what I said
Never tell anybody what happened when I called
Always use the one that worked the last time I asked
Always ask whether I agree
Never heard of it
Never been to Rome
Always wanted to see Rome
Always a pleasure
Always happy to help you
Always keep forgetting my keys
Never do that again
Never use it
Always tell them this
Never say never
Always use tabs?
Should I always use tabs
Is it true that you never sleep
Don't always answer in French
Do not use emojis
Not always
You never answer in French
I always answer in French
We never use emojis
"Never use emojis" is what he said
“Always answer in French”
> Always answer in French
`always @(posedge clk)`
always @(posedge clk) q <= d
never { do :: skip od }
Always use tabs. And now fix main.py
Never use emojis! What time is it
Always use tabs; today write a poem
Never use emojis\\nWrite a poem about spring
From now on I answer in French
From now on it rains
From now on we use tabs
Nie wieder!
Nie davon gehört
Immer noch nichts gefunden
Immer wieder vergesse ich zu antworten
Nie würde ich dir auf Deutsch antworten
Immer das Gleiche mit den Leuten
Immer muss man alles prüfen
Antworte auf Deutsch
Nunca más
Nunca he usado emojis
Siempre he querido ir a Roma
Responde en español
Toujours la même chose
Jamais vu une chose pareille
Réponds en français
Всегда хотел увидеть Рим
Никогда не был в Риме
Отвечай по-русски
永远爱你
我永远不要再去了
以后我会用中文回答
以后再说吧
永远不会忘记
以后都用中文回答吗
一直用这个手机
别告诉他"""


def test_a_rule_is_known() -> None:
    unknown = [text for text in RULES.split("\n") if not (states_rule(text) and states_rule(f"  {text}\n"))]
    assert not unknown, "\n".join(unknown)


def test_what_only_begins_like_one_is_not() -> None:
    taken = [line for line in OTHERS.split("\n") if states_rule(line.replace("\\n", "\n"))]
    assert not taken, "\n".join(taken)


def test_a_question_or_something_long_is_none() -> None:
    for rule in RULES.split("\n"):
        assert not states_rule(rule.rstrip(".!。") + "?")
        assert not states_rule(f"{rule.rstrip('.!。')} {'and so on ' * 20}")


def test_accents_may_be_written_apart() -> None:
    assert states_rule("Re\u0301ponds toujours en franc\u0327ais")
