"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .limiting.memory import MemoryLimits as MemoryLimits
from .limiting.policy import Policy as Policy
from .limiting.rate import Rate as Rate
from .limiting.redis import RedisLimits as RedisLimits
from .limiting.storage import LimitStorage as LimitStorage
from .limiting.storage import Standing as Standing
from .logging import Logging as Logging
from .production import production as production
from .rate_limit import RateLimit as RateLimit
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
