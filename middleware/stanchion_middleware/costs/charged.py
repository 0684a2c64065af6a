"""What a call was charged, as the layer that charges leaves it for layers outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stanchion import StateKey

from .store import CostEntry

CHARGED: Final[StateKey[Sequence[CostEntry]]] = StateKey("cost.charged")
"""What went into the report for the call, by unit; not there where it was free."""
