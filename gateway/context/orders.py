"""Notes that give orders to the assistant that reads them, which a poisoned text may make a model write.

Words of people are recorded where they wanted something, and open work stands in a list of tasks: both may be
imperatives. So an order is one only if it takes back its reader's instructions ("ignore all previous …"), calls upon
the reader ("you must now …", "your next step is to …"), or speaks to the assistant by that name.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import late

_LINE: Final = 2_000  # characters; a longer line is pasted and no order
# Quotation marks enclose somebody's words.
_QUOTED: Final = late(
    r"“[^”\n]{1,160}”|«[^»\n]{1,160}»|„[^“”\n]{1,160}[“”]|「[^」\n]{1,160}」|\"[^\"\n]{1,160}\"|`[^`\n]{1,160}`"
)
_BULLET: Final = late(r"^[\s>*•#–-]{0,8}(?:\d{1,3}[.)] )?(?:\*\*|__)?")
# Behind the bullet of a line, or at the beginning of a sentence.
_BEGIN: Final = rf"(?:{_BULLET.pattern}|[.!:;。！：；] ?)"

_TAKES_BACK: Final = (
    rf"{_BEGIN}(?:please |now )?(?:ignore|disregard|forget|override)\b.{{0,20}}\b(?:previous|prior|earlier|above"
    r"|preceding|your|system)\b.{0,20}\b(?:instructions?|prompts?|rules|messages?|context|guidelines|directions)\b",
    rf"{_BEGIN}(?:bitte )?(?:ignoriere?|vergiss|missachte)\b.{{0,20}}\b(?:vorherigen|bisherigen|früheren|obigen|deine)"
    r"\b.{0,20}\b(?:anweisungen|regeln|nachrichten|vorgaben)\b",
    rf"{_BEGIN}(?:игнорируй|забудь|не обращай внимания на)(?:те)?\b.{{0,20}}(?:предыдущ|прежн|прошл|вышеуказанн"
    r"|сво[ией]).{0,30}(?:инструкц|указан|правил|сообщен)",
    rf"{_BEGIN}(?:请)?(?:忽略|无视|忘记|忘掉)(?:之前|以前|先前|上面|上述|前面|以上|所有|你的)[^。\n]{{0,10}}(?:指令|指示|规则"
    r"|提示|消息)",
)
_CALLS_UPON: Final = (
    rf"{_BEGIN}(?:now,? |next,? |then,? )?you (?:must|have to|need to|should|shall|are to|will)"
    r" (?:now|next|immediately|first)\b",
    rf"{_BEGIN}you are now\b(?! (?:able|in|at|on|logged|connected))",
    rf"{_BEGIN}your (?:next|first|only|new) (?:task|step|action|job|instruction)s? (?:is|are) to\b",
    rf"{_BEGIN}(?:next|now|immediately),? (?:you )?(?:must |should )?(?:run|execute|call|invoke|send|delete|open|fetch"
    r"|post|reply|respond|obey|follow)\b",
    rf"{_BEGIN}(?:du musst|sie müssen|du sollst|sie sollen) (?:jetzt|nun|sofort|als nächstes)\b",
    rf"{_BEGIN}(?:jetzt|nun|als nächstes|sofort),? (?:führe?|sende?|lösche?|öffne|rufe?|antworte)\b",
    rf"{_BEGIN}(?:ты должен|вы должны|тебе (?:нужно|надо)|вам (?:нужно|надо)) (?:сейчас|теперь|немедленно|сразу)\b",
    rf"{_BEGIN}(?:теперь|сейчас|далее|затем),? (?:выполни|запусти|отправь|удали|открой|вызови|ответь)(?:те)?\b",
    rf"{_BEGIN}(?:你|您)(?:(?:现在|接下来|立即|马上)(?:必须|需要|应该|要|应)|(?:必须|需要|应该)(?:现在|立即|马上))",
    rf"{_BEGIN}(?:现在|接下来|下一步)[,，]?(?:请)?(?:你)?(?:执行|运行|发送|删除|打开|调用|回复)",
)
_SPEAKS_TO: Final = (
    rf"{_BEGIN}(?:dear |note to (?:the )?(?:next )?|attention,? |to the next )?(?:assistant|ai|model|agent)[,:]"
    r" (?:please )?(?:you|now|next|do|run|execute|call|send|delete|reply|respond|ignore|obey|follow|continue|start"
    r"|must)\b",
    rf"{_BEGIN}(?:assistent|ki)[,:] (?:bitte )?(?:du|jetzt|führe?|sende?|lösche?|antworte|ignoriere?)\b",
    rf"{_BEGIN}(?:ассистент|помощник)[,:] (?:ты|теперь|выполни|запусти|отправь|удали|ответь|игнорируй)\b",
    rf"{_BEGIN}助手[,，:：](?:请|你|现在|执行|运行|发送|删除|忽略)",
)
# A line without any of the words of a kind is none of it: to look for words takes a fiftieth of the patterns' time.
_TAKING_BACK: Final = (
    "ignor", "disregard", "forget", "override", "vergiss", "missachte", "игнорируй", "забудь", "не обращай",
    "忽略", "无视", "忘记", "忘掉",
)  # fmt: skip
_CALLING_UPON: Final = (
    "you", "next", "now", "immediately", "musst", "müssen", "sollst", "sollen", "jetzt", "nun", "nächstes", "sofort",
    "должен", "должны", "нужно", "надо", "теперь", "сейчас", "далее", "затем", "你", "您", "现在", "接下来", "下一步",
)  # fmt: skip
_SPEAKING_TO: Final = (
    *(f"{name}{sign}" for name in ("assistant", "ai", "model", "agent", "assistent", "ki") for sign in ",:"),
    "ассистент", "помощник", "助手",
)  # fmt: skip
_ORDERS: Final = (
    ("to ignore what came before", _TAKING_BACK, late("|".join(_TAKES_BACK), re.IGNORECASE)),
    ("to do something now", _CALLING_UPON, late("|".join(_CALLS_UPON), re.IGNORECASE)),
    ("by its name", _SPEAKING_TO, late("|".join(_SPEAKS_TO), re.IGNORECASE)),
)


def orders_in(notes: str, spoken: str = "") -> str:
    """Return the kind of the first order in notes, "" if there is none. `spoken`: words of people, which are no orders
    where they stand in the notes on a line of their own."""
    unquoted = _QUOTED.sub(" ", notes)
    said = unquoted.lower()
    told = [order for order in _ORDERS if any(map(said.__contains__, order[1]))]
    for line in unquoted.splitlines() if told else ():
        if len(line) > _LINE:
            continue
        lowered = line.lower()
        kind = next(
            (kind for kind, words, pattern in told if any(map(lowered.__contains__, words)) and pattern.search(line)),
            "",
        )
        if kind and _BULLET.sub("", line, count=1).strip() not in spoken:
            return kind
    return ""
