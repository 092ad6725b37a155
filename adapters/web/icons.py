"""The page's icons: strokes on a square of 24, in the colour of the words beside them."""

from __future__ import annotations

from typing import Final

from adapters.web.markup import Html, el

_STROKES: Final = {
    "chat": "M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-8l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z",
    "window": "M4 16a8 8 0 1 1 16 0M12 16l4-5M7 20h10",
    "folder": "M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z",
    "spark": "M12 3l2.2 6.3L20.5 12l-6.3 2.7L12 21l-2.2-6.3L3.5 12l6.3-2.7z",
    "phone": "M8.5 3h7a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM11 18h2",
    "shield": "M12 3l7 3v5c0 4.6-2.9 8-7 10-4.1-2-7-5.4-7-10V6zM9 12l2 2 4-4",
    "plus": "M12 5v14M5 12h14",
    "clip": "M8 12.5l6.2-6.2a2.8 2.8 0 0 1 4 4l-8 8a4.6 4.6 0 0 1-6.5-6.5l7.6-7.6",
    "send": "M12 19V5M6 11l6-6 6 6",
    "edit": "M4 20l1-4L16.5 4.5a2 2 0 0 1 2.8 0l.2.2a2 2 0 0 1 0 2.8L8 19z",
    "copy": "M9 9h9a1.5 1.5 0 0 1 1.5 1.5v9A1.5 1.5 0 0 1 18 21H9a1.5 1.5 0 0 1-1.5-1.5v-9A1.5 1.5 0 0 1 9 9z"
    "M4.5 15V4.5A1.5 1.5 0 0 1 6 3h9",
    "done": "M5 12.5l4.5 4.5L19 7.5",
    "again": "M20 5v5h-5M19.4 10A8 8 0 1 0 20 14",
    "wrap": "M4 6h16M4 12h13a3 3 0 0 1 0 6h-4M15 15.5L12.5 18l2.5 2.5M4 18h4",
    "down": "M12 5v14M6 13l6 6 6-6",
    "search": "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L20 20",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "left": "M14.5 6l-6 6 6 6",
    "right": "M9.5 6l6 6-6 6",
    "tool": "M14.5 6.5a4 4 0 0 1 5-1.2l-2.8 2.8 1.2 1.9 1.9 1.2 2-2a4.2 4.2 0 0 1-6 4.6L8.5 21 5 17.5l7.2-7.3"
    "a4 4 0 0 1 2.3-3.7z",
    "mic": "M12 3.5a2.5 2.5 0 0 1 2.5 2.5v5a2.5 2.5 0 0 1-5 0V6A2.5 2.5 0 0 1 12 3.5zM6 11a6 6 0 0 0 12 0M12 17v3.5",
    "aloud": "M4 9.5h3.5L12 5.5v13l-4.5-4H4zM15.5 9a4 4 0 0 1 0 6M18 6.5a7.5 7.5 0 0 1 0 11",
    "more": "M6 12h.01M12 12h.01M18 12h.01",
    "gear": "M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM12 3v3M12 18v3M3 12h3M18 12h3"
    "M5.6 5.6l2.2 2.2M16.2 16.2l2.2 2.2M18.4 5.6l-2.2 2.2M7.8 16.2l-2.2 2.2",
    "bell": "M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15zM10 21h4",
    "note": "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
    "plug": "M9 3v5M15 3v5M6.5 8h11v3a5.5 5.5 0 0 1-11 0zM12 16.5V21",
    "hook": "M10 13.5a4 4 0 0 0 6 .4l2.6-2.6a4 4 0 0 0-5.7-5.7L11.6 7"
    "M14 10.5a4 4 0 0 0-6-.4l-2.6 2.6a4 4 0 0 0 5.7 5.7l1.3-1.4",
    "key": "M8.5 10a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM11.7 11.3L19.5 3.5M16 7l3 3",
    "person": "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4.5 20.5a7.5 7.5 0 0 1 15 0",
    "sun": "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2"
    "M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
    "moon": "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
    "screen": "M5 4.5h14a1.5 1.5 0 0 1 1.5 1.5v9a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 15V6A1.5 1.5 0 0 1 5 4.5z"
    "M9 20h6M12 16.5V20",
    "side": "M5 5h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM9.5 5v14",
    "list": "M4 7l1.5 1.5L8 6M4 16l1.5 1.5L8 15M11 7.5h9M11 16.5h9",
}


def icon(name: str) -> Html:
    """An icon by its name. It says nothing to a screen reader: the words beside it, or a label, do."""
    return el("svg", el("path", d=_STROKES[name]), viewBox="0 0 24 24", aria_hidden="true", class_="icon")
