"""Recordings of Opus, packet by packet: what is written is read again, and what is no packet has no length."""

from __future__ import annotations

import pytest

from adapters.discord.voice import ogg_of, packets_of, samples_of


def kinds(content: bytes) -> list[int]:
    """The kind of each page: 2 begins the stream, 4 ends it."""
    found, at = [], 0
    while at < len(content):
        assert content[at : at + 4] == b"OggS"
        found.append(content[at + 5])
        count = content[at + 26]
        at += 27 + count + sum(content[at + 27 : at + 27 + count])
    return found


@pytest.mark.parametrize("count", [1, 49, 50, 51, 120])
def test_a_recording_is_read_as_it_was_written_and_only_its_last_page_ends_it(count: int) -> None:
    packets = [bytes([0xF8]) + bytes([number % 7]) * (200 + 10 * (number % 9)) for number in range(count)]
    content = ogg_of(packets)
    assert [*packets_of(content)][2:] == packets
    assert kinds(content)[:2] == [2, 0]
    assert kinds(content)[-1] == 4
    assert set(kinds(content)[2:-1]) <= {0}


@pytest.mark.parametrize(
    ("packet", "samples"),
    [
        (bytes([0 << 3]), 480),
        (bytes([3 << 3]), 2_880),
        (bytes([12 << 3]), 480),
        (bytes([15 << 3]), 960),
        (bytes([16 << 3]), 120),
        (bytes([31 << 3]), 960),
        (bytes([31 << 3 | 1]), 1_920),
        (bytes([31 << 3 | 2]), 1_920),
        (bytes([31 << 3 | 3, 6]), 5_760),
        (bytes([31 << 3 | 3, 7]), 0),
    ],
)
def test_how_long_a_packet_sounds(packet: bytes, samples: int) -> None:
    assert samples_of(packet) == samples
