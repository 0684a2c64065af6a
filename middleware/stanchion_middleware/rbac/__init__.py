"""Role-based access control: who may see and call what, on casbin.

    statements      rules, grants and the hierarchy of roles
    conditions      what a rule asks of a call's arguments
    patterns        names with wildcards, and rules found by name
    judge           casbin, and what it is told
    policy          statements compiled once: roles, decisions, the cache of decisions
    adapter, policy_file, sql_policies  where statements are kept
    layer           the middleware

casbin and SQLAlchemy are dear to import, and are imported by what needs them.
"""

from __future__ import annotations

from .adapter import PolicyAdapter as PolicyAdapter
from .layer import RBAC as RBAC
from .policy import Explanation as Explanation
from .policy_file import DEFAULT_POLICIES as DEFAULT_POLICIES
from .policy_file import FilePolicies as FilePolicies
from .sql_policies import SqlPolicies as SqlPolicies
from .statements import Grant as Grant
from .statements import Inherits as Inherits
from .statements import Rule as Rule
from .statements import Statement as Statement
