"""The picture that is to be changed."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from gateway.agent import pictures
from gateway.runtime.errors import ToolError

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(("there", "sent"), [(b"no picture", None), (b"", None), (None, b"no picture"), (None, None)])
async def test_what_is_no_picture_is_not_changed(
    monkeypatch: pytest.MonkeyPatch, there: bytes | None, sent: bytes | None
) -> None:
    monkeypatch.setattr(pictures, "in_workspace", AsyncMock(return_value=there))
    monkeypatch.setattr(pictures, "chosen", AsyncMock())
    tool, context = object.__new__(pictures.MakeImageTool), AsyncMock()
    tool._workspaces = None
    context.files.content.return_value = sent
    with pytest.raises(ToolError, match=r"'notes\.txt' is not a picture that is still kept"):
        await tool._edited("notes.txt", context)
    monkeypatch.setattr(pictures, "in_workspace", AsyncMock(return_value=PNG))
    assert await tool._edited("a.png", context) == ("picture.png", PNG, "image/png")
