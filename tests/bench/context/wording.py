"""The words conversations are made of, in four languages: English, Chinese, Russian and Hindi.

Nothing here holds an identifier; those are put in by `facts` and `bulk`. Subjects are a code name and a
thing, so that a few hundred of them are all different.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CODENAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "Kestrel", "Juniper", "Halyard", "Obsidian", "Marlin", "Tamarind", "Quartz", "Lantern", "Bramble", "Cobalt",
        "Ember", "Fathom", "Gannet", "Heron", "Indigo", "Jasper", "Larch", "Mistral", "Nettle", "Osprey", "Pewter",
        "Rowan", "Saffron", "Thistle", "Umber", "Vesper", "Willow", "Yarrow", "Zephyr", "Alder",
    ),
    "zh": ("红杉", "青鸟", "玄武", "白鹭", "长庚", "银杏", "墨竹", "沧浪", "鹿鸣", "云雀", "石榴", "松涛"),
    "ru": ("Сокол", "Маяк", "Гранит", "Рябина", "Байкал", "Кедр", "Ладога", "Вереск", "Полюс", "Янтарь", "Чайка",
           "Эльбрус"),
    "hi": ("गरुड़", "हिमालय", "कमल", "सागर", "नीलम", "वज्र", "चंदन", "मयूर", "अरुणा", "तारा", "पलाश", "केसर"),
}  # fmt: skip

THINGS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "en": {
        "path": ("export folder", "settings file", "backup script", "audit log", "report template"),
        "url": ("dashboard", "status page", "staging address", "issue board", "webhook"),
        "id": ("release ticket", "customer account", "test order", "nightly build", "support case"),
        "measure": ("upload limit", "retention period", "monthly budget", "request timeout", "memory quota"),
        "code": ("import error", "login failure", "sync failure", "payment refusal", "upload error"),
        "name": ("feature flag", "invoice table", "hotfix branch", "mail queue", "cache switch"),
    },
    "zh": {
        "path": ("导出目录", "配置文件", "备份脚本", "审计日志", "报表模板"),
        "url": ("监控面板", "状态页面", "测试环境地址", "任务看板", "回调地址"),
        "id": ("发布工单", "客户账号", "测试订单", "夜间构建", "支持案例"),
        "measure": ("上传上限", "保留期限", "每月预算", "请求超时", "内存配额"),
        "code": ("导入错误", "登录失败", "同步失败", "付款拒绝", "上传错误"),
        "name": ("功能开关", "发票表", "修复分支", "邮件队列", "缓存开关"),
    },
    "ru": {
        "path": ("папка выгрузки", "файл настроек", "скрипт копирования", "журнал аудита", "шаблон отчёта"),
        "url": ("панель мониторинга", "страница состояния", "адрес стенда", "доска задач", "адрес обратного вызова"),
        "id": ("заявка на выпуск", "счёт клиента", "пробный заказ", "ночная сборка", "обращение в поддержку"),
        "measure": ("предел загрузки", "срок хранения", "месячный бюджет", "время ожидания", "квота памяти"),
        "code": ("ошибка импорта", "сбой входа", "сбой синхронизации", "отказ оплаты", "ошибка загрузки"),
        "name": ("флаг функции", "таблица счетов", "ветка исправления", "почтовая очередь", "ключ кэша"),
    },
    "hi": {
        "path": ("निर्यात फ़ोल्डर", "सेटिंग फ़ाइल", "बैकअप स्क्रिप्ट", "ऑडिट लॉग", "रिपोर्ट साँचा"),
        "url": ("निगरानी पटल", "स्थिति पृष्ठ", "परीक्षण पता", "कार्य बोर्ड", "कॉलबैक पता"),
        "id": ("रिलीज़ टिकट", "ग्राहक खाता", "परीक्षण ऑर्डर", "रात का बिल्ड", "सहायता मामला"),
        "measure": ("अपलोड सीमा", "संग्रह अवधि", "मासिक बजट", "अनुरोध समय", "मेमोरी कोटा"),
        "code": ("आयात त्रुटि", "लॉगिन विफलता", "सिंक विफलता", "भुगतान अस्वीकृति", "अपलोड त्रुटि"),
        "name": ("फ़ीचर फ़्लैग", "बिल तालिका", "सुधार शाखा", "मेल कतार", "कैश स्विच"),
    },
}

UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("MB", "ms", "days", "EUR", "requests"),
    "zh": ("MB", "毫秒", "天", "元", "次"),
    "ru": ("МБ", "мс", "дней", "руб", "кг"),
    "hi": ("MB", "ms", "दिन", "रुपये", "किमी"),
}

STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("The {subject} is {value}.", "For the {subject} we use {value}.", "Note the {subject}: {value}."),
    "zh": ("{subject} 是 {value}。", "{subject} 用的是 {value}。", "请记一下，{subject}：{value}。"),
    "ru": ("{subject}: {value}.", "{subject} — это {value}.", "Запомни, {subject}: {value}."),
    "hi": ("{subject} {value} है।", "{subject} के लिए {value} है।", "ध्यान रखें, {subject}: {value}।"),
}

CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "The {subject} is {value} now.",
        "Correction: the {subject} is no longer {former}, it is {value}.",
        "We changed the {subject} from {former} to {value}.",
        "From today on the {subject} is {value} instead.",
    ),
    "zh": (
        "{subject} 现在是 {value}。",
        "更正：{subject} 不再是 {former}，而是 {value}。",
        "{subject} 已从 {former} 改为 {value}。",
    ),
    "ru": (
        "{subject} теперь: {value}.",
        "Поправка: {subject} больше не {former}, а {value}.",
        "{subject}: заменили {former} на {value}.",
    ),
    "hi": (
        "{subject} अब {value} है।",
        "सुधार: {subject} अब {former} नहीं, {value} है।",
        "{subject} को {former} से बदलकर {value} कर दिया है।",
    ),
}

# A sentence and the clause in it that must not get lost.
DECISIONS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "en": (
        ("We decided to {clause}.", "move {name} to the blue cluster"),
        ("Decision: we {clause}.", "keep {name} on plain SQL"),
        ("Let us settle it: we {clause}.", "ship {name} without the old client"),
    ),
    "zh": (("我们决定{clause}。", "把 {name} 迁到蓝色集群"), ("就这么定了：{clause}。", "{name} 保留纯 SQL 方案")),
    "ru": (
        ("Мы решили {clause}.", "перенести {name} в синий кластер"),
        ("Решено: {clause}.", "{name} остаётся на SQL"),
    ),
    "hi": (("हमने तय किया: {clause}।", "{name} को नीले क्लस्टर में ले जाना"), ("निर्णय: {clause}।", "{name} सादे SQL पर रहेगा")),
}

RULES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "en": (
        ("Never {clause}.", "deploy {name} on a Friday"),
        ("Please do not {clause}.", "mail the {name} customers directly"),
        ("You must always {clause}.", "ask me before touching {name}"),
    ),
    "zh": (("绝对不要{clause}。", "在星期五发布 {name}"), ("必须{clause}。", "先问我再动 {name}")),
    "ru": (("Никогда {clause}.", "не выпускай {name} в пятницу"),
           ("Всегда {clause}.", "спроси меня, прежде чем трогать {name}")),
    "hi": (("कभी नहीं: {clause}।", "शुक्रवार को {name} जारी करना"), ("हमेशा {clause}।", "{name} को छूने से पहले मुझसे पूछें")),
}  # fmt: skip

PINS: Final = (
    "Never send anything to the customers of Basalt.",
    "回答里的金额一律用欧元。",
    "Никогда не удаляй резервные копии проекта Тополь.",
    "हर उत्तर में मीटर का प्रयोग करें।",
)

QUESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("Remind me, what was the {subject}?", "I need the {subject} again.", "Use the {subject} for this one."),
    "zh": ("再说一下，{subject} 是什么？", "我又需要 {subject} 了。"),
    "ru": ("Напомни, что там: {subject}?", "Мне снова нужно: {subject}."),
    "hi": ("याद दिलाएँ, {subject} क्या था?", "मुझे फिर चाहिए: {subject}।"),
}

ANSWERS: Final[Mapping[str, tuple[str, str]]] = {  # known, and not
    "en": ("The {subject} is {value}.", "I cannot find the {subject}."),
    "zh": ("{subject} 是 {value}。", "我找不到 {subject}。"),
    "ru": ("{subject}: {value}.", "Не нахожу: {subject}."),
    "hi": ("{subject} {value} है।", "{subject} मुझे नहीं मिला।"),
}

PERSON: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "Can you walk me through what happens when the second worker joins?",
        "I am not sure the customers will like the longer form.",
        "Have a look at the part that the new colleague wrote yesterday.",
        "The meeting with the printers went better than we had feared.",
        "Somebody in support says that the page feels slow in the evening.",
        "Let us take the simple way first and measure it afterwards.",
        "What would you do if the supplier answered late again?",
        "Write that down for the handover, in two or three sentences.",
        "It looks fine to me, but the tests for the odd cases are missing.",
        "My manager wants to know whether we are still on time.",
    ),
    "zh": (
        "你能讲一下第二个进程加入时会发生什么吗？",
        "客户恐怕不会喜欢更长的表单。",
        "看看新同事昨天写的那一部分。",
        "跟印刷厂的会议比我们担心的要顺利。",
        "客服那边有人说晚上页面打开得很慢。",
        "我们先用简单的办法，然后再测一测。",
        "如果供应商又回复得很晚，你会怎么办？",
        "交接的时候需要，请用两三句话写下来。",
    ),
    "ru": (
        "Расскажи, что происходит, когда подключается второй обработчик?",
        "Не уверен, что клиентам понравится длинная форма.",
        "Посмотри ту часть, которую вчера написал новый коллега.",
        "Встреча с типографией прошла лучше, чем мы опасались.",
        "В поддержке говорят, что вечером страница открывается медленно.",
        "Давай сначала сделаем просто, а потом измерим.",
        "Что бы ты сделал, если поставщик опять ответит поздно?",
        "Запиши это для передачи дел, в двух или трёх предложениях.",
    ),
    "hi": (
        "दूसरा वर्कर जुड़ने पर क्या होता है, समझाइए।",
        "मुझे नहीं लगता कि ग्राहकों को लंबा फ़ॉर्म पसंद आएगा।",
        "नए साथी ने कल जो हिस्सा लिखा, उसे देखिए।",
        "छपाई वालों के साथ बैठक हमारी आशंका से बेहतर रही।",
        "सहायता दल में कोई कहता है कि शाम को पन्ना धीमा लगता है।",
        "पहले सरल तरीका अपनाते हैं, फिर मापेंगे।",
        "अगर आपूर्तिकर्ता फिर देर से जवाब दे तो आप क्या करेंगे?",
        "हस्तांतरण के लिए इसे दो-तीन वाक्यों में लिख दीजिए।",
    ),
}

MODEL: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "The second worker waits for the lease to run out and then takes over what the first one left behind.",
        "That should hold for the usual load; where it does not, the queue grows long before anybody has to wait.",
        "I read through it: the structure is sound, the names could say more, and one branch is never reached.",
        "There are two ways to go about this, and the slower one is easier to explain to whoever comes after us.",
        "In short, the work is done in the order in which it came, and nothing is thrown away on the way.",
        "I would start with the smallest change that shows the effect, and only then touch what others depend on.",
        "The figures from last week point the same way, although a single bad evening moves the average a lot.",
        "If it happens again I would rather slow the sender down than make the receiver drop what it cannot take.",
    ),
    "zh": (
        "第二个进程会等租约到期，然后接手第一个留下的工作。",
        "平常的负载没有问题；一旦撑不住，在有人等待之前队列就会明显变长。",
        "我读完了：结构合理，名字可以更清楚，还有一个分支永远走不到。",
        "有两种做法，慢的那种更容易向后来的人解释。",
        "简单说，工作按到来的顺序完成，中途什么都不会丢。",
        "我会从能看到效果的最小改动开始，然后再动别人依赖的部分。",
    ),
    "ru": (
        "Второй обработчик ждёт, пока истечёт аренда, и забирает то, что оставил первый.",
        "При обычной нагрузке этого хватает, а если нет, очередь заметно растёт раньше, чем кому-то придётся ждать.",
        "Прочитал: устройство разумное, имена могли бы говорить больше, одна ветка недостижима.",
        "Есть два пути, и медленный проще объяснить тем, кто придёт после нас.",
        "Коротко: работа делается в порядке поступления, и по дороге ничего не теряется.",
        "Я бы начал с наименьшего изменения, которое даёт эффект.",
    ),
    "hi": (
        "दूसरा वर्कर पट्टा समाप्त होने तक रुकता है और फिर पहले का छोड़ा काम सँभालता है।",
        "सामान्य भार में यह चलेगा, और जहाँ नहीं चलेगा वहाँ कतार पहले ही बढ़ती दिखेगी।",
        "मैंने पढ़ लिया: ढाँचा ठीक है, नाम और स्पष्ट हो सकते हैं, एक शाखा कभी नहीं चलती।",
        "इसके दो रास्ते हैं, और धीमा वाला आगे आने वालों को समझाना आसान है।",
        "संक्षेप में, काम आने के क्रम में होता है और रास्ते में कुछ नहीं खोता।",
    ),
}
