"""A message that kills the process whenever it is taken up: it ends as a dead letter, and only it."""

from gateway.store.records import MOST_ATTEMPTS, SUSPECT_ATTEMPTS
from gateway.turns.turn import DEAD
from tests.chaos.answers import answer
from tests.chaos.drive import carry_out
from tests.chaos.script import Event, Plan
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Hang, last_user_text

POISON = "say tokpoison"


def said(number, chat, text):
    return Event(id=f"m{number}", chat=chat, user=None, kind="say", text=text, token=text.split()[-1])


async def poisoned(folder, hook, *events):
    """Return the state after the poison has done its worst; all lines are sent at once."""
    plan = Plan(seed=0, lines=events, kills=(), ahead=len(events), again=0.0, poison=POISON, spare=MOST_ATTEMPTS + 1)
    async with LlmServer(hook, context_length=plan.window) as server:
        return await carry_out(plan, folder, server)


def answers(evidence):
    return {line.fields["answers"]: (line.fields["kind"], line.fields["text"]) for line in evidence.lines}


async def test_a_message_that_kills_the_process_ends_as_a_dead_letter_and_its_chat_goes_on(tmp_path):
    evidence = await poisoned(
        tmp_path, answer, said(1, "a", "say tok1"), said(2, "a", POISON), said(3, "a", "say tok3")
    )

    assert evidence.exits == [-9] * MOST_ATTEMPTS + [0]
    assert answers(evidence)["m2"] == ("error", DEAD.format(attempts=MOST_ATTEMPTS))
    assert [answers(evidence)[event][0] for event in ("m1", "m3")] == ["reply", "reply"]
    assert evidence.snapshots[-1].inbox["m2"][2] == "dead"


async def test_messages_that_run_beside_it_at_every_crash_are_answered(tmp_path):
    def slow(body):
        """The neighbours are being answered whenever the poison strikes, until it has struck often."""
        process = int((tmp_path / "trace").read_text().splitlines()[-1].split()[0])
        if "tokpatient" in last_user_text(body) and process < SUSPECT_ATTEMPTS:
            return Hang()
        return answer(body)

    neighbours = [said(number, f"chat{number}", f"say tokpatient{number}") for number in range(3)]
    evidence = await poisoned(tmp_path, slow, *neighbours, said(8, "bad", POISON), said(9, "bad", "say tokafter"))

    assert evidence.exits == [-9] * MOST_ATTEMPTS + [0]
    assert answers(evidence)["m8"] == ("error", DEAD.format(attempts=MOST_ATTEMPTS))
    assert {event_id: row[2] for event_id, row in evidence.snapshots[-1].inbox.items()} == {
        "m0": "answered",
        "m1": "answered",
        "m2": "answered",
        "m8": "dead",
        "m9": "answered",
    }
