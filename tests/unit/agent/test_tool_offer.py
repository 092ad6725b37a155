"""The tools on offer: which, to whom, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from gateway.agent.tools.base import ToolContext
from gateway.agent.tools.find_tools import FindTools, best
from gateway.agent.tools.offer import FIND, Caller, OfferRule, Toolbox, listed
from gateway.domain.chat import Source
from gateway.runtime.errors import ConfigError

BIG = 1_000_000  # tokens


class Plain:
    """A tool that does nothing."""

    description = "Does nothing."
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = True
    idempotent = True
    timeout = 1.0

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        return "nothing"


def tools(*names: str) -> list[Plain]:
    return [Plain(name) for name in names]


def caller(
    platform: str = "telegram", user: str = "42", chat: str = "c", *, admin: bool = False, **more: Any
) -> Caller:
    source = Source(platform=platform, chat=chat, chat_type="direct", user=user, **more)
    return Caller(source=source, admin=admin)


def box(*names: str, **more: Any) -> Toolbox:
    return Toolbox(tools(*names), **more)


def shown(toolbox: Toolbox, order: Sequence[str] = (), who: Caller | None = None, window: int = BIG) -> list[str]:
    offer = toolbox.offer(order, who or caller(), window)
    return [schema["function"]["name"] for schema in offer.schemas]


# -- the order ---------------------------------------------------------------------------------


def test_a_tool_that_comes_later_stands_behind_the_others() -> None:
    toolbox = box("clock", "todo")
    order = toolbox.offer((), caller(), BIG).order
    toolbox.register("mcp:a", tools("a_read"))
    assert shown(toolbox, order) == ["clock", "todo", "a_read"]
    later = Toolbox()
    later.register("mcp:a", tools("a_read"))
    later.register("rest", tools("todo", "clock"))
    assert shown(later, order) == ["clock", "todo", "a_read"], "the order is the session's, not the program's"


def test_a_tool_that_is_gone_keeps_its_place_and_says_so() -> None:
    toolbox = box("clock")
    toolbox.register("mcp:a", tools("a_read"))
    order = toolbox.offer((), caller(), BIG).order
    toolbox.register("mcp:a", [])
    offer = toolbox.offer(order, caller(), BIG)
    assert [schema["function"]["name"] for schema in offer.schemas] == ["clock", "a_read"], "the prompt stays as it is"
    assert offer.get("a_read") is None
    assert "not available at the moment" in offer.why_not("a_read")
    assert offer.names == ["clock"]
    assert shown(toolbox) == ["clock"], "a session that opens now does not see it"
    toolbox.register("mcp:a", tools("a_read"))
    assert toolbox.offer(order, caller(), BIG).get("a_read") is not None, "it came back"


def test_a_name_of_the_order_that_nobody_registered_waits_for_its_place() -> None:
    toolbox = box("clock", "todo")
    offer = toolbox.offer(("clock", "a_read", "todo"), caller(), BIG)
    assert offer.order == ("clock", "a_read", "todo")
    assert offer.names == ["clock", "todo"]
    assert offer.why_not("a_read") == "There is no tool named 'a_read'. The tools are: clock, todo."
    toolbox.register("mcp:a", tools("a_read"))
    assert shown(toolbox, offer.order) == ["clock", "a_read", "todo"]


def test_an_origin_replaces_its_own_tools_and_nobody_elses() -> None:
    toolbox = box("clock")
    toolbox.register("mcp:a", tools("a_read", "a_write"))
    toolbox.register("mcp:a", tools("a_write", "a_list"))
    assert shown(toolbox) == ["clock", "a_write", "a_list"]
    for names in (["clock"], ["b", "b"]):
        with pytest.raises(ConfigError, match="two tools are named"):
            toolbox.register("mcp:b", tools(*names))
    assert toolbox.has("clock", caller())


def test_schemas_are_counted_once_each() -> None:
    counted: list[str] = []

    def count(schemas: Iterable[Mapping[str, Any]]) -> int:
        counted.extend(schema["function"]["name"] for schema in schemas)
        return 7

    toolbox = box("clock", "todo", count=count)
    assert [toolbox.offer((), caller(), BIG).tokens for _ in range(3)] == [14, 14, 14]
    assert counted == ["clock", "todo"]


# -- who is offered what -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["*"], ["clock", "shell", "mcp_a", "mcp_b"]),
        (["clock", "mcp_*"], ["clock", "mcp_a", "mcp_b"]),
        (["*", "-shell"], ["clock", "mcp_a", "mcp_b"]),
        (["-shell", "-mcp_*"], ["clock"]),
        (["mcp_*", "-mcp_b"], ["mcp_a"]),
        (["mcp_b", "-mcp_*"], []),
        ([], []),
    ],
)
def test_a_list_takes_tools_in_and_out(names: list[str], taken: list[str]) -> None:
    assert [name for name in ("clock", "shell", "mcp_a", "mcp_b") if listed(name, names)] == taken


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        (caller("telegram", "42"), ["todo"]),
        (caller("telegram", "42", "-100"), ["clock"]),
        (caller("telegram", "7", "-100"), []),
        (caller("telegram", "7"), ["clock", "todo"]),
        (caller("telegram", "42@c", "-100"), []),
        (caller("discord", "7"), ["clock", "shell"]),
        (caller("discord", "7", roles=("staff",)), ["shell"]),
        (caller("console", "7"), ["shell"]),
    ],
)
def test_the_closest_entry_counts_alone(who: Caller, seen: list[str]) -> None:
    rule = OfferRule(
        offered={
            "*": ["shell"],
            "telegram": ["-shell"],
            "telegram:42": ["todo"],
            "telegram:42@-100": ["clock"],
            "telegram:*@-100": [],
            "discord:*": ["-todo"],
            "discord:staff": ["shell"],
        }
    )
    assert shown(box("clock", "todo", "shell", rules=[rule]), who=who) == seen


def test_a_person_whose_id_holds_an_at_has_an_entry_like_others() -> None:
    offered = {"*": ["clock"], "mail:ann@example.org": ["todo"], "matrix:@ann:example.org": ["todo"], "p:a@b": ["todo"]}
    toolbox = box("clock", "todo", rules=[OfferRule(offered=offered, mail_ids={"mail"})])
    assert shown(toolbox, who=caller("mail", "ann@example.org")) == ["todo"]
    assert shown(toolbox, who=caller("matrix", "@ann:example.org")) == ["todo"]
    assert shown(toolbox, who=caller("p", "a@b")) == ["clock"]


def test_what_admins_alone_have_is_for_nobody_else() -> None:
    rule = OfferRule(admins_only=["shell", "mcp_*"])
    toolbox = box("clock", "shell", "mcp_a", rules=[rule])
    assert shown(toolbox) == ["clock"]
    assert shown(toolbox, who=caller(admin=True)) == ["clock", "shell", "mcp_a"]
    order = toolbox.offer((), caller(admin=True), BIG).order
    assert shown(toolbox, order) == ["clock"], "an order from an admin's turn shows nobody else more"
    assert toolbox.offer(order, caller(), BIG).get("shell") is None


def test_every_rule_must_agree() -> None:
    toolbox = box("clock", "todo", rules=[lambda name, _: name != "clock", lambda name, _: name != "todo"])
    assert shown(toolbox) == []


# -- tools without room ------------------------------------------------------------------------


def crowded(*uses: str) -> Toolbox:
    """Fifty tools of 10 tokens each, and find_tools."""
    toolbox = Toolbox([*tools(*(f"t{n}" for n in range(50))), FindTools()], count=lambda _: 10)
    toolbox.used(uses)
    return toolbox


def test_where_all_have_room_there_is_nothing_to_find() -> None:
    assert FIND not in shown(crowded(), window=2_500)
    assert len(shown(crowded(), window=2_500)) == 50


def test_beyond_a_fifth_of_the_window_the_rarely_used_ones_are_hidden() -> None:
    toolbox = crowded("t40", "t40", "t30")
    offer = toolbox.offer((), caller(), 500)
    assert offer.order == (*(f"t{n}" for n in range(7)), "t30", "t40", FIND)
    assert offer.tokens == 100
    assert len(offer.hidden) == 41
    assert offer.get("t41") is None
    assert "find it with find_tools first" in offer.why_not("t41")
    toolbox.used(["t20"] * 9)
    assert toolbox.offer(offer.order, caller(), 500).order == offer.order, "a session keeps what it shows"
    assert len(toolbox.offer(offer.order, caller(), BIG).order) == 51, "a larger model has room for all"
    found = toolbox.offer((*offer.order, "t41"), caller(), 500)
    assert found.order == (*offer.order, "t41")
    assert found.get("t41") is not None
    assert len(found.hidden) == 40


def test_what_comes_later_is_hidden_where_there_is_no_room_left() -> None:
    toolbox = Toolbox([*tools("clock", "todo"), FindTools()], count=lambda _: 10)
    order = toolbox.offer((), caller(), 150).order
    assert order == ("clock", "todo")
    toolbox.register("mcp:a", tools("a_read", "a_write"))
    later = toolbox.offer(order, caller(), 150)
    assert later.order == ("clock", "todo", FIND)
    assert [*later.hidden] == ["a_read", "a_write"]


def test_nobody_finds_what_they_may_not_use() -> None:
    toolbox = Toolbox(
        [*tools(*(f"t{n}" for n in range(50))), FindTools()],
        count=lambda _: 10,
        rules=[lambda name, _: name != "t49"],
    )
    offer = toolbox.offer((), caller(), 500)
    assert "t49" not in offer.hidden
    assert FIND in offer.names, "no rule takes the way to hidden tools away"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("create an issue", ["github_create_issue", "linear_create"]),
        ("Issues", ["github_create_issue"]),
        ("send mail", ["mail_send", "notify"]),
        ("什么", []),
        ("", []),
    ],
)
def test_hidden_tools_are_found_by_names_and_descriptions(words: str, found: list[str]) -> None:
    hidden = {
        "notify": "Sends a short note by mail.",
        "mail_send": "Sends a letter.",
        "linear_create": "Creates a task. Create one at a time.",
        "github_create_issue": "Opens it.",
    }
    assert best(words, hidden) == found
