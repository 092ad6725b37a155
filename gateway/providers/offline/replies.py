"""The replies of the offline model: a table of requests that it understands, tried from top to bottom.

Pure: transcript and tools in, words and tool calls out. It knows only what stands in the
transcript it is shown, as any model does, so what it can recall after a compaction is what the
compaction kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.domain.message import text_of
from gateway.domain.notes import without_quotes
from gateway.providers.offline.facts import arithmetic, gist, recall_fact, requests_in
from gateway.providers.offline.remembering import remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool to call, and its arguments."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The words of a reply, and the calls after them."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The basis of a reply. `earlier` is every message before the newest request."""

    request: str
    earlier: Sequence[Mapping[str, Any]]
    tools: Sequence[str]

    def tool(self, *hints: str) -> str | None:
        """The first offered tool whose name contains one of `hints`."""
        return next((name for hint in hints for name in self.tools if hint in name.lower()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched(Asked):
    """A request that fits a rule; `match` is how."""

    match: re.Match[str]


Rule = Callable[[Matched], Answer | None] | Answer
"""What to answer when a request fits; None leaves it to the next rule."""

WELCOME: Final = """\
I am Legato's built-in offline model. I need no key and no network, and I am no real intelligence: I follow a few \
simple rules. Everything around me is real, though, so you can try it out. For example:

- What time is it?
- Add buy milk to my to-do list
- My favourite colour is green … and later: What is my favourite colour?
- What did I ask before?
- Write a file notes.txt: buy milk
- Remind me in 2 minutes to stretch
- Count to 30

/help lists the commands, /context shows how full my window is. To talk to a real model, run `legato init` in a \
shell."""

_HINTS: Final = (
    "Try “What time is it?” to see a tool at work.",
    "Try “Add water the plants to my to-do list”.",
    "Try “What did I ask before?”: I know what is in our transcript.",
    "/context shows how full my window is.",
    "For real answers, set `model` in ~/.legato/config.yaml; everything else stays as it is.",
)
_LISTENED: Final = 2_000  # characters of a request in which a rule is looked for
_QUOTED: Final = 160  # characters of the request that a reply quotes
_REMIND: Final = "Say it as in “remind me in 20 minutes to stretch”, or type `/remind in 20 minutes stretch`."
_KEPT_REMINDER: Final = re.compile(r"Stored: number \d+: (?P<what>.+?) \((?P<when>.+)\)$")
_REMIND_FIRST: Final = re.compile(
    r"^(?!to\b|that\b|about\b)(?P<when>.{2,80}?),? (?:to|that|about) (?P<what>.+)", re.I | re.S
)
_REMIND_LAST: Final = re.compile(
    r"^(?:to|that|about) (?P<what>.+?),? "
    r"(?P<when>(?:in|at|on|every|each|tomorrow|tonight|today|next|this|daily|weekly)\b.{0,80})$",
    re.I | re.S,
)
_NO_TOOL: Final = "I would need a tool for that, and none is offered to me here."


def answer(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Answer:
    """The reply to a transcript. Calls only tools that are offered; without any it only talks."""
    names = [str(tool.get("function", {}).get("name", "")) for tool in tools]
    newest = _newest_request(messages)
    request = _without_speaker(without_quotes(text_of(messages[newest])) if newest is not None else "").strip()
    said = Asked(request=request, earlier=messages[:newest] if newest is not None else (), tools=names)
    step = messages[newest + 1 :] if newest is not None else messages
    if any(message.get("role") == "tool" for message in step):
        return _after_tools(step, said)
    for pattern, rule in _RULES:
        match = pattern.search(request[:_LISTENED])
        if match is None:
            continue
        reply = rule if isinstance(rule, Answer) else rule(_matched(said, match))
        if reply is not None:
            return reply
    return _echo(said)


def _matched(said: Asked, match: re.Match[str]) -> Matched:
    return Matched(request=said.request, earlier=said.earlier, tools=said.tools, match=match)


def _newest_request(messages: Sequence[Mapping[str, Any]]) -> int | None:
    found = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    return found[-1] if found else None


def _without_speaker(text: str) -> str:
    """In shared sessions a message begins with its speaker's name in brackets."""
    return re.sub(r"^\[[^\]\n]{1,60}\]:? ", "", text)


# --- after tools ran -------------------------------------------------------------------------


def _after_tools(step: Sequence[Mapping[str, Any]], said: Asked) -> Answer:
    """Put results into words, or take the second step of a job that needs two."""
    asked = [call for message in step for call in message.get("tool_calls") or ()]
    results = [message for message in step if message.get("role") == "tool"]
    new_item = _ADD_TODO.search(said.request)
    if new_item and len(asked) == 1 and "items" not in _arguments(asked[0]) and said.tools:
        items = [*_todo_items(text_of(results[-1])), {"text": _clean(new_item["item"]), "status": "open"}]
        return Answer(calls=(Call(tool=_name(asked[0]), arguments={"items": items}),))
    if new_item:
        return Answer(text=f"Done. Your list now reads:\n\n{text_of(results[-1]).strip()}")
    if len(results) == 1 and asked:
        name, text = _name(asked[-1]), text_of(results[0]).strip()
        if text.startswith("Denied: "):
            return Answer(text="All right, I did not do that.")
        if "clock" in name or "time" in name:
            return Answer(text=f"It is {text}.")
        if name == "search_history":
            return Answer(text=_searched(said.request, text))
        return Answer(text=_told(name, _arguments(asked[-1]), text))
    lines = [
        f"- `{_name(call)}`: {_cut(text_of(result).strip(), 500)}" for call, result in zip(asked, results, strict=False)
    ]
    return Answer(text="The tools answered:\n\n" + "\n".join(lines))


def _searched(request: str, result: str) -> str:
    """Return the result of a search in words for a person."""
    if not result.startswith("Nothing was found"):
        return f"I found this in what was said:\n\n{_cut(result, 1_500)}"
    fact = _ASK_FACT.search(request)
    if fact is not None:
        return _unknown(_clean(fact["thing"]))
    return "I looked through all that was said here and found nothing."


def _unknown(thing: str) -> str:
    return f"You have not told me what your {thing} is. Say “My {thing} is …” and I will know."


def _told(name: str, arguments: Mapping[str, Any], result: str) -> str:
    """Return the result of one tool in words for a person. The parts for a model alone are left out."""
    if result.startswith("Error: "):
        reason = result.removeprefix("Error: ").partition("; ")[0]
        if name == "reminders":
            return f"I could not read that time. {_REMIND}"
        return f"That did not work: {_cut(reason, _QUOTED)}{'' if reason.endswith(('.', '?', '!')) else '.'}"
    if name == "reminders" and (kept := _KEPT_REMINDER.search(result)):
        return f"I will remind you: {kept['what']}, {kept['when']}."
    if name == "send_file" and "content" in arguments:
        return f"Here is `{arguments.get('name')}`."
    if name == "memory":
        return _cut(result, 1_500)
    if name == "shell" and "```" not in result:
        return f"```\n{_cut(result, 1_500)}\n```"
    return f"The tool `{name}` answered:\n\n{_cut(result, 1_500)}"


def _name(call: Mapping[str, Any]) -> str:
    return str(call.get("function", {}).get("name", "tool"))


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        arguments = json.loads(call.get("function", {}).get("arguments") or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _todo_items(listing: str) -> list[dict[str, str]]:
    found = re.findall(r"^\[([ x])\] (.+)$", listing, re.MULTILINE)
    return [{"text": text, "status": "done" if mark == "x" else "open"} for mark, text in found]


# --- rules -----------------------------------------------------------------------------------


def _call_tool(said: Matched) -> Answer | None:
    calls = []
    for found in _CALL.finditer(said.request):
        if found["tool"] not in said.tools:
            offered = ", ".join(f"`{name}`" for name in said.tools) or "none"
            return Answer(text=f"There is no tool `{found['tool']}` here. Offered to me: {offered}.")
        text = found["arguments"] or "{}"
        try:
            arguments = json.loads(text)
        except ValueError:
            return Answer(text=f"`{_cut(text, _QUOTED)}` is not JSON, so I cannot call `{found['tool']}` with it.")
        calls.append(Call(tool=found["tool"], arguments=arguments))
    return Answer(calls=tuple(calls))


def _time(said: Matched) -> Answer | None:
    tool = said.tool("clock", "time")
    if tool is None:
        return Answer(text=_NO_TOOL)
    zone = re.search(r"\b[A-Z][a-z]+/[A-Z]\w+", said.request)
    return Answer(calls=(Call(tool=tool, arguments={"timezone": zone[0]} if zone else {}),))


def _run(said: Matched) -> Answer | None:
    command = said.match["command"].strip().strip("`")
    return Answer(calls=(Call(tool="shell", arguments={"command": command}),)) if "shell" in said.tools else None


def _write_file(said: Matched) -> Answer | None:
    arguments = {"name": said.match["name"], "content": said.match["content"].strip() + "\n"}
    tool = said.tool("send_file")
    return Answer(calls=(Call(tool=tool, arguments=arguments),)) if tool else Answer(text=_NO_TOOL)


def _todo(said: Matched) -> Answer | None:
    # The list is replaced as a whole, so it is read before anything is added to it.
    tool = said.tool("todo", "to_do")
    return Answer(calls=(Call(tool=tool),)) if tool else Answer(text=_NO_TOOL)


def _search(said: Matched) -> Answer | None:
    tool = said.tool("search_history", "recall", "history", "search")
    words = _clean(said.match["words"])
    return Answer(calls=(Call(tool=tool, arguments={"words": words}),)) if tool else Answer(text=_NO_TOOL)


def _ask_fact(said: Matched) -> Answer | None:
    thing = _clean(said.match["thing"])
    known = recall_fact(thing, said.earlier)
    if known is not None:
        return Answer(text=f"Your {thing} is {known}: you told me so.")
    known = remembered(thing, said.earlier)
    if known is not None:
        return Answer(text=f"Your {thing} is {known}: I remember that from an earlier conversation.")
    tool = said.tool("search_history", "recall")
    if tool is not None:
        return Answer(text="That is not in front of me; I will look it up.\n\n", calls=(_lookup(tool, thing),))
    return Answer(text=_unknown(thing))


def _remind(said: Matched) -> Answer | None:
    """A reminder, where both its time and its words can be told apart."""
    tool = said.tool("reminders")
    if tool is None:
        return Answer(text=_REMIND)
    found = _REMIND_FIRST.search(said.match["rest"]) or _REMIND_LAST.search(said.match["rest"])
    if found is None:
        return Answer(text=_REMIND)
    arguments = {"action": "create", "text": _clean(found["what"]), "when": _clean(found["when"])}
    return Answer(calls=(Call(tool=tool, arguments=arguments),))


def _lookup(tool: str, thing: str) -> Call:
    return Call(tool=tool, arguments={"words": thing})


def _tell_fact(said: Matched) -> Answer | None:
    thing, value = _clean(said.match["thing"]), _clean(said.match["value"])
    return Answer(
        text=f"Your {thing} is {value}. I will know as long as this conversation goes on, however long it gets."
    )


def _remember(said: Matched) -> Answer | None:
    if "memory" not in said.tools:
        return None
    text = _clean(said.match["what"])
    return Answer(calls=(Call(tool="memory", arguments={"action": "add", "text": text[0].upper() + text[1:]}),))


def _earlier(said: Matched) -> Answer | None:
    asked = requests_in(said.earlier)
    if not asked:
        return Answer(text="Nothing yet: this is the first thing you have said here.")
    if "first" in said.match[0].lower():
        return Answer(text=f"The first thing I can see is: “{_cut(asked[0], _QUOTED)}”")
    if re.search(r"\b(?:last|just)\b", said.match[0], re.I):
        return Answer(text=f"Just before that you said: “{_cut(asked[-1], _QUOTED)}”")
    shown = asked[-10:]
    lines = "\n".join(f"{number}. {_cut(text, 100)}" for number, text in enumerate(shown, len(asked) - len(shown) + 1))
    more = f" Of {len(asked)} messages, the last ten:" if len(asked) > len(shown) else ""
    return Answer(text=f"You said:{more}\n\n{lines}")


def _count_to(said: Matched) -> Answer | None:
    top = min(int(said.match["top"]), 2_000)
    return Answer(text=" ".join(str(number) for number in range(1, top + 1)))


def _write_words(said: Matched) -> Answer | None:
    wanted = min(int(said.match["number"].replace(",", "")), 5_000)
    line = "This is sentence {n} of a text that I write only to be long."
    per_line = len(line.split())
    lines = [line.format(n=number) for number in range(1, max(1, wanted // per_line) + 1)]
    return Answer(text="\n".join(" ".join(lines[start : start + 4]) for start in range(0, len(lines), 4)))


def _repeat(said: Matched) -> Answer | None:
    what = said.request[said.match.start("what") :].strip().strip("“”\"'")
    return Answer(text=what) if what else None


def _sum(said: Matched) -> Answer | None:
    value = arithmetic(said.match["sum"])
    return None if value is None else Answer(text=f"{said.match['sum'].strip()} = {value}")


def _greet(said: Matched) -> Answer | None:
    if requests_in(said.earlier):
        return Answer(text=f"{said.match['word'].capitalize()} again! What would you like to try?")
    return Answer(text=f"{said.match['word'].capitalize()}! {WELCOME}")


_ABOUT: Final = Answer(text=WELCOME)

_BLIND: Final = Answer(
    text="I read words only, so I can neither see that nor hear it. A real model may; set `model` in "
    "~/.legato/config.yaml. Documents that are plain text I can read."
)
_THANKS: Final = Answer(text="You are welcome!")

_BYE: Final = Answer(text="Goodbye! This conversation stays where it is; just write when you want to go on.")


def _echo(said: Asked) -> Answer:
    """Nothing fits: repeat the words, and name commands that work."""
    if not said.request:
        return Answer(text="I see no text in that, and text is all I can read.")
    asked = requests_in(said.earlier)
    if document := _DOCUMENT.search(said.request):
        return Answer(text=f"I was given {document['name'][0].lower()}{document['name'][1:]}. {gist(document['text'])}")
    if len(said.request) > 600:
        return Answer(text=gist(said.request))
    hint = _HINTS[len(asked) % len(_HINTS)]
    return Answer(text=f"I read “{_cut(said.request, _QUOTED)}”, but I only follow simple rules. {hint}")


def _clean(text: str) -> str:
    return " ".join(text.split()).strip(" .!?“”\"'`")


def _cut(text: str, limit: int) -> str:
    flat = text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"
    return flat if limit > 500 else " ".join(flat.split())


# A document as `files.message` shows one to a model.
_DOCUMENT: Final = re.compile(
    r"^\[(?P<name>[^\n]{1,300}?), [\d,]+ characters, shown below[^\n]*\n<<<(?P<mark>[^\n]{1,200})\n"
    r"(?P<text>.*?)\n(?P=mark)>>>",
    re.M | re.S,
)
_CALL: Final = re.compile(r"^[ \t]*call[ \t]++(?P<tool>[\w.-]++)[ \t]*+(?P<arguments>\{.*\})?[ \t]*$", re.I | re.M)
_ASK_FACT: Final = re.compile(r"\bwhat(?:'s| is| was| are) my (?P<thing>[\w' -]{2,40})", re.I)
_ADD_TODO: Final = re.compile(
    r"^(?:please )?(?:add|put) (?P<item>.+?) (?:to|on) (?:my|the) (?:to-?do|task)s?\b", re.I | re.S
)

_RULES: Final[tuple[tuple[re.Pattern[str], Rule], ...]] = (
    (_CALL, _call_tool),
    (re.compile(r"\[sent with this message: [^\]]{0,2000}, which you cannot (?:be shown|hear)"), _BLIND),
    (re.compile(r"^(?:please )?write (?:me )?(?:a )?file (?:named |called )?(?P<name>[^\s:]+):? (?P<content>.+)",
                re.I | re.S), _write_file),
    (re.compile(r"^(?:please )?(?:say|repeat|echo)(?: after me)?:? (?P<what>.+)", re.I | re.S), _repeat),
    (re.compile(r"\bwhat(?:'s| is) the (?:time|date)\b|\bwhat (?:time|day|date) is it\b|\btime in\b", re.I), _time),
    (re.compile(r"^(?:please )?run(?: this| the)?(?: command)?:? (?P<command>.+)", re.I | re.S), _run),
    (_ADD_TODO, _todo),
    (re.compile(r"\b(?:show|what is on|what's on|list)\b.*\bto-?dos?\b", re.I), _todo),
    (re.compile(r"^(?:please )?(?:search|look) (?:in |through |the |my |our |your )*(?:history|memory) for "
                r"(?P<words>.+)",
                re.I | re.S), _search),
    (re.compile(r"\bwhat (?:did|have) (?:I|we) (?:just |first |last )?(?:ask|say|said|talk|write|tell)\w*\b.*"
                r"|\bwhat was my (?:first|last|previous) (?:question|message|request)\b", re.I), _earlier),
    (_ASK_FACT, _ask_fact),
    (re.compile(r"^(?:(?:please )?remember(?: that)?:? )?my (?P<thing>[\w' -]{2,40}?) (?:is|are) "
                r"(?P<value>[^\n]{1,200})",
                re.I), _tell_fact),
    (re.compile(r"^(?:please )?(?:remember(?: that)?:? |记住[:：]?)(?P<what>[^\n]{2,300})", re.I), _remember),
    (re.compile(r"^(?:please,? |can you |could you )?remind me\b ?(?P<rest>.*)", re.I | re.S), _remind),
    (re.compile(r"^(?:please )?count (?:up )?to (?P<top>\d{1,5})\b", re.I), _count_to),
    (re.compile(r"^(?:please )?write (?P<number>\d[\d,]{0,6}) words\b", re.I), _write_words),
    (re.compile(r"^(?:what(?:'s| is) |how much is |calculate )?(?P<sum>[\d(][\d\s.+*/()-]{1,60}\d\)*)\s*[=?]*$", re.I),
     _sum),
    (re.compile(r"^(?P<word>hi|hello|hey|hallo|servus|moin|good (?:morning|afternoon|evening))\b[^\n]{0,40}$", re.I),
     _greet),
    (re.compile(r"^(?:help|start)\W*$|\bwhat can you do\b|\bwho are you\b|\bwhat are you\b", re.I), _ABOUT),
    (re.compile(r"^(?:many )?(?:thanks|thank you|thx|danke)\b", re.I), _THANKS),
    (re.compile(r"^(?:bye|goodbye|see you|ciao|tschüss)\b", re.I), _BYE),
)  # fmt: skip
