"""The registry of commands, their parameters, and where exchanges begin."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from gateway.app.plugins import all_commands
from gateway.commands.compress import CompressArguments, _described, arguments_in
from gateway.commands.sessions import ago
from gateway.context.engine import Outcome
from gateway.domain.adapter import MenuEntry
from gateway.domain.chat import Inbound, SessionKey, Source
from gateway.domain.command import CommandCall, Parameter, parse_command
from gateway.domain.message import assistant, is_request, last_requests, note_of, tool_result, user
from gateway.store.records import InboxItem

REGISTRY = all_commands()


def test_every_name_is_one_a_person_can_type_and_belongs_to_one_command() -> None:
    names = [name for command in REGISTRY.commands for name in (command.name, *command.aliases)]
    assert len(set(names)) == len(names)
    for name in names:
        call = parse_command(f"/{name} x")
        assert call is not None
        assert call.name == name
        assert REGISTRY.get(name) is not None
    assert {"start", "help", "new", "reset", "stop", "retry", "undo", "compress", "context", "status"} <= set(names)


def test_what_must_reach_a_running_turn_or_only_looks_bypasses_its_lane_and_nothing_else_does() -> None:
    bypassing = {command.name: command.bypass for command in REGISTRY.commands if command.bypass}
    reaching, looking = (
        ("stop", "approve", "deny", "answer"),
        ("approvals", "mcp", "status", "help", "usage", "context", "version", "whoami"),
    )
    always = dict.fromkeys((*reaching, *looking, "sessions", "projects", "export", "last", "insights"), True)
    assert bypassing == {
        **always,
        "model": "bare",
        "resume": "bare",
        "project": "bare",
        "reminders": "bare",
        "persona": "bare",
        "voice": "bare",
        "web": "bare",
        "files": "bare",
    }
    urgent = {command.name for command in REGISTRY.commands if command.urgent}
    assert urgent == {"stop", "approve", "deny", "answer"}, "however many commands came before it"


ELSEWHERE = """branch: fork; compress: compact summarize; continue: more; export: download save; files: ls diff
forget: delete; help: commands menu settings; home: sethome; insights: stats statistics; last: repeat again resend
memory: memories remember; model: models; new: clear restart; persona: personality character system; recall: search
remind: reminder remindme; reminders: schedules; resume: load; retry: regenerate; schedule: cron; sessions: history
skills: skill; status: info; stop: abort cancel; temporary: incognito private
timezone: tz; title: rename; usage: cost tokens; voice: tts speak
web: websearch browse"""


def told(field: str) -> dict[str, object]:
    """What the commands say of themselves, without those that say nothing."""
    return {each.name: value for each in REGISTRY.commands if (value := getattr(each, field))}


def test_what_each_command_says_of_itself() -> None:
    said = (line.partition(": ") for line in ELSEWHERE.replace("\n", "; ").split("; "))
    assert told("elsewhere") == {name: tuple(names.split()) for name, _, names in said}
    of_people = dict.fromkeys(("start", "insights", "usage", "whoami", "version"), "person")
    assert told("audience") == dict.fromkeys((each.name for each in REGISTRY.commands), "everybody") | of_people | {
        **dict.fromkeys(("mcp", "pair", "home"), "admins")
    }
    assert told("aliases") == {"new": ("reset",), "pin": ("pins",)}
    assert told("over_question") == {"new": "stop", "compress": "no"}
    assert told("sends") == {"steer": "steer", "queue": "queue"}
    assert {*told("proposals")} == {"memory", "sessions", "resume", "model", "persona", "mcp", "skills", "project"}
    assert {*told("options")} == {"approve", "compress", "forget", "memory", "temporary", "voice", "skills", "project"}
    assert {*told("implied")} == {"pin"}
    shown = {each.name: [parameter.name for parameter in each.entry.parameters] for each in REGISTRY.commands}
    assert (shown["compress"], shown["forget"]) == (
        ["preview", "keep", "topic", "undo"],
        ["words", "last", "everything"],
    )
    (resume,) = REGISTRY.get("resume").entry.parameters  # type: ignore[union-attr]
    assert (resume.name, resume.required, resume.proposes) == ("n", False, True)
    (steer,) = REGISTRY.get("steer").entry.parameters  # type: ignore[union-attr]
    assert (steer.required, steer.proposes) == (True, False)


@given(st.text(min_size=1, max_size=200))
def test_an_unknown_command_is_one_short_sentence_or_three(name: str) -> None:
    said = REGISTRY.unknown(name)
    assert said.startswith(f"There is no command /{name[:40]}.")
    assert len(said) < 150


messages = st.lists(
    st.sampled_from(
        [
            user("hello"),
            user("notes", summary=True),
            user("notes and words", summary=True, merged=True),
            assistant("hi"),
            tool_result("c", "done"),
        ]
    ),
    max_size=12,
)


@given(messages, st.integers(1, 5))
def test_the_last_requests_are_what_a_person_said_and_can_be_cut_at(given_: list, count: int) -> None:  # type: ignore[type-arg]
    found = last_requests(given_, count)
    able = [i for i, m in enumerate(given_) if is_request(m) and not note_of(m).get("merged")]
    assert found == able[-count:]


def test_what_other_bots_call_it_and_a_slip_of_the_finger_are_understood_and_nothing_else_is() -> None:
    for name, meant in (
        ("clear", "new"),
        ("compact", "compress"),
        ("memories", "memory"),
        ("hlp", "help"),
        ("statsu", "status"),
    ):
        assert REGISTRY.unknown(name) == f"There is no command /{name}. Did you mean /{meant}? See /help all."
    assert REGISTRY.unknown("weather") == "There is no command /weather. See /help all."


def test_how_long_ago_needs_no_time_zone() -> None:
    now = 1_700_000_000.0
    for seconds, said in (
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (3_600, "1 h ago"),
        (2 * 86_400 - 1, "47 h ago"),
        (2 * 86_400, "2 days ago"),
        (30 * 86_400, "2023-10-15"),
    ):
        assert ago(now - seconds, now, UTC) == said


def test_what_other_bots_call_it_is_no_name_here() -> None:
    own = {name for command in REGISTRY.commands for name in (command.name, *command.aliases)}
    elsewhere = [name for command in REGISTRY.commands for name in command.elsewhere]
    assert len(set(elsewhere)) == len(elsewhere)
    assert own.isdisjoint(elsewhere)


def test_words_that_state_a_rule_call_pin_without_a_slash_and_no_others_do() -> None:
    def item(text: str) -> InboxItem:
        inbound = Inbound(event_id="e", source=Source(platform="p", chat="c", chat_type="direct", user="u"), text=text)
        return InboxItem(id="1", key=SessionKey(platform="p", chat="c"), inbound=inbound, accepted_at=0.0, attempts=1)

    rule = "From now on, always answer in English."
    assert REGISTRY.implied(item(f" {rule} ")) == CommandCall(name="pin", argument=rule)
    assert REGISTRY.implied(item("What is the weather like?")) is None


def entry(name: str) -> MenuEntry:
    command = REGISTRY.get(name)
    assert command is not None
    return command.entry


def test_an_argument_is_the_only_parameter_of_its_command() -> None:
    assert entry("new").parameters == ()
    assert entry("recall").parameters == (Parameter(name="words", help="words", required=True),)
    assert entry("approve").parameters == (Parameter(name="n", help="n or all"),)


def test_two_commands_send_words_to_a_running_turn_and_say_that_they_are_messages() -> None:
    commands = REGISTRY.commands
    assert {each.name: each.sends for each in commands if each.sends} == {"steer": "steer", "queue": "queue"}
    assert {each.name for each in commands if each.entry.passes_on} == {"steer", "queue"}


def test_what_is_given_for_parameters_reads_like_what_a_person_types() -> None:
    given = {"preview": True, "keep": 5, "topic": "the budget", "undo": False}
    parameters = entry("compress").parameters
    assert {each.name for each in parameters} == set(given)
    written = " ".join(text for each in parameters if (text := each.written(given[each.name])))
    assert arguments_in(written) == CompressArguments(preview=True, keep=5, focus="the budget")
    assert arguments_in(parameters[-1].written(True)) == CompressArguments(undo=True)


def test_a_compaction_that_wins_nothing_says_why() -> None:
    messages = [{"role": "user", "content": "hi"}]
    told = _described(messages, messages, 1_200, 1_200, Outcome(), 0).splitlines()
    assert told[-1].endswith("because compressing it would not make it shorter. Just keep writing.")
