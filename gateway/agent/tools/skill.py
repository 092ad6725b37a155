"""Loads the instructions of a skill, finds one by words, or proposes to keep one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.agent.skills.catalogue import MARK, Skills
from gateway.agent.skills.skill import FILE, Skill, named, read
from gateway.agent.tools.base import Result, ToolContext, schema
from gateway.agent.tools.find_tools import best
from gateway.agent.tools.shell import quoted_lines
from gateway.domain.wording import first_of
from gateway.runtime.errors import ToolError, UserError

_LONGEST: Final = 6_000  # characters of a text that a person is asked about: they must be able to read all of it
_ALWAYS: Final = ("skill", "read_file")  # whatever a skill allows: they show the skill itself
_LISTED: Final = 50  # files


class SkillTool(Struct, frozen=True):
    """A loaded skill's body is the operator's word, or was read by a person who said yes to it. A proposal is kept by
    the same name once, however often it is repeated."""

    name = "skill"
    description = "Loads a skill, or finds some by words; `text`, a SKILL.md, proposes one."
    parameters = schema("name", name={"type": "string"}, text={"type": "string"})
    read_only = False
    idempotent = True
    brings = ""
    admins_only = False
    setting = ""
    needs = MARK
    timeout = 20.0

    skills: Skills

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """The whole text of a skill that is proposed, line by line, with nothing hidden."""
        if not arguments.get("text"):
            return None
        question = "Keep this skill in this conversation, and follow it from now on?"
        return "\n".join([question, *quoted_lines(_proposed(arguments))])

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str | Result:
        """The body of a skill and the paths of its files; names that fit; or that a skill is kept."""
        key, name = context.session.key, arguments["name"].strip()
        try:
            if arguments.get("text"):
                if key.user is None and context.session.chat_type != "direct" and not context.admin:
                    raise ToolError("What holds for several people is proposed in the turn of an admin; say so.")
                return await self.skills.keep(key, _proposed(arguments))
            skill = await self.skills.load(key, name)
        except UserError as error:
            raise ToolError(str(error)) from None
        if skill is None:
            return await self._near(context, name)
        return Result(text=_body(skill), only=None if skill.tools is None else (*_ALWAYS, *skill.tools))

    async def _near(self, context: ToolContext, words: str) -> str:
        described = self.skills.described(await self.skills.decided(context.session.key))
        fitting = best(words, described)
        if not fitting:
            raise ToolError(f"There is no skill {words[:100]!r} here, and none that fits these words.")
        return "\n".join(["These fit; load one by its name:", *(f"- {name}: {described[name]}" for name in fitting)])


def _proposed(arguments: Mapping[str, Any]) -> str:
    """The text of a skill that may be kept. Raises ToolError."""
    text: str = arguments["text"].strip()
    if len(text) > _LONGEST:
        raise ToolError(f"A skill that you propose has at most {_LONGEST:,} characters, so that a person can read it.")
    try:
        skill = read(text.encode())
        if skill.name != named(arguments["name"]):
            raise ToolError(f"The SKILL.md calls itself {skill.name}: give the same `name` twice.")
    except UserError as error:
        raise ToolError(f"{error}.") from None
    return text


def _body(skill: Skill) -> str:
    name, where = skill.name, "/workspace/skills" if skill.own else "/skills"
    parts = [f"[The skill {name}. Follow it where it helps with what the person wants.]\n{skill.body}"]
    if skill.compatibility:
        parts.append(f"[What it needs: {skill.compatibility}]")
    if files := [f"skills/{name}/{each}" for each in skill.files if each != FILE]:
        listed = first_of(files, _LISTED)
        parts.append(f"[Its files, for read_file: {listed}. In a sandbox they lie in {where}/{name}.]")
    if skill.tools is not None:
        parts.append(f"[Until your answer you can call these tools alone: {', '.join((*_ALWAYS, *skill.tools))}.]")
    return "\n".join(parts)


TOOLS = (lambda host: SkillTool(host.skills) if host.skills is not None and host.skills.enabled else None,)
