"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .logging import Logging as Logging
from .multi_tenant import MultiTenant as MultiTenant
from .production import production as production
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
from .tenants.file_tenants import FileTenants as FileTenants
from .tenants.memory_state import MemoryTenantState as MemoryTenantState
from .tenants.record import Patterns as Patterns
from .tenants.record import TenantRecord as TenantRecord
from .tenants.record import is_tenant_id as is_tenant_id
from .tenants.redis_state import RedisTenantState as RedisTenantState
from .tenants.sources import FromHeader as FromHeader
from .tenants.sources import FromHost as FromHost
from .tenants.sources import FromPrincipal as FromPrincipal
from .tenants.sources import TenantSource as TenantSource
from .tenants.sql_tenants import SqlTenants as SqlTenants
from .tenants.store import StaticTenants as StaticTenants
from .tenants.store import TenantStore as TenantStore
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
