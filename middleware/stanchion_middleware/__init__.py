"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .credentials import Authenticator as Authenticator
from .credentials import BearerAuthenticator as BearerAuthenticator
from .credentials import Credentials as Credentials
from .environment_credentials import EnvironmentCredentials as EnvironmentCredentials
from .limiting.memory import MemoryLimits as MemoryLimits
from .limiting.policy import Policy as Policy
from .limiting.rate import Rate as Rate
from .limiting.redis import RedisLimits as RedisLimits
from .limiting.storage import LimitStorage as LimitStorage
from .limiting.storage import Standing as Standing
from .logging import Logging as Logging
from .multi_tenant import MultiTenant as MultiTenant
from .plan import Hints as Hints
from .plan import Plan as Plan
from .plan_id import META_PLAN as META_PLAN
from .production import production as production
from .proxy_subject import ProxySubject as ProxySubject
from .rate_limit import RateLimit as RateLimit
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
from .simulation import META_SIMULATED as META_SIMULATED
from .simulation import Simulation as Simulation
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
from .tokens.api_key import ApiKey as ApiKey
from .tokens.api_key import ApiKeyVerifier as ApiKeyVerifier
from .tokens.api_key import api_key_digest as api_key_digest
from .tokens.api_key import new_api_key as new_api_key
from .tokens.cached import CachedVerifier as CachedVerifier
from .tokens.claim_mapping import ClaimMapping as ClaimMapping
from .tokens.first_of import FirstOf as FirstOf
from .tokens.introspection import IntrospectionVerifier as IntrospectionVerifier
from .tokens.jwt import JwtVerifier as JwtVerifier
from .tokens.static import StaticVerifier as StaticVerifier
from .tokens.verifier import InvalidToken as InvalidToken
from .tokens.verifier import TokenVerifier as TokenVerifier
from .truncation import META_TRUNCATED as META_TRUNCATED
from .validation import Validation as Validation
