"""`replace` makes a copy of a Struct with other values of some fields."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace  # the only one whose fields and values a type checker knows
else:
    from msgspec.structs import replace

__all__ = ["replace"]
