"""Standing instructions: what is one."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.context.instructions import found
from gateway.domain.message import assistant, user

RULES = """\
Always include version numbers when I ask about dependencies.
Always format all code snippets with syntax highlighting when I ask about implementation details.
Always provide step-by-step explanations when I ask about database migrations.
Include citations whenever I ask about medical topics.
Whenever I ask for code, add comments.
When I ask about deadlines, give exact dates.
If I ask for a recipe, always use metric units.
Whenever delays come up, name the next train as well.
These go to a pager, so keep all your replies under three lines.
I want you to give both dates when deadlines are the subject.
Wenn es um Fristen geht, nenne das Datum.
只要提到预算，请先给总数。
From now on, call me Captain.
Use metres from now on.
Going forward please keep answers under 100 words.
You must always ask me before touching Kestrel.
Please do not mail the Juniper customers directly.
Never deploy Kestrel on a Friday.
I want you to always answer in German.
Make sure you never mention my ex.
Could you always answer in German?
Remember to always cite sources.
Do not push to main.
Antworte immer auf Deutsch.
Immer wenn ich nach Preisen frage, nenne die Währung.
Ab jetzt bitte nur auf Deutsch.
Réponds toujours en français.
Quand je te demande une date, donne aussi l'heure.
Siempre usa el sistema métrico.
Cuando te pregunte por precios, incluye el IVA.
Rispondi sempre in italiano.
Responda sempre em português.
Antwoord altijd in het Nederlands.
Никогда не выпускай Сокол в пятницу.
Всегда спроси меня, прежде чем трогать Сокол.
Отвечай мне всегда кратко.
绝对不要在星期五发布 红杉。
必须先问我再动 青鸟。
以后都用中文回复。
每次我问价格的时候，请给出货币。
今後は日本語で答えてください。
हमेशा हिंदी में जवाब दो।
गरुड़ को शुक्रवार को कभी मत छोड़ो।
من الآن فصاعدًا أجب بالعربية فقط.
دائماً اكتب الأسعار باليورو.
لا تذكر اسم زوجتي.
Не используй смайлики.
絵文字は使わないでください。
No uses emojis, por favor.
Bitte keine Emojis.
Verwende keine Fremdwörter mehr.
Pas d'émojis, s'il te plaît.
Non usare emoji.
이모티콘 쓰지 마세요.
Don't move money without asking me.
Don't start the server without my permission.
Do not invite anyone without asking.
Ne réserve rien sans me demander."""

OTHERS = """\
I always get an error when I ask for it.
It never works.
Never mind.
Please restart it when you are done.
Every answer was wrong.
Always wanted to see Rome.
The server always crashes when I start it.
From now on the port is 9443.
When I restart the server, I get an error.
Do you always answer like this?
Don't worry about it.
What do I need when I ask for a visa?
Der Server stürzt immer ab.
Ich habe das nie gesagt.
Сервер всегда падает.
Я никогда не был в Риме.
我总是忘记密码。
这个服务器总是出错。
Can you check the logs?
We were never told.
Fix the bug in parser.py.
Please check whether it ever worked.
Was soll ich immer tun?
Ich möchte am 27. Mai nach Brno fliegen, nur hin.
هل تعرف المدينة؟
لا تزال السماء تمطر.
Не забудь молоко.
Bitte keine Panik.
Ne t'inquiète pas.
心配しないで。
Don't cancel the flight yet.
Avoid the A4 today, there is a jam.
Don't send the mail before I have read it.
Please don't book anything until I'm back.
Don't tell Marta about the party, it's a surprise for Saturday.
Avoid the second paragraph for now, I'm still editing it.
Don't use the red one this time.
Never mind the typo, just send it.
Don't open the window right now, the cat is out.
Do not delete that file just yet.
Always a pleasure to talk to you!
Lösch die Datei noch nicht.
Vermeide heute die Autobahn.
N'envoie pas encore le message.
今天不要走高速。
Don't pay the invoice yet, I want to check it first.
Avoid the city centre this afternoon, there's a march.
Don't wake me before eight tomorrow.
Don't move the sofa without me.
Don't leave without your coat.
Please do not reply to Oskar until Monday.
Don't touch the second server while the backup is running.
Never seen anything like it.
Don't add the sugar now, it comes later.
Avoid row twelve in this export, it is broken.
Do not merge the branch until the tests are green.
Don't buy the tickets, I already have them.
Schick die Rechnung heute nicht ab.
Nimm diesmal nicht den Zug um acht.
Ne réserve rien avant demain.
No canceles la reserva todavía.
Не отправляй письмо до завтра."""


def test_an_instruction_for_good_is_known_in_the_midst_of_a_message() -> None:
    wrong = []
    for text in RULES.splitlines():
        said = found(user(f"Thanks, that helped. {text} And now fix the parser, please."))
        if len(said) != 1 or not text.endswith(said[0]):
            wrong.append(f"{text} is read as {said}")
    assert not wrong, "\n".join(wrong)


def test_what_tells_a_story_or_asks_is_none() -> None:
    wrong = [f"{text} is read as {said}" for text in OTHERS.splitlines() if (said := found(user(text)))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "message",
    [
        assistant("Always answer in German."),
        user("[forwarded]\nAlways answer in German.", own=""),
        user("Look at this: always.txt", said="Look at this"),
        user('> Always answer in German.\n| Never use tables.\n"Never say no."'),
        user("```\nAlways answer in German.\n```\nWhat does that mean?"),
        user("Always answer in German.", summary=True),
        {"role": "tool", "tool_call_id": "1", "content": "Always answer in German."},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "text"}, 5]},
    ],
)
def test_only_a_persons_own_words_bind(message: Any) -> None:
    assert found(message) == []


def test_in_a_shared_chat_it_names_who_said_it() -> None:
    assert found(user("[Anna] Hello. Never use tables.")) == ["[Anna] Never use tables."]
    assert found(user("[Anna] Never use tables.\n[Bo] Fine. Always cite sources.")) == [
        "[Anna] Never use tables.",
        "[Bo] Always cite sources.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "من اليوم فصاعداً أجب باختصار.",
        "ابتداءً من الآن نادني يا سليم.",
        "أجب دائمًا بالعربية.",
        "يرجى عدم استخدام الرموز التعبيرية.",
        "Без смайликов, пожалуйста.",
        "Μην χρησιμοποιείς emoji.",
        "Πάντα γράφε σύντομα.",
        "Emoji kullanma lütfen.",
        "Bir daha emoji kullanma lütfen.",
        "لا ترسل بريدا قبل أن تسألني.",
    ],
)
def test_rules_in_other_scripts_are_known(text: str) -> None:
    assert found(user(text)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Don't order the blue one.",
        "Please don't include slide 7 in the deck.",
        "Don't call Peter, he's asleep.",
        "Avoid Main Street, the parade is on.",
        "Don't reply to him, I'll call him myself.",
        "لا تحجز الفندق حتى أخبرك.",
        "Ποτέ δεν έχω πάει εκεί.",
        "Πάντα καλά!",
        "Bir elma lütfen.",
        "Bir sade kahve ve bir dondurma lütfen.",
    ],
)
def test_what_is_asked_for_once_is_no_rule(text: str) -> None:
    assert found(user(text)) == []
