"""A loopback Matrix server, thin: its client-server API as far as a bot without encryption needs it, and the people and
rooms behind that. It was written from the specification (https://spec.matrix.org/v1.15/client-server-api/). Whether a
bot gets on with servers as they are, the tests on a real Synapse say; this one is quick, and can be disturbed.

    async with MatrixServer() as matrix:
        anna = matrix.world.person("Anna")
        room = matrix.world.room(anna, invited=[matrix.bot])
        ...  # a bot connects: homeserver = matrix.url
        matrix.world.say(room, anna, "Hello")
        await matrix.until(lambda: matrix.shown(room))
        assert not matrix.violations

`server` takes calls; `world` has people, rooms, and what `/sync` tells of them.
"""

from tests.emulators.matrix.server import MatrixServer
from tests.emulators.matrix.world import Room, User, text_in

__all__ = ["MatrixServer", "Room", "User", "text_in"]
