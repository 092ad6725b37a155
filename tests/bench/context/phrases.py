"""The words of customers who come back, in English, German and Chinese.

Nothing here is worded for our own rules: a rule is said as people say one, inside a longer sentence or in passing,
and a question asks for a thing in other words than those in which it was told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final


def _words(line: str) -> list[str]:
    return line.split()


LANGUAGES: Final = ("en", "en", "en", "de", "zh")  # as often as people speak them here

FIRST: Final = _words(
    "Mia Noah Emma Liam Olivia Raj Sofia Yusuf Mei Daiki Ivan Fatima Lucas Aarav Chen Harper Isabella Ethan Ava Omar "
    "Sophia Mason Juan James Evelyn Anya Lei Mohamed Aisha Daniel"
)
LAST: Final = _words(
    "Li Rossi Silva Kovacs Patel Santos Garcia Khan Lopez Nguyen Moore Ito Hernandez Muller Wilson Anderson Kim Smith "
    "Brown Johnson Davis Lee Martin Taylor Jackson Thomas Petrov Okafor Haddad Weber"
)
CITIES: Final = _words(
    "Porto Graz Lyon Bergen Turin Gdansk Riga Basel Ghent Cork Malmö Split Zadar Leeds Pisa Tampere Brno Aarhus Bilbao "
    "Cluj Kaunas Lviv Nantes Oulu Patras Rennes Sopot Trento Uppsala Varna"
)
THINGS: Final[Mapping[str, Sequence[str]]] = {
    "en": _words("kettle jigsaw backpack keyboard lamp tablet camera blender bookshelf helmet jacket speaker"),
    "de": _words("Wasserkocher Rucksack Tastatur Lampe Kamera Mixer Regal Helm Jacke Lautsprecher Staubsauger Zelt"),
    "zh": _words("水壶 拼图 背包 键盘 台灯 平板 相机 搅拌机 书架 头盔 夹克 音箱"),
}
PROGRAMS: Final = _words(
    "nginx Postgres Grafana Jenkins Kafka Redis Terraform Ansible Celery RabbitMQ Vault Consul Traefik Airflow "
    "Keycloak MinIO Nomad Loki Envoy Zabbix"
)
MONTHS: Final = (
    _words("January February March April May June July August September October November December"),
    _words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
)
KIN: Final[Mapping[str, Sequence[str]]] = {
    "en": ("sister", "brother", "cousin", "neighbour", "aunt", "flatmate"),
    "de": ("Schwester", "Cousine", "Nachbarin", "Tante", "Mitbewohnerin", "Chefin"),
    "zh": ("姐姐", "弟弟", "表妹", "邻居", "阿姨", "室友"),
}

# -- greetings -------------------------------------------------------------------------------------

HELLO: Final[Mapping[str, Sequence[str]]] = {
    "en": ("Hi, this is {name}.", "Hello, {name} here.", "Good morning! My name is {name}."),
    "de": ("Hallo, hier ist {name}.", "Guten Tag, mein Name ist {name}."),
    "zh": ("你好，我是{name}。", "您好，我叫{name}。"),
}
AGAIN: Final[Mapping[str, Sequence[str]]] = {
    "en": ("Hi, {name} again.", "It's {name}, I was here before.", "{name} once more, sorry to bother you."),
    "de": ("Hallo, hier noch einmal {name}.", "{name} wieder, wir kennen uns schon."),
    "zh": ("你好，又是我，{name}。", "我是{name}，之前联系过你们。"),
}
KNOWN_AS: Final[Mapping[str, str]] = {
    "en": "My user id is {value}.",
    "de": "Meine Benutzerkennung ist {value}.",
    "zh": "我的用户名是{value}。",
}
THANKS: Final[Mapping[str, Sequence[str]]] = {
    "en": ("Great, thank you.", "Perfect, that is all.", "Thanks, bye for now."),
    "de": ("Prima, danke.", "Sehr gut, das war alles."),
    "zh": ("好的，谢谢。", "没问题了，再见。"),
}
WELCOME: Final[Mapping[str, Sequence[str]]] = {
    "en": ("You are welcome. Anything else I can do?", "Happy to help. Have a good day."),
    "de": ("Gern geschehen. Kann ich sonst noch etwas tun?",),
    "zh": ("不客气，还有什么可以帮您？",),
}

# -- what is said, by the kind of a matter and of a value ------------------------------------------

TOLD: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("trip", "code"): {
        "en": "It is booked: the confirmation code for {about} is {value}.",
        "de": "Gebucht: der Buchungscode für {about} lautet {value}.",
        "zh": "已经订好了：{about}的确认号是{value}。",
    },
    ("trip", "day"): {
        "en": "I would like to fly to {about} on {value}, just one way.",
        "de": "Ich möchte am {value} nach {about} fliegen, nur hin.",
        "zh": "我想{value}飞往{about}，单程。",
    },
    ("trip", "price"): {
        "en": "Your ticket to {about} comes to {value} with one bag.",
        "de": "Das Ticket nach {about} kostet mit einem Koffer {value}.",
        "zh": "去{about}的机票含一件行李共{value}。",
    },
    ("order", "price"): {
        "en": "The {about} was charged at {value}.",
        "de": "Für {about} wurden {value} abgebucht.",
        "zh": "{about}的扣款是{value}。",
    },
    ("ticket", "version"): {
        "en": "We run {about} {value} on the small cluster.",
        "de": "Bei uns läuft {about} {value} auf dem kleinen Cluster.",
        "zh": "我们的小集群上跑的是{about} {value}。",
    },
    ("ticket", "path"): {
        "en": "I moved the config of {about} to {value} yesterday.",
        "de": "Die Konfiguration von {about} liegt seit gestern unter {value}.",
        "zh": "{about}的配置昨天移到了{value}。",
    },
    ("talk", "day"): {
        "en": "By the way, my {about} gets married on {value}.",
        "de": "Übrigens: meine {about} heiratet am {value}.",
        "zh": "对了，我{about}{value}结婚。",
    },
}

# Asked plainly, asked in other words, and asked by the code instead of the matter ("" where nobody would).
ASKED: Final[Mapping[tuple[str, str], Mapping[str, tuple[str, str, str]]]] = {
    ("trip", "code"): {
        "en": (
            "What was the confirmation code for {about}?",
            "Which letters do I type at the airport machine for {about}?",
            "",
        ),
        "de": (
            "Wie war der Buchungscode für {about}?",
            "Was tippe ich am Automaten ein, wenn ich nach {about} will?",
            "",
        ),
        "zh": ("{about}的确认号是什么？", "去{about}值机要输入什么？", ""),
    },
    ("trip", "day"): {
        "en": ("When do I fly to {about}?", "On which date am I off to {about}?", "When does {code} leave?"),
        "de": ("Wann fliege ich nach {about}?", "An welchem Tag geht es los nach {about}?", "Wann geht {code}?"),
        "zh": ("我什么时候飞往{about}？", "去{about}是哪一天出发？", "{code}是哪天？"),
    },
    ("trip", "price"): {
        "en": (
            "What did the ticket to {about} come to?",
            "How much did {about} set me back?",
            "What did I pay for {code}?",
        ),
        "de": (
            "Was kostete das Ticket nach {about}?",
            "Wie viel habe ich für {about} ausgegeben?",
            "Was hat {code} gekostet?",
        ),
        "zh": ("去{about}的机票多少钱？", "{about}那趟花了我多少？", "{code}花了多少钱？"),
    },
    ("order", "price"): {
        "en": ("What was charged for the {about}?", "How much money went into the {about}?", "What did {code} cost?"),
        "de": ("Was wurde für {about} abgebucht?", "Wie teuer war {about} noch mal?", "Was hat {code} gekostet?"),
        "zh": ("{about}扣了多少钱？", "买{about}花了多少？", "{code}多少钱？"),
    },
    ("ticket", "version"): {
        "en": ("Which {about} do we run?", "What release of {about} is installed over here?", ""),
        "de": ("Welches {about} läuft bei uns?", "Auf welchem Stand ist {about} hier?", ""),
        "zh": ("我们跑的是哪个{about}？", "这里装的{about}是什么版本？", ""),
    },
    ("ticket", "path"): {
        "en": ("Where did I move the config of {about}?", "Which file holds the settings for {about} these days?", ""),
        "de": ("Wo liegt die Konfiguration von {about}?", "In welcher Datei stehen die Einstellungen von {about}?", ""),
        "zh": ("{about}的配置移到哪里了？", "{about}的设置文件在哪？", ""),
    },
    ("talk", "day"): {
        "en": ("When does my {about} get married?", "What is the date of the wedding in my family, my {about}'s?", ""),
        "de": ("Wann heiratet meine {about}?", "An welchem Tag ist die Hochzeit meiner {about}?", ""),
        "zh": ("我{about}什么时候结婚？", "我{about}的婚礼是哪天？", ""),
    },
}

# Nobody asks for the value, but what is to be done cannot be done without it.
TO_DO: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("trip", "code"): {
        "en": "Please check me in for {about}.",
        "de": "Bitte checke mich für {about} ein.",
        "zh": "请帮我办理{about}的值机。",
    },
    ("trip", "gate"): {
        "en": "Put the seat for {about} on the same payment as then.",
        "de": "Buche den Sitzplatz für {about} auf dieselbe Zahlung wie damals.",
        "zh": "{about}的选座用当时那个付款方式。",
    },
    ("trip", "price"): {
        "en": "I could not go to {about} after all, refund the whole ticket.",
        "de": "Aus {about} wurde nichts, erstatte mir bitte das ganze Ticket.",
        "zh": "{about}没去成，请全额退票。",
    },
    ("order", "order"): {
        "en": "Where is the {about} that I ordered?",
        "de": "Wo bleibt mein Paket mit {about}?",
        "zh": "我买的{about}到哪了？",
    },
    ("order", "item"): {
        "en": "Can I swap the {about} for a blue one?",
        "de": "Kann ich {about} in Blau haben?",
        "zh": "{about}能换成蓝色的吗？",
    },
    ("order", "before"): {
        "en": "Cancel the order that stands before the one with the {about} in my list.",
        "de": "Storniere die Bestellung, die in meiner Liste vor der mit {about} steht.",
        "zh": "请取消列表里排在{about}前面的那个订单。",
    },
    ("account", "card"): {
        "en": "Put ten more on my gift card, please.",
        "de": "Lade bitte zehn Euro auf meinen Gutschein.",
        "zh": "请给我的礼品卡充值十元。",
    },
    ("ticket", "case"): {
        "en": "Any news on the trouble with {about}? Add that it happened twice today.",
        "de": "Gibt es Neues zu dem Ärger mit {about}? Trag nach, dass es heute zweimal auftrat.",
        "zh": "{about}的问题有进展吗？请补充：今天又发生了两次。",
    },
    ("ticket", "path"): {
        "en": "Have a look whether the config of {about} still has the old port.",
        "de": "Sieh nach, ob in der Konfiguration von {about} noch der alte Port steht.",
        "zh": "看看{about}的配置里是不是还是旧端口。",
    },
}
TOGETHER: Final[Mapping[str, str]] = {
    "en": "What do {one} and {other} come to together?",
    "de": "Was kosten {one} und {other} zusammen?",
    "zh": "{one}和{other}一共多少钱？",
}
CHANGED: Final[Mapping[str, Mapping[str, str]]] = {
    "day": {
        "en": "I have to change {about}: not {former} any more, it is {value} now.",
        "de": "Bei {about} ändert sich etwas: nicht mehr {former}, sondern {value}.",
        "zh": "{about}要改一下：不再是{former}，改为{value}。",
    },
    "price": {
        "en": "After the change {about} is {value} instead of {former}.",
        "de": "Nach der Änderung kostet {about} {value} statt {former}.",
        "zh": "改动之后{about}从{former}变成{value}。",
    },
    "version": {
        "en": "We upgraded {about} from {former} to {value} last night.",
        "de": "Wir haben {about} gestern von {former} auf {value} gebracht.",
        "zh": "昨晚我们把{about}从{former}升级到了{value}。",
    },
}

# Standing instructions, and the part of each that must not get lost.
RULES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "en": (
        ("{}.", "Always include version numbers when I ask about {topic}"),
        ("{}, please.", "When I ask you about {topic}, give the price in euros first"),
        ("Thanks for that. {}.", "Whenever {topic} comes up, answer in bullet points"),
        ("{}.", "If I ask for help with {topic}, mention the rollback step as well"),
        ("One more thing: {}.", "from now on never suggest {topic} without naming an alternative"),
        ("{}, I keep forgetting it.", "Remind me of the opening hours each time we talk about {topic}"),
        ("I read these on my phone, so {}.", "keep every answer about {topic} under five lines"),
        ("{}.", "Don't ever book {topic} for me without asking first"),
        ("{}.", "I want you to spell out all abbreviations when {topic} is the subject"),
        ("Please note that {}.", "I always need the weekday beside a date in anything on {topic}"),
    ),
    "de": (
        ("{}.", "Nenne immer die Versionsnummer, wenn ich nach {topic} frage"),
        ("Ab jetzt gilt: {}.", "bei {topic} bitte zuerst den Preis in Euro"),
        ("{}, bitte.", "Wenn es um {topic} geht, antworte in Stichpunkten"),
        ("Noch etwas: {}.", "schlage mir {topic} nie ohne eine Alternative vor"),
    ),
    "zh": (
        ("{}。", "以后我问{topic}的时候，一定要写上版本号"),
        ("{}。", "只要说到{topic}，请用要点回答"),
        ("{}，谢谢。", "每次提到{topic}都先告诉我价格"),
    ),
}
ABOUT_RULE: Final[Mapping[str, str]] = {
    "en": "Now, what can you tell me about {topic}?",
    "de": "So, was kannst du mir zu {topic} sagen?",
    "zh": "那么，{topic}是怎么回事？",
}
TOPICS: Final[Mapping[str, Sequence[str]]] = {
    "en": (
        "web frameworks", "rail passes", "hotel deposits", "coffee grinders", "tent repair", "night buses", "tax forms",
        "garden hoses", "car rentals", "travel insurance", "museum tickets", "bread ovens", "ferry routes", "ski hire",
        "dental cover", "language courses", "desk lamps", "phone plans", "house plants", "city maps", "bike locks",
        "data exports", "mail filters", "audio codecs", "static analysers", "queue brokers", "load tests", "fonts",
        "log shippers", "type checkers", "test doubles", "feature toggles", "schema changes", "cron jobs",
    ),
    "de": ("Bahnkarten", "Hotelkaution", "Zeltreparatur", "Nachtbusse", "Steuerformulare", "Reiseschutz", "Fährlinien",
           "Sprachkurse", "Handytarife", "Stadtpläne", "Fahrradschlösser", "Lasttests"),
    "zh": ("网页框架", "火车通票", "酒店押金", "咖啡机", "夜班车", "报税表", "租车", "旅行保险", "博物馆门票", "轮渡",
           "语言课程", "手机套餐"),
}  # fmt: skip

REPLIES: Final[Mapping[str, tuple[str, str]]] = {  # when something was done, and a few words about nothing
    "en": ("Done, I have taken care of {about}.", "Let me look that up for you."),
    "de": ("Erledigt, um {about} habe ich mich gekümmert.", "Ich sehe gleich nach."),
    "zh": ("{about}已经处理好了。", "我来查一下。"),
}
