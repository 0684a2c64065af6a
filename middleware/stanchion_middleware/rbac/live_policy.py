"""The policy in force: loaded at the start, and put in the place of the old one later."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from stanchion import ConfigurationError

from ..reporting import report_failure
from .adapter import PolicyAdapter
from .policy import Policy
from .statements import Statement

logger = logging.getLogger("stanchion.rbac")


class LivePolicy:
    """The policy in force, and what brings the next one.

    A policy is compiled whole before it takes the place of the old one, in one assignment: each
    decision is of one policy, and there is one at every time.

    Attributes:
        policy: The policy in force.
        generation: How many there have been, without that which held before the adapter's was
            loaded.
        failures: Reloads that failed.
    """

    def __init__(
        self,
        fixed: Sequence[Statement],
        adapter: PolicyAdapter | None,
        compile: Callable[[Sequence[Statement]], Policy],
    ) -> None:
        """Put *fixed* in force, until what *adapter* keeps is loaded beside it.

        Raises:
            ConfigurationError: The hierarchy runs in a circle.
        """
        self._fixed = fixed
        self._adapter = adapter
        self._compile = compile
        self._turn = anyio.Lock()
        self.policy = compile(fixed)
        self.generation = 0 if adapter is not None else 1
        self.failures = 0

    @asynccontextmanager
    async def kept_current(self, every: float | None) -> AsyncGenerator[None]:
        """Load the policy, and load it anew each *every* seconds until the context is left.

        Raises:
            ConfigurationError: It cannot be read.
            Exception: It cannot be reached.
        """
        if self._adapter is not None:
            await self._load(self._adapter)

        if every is None:
            yield
            return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_loading, every)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def reload(self) -> bool:
        """Load the policy anew; gives False where that failed, and the old one stays in force.

        Raises:
            ConfigurationError: There is no adapter.
        """
        if self._adapter is None:
            raise ConfigurationError("RBAC: there is no adapter to load a policy from")

        try:
            await self._load(self._adapter)
        except Exception:  # noqa: BLE001 # whatever the adapter raises
            self.failures += 1
            report_failure(logger, "the policy cannot be reloaded; the old one stays in force")
            return False

        return True

    async def _keep_loading(self, every: float) -> None:
        while True:
            await anyio.sleep(every)
            await self.reload()

    async def _load(self, adapter: PolicyAdapter) -> None:
        async with self._turn:  # or what was read first could come into force last
            statements = (*self._fixed, *await adapter.load())
            if self.generation and statements == self.policy.statements:
                return  # what was decided still holds

            # Thousands of rules take a while, which calls need not wait for.
            self.policy = await anyio.to_thread.run_sync(self._compile, statements)
            self.generation += 1
