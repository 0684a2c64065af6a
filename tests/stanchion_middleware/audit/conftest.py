"""The client whose every answer is judged, for the tests of the trail."""

from __future__ import annotations

from ...stanchion.conftest import judged

__all__ = ["judged"]
