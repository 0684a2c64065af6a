"""The call: one request on its way through the chain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio

from .asking import Asking
from .ending import NOBODY
from .peer import Connection, Peer, Principal
from .telling import Send
from .tenant import Tenant
from .wire import RequestId

if TYPE_CHECKING:
    from decimal import Decimal

    from .cost import Cost
    from .errors import Refusal
    from .round import Round
    from .rounds import Rounds
    from .session_scope import SessionScope
    from .session_scopes import SessionScopes
    from .target import Target

V = TypeVar("V")

EMPTY: Mapping[str, Any] = {}
FOREVER = float("inf")


_ids: list[str] = []
"""Ids that are made but not used yet: one system call for many, because each call needs one."""

if hasattr(os, "register_at_fork"):  # there is none on Windows, and no fork
    os.register_at_fork(after_in_child=_ids.clear)  # or both processes would use the same


def new_correlation_id() -> str:
    """Make an unguessable id: 64 random bits in hexadecimal."""
    try:
        return _ids.pop()
    except IndexError:
        several = os.urandom(8 * 256).hex()
        _ids.extend(several[start : start + 16] for start in range(16, len(several), 16))
        return several[:16]


class StateKey(Generic[V]):
    """A typed key for what a layer leaves on a call for others to read.

    Two keys are the same only if they are the same object, so packs cannot collide.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<StateKey {self.name}>"


class State:
    """What layers leave on a call, by typed key."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[StateKey[Any], Any] = {}

    def __setitem__(self, key: StateKey[V], value: V) -> None:
        self._slots[key] = value

    def __getitem__(self, key: StateKey[V]) -> V:
        return cast("V", self._slots[key])

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key in self._slots

    def get(self, key: StateKey[V], default: V | None = None) -> V | None:
        """Give what stands under *key*, or *default*."""
        return cast("V | None", self._slots.get(key, default))


class Call(Asking):
    """One request, made once and changed in place as it passes the chain.

    A handler that annotates a parameter with `Call` is given it.

    Attributes:
        method: The method, such as `tools/call`.
        id: The request's id as the peer chose it.
        target: The tool, resource, template or prompt that is called; None where the method
            has no target, or nothing has the name.
        target_name: The name that was asked for, whether or not it exists; None where the
            method names none.
        arguments: The arguments as JSON values; a layer may replace them.
        params: All of the request's `params`.
        meta: The request's `_meta`.
        peer: Who sent it.
        principal: Who the caller is, as far as proved; None while nobody proved anything.
        tenant: The tenant it acts for, or None.
        costs: What the handler has reported with `add_cost`.
        started: When the engine took the request, on the clock of `time.perf_counter()`.
        trace_id: The trace that the call belongs to, 32 hexadecimal digits, or None; set by the
            layer that traces.
        span_id: The call's own span in it, 16 hexadecimal digits, or None.
        deadline: When the call must be done, on the clock of `anyio.current_time()`; infinite
            until a layer lowers it.
        dry_run: True if the call must not have an effect: no tool's handler is run for it. It is
            set before any layer runs, and inherited by the steps of compositions and by mounts.
        thread_abandoned: True once a sync tool was left running in its thread.
        result_meta: What `set_meta` has collected for the result's `_meta`.
        scope: The cancel scope that the call runs in; the kernel's.
        connection: Where the call came from, or None for a call by itself; the kernel's.
        round: What is known of earlier rounds of the call, once it was looked at; the kernel's.
        observers: Who is told how the call ends; the kernel's.
    """

    __slots__ = (
        "_correlation_id",
        "_new_correlation_id",
        "_scopes",
        "_state",
        "_stopped_by",
        "arguments",
        "costs",
        "deadline",
        "dry_run",
        "id",
        "method",
        "observers",
        "params",
        "principal",
        "result_meta",
        "round",
        "scope",
        "span_id",
        "started",
        "target",
        "target_name",
        "tenant",
        "thread_abandoned",
        "trace_id",
    )

    def __init__(
        self,
        method: str,
        peer: Peer,
        *,
        id: RequestId = 0,
        params: Mapping[str, Any] = EMPTY,
        meta: Mapping[str, Any] = EMPTY,
        target: Target | None = None,
        target_name: str | None = None,
        arguments: Mapping[str, Any] = EMPTY,
        principal: Principal | None = None,
        send: Send | None = None,
        connection: Connection | None = None,
        rounds: Rounds | None = None,
        scopes: SessionScopes | None = None,
        new_correlation_id: Callable[[], str] | None = None,
    ) -> None:
        self.method = method
        self.id = id
        self.target = target
        self.target_name = target_name
        self.arguments = arguments
        self.params = params
        self.meta = meta
        self.peer = peer
        self.principal = principal
        id_of_tenant = None if principal is None else principal.tenant
        self.tenant = None if id_of_tenant is None else Tenant(id_of_tenant)
        self.costs: Sequence[Cost] = ()
        self.started = perf_counter()
        self.trace_id: str | None = None
        self.span_id: str | None = None
        self.observers = NOBODY
        self.deadline = FOREVER
        self.dry_run = False
        self.thread_abandoned = False
        self._send = send
        self.connection = connection
        self.round: Round | None = None
        self._rounds = rounds
        self._scopes = scopes
        self._asked = 0
        self.scope: anyio.CancelScope | None = None
        self._stopped_by: Refusal | None = None
        self._state: State | None = None
        self.result_meta: Mapping[str, Any] = EMPTY
        self.on_alive = None
        self._progress = None
        self._correlation_id: str | None = None
        self._new_correlation_id = new_correlation_id

    @property
    def session(self) -> SessionScope | None:
        """What the caller's session alone is offered, to be added to; see `SessionScope`.

        None for modern peers, which have no sessions, and for legacy ones without. Also in the
        handlers of a mounted server it is the session of the server that the peer speaks to.
        """
        return None if self._scopes is None else self._scopes.of(self)

    @property
    def state(self) -> State:
        """What layers leave on this call, by `StateKey`."""
        if self._state is None:
            self._state = State()

        return self._state

    def left(self, key: StateKey[V]) -> V | None:
        """Give what a layer has left under *key*, or None; as `state.get`, and makes no state."""
        state = self._state
        return None if state is None else state.get(key)

    @property
    def correlation_id(self) -> str:
        """The id under which log, audit and the answer speak of this call; unguessable."""
        if self._correlation_id is None:
            make = self._new_correlation_id
            self._correlation_id = new_correlation_id() if make is None else make()

        return self._correlation_id

    def add_cost(self, amount: Decimal | int | str, unit: str) -> None:
        """Report what this call has used up, beside the price of its target.

        For layers that count; without one it does nothing.

        Args:
            amount: How much, 0 or more, exact: no float.
            unit: A currency such as `USD`, or a unit of your own such as `tokens`.

        Raises:
            TypeError: *amount* is a float or a boolean.
            ValueError: *amount* is negative, not finite or no number, or *unit* is not 1 to 32
                printable ASCII characters without spaces.
        """
        from .cost import cost_of  # it needs decimal, which most calls never do

        self.costs = (*self.costs, cost_of(amount, unit))

    def set_meta(self, key: str, value: Any) -> None:
        """Put a JSON *value* under *key* into the `_meta` of this call's result."""
        self.result_meta = {**self.result_meta, key: value}

    def remaining(self) -> float:
        """Give the seconds until the deadline, 0.0 if it has passed, infinite if there is none."""
        if self.deadline == FOREVER:
            return FOREVER

        return max(0.0, self.deadline - anyio.current_time())

    def as_viewer(self) -> Call:
        """Give what stands for this call where it is asked later what its caller may see.

        Whoever called, and what the layers found out about that, is the same; what was sent is
        left out, because this is held for as long as somebody listens.
        """
        viewer = Call(
            self.method, self.peer, id=self.id, principal=self.principal, connection=self.connection
        )
        viewer.tenant = self.tenant
        viewer._state = self._state
        viewer._scopes = self._scopes
        return viewer

    def cancel(self) -> None:
        """End the call without an answer, as the peer's own cancellation does."""
        self._stopped_by = None
        if self.scope is not None:
            self.scope.cancel()

    def stop(self, refusal: Refusal) -> None:
        """End the call and answer *refusal* in its place, as a server that shuts down does.

        Does nothing to a call that is cancelled already: its peer wants no answer any more.
        """
        if self.scope is not None and not self.scope.cancel_called:
            self._stopped_by = refusal
            self.scope.cancel()

    def close(self) -> Refusal | None:
        """End the call's notifications; gives what stopped it, if `stop` did; for the kernel."""
        self._send = None
        return self._stopped_by

    def __repr__(self) -> str:
        return f"<Call {self.method} {self.target_name or ''}>"
