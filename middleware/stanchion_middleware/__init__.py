"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .logging import Logging as Logging
from .plan import Hints as Hints
from .plan import Plan as Plan
from .plan_id import META_PLAN as META_PLAN
from .production import production as production
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
from .simulation import META_SIMULATED as META_SIMULATED
from .simulation import Simulation as Simulation
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
