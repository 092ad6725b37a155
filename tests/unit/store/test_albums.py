"""The files of a message, as the stores write them."""

from __future__ import annotations

import pytest

from gateway.domain.chat import Album, ChatAddress, KeptFile, Outbound, SessionKey
from gateway.store.kinds import ROW, Row


def kept(name: str) -> KeptFile:
    return KeptFile(ref=f"sent:{name}", digest=name, name=f"{name}.png", mime="image/png", size=3, at=1.0)


@pytest.mark.parametrize("others", [(), ("b", "猫")])
def test_a_row_comes_back_with_all_its_files(others: tuple[str, ...]) -> None:
    first, more = kept("a"), tuple(map(kept, others))
    album = Album(ref=first.ref, digest="a", name="a.png", mime="image/png", size=3, at=1.0, others=more)
    to, key = ChatAddress(platform="t", chat="1"), SessionKey(platform="t", chat="1")
    row = Outbound(id="o_1", key=key, to=to, kind="notice", text="", file=album if more else first)
    read = ROW.record(ROW.document(Row(seq=1, place=1, out=row))).out
    assert read == row
    assert [file.ref for file in read.files] == ["sent:a", *(f"sent:{name}" for name in others)]
