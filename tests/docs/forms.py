"""The pages of vendors on which a bot is made, as schematic drawings: what to press and what to copy is marked, by the
numbers of the steps in the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tests.docs.lettering import width
from tests.docs.svg import Ink, box, disc, picture, text

_WIDE: Final = 900
_EDGE: Final = 16
_MENU: Final = 170
_ROW: Final = 30
_HEAD: Final = 44
_SIZE: Final = 12.5
_TITLE: Final = Ink(fill="#16324a", bold=True)
_WORDS: Final = Ink(fill="#3d4f5e")
_FAINT: Final = Ink(fill="#7a8894")
_HERE: Final = Ink(fill="#16324a", bold=True)
_LIGHT: Final = Ink(fill="#ffffff", bold=True)
_CODE: Final = Ink(fill="#16324a", mono=True)
_MARK: Final = "#c2410c"
_PRESSED: Final = "#1f6f54"


@dataclass(frozen=True, slots=True)
class Part:
    """A line of a page: a heading, a field that holds something, a button or a remark. `step`: to be pressed, filled
    in or copied in that step; 0: only to be found by."""

    kind: Literal["heading", "field", "button", "remark"]
    words: str
    value: str = ""
    step: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its menu at the left, of which the last entry named `here` is open."""

    address: str
    menu: Sequence[str]
    here: str
    parts: Sequence[Part]


SLACK: Final = (
    Page(
        "api.slack.com/apps",
        ("Your Apps",),
        "Your Apps",
        (
            Part("button", "Create New App", step=1),
            Part("button", "From a manifest", step=1),
            Part("field", "Manifest, as YAML", "display_information: …", step=1),
            Part("button", "Create", step=1),
        ),
    ),
    Page(
        "your app",
        ("Basic Information", "Socket Mode", "OAuth & Permissions", "Event Subscriptions"),
        "Basic Information",
        (
            Part("heading", "App-Level Tokens"),
            Part("button", "Generate Token and Scopes", step=2),
            Part("field", "Scope", "connections:write", step=2),
            Part("field", "Token", "xapp-1-…", step=2),
        ),
    ),
    Page(
        "your app",
        ("Basic Information", "Socket Mode", "OAuth & Permissions", "Event Subscriptions"),
        "OAuth & Permissions",
        (
            Part("button", "Install to your workspace", step=3),
            Part("button", "Allow", step=3),
            Part("field", "Bot User OAuth Token", "xoxb-…", step=3),
            Part("remark", "Bot Token Scopes: nothing to do, the manifest has them"),
        ),
    ),
)
WHATSAPP: Final = (
    Page(
        "developers.facebook.com/apps",
        ("My Apps",),
        "My Apps",
        (
            Part("button", "Create app", step=1),
            Part("field", "Use case", "Connect with customers through WhatsApp", step=1),
            Part("field", "Business portfolio", "yours", step=1),
        ),
    ),
    Page(
        "your app",
        ("WhatsApp", "  API Setup", "  Configuration", "App settings", "  Basic"),
        "  API Setup",
        (
            Part("field", "Phone number ID", "106540352242922", step=2),
            Part("field", "To", "Manage phone number list: add your own", step=2),
            Part("button", "Generate access token", step=2),
            Part("field", "Access token", "EAAG…", step=2),
            Part("remark", "Configuration: nothing to enter, the bot does that"),
        ),
    ),
    Page(
        "your app",
        ("WhatsApp", "  API Setup", "  Configuration", "App settings", "  Basic"),
        "  Basic",
        (
            Part("field", "App secret", "••••••••", step=3),
            Part("button", "Show", step=3),
        ),
    ),
)

MATRIX: Final = (
    Page(
        "your Matrix app, before you sign in",
        ("Sign in", "Create account"),
        "Create account",
        (
            Part("field", "Username", "legato", step=1),
            Part("field", "Password", "••••••••", step=1),
            Part("button", "Register", step=1),
            Part("remark", "Then sign out: the bot signs in by itself"),
        ),
    ),
    Page(
        "your own account: All settings",
        ("Account", "Sessions", "Appearance", "Notifications"),
        "Account",
        (
            Part("heading", "Profile"),
            Part("field", "Username", "@anna:example.org", step=2),
        ),
    ),
    Page(
        "Start chat",
        ("Start chat", "New room"),
        "New room",
        (
            Part("field", "Name", "Legato", step=4),
            Part("field", "End-to-end encryption", "off", step=4),
            Part("button", "Create room", step=4),
            Part("field", "Invite to this room", "@legato:example.org", step=4),
            Part("button", "Invite", step=4),
        ),
    ),
    Page(
        "Room settings",
        ("General", "Security & Privacy", "Roles & Permissions", "Advanced"),
        "Advanced",
        (
            Part("field", "Internal room ID", "!room:example.org"),
            Part("remark", "Who may talk in one room only: access.allow names the room by this"),
        ),
    ),
)


def drawn(title: str, pages: Sequence[Page]) -> str:
    """The pages one below the other."""
    parts: list[str] = []
    y = float(_EDGE)
    for page in pages:
        high = _HEAD + _ROW * max(len(page.menu), len(page.parts)) + _EDGE
        parts += _page(page, y, high)
        y += high + _EDGE
    return picture(_WIDE, y, title, [box(0, 0, _WIDE, y, "#eef1f4", radius=10), *parts])


def _page(page: Page, top: float, high: float) -> list[str]:
    wide = _WIDE - 2 * _EDGE
    parts = [
        box(_EDGE, top, wide, high, "#ffffff", radius=8),
        text(_EDGE + 14, top + 26, page.address, _TITLE, size=14),
        box(_EDGE, top + _HEAD - 6, wide, 1, "#d5dbe1"),
    ]
    for number, entry in enumerate(page.menu):
        y, open_ = top + _HEAD + _ROW * number, entry == page.here
        if open_:
            parts.append(box(_EDGE + 6, y, _MENU - 12, _ROW - 6, "#d9e8f5", radius=5))
        parts.append(
            text(_EDGE + 14 + 10 * entry.startswith(" "), y + 17, entry.strip(), _HERE if open_ else _FAINT, size=_SIZE)
        )
    for number, part in enumerate(page.parts):
        parts += _part(part, _EDGE + _MENU + 44.0, top + _HEAD + _ROW * number)
    return parts


def _part(part: Part, x: float, y: float) -> list[str]:
    marked = []
    if part.step:
        marked = [disc(x - 22, y + 12, 9, _MARK), text(x - 22, y + 16, str(part.step), _LIGHT, size=11, at="middle")]
    if part.kind in ("heading", "remark"):
        return [*marked, text(x, y + 17, part.words, _HERE if part.kind == "heading" else _FAINT, size=_SIZE)]
    if part.kind == "button":
        wide = width(part.words, _LIGHT, _SIZE) * 1.17 + 28
        shown = text(x + wide / 2, y + 17, part.words, _LIGHT, size=_SIZE, at="middle")
        return [*marked, box(x, y, wide, _ROW - 6, _PRESSED, radius=5), shown]
    at, wide = x + 190, 400
    edge = _MARK if part.step else "#b8c2cb"
    frame = [
        box(at - 1.5, y - 1.5, wide + 3, _ROW - 3, edge, radius=6),
        box(at, y, wide, _ROW - 6, "#ffffff", radius=5),
    ]
    value = text(at + 10, y + 17, part.value, _CODE, size=12)
    return [*marked, text(x, y + 17, part.words, _WORDS, size=_SIZE), *frame, value]
