"""The instructions that hold, carried from summary to summary word for word, by code and not by a model.

The newest wins: an instruction that takes an earlier one of the same person back, or says the opposite or another
value, ends that one. In doubt the earlier one holds, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gateway.context.instructions import TIMES, of, parted, permits, stands, withdraws
from gateway.context.shapes import well_formed
from gateway.domain.message import Message, is_summary, note_of
from gateway.domain.notes import INSTRUCTIONS, section
from gateway.runtime.patterns import late
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

MOST: Final = 64  # instructions that are kept
SHARE: Final = 0.18  # of a summary's room: the most that they take
HEADING: Final = section(INSTRUCTIONS, "").rstrip()
_KEEP: Final = "Sentences of the people here that hold for good, word for word; keep to each."
_KEEP_SHARED: Final = f"{_KEEP} The brackets name whom one binds; nobody else is bound."
_UNNOTED: Final = 200  # newest messages without the host's note that are read


class Instruction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence that holds for good. `by`: its author, where several people talk, and the only person that it binds.
    `at`: when it was said, in seconds since the epoch; 0.0 if unknown."""

    text: Annotated[str, Meta(min_length=1)]
    by: str = ""
    at: float = 0.0

    @property
    def line(self) -> str:
        """The instruction as it stands in a summary."""
        return f"[{self.by}] {self.text}" if self.by else self.text


def earlier(note: Mapping[str, Any]) -> list[Instruction]:
    """Return the instructions that the note of a summary holds; of a malformed note none."""
    return well_formed(note.get("standing"), Instruction)


def carried(
    before: Iterable[Instruction], middle: Sequence[Message], later: Sequence[Message] = ()
) -> list[Instruction]:
    """Return the instructions of the summaries `before` and of the `middle` that hold, oldest first, at most `MOST`.
    Those of the `later` messages, which stay in view, end earlier ones as well."""
    held: list[Instruction] = []
    for said in (*before, *_said_in(middle)):
        left = _after(held, said)
        allows = len(left) < len(held) and permits(said.text)
        held = left
        if not allows and (stands(said.text) or not withdraws(said.text)):
            held.append(said)
    for said in _said_in(later):
        held = _after(held, said)
    return held[-MOST:]


def ended(transcript: Sequence[Message], said: Message) -> list[Instruction]:
    """Return the instructions of a transcript that a message after it takes back."""
    if not any(withdraws(parted(sentence)[1]) for sentence in of(said)):
        return []
    before = [each for message in transcript if is_summary(message) for each in earlier(note_of(message))]
    held = carried(before, transcript)
    left = carried(held, (), [said])
    return [each for each in held if each not in left]


def listed(
    standing: Sequence[Instruction], redact: Redact, *, room: int, counter: TokenCounter, chars: int | None = None
) -> str:
    """Return the section of a summary with these instructions, oldest first, redacted; "" for none. It is at most
    `room` tokens and `chars` characters long; where not all fit, the newest stay."""
    if not standing:
        return ""
    opening = f"{HEADING}\n{_KEEP_SHARED if any(each.by for each in standing) else _KEEP}"
    room -= counter.constant(opening) + 2
    left = None if chars is None else chars - len(opening)
    lines: list[str] = []
    for each in reversed(standing):
        line = f"- {redact(each.line)}"
        room -= counter.text(line) + 1
        left = None if left is None else left - len(line) - 1
        if room < 0 or (left is not None and left < 0):
            break
        lines.append(line)
    return "\n".join([opening, *reversed(lines)]) if lines else ""


def _said_in(messages: Sequence[Message]) -> Iterator[Instruction]:
    """Return the instructions of messages in order."""
    for message in _instructing(messages):
        at = _number(note_of(message).get("at"))
        for sentence in of(message):
            by, text = parted(sentence)
            yield Instruction(text=text, by=by, at=at)


def _instructing(messages: Sequence[Message]) -> list[Message]:
    """Return the people's messages that may hold instructions, of those that an earlier version stored the newest."""
    told: list[Message] = []
    left = _UNNOTED
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        noted = note_of(message).get("instructions")
        left -= noted is None
        if left < 0:
            break
        if noted != []:
            told.append(message)
    return told[::-1]


def _after(held: Sequence[Instruction], said: Instruction) -> list[Instruction]:
    """Return the instructions that still hold once `said` has been said."""
    withdrawn = bool(held) and withdraws(said.text)
    return [each for each in held if each.by != said.by or not _ends(said.text, each.text, withdrawn=withdrawn)]


def _ends(newer: str, older: str, *, withdrawn: bool) -> bool:
    """Say whether the newer of two sentences of one person ends the older one. `withdrawn`: it takes something back."""
    if newer == older:
        return True
    one, other = _about(newer), _about(older)
    if withdrawn:
        return _EVERYTHING.search(newer) is not None or _takes_back(newer, one, other)
    if one.scope != other.scope:
        return False  # a rule for a case leaves the general rule alone
    if one.name and other.name:
        return True
    if (former := _INSTEAD.search(newer)) and (replaced := _begun(frozenset(_telling(former[1])))):
        return replaced <= _begun(other.words)
    if one.negative != other.negative:
        return _alike(one.words, other.words, 0.6)
    for values in _SLOTS:
        new, old = one.words & values, other.words & values
        if new and old and new != old:
            rest, before = one.words - values, other.words - values
            return not (rest and before) or _alike(rest, before, 0.5)
    return one.numbers != other.numbers and one.words == other.words


def _takes_back(newer: str, one: _About, other: _About) -> bool:
    """Say whether a sentence takes back the rule about `other`. People cancel flights, too: so it names a rule of that
    subject, or tells the bot what it need not do any more, or says most of what the rule said."""
    asked, rule = _begun(one.words - _META), _begun(other.words)
    own = len(asked & rule)
    if _A_RULE.search(newer):
        return bool(asked & (rule | _begun(other.scope)))
    if _ASIDE.search(newer) or (other.negative and _NEEDLESS.search(newer)):
        return False
    if _reversed(one, other) or (permits(newer) and _allowed(one, other, most=_ALLOWS.search(newer) is not None)):
        return True
    if not _TELLS_ME.search(newer):
        return own > 1 and 2 * own > len(rule)
    return own == len(rule) > 0 or (4 * own >= 3 * len(rule) if _ALLOWS.search(newer) else 2 * own > len(rule))


def _reversed(one: _About, other: _About) -> bool:
    """Say whether nothing but another value of the same kind is asked for: "you can answer in English again" ends
    "answer in French"."""
    alike = any(one.words & values and other.words & values for values in _SLOTS)
    return alike and not one.words - other.words - _VALUES - _ALLOWING


def _allowed(one: _About, other: _About, *, most: bool) -> bool:
    """Say whether all that is allowed is named in the rule, and `most` of the rule in what is allowed: people say "you
    can book the hotel again" of hotels, too."""
    asked, rule = _begun(one.words - _ALLOWING), _begun(other.words)
    own = len(asked & rule)
    return (
        own > 0
        and (asked <= rule | _begun(other.scope) or 4 * own >= 3 * len(rule))
        and (not most or 2 * own > len(rule))
    )


def _begun(words: frozenset[str]) -> frozenset[str]:
    """The beginnings of words, so that a verb is the same in an order and in a sentence about it."""
    return frozenset(word.removesuffix("ing")[:4] for word in words)


def _alike(one: frozenset[str], other: frozenset[str], share: float) -> bool:
    return bool(one and other) and len(one & other) >= share * min(len(one), len(other))


# -- the subject of an instruction ----------------------------------------------------------------


class _About(Struct, frozen=True):
    """The subject of an instruction: its telling words, the words of its case, whether it forbids, its numbers, and
    whether it says how somebody wants to be called."""

    words: frozenset[str]
    scope: frozenset[str]
    negative: bool
    numbers: frozenset[str]
    name: bool


_NEGATES: Final = late(
    r"\b(?:never|not|don['’]?t|no|without|avoid|stop|nie(?:mals)?|nicht|kein(?:e[nrms]?)?|ohne|ne|n['’]\w{1,20}|jamais"
    r"|pas|sans|nunca|sin|mai|non|senza|não|sem|nooit|niet|geen|не|никогда|без)\b|不要|不得|[别別]|[绝絕][对對]?不"
    r"|禁止|勿"
    r"|मत|नहीं|ないで|するな|마세요",
    re.IGNORECASE,
)
_EVERYTHING: Final = late(
    r"\b(?:forget|cancel|scrap) all\b.{0,24}\b(?:rules?|instructions?)\b"
    r"|\bvergiss alle\b.{0,24}\b(?:regeln|anweisungen)\b"
    r"|забудь все .{0,16}(?:правила|указания)|忘[掉记記]所有.{0,8}[规規]",
    re.IGNORECASE,
)
_A_RULE: Final = late(
    r"\b(?:rules?|instructions?|what i (?:said|told you) about (?:always|never)|regeln?|anweisung(?:en)?|règles?"
    r"|consignes?|reglas?|instrucci[oó]n(?:es)?|regol[ae]|istruzion[ei]|regras?|instruç(?:ão|ões)|regels?)\b"
    r"|правил|указани|[规規][则則]|指令",
    re.IGNORECASE,
)
# Words to the bot about its own behaviour: it need not, or it may again; or an order to leave something off.
_TELLS_ME: Final = late(
    r"\byou (?:no longer|do(?: not|n['’]t)|need(?: not|n['’]t)|can|may)\b|\bno need\b"
    r"|\A\W{0,3}(?:please |and |so ){0,2}(?:stop \w{1,20}ing|do(?: not|n['’]t) \w|no longer \w)"
    r"|\bdu (?:musst|brauchst|sollst|darfst|kannst)\b|\A\W{0,3}(?:bitte )?\w{2,20} (?:mir |uns )?nicht mehr\b"
    r"|\b(?:tu ne|vous ne)\b|\A\W{0,3}n(?:e |['’])\w{1,20} plus\b|\bya no \w{1,20}[ae]s\b|\bpuedes\b"
    r"|\Anon \w{2,20}re più\b|\bnão (?:precisa|deve)\w{0,3} mais\b|\bje hoeft\b"
    r"|\Aбольше не (?:надо|нужно|обязательно)|\Aможешь снова|\A[请請你您]{0,2}(?:不用再|不再需要|可以不用)",
    re.IGNORECASE,
)
# Somebody's words, a permission for one time, or what somebody does or has no more: none of them is a word to the bot.
_ASIDE: Final = late(
    r":\s*[\"“„«'‘]"
    r"|\b(?:(?<!\bi )(?:says?|said|writes?|wrote|told (?:me|us)|sagt|schreibt|meint|dit|écrit|dice|escribe)"
    r"|i (?:read|heard|hear|saw))\b"
    r"|\b(?:just |only )?(?:this|for) (?:once|time)\b|\bfor (?:this|that) (?:one|\w+ only)\b|\bfor (?:now|today)\b"
    r"|\b(?:in|for) (?:this|that|the next) (?:one|text|mail|e-?mail|letter|message|answer|reply|file|card|poem|post"
    r"|case)\b"
    r"|\A\W*(?:for|in) (?:the|his|her|their) \w+,? you\b"
    r"|\b(?:ausnahmsweise|diesmal|dieses mal|cette fois|pour une fois|esta vez|por una vez|stavolta|questa volta)\b"
    r"|в этот раз|这一?次|今回"
    r"|\A\W*(?:i|we|they|he|she|it|my|our|his|her|their|the)\b(?!.*\b(?:you|want|need|like|wish|care|expect|require|mind"
    r"|must|have to|has to|necessary|required|prefer)\b).*\b(?:no longer|any ?more|(?:can|may) .*again)\b"
    r"|\A\W*(?:ich|wir|er|sie|es|mein\w*|der|die|das)\b(?!.*\b(?:du|dir|will|möchte|brauch\w*|muss|müssen|soll\w*|mag"
    r"|nötig|wünsche)\b).*\bnicht mehr\b",
    re.IGNORECASE,
)
# What need not be, or is called off, may still be forbidden.
_NEEDLESS: Final = late(
    r"\A\W*(?:please |and |so ){0,2}(?:cancel|scrap|forget(?! about)) (?:the|my|that|our)\b"
    r"|\A(?!.*\b(?:avoid|leave|skip|omit|without|vermeid|weglass|ohne|évit|evit|sin|sans)).*"
    r"\b(?:need|needed|necessary|required|nötig|brauchst|besoin|nécessaire|hace falta|necesari\w+|serve|preciso)\b",
    re.IGNORECASE,
)
_ALLOWS: Final = late(
    r"\b(?:can|may|kannst|darfst|puedes)\b(?! (?:leave|drop|skip|omit|stop|ignore))|снова", re.IGNORECASE
)
_INSTEAD: Final = late(
    r"(?:\b(?:instead of|rather than|in place of|(?:an)?statt|anstelle(?: von)?|au lieu de|plutôt que|en (?:lugar"
    r"|vez) de"
    r"|invece di|al posto di|em vez de|in plaats van|вместо)\b|而不是|代替)([^,.;，。]+)",
    re.IGNORECASE,
)
_CASE: Final = late(
    rf"\b{TIMES} (?:i|we)\b[^,:]*|\bwenn ich\b[^,]*|\b(?:quand|lorsque|si|chaque fois que) je\b[^,]*"
    r"|\b(?:cuando|cada vez que|quando|ogni volta che|toda vez que|sempre que)\b[^,]*"
    r"|\b(?:als|wanneer) ik\b[^,]*|\b(?:когда|если) я\b[^,]*|[每当當如][次果]?我[^,，]*",
    re.IGNORECASE,
)
_WORDS: Final = late(r"(?:[^\W\d_]|[\u0900-\u0963\u0966-\u0dff])+")
_NUMBERS: Final = late(r"\d{1,12}")
_FILLS: Final = late(
    r"以[后後]|从现在(?:开始|起)?|请|不要再?|不用再?|不再|[别別]再?|可以|现在|总是|永远|回答|用|都|再|又|了"
)  # without spaces
_DENSE: Final = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CALL: Final = late(
    r"\bcall me\b|\bnenn(?:e|en)?(?: sie)? mich\b|\bappelle[zr]?-moi\b|\bll[aá]m\w{1,3}me\b|叫我|[称稱]呼我|называй",
    re.IGNORECASE,
)
_STEM: Final = 6  # letters of a word that are compared
_EMPTY_WORDS: Final = """
    the an to of in on for at by with as is are be it its this that these those and or but so my me you your we us
    please always never ever from now when whenever if ask about every time do don dont not no use using used answer
    answers reply respond write speak talk say tell make sure ensure must should shall will would like want need can
    could may again only just also all any anymore more stop going forward future remember henceforth keep
    immer stets nie niemals bitte ab jetzt sofort nicht mehr kein keine der die das den dem ein eine mir mich mein auf
    antworte antworten schreib schreibe sprich verwende benutze nutze künftig zukunft wieder du kannst
    toujours jamais désormais dorénavant ne pas plus le la les un une en de du des réponds utilise écris parle
    siempre nunca el los las una responde usa escribe habla ahora partir adelante sempre mai non il lo gli di rispondi
    scrivi não os as em responda use escreva agora altijd nooit niet het een antwoord gebruik schrijf voortaan vanaf
    nu con avec mit com aux au schreiben antworten sprechen verwenden benutzen nutzen utiliser répondre écrire parler
    usar responder escribir hablar respondas uses use using использовать отвечать писать
    с always всегда никогда не на отвечай пиши используй говори отныне впредь пожалуйста больше"""
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())
# Words about instructions, as far as they are compared.
_META: Final = frozenset(
    {"rule", "instru", "forget", "earlie", "said", "cancel", "scrap", "regel", "vergis", "правил", "забудь"}
)
_SLOTS: Final = tuple(
    frozenset(word[:_STEM] for word in words.split())
    for words in (
        "english german french spanish italian portuguese dutch russian chinese japanese hindi korean polish turkish"
        " arabic englisch deutsch französisch spanisch italienisch russisch chinesisch anglais allemand français"
        " espagnol italien inglés alemán francés español inglese tedesco francese spagnolo inglês alemão francês"
        " espanhol engels duits frans английском английски немецком немецки французском русском русски испанском 中文"
        " 英文 日文 法文 德文 英语 汉语",
        "metric imperial metre meter feet inche mile kilometre kilometer celsius fahrenheit metrisch",
        "brief briefly short shorter shortly concise concisely long longer länger kürzer detailed verbose lengthy"
        " kurz knapp ausführlich bref"
        " court détaillé breve corto largo detallado кратко коротко подробно",
        "formal informal formally informally casual casually duzen siezen duze sieze tutoie vouvoie",
    )
)


# Words with which something is allowed, or need not be done.
_ALLOWING_WORDS: Final = """
    okay ok fine alright allowed welcome permitted feel free need needed necessary required leave out drop skip omit
    ignore normal even though longer eat jetzt ruhig gern gerne erlaubt gut ordnung nötig brauchst musst weglassen
    auslassen darfst sind ist peux pouvez nouveau besoin nécessaire as puedes ya hace falta necesario necesarias
    necesarios que than me re otra vez puoi
    nuovo serve più pode novo mag weer hoeft можно нужно надо обязательно снова لا داعي يمكنك جديد مرة أخرى"""
_ALLOWING: Final = frozenset(word[:_STEM] for word in _ALLOWING_WORDS.split())
_VALUES: Final = frozenset().union(*_SLOTS)


@lru_cache(maxsize=1024)
def _about(text: str) -> _About:
    case = _CASE.search(text)
    rest = text if case is None else f"{text[: case.start()]} {text[case.end() :]}"
    return _About(
        words=frozenset(_telling(rest)),
        scope=frozenset(_telling(case[0])) if case else frozenset(),
        negative=_NEGATES.search(rest) is not None,
        numbers=frozenset(_NUMBERS.findall(rest)),
        name=_CALL.search(rest) is not None,
    )


def _telling(text: str) -> Iterator[str]:
    """Return the words of a text that name its subject, without most endings; pairs of characters where it is
    written without spaces."""
    for run in _WORDS.findall(_FILLS.sub(" ", text.lower())):
        if _DENSE.search(run):
            yield from (run[place : place + 2] for place in range(len(run) - 1))
        elif run not in _EMPTY and len(run) > 1:
            yield run[:_STEM] if len(run) > _STEM else run.removesuffix("s")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
