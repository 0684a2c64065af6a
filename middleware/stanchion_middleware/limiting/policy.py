"""A policy: a rate with a name, and for whom it counts what."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from stanchion import Call, ConfigurationError

from .rate import Rate, Strategy, read_rate

KeyPart: TypeAlias = (
    Literal["tenant", "principal", "client", "tool", "address"] | Callable[[Call], str | None]
)
"""One part of what calls are counted by.

`principal` is issuer and subject, `client` issuer and client, `tool` the target or the server's own
method, and `address` the remote address, of IPv6 the /64. A callable gives a text, or None where
it does not know.
"""

PARTS: Final = ("tenant", "principal", "client", "tool", "address")

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names stand in HTTP fields as strings of RFC 9651, section 3.3.3, and in keys."""

TARGET_METHODS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""The protocol's requests that call a target."""

OTHER_METHODS: Final = frozenset(
    {
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/list",
        "resources/list",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tools/list",
    }
)
"""The protocol's requests that call no target; a policy counts them only where it names them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A limit with a name: `Policy("burst", "20/second", key=("tenant", "principal"))`.

    A part of the key that is not known for a call is never one bucket for all of whom it is not
    known. In its place stands the principal; without one the address; without that too the
    connection. Over HTTP a connection lasts no longer than its request: then *unknown* holds.

    Attributes:
        name: Of letters, digits, `_`, `.` and `-`, at most 64; peers read it.
        limit: In the notation of `limits`, such as `20/second` or `5 per 2 minutes`.
        key: What calls are counted by, one part or more.
        strategy: How time is cut; see `Strategy`. `moving-window` admits at most 10,000.
        methods: The requests that count; None for all that call something: tools, resources,
            prompts, and methods of your own.
        unknown: What becomes of a caller of whom nothing is known: `refuse` or `pass`.
        stdio: Whether a caller over stdio is limited, who is the process's own user.
        rate: What *limit* says.

    Raises:
        ConfigurationError: A value is none of those above.
    """

    name: str
    limit: str
    key: Sequence[KeyPart] = field(default=("tenant", "principal"), kw_only=True)
    strategy: Strategy = field(default="sliding-window-counter", kw_only=True)
    methods: Collection[str] | None = field(default=None, kw_only=True)
    unknown: Literal["refuse", "pass"] = field(default="refuse", kw_only=True)
    stdio: bool = field(default=True, kw_only=True)
    rate: Rate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.name) is None:
            raise ConfigurationError(
                f"{self.name!r:.80} is no name of a policy: 1 to 64 of A-Z a-z 0-9 _ . and -"
            )

        parts = None if isinstance(self.key, str) else tuple(self.key)
        if not parts or not all(part in PARTS or callable(part) for part in parts):
            raise ConfigurationError(
                f"policy {self.name!r}: key is a tuple of {', '.join(PARTS)} and callables"
            )

        if isinstance(self.methods, str) or self.unknown not in ("refuse", "pass"):
            raise ConfigurationError(
                f"policy {self.name!r}: methods is a set of names, and unknown `refuse` or `pass`"
            )

        object.__setattr__(self, "key", parts)
        try:
            object.__setattr__(self, "rate", read_rate(self.limit, self.strategy))
        except ConfigurationError as error:
            raise ConfigurationError(f"policy {self.name!r}: {error}") from None

    def counts(self, method: str) -> bool:
        """Say whether requests of *method* count."""
        return method not in OTHER_METHODS if self.methods is None else method in self.methods
