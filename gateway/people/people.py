"""The room's parts together, as the rooms above are given them."""

from __future__ import annotations

from msgspec import Struct

from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders
from gateway.people.sweep import ReminderSweep
from gateway.people.welcome import Welcome


class People(Struct, frozen=True, kw_only=True):
    """Who may talk, who is asked and greeted, and who is reminded. `sweep` fires reminders that are due."""

    pairing: Pairing
    approvals: Approvals
    welcome: Welcome
    reminders: Reminders
    sweep: ReminderSweep

    def keep_to(self, access: Access) -> None:
        """Have all of them keep to other settings of who may do what."""
        self.pairing.access = self.approvals.access = self.reminders.access = access
