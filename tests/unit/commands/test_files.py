"""What /files says of a workspace."""

from __future__ import annotations

from gateway.commands.files import _shown
from gateway.domain.views import FileLine, WorkspaceView


def test_only_files_that_are_not_listed_are_counted_as_more() -> None:
    listed = [FileLine(path="a.txt", size=5)]
    assert "more" not in _shown(WorkspaceView(count=1, size=5, files=listed, changes=[]))
    assert "  and 2 more files\n" in _shown(WorkspaceView(count=3, size=9, files=listed, changes=[]))
