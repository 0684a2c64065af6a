"""The built-in middleware pack: one layer a file, found like any other pack.

It uses only what `stanchion` exports, so that a pack of your own can do whatever it does.
"""

from __future__ import annotations

from .auth import Auth as Auth
from .credentials import Authenticator as Authenticator
from .credentials import BearerAuthenticator as BearerAuthenticator
from .credentials import Credentials as Credentials
from .environment_credentials import EnvironmentCredentials as EnvironmentCredentials
from .logging import Logging as Logging
from .production import production as production
from .proxy_subject import ProxySubject as ProxySubject
from .recovery import OnCrash as OnCrash
from .recovery import Recovery as Recovery
from .sandbox import Sandbox as Sandbox
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
