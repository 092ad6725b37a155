"""The parrot, described. Nothing of it is started by that."""

from __future__ import annotations

from pydantic import Field

from gateway.domain.platform import AdapterSettings, Platform
from gateway.domain.settings import Text


class ParrotSettings(AdapterSettings):
    """A parrot that hears what is written into one file and says its answers into another."""

    ears: Text = Field(description="the file whose lines it hears")
    beak: Text = Field("beak.txt", description="the file that it speaks into")


def person_problem(name: str) -> str | None:
    """Return an objection unless the name is in small letters, as the names of a parrot's friends are."""
    return None if name.isalpha() and name.islower() else 'must give a name in small letters, as in "parrot:polly"'


PLATFORM = Platform(
    name="parrot",
    title="the parrot",
    create="toys.adapter:Parrot",
    settings=ParrotSettings,
    hint="The person hears you from a parrot: short words.",
    person="polly",
    person_problem=person_problem,
)
