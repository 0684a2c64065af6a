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
