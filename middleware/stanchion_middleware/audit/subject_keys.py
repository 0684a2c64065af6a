"""Keys of subjects: what a trail says of each is under a key of its own, which can be deleted."""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Final, Self

SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """The key of one subject.

    Attributes:
        secret: 32 random bytes.
        id: What records call the subject: 32 hexadecimal digits that tell nothing without it.
        cipher_key: The 32 bytes that records are encrypted with.
    """

    secret: bytes = field(repr=False)
    id: str = field(init=False)
    cipher_key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive the rest, each for its own purpose."""
        named = hmac.digest(self.secret, b"stanchion audit subject", "sha256")
        object.__setattr__(self, "id", named[:16].hex())
        ciphering = hmac.digest(self.secret, b"stanchion audit record", "sha256")
        object.__setattr__(self, "cipher_key", ciphering)


class SubjectKeys(ABC):
    """Where the keys of subjects are; a subclass keeps them.

    A subject is known by who vouches for it and its id there, or is None: all callers that nobody
    vouches for share one key. Everything here may block, as it runs in the writer's thread; one
    thread at a time calls.
    """

    def open(self) -> None:  # noqa: B027 # not all have what to open
        """Open what the keys are in.

        Raises:
            ConfigurationError: It is not what it should be.
            Exception: It cannot be reached.
        """

    def close(self) -> None:  # noqa: B027
        """Close it."""

    @abstractmethod
    def key_of(self, subject: str | None, issuer: str | None) -> SubjectKey:
        """Give the key of a subject; where it has none, a new one that is safe by then.

        A key that another process has deleted must not be given again.

        Raises:
            Exception: It cannot be had.
        """

    @abstractmethod
    def find(self, id: str) -> SubjectKey | None:
        """Give the key of that id; None where there is none, or none any more.

        Raises:
            Exception: It cannot be told.
        """

    @abstractmethod
    def forget(self, subject: str | None, issuer: str | None) -> str | None:
        """Delete the key of a subject for good; gives its id, or None where there was none.

        Raises:
            Exception: It is not deleted.
        """

    def __enter__(self) -> Self:
        """Open them, to read or to erase."""
        self.open()
        return self

    def __exit__(self, *raised: object) -> None:
        """Close them."""
        self.close()
