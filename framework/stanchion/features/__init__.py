"""The features of the protocol, one file each: what a server serves of it, by method.

Serving another part of the protocol means adding a `Feature` to `features_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .completion import Completions
from .custom import Custom
from .extensions import Extensions
from .feature import Feature as Feature
from .lifecycle import Lifecycle
from .logging import Logging
from .prompts import Prompts
from .resources import Resources
from .subscriptions import Subscriptions
from .tools import Tools

if TYPE_CHECKING:
    from ..server import Server


def features_of(server: Server) -> list[Feature]:
    """Make the features of *server*, in the order in which their capabilities are declared."""
    completions = Completions(server)
    features: list[Feature] = [
        Tools(server),
        completions,  # before those whose arguments it completes
        Resources(server, completions),
        Prompts(server, completions),
        Logging(server),
        Extensions(server),
        Subscriptions(server),
        Custom(server),
    ]
    return [Lifecycle(server, features), *features]
