"""What the bot answers on the emulator of a Matrix server, which loses answers on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.matrix.codec import ENCRYPTED
from gateway.domain.turn import BUSY, TurnSettings
from tests.emulators.faults import LoseAnswer
from tests.emulators.matrix import MatrixServer, text_in
from tests.support.matrix_live import on_matrix
from tests.support.model import FakeModel, Gate, Say, in_turn


async def test_an_answer_whose_beginning_was_lost_is_shown_to_its_end(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="Look ", gate=gate, text="here.")))
    async with MatrixServer() as matrix:
        anna = matrix.world.person("Anna")
        room = matrix.world.room(anna, matrix.bot)
        matrix.faults.add(LoseAnswer(seconds=0.0), method="send", times=2)  # the library tries once more by itself
        async with on_matrix(tmp_path, matrix, account=matrix.bot, anna=anna, model=model):
            await matrix.until(lambda: matrix.connected)
            matrix.world.say(room, anna, "Where?")
            await matrix.until(lambda: len([call for call in matrix.journal.of("send") if call.ambiguous]) == 2)
            gate.open()
            await matrix.until(lambda: [text_in(each["content"]) for each in matrix.shown(room)] == ["Look here."])


async def test_what_was_said_to_a_bot_that_was_away_waits_for_room_in_its_lane(tmp_path: Path) -> None:
    async with MatrixServer() as matrix:
        anna = matrix.world.person("Anna")
        room = matrix.world.room(anna, matrix.bot)
        how: dict[str, Any] = {"account": matrix.bot, "anna": anna, "turns": TurnSettings(lane_cap=3)}
        async with on_matrix(tmp_path, matrix, **how):
            await matrix.until(lambda: matrix.connected)
        texts = [f"{number}" for number in range(12)]
        for text in texts:
            matrix.world.say(room, anna, text)
        async with on_matrix(tmp_path, matrix, **how):
            await matrix.until(lambda: len(matrix.shown(room)) >= len(texts))
        shown = [text_in(each["content"]) for each in matrix.shown(room)]
        assert [text for text in shown if text != BUSY] == [f"echo: {text}" for text in texts]


async def test_a_person_is_told_what_to_do_about_an_encrypted_chat(tmp_path: Path) -> None:
    async with MatrixServer() as matrix:
        anna = matrix.world.person("Anna")
        room = matrix.world.room(anna, matrix.bot)
        async with on_matrix(tmp_path, matrix, account=matrix.bot, anna=anna):
            await matrix.until(lambda: matrix.connected)
            sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "A", "session_id": "s"}
            matrix.world.put(room, anna, "m.room.encrypted", sealed)
            await matrix.until(lambda: matrix.shown(room))
            assert [text_in(each["content"]) for each in matrix.shown(room)] == [ENCRYPTED]


async def test_a_flood_of_reactions_asks_the_server_once(tmp_path: Path) -> None:
    async with MatrixServer() as matrix:
        anna = matrix.world.person("Anna")
        room = matrix.world.room(anna, matrix.bot)
        how: dict[str, Any] = {"account": matrix.bot, "anna": anna}
        async with on_matrix(tmp_path, matrix, **how):
            await matrix.until(lambda: matrix.connected)
            matrix.world.say(room, anna, "When?")
            await matrix.until(lambda: matrix.shown(room))
        (answer,) = matrix.shown(room)
        model = FakeModel()
        async with on_matrix(tmp_path, matrix, model=model, **how):
            for number in range(20):
                relation = {"rel_type": "m.annotation", "event_id": answer["event_id"], "key": f"sign {number}"}
                matrix.world.put(room, anna, "m.reaction", {"m.relates_to": relation})
            matrix.world.say(room, anna, "Sure?")
            await matrix.until(lambda: len(model.requests) == 1)
            assert model.spoken()[-1][1].startswith("[Anna reacted sign to: ")
            assert len([*matrix.journal.of("event")]) == 1
