"""Memory: when Python looks for what is free, and when it is given back to the system."""

from __future__ import annotations

import ctypes
import gc


def collect_later() -> None:
    """Look for no garbage in cycles before `collect_seldom`: each look walks all of what a start makes, which stays."""
    gc.disable()


def collect_seldom() -> None:
    """Look for garbage in cycles less often than Python does by default, and never among what is there already. Hardly
    any is made here, and each look walks all of the memory: a sixth of a message's time, a fifth of a long request's.
    """
    gc.set_threshold(20_000, 20, 50)
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def give_back() -> None:
    """Give free memory back to the system; in a thread, for it takes long. glibc keeps what was freed between what is
    still used, for as long as the process lives; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
