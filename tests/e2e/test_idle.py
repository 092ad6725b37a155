"""What a process keeps of conversations in which nobody says anything any more."""

from pathlib import Path

from tests.support.gateway import running


async def test_what_nobody_has_used_between_two_rests_is_read_again(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        for chat in ("one", "two"):
            assert await live.ask("hello", chat=chat) == "echo: hello"
        await live.gateway.upkeep.rest()  # both were used a moment ago
        assert len(live.gateway.agents.sessions.engines._held) == 2
        assert await live.ask("still here", chat="one") == "echo: still here"
        await live.gateway.upkeep.rest()
        assert len(live.gateway.agents.sessions.engines._held) == 1
        assert await live.ask("and back", chat="two") == "echo: and back"
        assert live.model.spoken() == [("user", "hello"), ("assistant", "echo: hello"), ("user", "and back")]
