"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .cost_tracking import CostTracking as CostTracking
from .costs.budget import Budget as Budget
from .costs.budget import BudgetAlert as BudgetAlert
from .costs.memory import MemoryCosts as MemoryCosts
from .costs.price import Price as Price
from .costs.price import PriceOf as PriceOf
from .costs.redis import RedisCosts as RedisCosts
from .costs.sql import SqlCosts as SqlCosts
from .costs.store import Bill as Bill
from .costs.store import Charge as Charge
from .costs.store import CostEntry as CostEntry
from .costs.store import CostRow as CostRow
from .costs.store import CostStore as CostStore
from .costs.store import Hold as Hold
from .costs.till import OnAlert as OnAlert
from .logging import Logging as Logging
from .production import production as production
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
