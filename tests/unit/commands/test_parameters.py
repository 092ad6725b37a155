"""The parameters of commands, for platforms that ask for each by itself."""

from __future__ import annotations

from gateway.app.plugins import all_commands
from gateway.commands.compress import Wish, wish
from gateway.domain.adapter import MenuEntry
from gateway.domain.command import Parameter


def entry(name: str) -> MenuEntry:
    command = all_commands().get(name)
    assert command is not None
    return command.entry


def test_an_argument_is_the_only_parameter_of_its_command() -> None:
    assert entry("new").parameters == ()
    assert entry("recall").parameters == (Parameter(name="words", help="words", required=True),)
    assert entry("approve").parameters == (Parameter(name="n", help="n or all"),)


def test_a_command_that_is_a_message_says_so() -> None:
    assert {each.name for each in all_commands().commands if each.entry.passes_on} == {"steer", "queue"}


def test_what_is_given_for_parameters_reads_like_what_a_person_types() -> None:
    given = {"preview": True, "keep": 5, "topic": "the budget", "undo": False}
    parameters = entry("compress").parameters
    assert {each.name for each in parameters} == set(given)
    written = " ".join(text for each in parameters if (text := each.written(given[each.name])))
    assert wish(written) == Wish(preview=True, keep=5, focus="the budget")
    assert wish(parameters[-1].written(True)) == Wish(undo=True)
