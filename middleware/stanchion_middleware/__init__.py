"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .logging import Logging as Logging
from .production import production as production
from .rbac import DEFAULT_POLICIES as DEFAULT_POLICIES
from .rbac import RBAC as RBAC
from .rbac import Explanation as Explanation
from .rbac import FilePolicies as FilePolicies
from .rbac import Grant as Grant
from .rbac import Inherits as Inherits
from .rbac import PolicyAdapter as PolicyAdapter
from .rbac import Rule as Rule
from .rbac import SqlPolicies as SqlPolicies
from .rbac import Statement as Statement
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
