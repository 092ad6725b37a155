"""The replies of the offline model: a table of requests that it understands, tried from top to bottom.

Pure: transcript and tools in, words and tool calls out. It knows only what stands in the transcript it is shown, as any
model does, so what it can recall after a compaction is what the compaction kept.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct, field

from gateway.domain.message import is_request, is_summary, text_of
from gateway.domain.notes import without_quotes
from gateway.domain.wording import counted
from gateway.providers.offline.notes import FACT, asks, known_facts


class Call(Struct, frozen=True, kw_only=True):
    """A tool to call, and its arguments."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Answer(Struct, frozen=True, kw_only=True):
    """The words of a reply, and the calls after them."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class Asked(Struct, frozen=True, kw_only=True):
    """The basis of a reply. `earlier` is every message before the newest request."""

    request: str
    earlier: Sequence[Mapping[str, Any]]
    tools: Sequence[str]

    def use(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool, if it is offered."""
        if tool not in self.tools:
            return Answer(text="I would need a tool for this, but I have none here.")
        return Answer(calls=(Call(tool=tool, arguments=arguments),))

    @property
    def requests(self) -> list[str]:
        """What people said before, oldest first; a summary is nothing said."""
        return [said for each in self.earlier if is_request(each) and (said := without_quotes(text_of(each)).strip())]


Rule = Callable[[Asked, re.Match[str]], Answer | None]
"""The answer to a request that fits; None leaves it to the next rule."""

WELCOME: Final = """\
I am Legato's built-in offline model. I need no key and no network, and I am not really intelligent: I follow a few \
simple rules. Everything around me is real, though, so you can try it out. For example:

- What time is it?
- Add buy milk to my to-do list
- My favourite colour is green … and later: What is my favourite colour?
- What did I ask before?
- Write a file notes.txt: buy milk
- Remind me in 2 minutes to stretch
- Count to 30

/help lists the commands, /context shows how full my window is. To talk to a real model, choose \
one under Settings on the page, or run `legato init` in a shell."""

_HINTS: Final = (
    "Try “What time is it?” to see a tool at work.",
    "Try “What did I ask before?”: I know what is in our transcript.",
    "For real answers, choose a model under Settings on the page, or set `model` in ~/.legato/config.yaml. "
    "Everything else stays as it is.",
)
_BLIND: Final = (
    "I read words only, so I can neither see nor hear your file. I can read documents of plain "
    "text. For other files, choose a real model under Settings on the page, or set `model` in ~/.legato/config.yaml."
)
_LISTENED: Final = 2_000  # characters of a request in which a rule is looked for
_QUOTED: Final = 160  # characters of the request that a reply quotes
_LONG: Final = 600  # characters of a request whose gist is told
_SHOWN: Final = 1_500  # characters of a tool's result
_OPERATORS: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_REMIND: Final = "Say it as in “remind me in 20 minutes to stretch”, or type `/remind in 20 minutes stretch`."
_KEPT_REMINDER: Final = re.compile(r"Stored: number \d+: (?P<what>.+?) \((?P<when>.+)\)$")
_NO_SEARCH: Final = (
    "I cannot search the web yet: no search is set up. Set one up under Settings on the page, or run `legato init` in "
    "a shell. Both offer SearXNG (a server of your own), Brave, Tavily, and ddgs, which needs no key. Then ask again."
)
_FOUND: Final = re.compile(r"^\[(\d+)\] (.+)$", re.M)
_WISH: Final = re.compile(
    r"^(?!to\b|that\b|about\b)(?P<when>.{2,80}?),? (?:to|that|about) (?P<what>.+)"
    r"|^(?:to|that|about) (?P<first>.+?),? "
    r"(?P<then>(?:in|at|on|every|each|tomorrow|tonight|today|next|this|daily|weekly)\b.{0,80})$",
    re.I | re.S,
)
_WRITE_FILE: Final = re.compile(
    r"^(?:please )?write (?:me )?(?:a )?file (?:named |called )?(?P<name>[^\s:]+):? (?P<content>.+)", re.I | re.S
)
# A document as `files.message` shows one to a model.
_DOCUMENT: Final = re.compile(
    r"^\[(?P<name>[^\n]{1,300}?), [\d,]+ characters, shown below[^\n]*\n<<<(?P<mark>[^\n]{1,200})\n"
    r"(?P<text>.*?)\n(?P=mark)>>>",
    re.M | re.S,
)
# What a program told, as `agent.waking` shows it to a model.
_TOLD_BY_PROGRAM: Final = re.compile(
    r"^\[In the background: [^\n]{1,2000}\]\n<<<(?P<mark>\w+)\n(?P<text>.*?)\n(?P=mark)>>>", re.S
)
_PROGRAM_SAID: Final = "I read “{text}”. A real model would now look things up, and tell you what matters."
_CALL: Final = re.compile(r"^[ \t]*call[ \t]++(?P<tool>[\w.-]++)[ \t]*+(?P<arguments>\{.*\})?[ \t]*$", re.I | re.M)
_ASK_FACT: Final = re.compile(r"\bwhat(?:'s| is| was| are) my (?P<thing>[\w' -]{2,40})", re.I)
_ADD_TODO: Final = re.compile(
    r"^(?:please )?(?:add|put) (?P<item>.+?) (?:to|on) (?:my|the) (?:to-?do|task)s?\b", re.I | re.S
)


def answer(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Answer:
    """The reply to a transcript. Calls only tools that are offered; without any it only talks."""
    newest = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    text = without_quotes(text_of(messages[newest])) if newest >= 0 else ""
    # In shared sessions a message begins with its speaker's name in brackets.
    request = re.sub(r"^\[[^\]\n]{1,60}\]:? ", "", text).strip()
    names = [str(tool.get("function", {}).get("name", "")) for tool in tools]
    said = Asked(request=request, earlier=messages[: max(newest, 0)], tools=names)
    step = messages[newest + 1 :]
    if any(message.get("role") == "tool" for message in step):
        return _after_tools(step, said)
    for pattern, rule in _RULES:
        found = pattern.search(request[:_LISTENED])
        if found is not None and (reply := rule(said, found)) is not None:
            return reply
    return _echo(said)


# --- after tools ran -------------------------------------------------------------------------


def _after_tools(step: Sequence[Mapping[str, Any]], said: Asked) -> Answer:
    """Put results into words, or take the second step of a job that needs two."""
    asked = [call.get("function", {}) for message in step for call in message.get("tool_calls") or ()]
    results = [text_of(message).strip() for message in step if message.get("role") == "tool"]
    if item := _ADD_TODO.search(said.request):
        if len(asked) != 1 or '"items"' in str(asked[0].get("arguments")) or not said.tools:
            return Answer(text=f"Done. Your list now reads:\n\n{results[-1]}")
        items = [
            {"text": text, "status": "done" if mark == "x" else "open"}
            for mark, text in re.findall(r"^\[([ x])\] (.+)$", results[-1], re.MULTILINE)
        ]
        return said.use("todo", items=[*items, {"text": _clean(item["item"]), "status": "open"}])
    if len(results) == 1 and asked:
        return Answer(text=_told(said, str(asked[-1].get("name", "tool")), results[0]))
    lines = [f"- `{call.get('name')}`: {_cut(result, 500)}" for call, result in zip(asked, results, strict=False)]
    return Answer(text="The tools answered:\n\n" + "\n".join(lines))


def _told(said: Asked, name: str, result: str) -> str:
    """The result of one tool in words for a person, without the parts meant only for a model."""
    shown, fact = _cut(result, _SHOWN), _ASK_FACT.search(said.request)
    if result.startswith("Denied: "):
        return "All right, I did not do that."
    if result.startswith("Error: "):
        why = result.removeprefix("Error: ").partition("; ")[0].rstrip(".")
        if name == "reminders":
            return f"I could not read that time. {_REMIND}"
        return f"That did not work: {_cut(why, _QUOTED)}."
    if name == "search_history":
        if not result.startswith("Nothing was found"):
            return f"I found this in what was said:\n\n{shown}"
        return _unknown(fact) if fact else "I looked through everything that was said here and found nothing."
    if name == "reminders" and (kept := _KEPT_REMINDER.search(result)):
        return f"I will remind you: {kept['what']}, {kept['when']}."
    if name == "clock":
        return f"It is {result}."
    if name == "send_file" and (file := _WRITE_FILE.search(said.request)):
        return f"Here is `{file['name']}`."
    if name == "web_search" and (found := _FOUND.findall(result)):
        return "I found:\n\n" + "\n".join(f"- {title} [{number}]" for number, title in found[:5])
    if name == "shell":
        return f"```\n{shown}\n```"
    return shown if name == "memory" else f"The tool `{name}` answered:\n\n{shown}"


def _unknown(fact: re.Match[str]) -> str:
    thing = _clean(fact["thing"])
    return f"You have not told me what your {thing} is. Say “My {thing} is …” and I will know."


# --- rules -----------------------------------------------------------------------------------


def _call_tool(said: Asked, _: re.Match[str]) -> Answer:
    calls = []
    for found in _CALL.finditer(said.request):
        if found["tool"] not in said.tools:
            offered = ", ".join(f"`{name}`" for name in said.tools) or "none"
            return Answer(text=f"There is no tool `{found['tool']}` here. Offered to me: {offered}.")
        text = found["arguments"] or "{}"
        try:
            calls.append(Call(tool=found["tool"], arguments=json.loads(text)))
        except ValueError:
            return Answer(text=f"`{_cut(text, _QUOTED)}` is not JSON, so I cannot call `{found['tool']}` with it.")
    return Answer(calls=tuple(calls))


def _time(said: Asked, _: re.Match[str]) -> Answer:
    zone = re.search(r"\b[A-Z][a-z]+/[A-Z]\w+", said.request)
    return said.use("clock", timezone=zone[0]) if zone else said.use("clock")


def _ask_fact(said: Asked, found: re.Match[str]) -> Answer:
    thing = _clean(found["thing"])
    if (known := _recalled(thing, said.earlier)) is not None:
        return Answer(text=f"Your {thing} is {known}: you told me so.")
    prompt = "\n".join(text_of(message) for message in said.earlier if message.get("role") == "system")
    if remembered := known_facts(prompt).get(thing.casefold()):
        return Answer(text=f"Your {thing} is {remembered[1]}: I remember that from an earlier conversation.")
    if "search_history" not in said.tools:
        return Answer(text=_unknown(found))
    look_up = Call(tool="search_history", arguments={"words": thing})
    return Answer(text="I do not see it here, so I will look it up.\n\n", calls=(look_up,))


def _recalled(thing: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the value of the newest "my THING is VALUE" in a transcript, summaries included."""
    for message in reversed(messages):
        if message.get("role") == "user" or is_summary(message):
            for found in reversed(list(FACT.finditer(text_of(message)))):
                if found["thing"].lower() == thing.lower() and not asks(found):
                    return found["value"].strip(" ,;…“”\"'")
    return None


def _tell_fact(_: Asked, found: re.Match[str]) -> Answer:
    told = f"Your {_clean(found['thing'])} is {_clean(found['value'])}."
    return Answer(text=f"{told} I will know as long as this conversation goes on, however long it gets.")


def _remember(said: Asked, found: re.Match[str]) -> Answer | None:
    text = _clean(found["what"])
    return said.use("memory", action="add", text=text[0].upper() + text[1:]) if "memory" in said.tools else None


def _remind(said: Asked, found: re.Match[str]) -> Answer:
    """A reminder, where both its time and its words can be told apart."""
    wish = _WISH.search(found["rest"])
    if wish is None or "reminders" not in said.tools:
        return Answer(text=_REMIND)
    what, when = wish["what"] or wish["first"], wish["when"] or wish["then"]
    return said.use("reminders", action="create", text=_clean(what), when=_clean(when))


def _earlier(said: Asked, found: re.Match[str]) -> Answer:
    asked = said.requests
    if not asked:
        return Answer(text="Nothing yet: this is the first thing you have said here.")
    if "first" in found[0].lower():
        return Answer(text=f"The first thing I can see is: “{_cut(asked[0], _QUOTED)}”")
    if re.search(r"\b(?:last|just)\b", found[0], re.I):
        return Answer(text=f"Just before that you said: “{_cut(asked[-1], _QUOTED)}”")
    numbered = [f"{number}. {_cut(text, 100)}" for number, text in enumerate(asked, 1)]
    return Answer(text="\n".join(["You said:", "", *numbered[-10:]]))


def _sum(_: Asked, found: re.Match[str]) -> Answer | None:
    try:
        value = _OPERATORS[found["sign"]](Decimal(found["one"]), Decimal(found["other"]))
    except ArithmeticError:
        return None
    return Answer(text=f"{found['sum']} = {value.normalize():f}")


def _said(text: str) -> Answer | None:
    return Answer(text=text) if text else None


def _greet(said: Asked, found: re.Match[str]) -> Answer:
    word = found["word"].capitalize()
    return Answer(text=f"{word} again! What would you like to try?" if said.requests else f"{word}! {WELCOME}")


def _echo(said: Asked) -> Answer:
    """Nothing fits: repeat the words, and name something that works."""
    if not said.request:
        return Answer(text="I see no text in your message, and I can read only text.")
    if document := _DOCUMENT.search(said.request):
        name = document["name"]
        return Answer(text=f"I was given {name[0].lower()}{name[1:]}. {_gist(document['text'])}")
    if len(said.request) > _LONG:
        return Answer(text=_gist(said.request))
    hint = _HINTS[len(said.requests) % len(_HINTS)]
    return Answer(text=f"I read “{_cut(said.request, _QUOTED)}”, but I only follow simple rules. {hint}")


def _gist(text: str) -> str:
    first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    size = f"{counted(len(text.split()), 'word')}, {len(text):,} characters"
    return f"That is a text of {size}. It begins: “{_cut(first, _QUOTED)}”. {_HINTS[-1]}"


def _clean(text: str) -> str:
    return " ".join(text.split()).strip(" .!?“”\"'`")


def _cut(text: str, limit: int) -> str:
    flat = text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"
    return flat if limit > 500 else " ".join(flat.split())


_WHOLE: Final = "My last answer was whole: I never stop in the middle of one."

_RULES: Final[tuple[tuple[re.Pattern[str], Rule], ...]] = (
    (_CALL, _call_tool),
    (re.compile(r"^This is one of the looks that you take now and then"), lambda *_: Answer(text="NOTHING")),
    (re.compile(r"^Go on exactly where your last answer stopped"), lambda *_: Answer(text=_WHOLE)),
    (_TOLD_BY_PROGRAM, lambda _, found: Answer(text=_PROGRAM_SAID.format(text=_cut(found["text"], _QUOTED)))),
    (re.compile(r"\[sent with this message: [^\]]{0,2000}, which you cannot (?:be shown|hear)"),
     lambda *_: Answer(text=_BLIND)),
    (_WRITE_FILE,
     lambda said, found: said.use("send_file", name=found["name"], content=found["content"].strip() + "\n")),
    (re.compile(r"^(?:please )?(?:say|repeat|echo)(?: after me)?:? (?P<what>.+)", re.I | re.S),
     lambda said, found: _said(said.request[found.start("what") :].strip(" \n“”\"'"))),
    (re.compile(r"\bwhat(?:'s| is) the (?:time|date)\b|\bwhat (?:time|day|date) is it\b|\btime in\b", re.I), _time),
    (re.compile(r"^(?:please )?run(?: this| the)?(?: command)?:? (?P<command>.+)", re.I | re.S),
     lambda said, found: said.use("shell", command=found["command"].strip().strip("`"))
     if "shell" in said.tools else None),
    # The list is replaced as a whole, so it is read before anything is added to it.
    (_ADD_TODO, lambda said, _: said.use("todo")),
    (re.compile(r"\b(?:show|what is on|what's on|list)\b.*\bto-?dos?\b", re.I), lambda said, _: said.use("todo")),
    (re.compile(r"^(?:please )?(?:search|look) (?:in |through |the |my |our |your )*(?:history|memory) for "
                r"(?P<words>.+)", re.I | re.S),
     lambda said, found: said.use("search_history", words=_clean(found["words"]))),
    (re.compile(r"^(?:please,? |can you |could you )?search (?:on )?(?:the )?(?:web|internet)(?: for)?:? "
                r"(?P<words>.+)", re.I | re.S),
     lambda said, found: said.use("web_search", query=_clean(found["words"]))
     if "web_search" in said.tools else Answer(text=_NO_SEARCH)),
    (re.compile(r"\bwhat (?:did|have) (?:I|we) (?:just |first |last )?(?:ask|say|said|talk|write|tell)\w*\b.*"
                r"|\bwhat was my (?:first|last|previous) (?:question|message|request)\b", re.I), _earlier),
    (_ASK_FACT, _ask_fact),
    (re.compile(r"^(?:(?:please )?remember(?: that)?:? )?my (?P<thing>[\w' -]{2,40}?) (?:is|are) "
                r"(?P<value>[^\n]{1,200})", re.I), _tell_fact),
    (re.compile(r"^(?:please )?(?:remember(?: that)?:? |记住[:：]?)(?P<what>[^\n]{2,300})", re.I), _remember),
    (re.compile(r"^(?:please,? |can you |could you )?remind me\b ?(?P<rest>.*)", re.I | re.S), _remind),
    (re.compile(r"^(?:please )?count (?:up )?to (?P<top>\d{1,5})\b", re.I),
     lambda _, found: Answer(text=" ".join(map(str, range(1, min(int(found["top"]), 2_000) + 1))))),
    (re.compile(r"^(?:what(?:'s| is) |how much is |calculate )?"
                r"(?P<sum>(?P<one>-?[\d.]{1,15}) ?(?P<sign>[+*/-]) ?(?P<other>-?[\d.]{1,15}))\s*[=?]*$", re.I), _sum),
    (re.compile(r"^(?P<word>hi|hello|hey|hallo|servus|moin|good (?:morning|afternoon|evening))\b[^\n]{0,40}$", re.I),
     _greet),
    (re.compile(r"^(?:help|start)\W*$|\bwhat can you do\b|\bwho are you\b|\bwhat are you\b", re.I),
     lambda *_: Answer(text=WELCOME)),
    (re.compile(r"^(?:many )?(?:thanks|thank you|thx|danke)\b", re.I), lambda *_: Answer(text="You are welcome!")),
)  # fmt: skip
