"""Audit: one record of every call, in a trail that shows whether anybody touched it since."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import anyio
import orjson
from anyio import to_thread

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Ending,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Reading,
    Redactor,
    Result,
    Server,
    StateKey,
    Target,
    Unavailable,
)

from ..inner_layers import END_CALLS
from ..payloads import Payloads, RedactionRules
from .anchor import Anchor
from .journal import Journal
from .keys import HeadSigner, KeyRing
from .queue import Ticket
from .record import Capture, Evidence, Recorder
from .sink import AuditSink
from .subject_keys import SubjectKeys
from .writer import LINGER, Writer, WriterOptions

RUNNING: Final = 1024
"""Slots of the journal for calls that run, beside those for records that wait."""

RETRY_AFTER: Final = 1.0
"""Seconds after which a caller that was turned away may try again."""

OnFull = Literal["block", "drop_and_count", "refuse"]


class Kept:
    """What the layer keeps of a call while it runs.

    Attributes:
        arguments: The arguments in JSON, as they came in.
        slot: Its slot in the journal, 0 for none.
        ticket: Who waits until the record is safe, or None.
        lost: Whether its record was not kept.
    """

    __slots__ = ("arguments", "lost", "slot", "ticket")

    def __init__(self, arguments: bytes, slot: int, ticket: Ticket | None) -> None:
        self.arguments = arguments
        self.slot = slot
        self.ticket = ticket
        self.lost = False


class Audit(Middleware):
    """Writes one record for each request of a known method, whatever came of it.

    Also of those that the engine turns away before the chain, that their peer cancels, and that
    end while the server stops. What was running when a process was killed, the next one finds in
    the journal and records as `interrupted`. Pings are left out unless asked for.

    Records are made, sealed and written in their order by a writer of its own, so a call does
    not wait for them. Where `audit="required"`, of the layer or of a tool, its answer does: it is
    not sent before its record is safe in the first sink, and no such call is begun while that is
    known to fail. What a tool hides with `redact=["iban", "/customer/email"]`, by name at any
    depth or by JSON pointer, is in no record.

    Never changes a call, and never fails one unless `required`, or `on_full`, says so.
    """

    name = "audit"
    methods = EVERY_REQUEST
    policies: ClassVar = {"audit": Literal["required"], "redact": RedactionRules}
    order = (
        Once("a call has one record in a trail; give one layer several sinks"),
        Inside("recovery", "an alert for a crash must not depend on the trail"),
        Inside("telemetry", "a record names the trace that its call belongs to"),
        Outside("logging", "the log is the lesser of the two"),
        *(Outside(layer, "what it refuses must be audited") for layer in END_CALLS),
    )

    def __init__(
        self,
        *sinks: AuditSink,
        audit: Literal["required", "best_effort"] = "best_effort",
        capture: Capture = "digest",
        capture_results: bool = False,
        redactor: Redactor | None = None,
        digest_keys: KeyRing | None = None,
        subject_keys: SubjectKeys | None = None,
        chain_keys: KeyRing | None = None,
        signer: HeadSigner | None = None,
        head_every: int = 1000,
        head_interval: float = 60.0,
        anchors: Iterable[Anchor] = (),
        on_full: OnFull = "block",
        max_queue: int = 10_000,
        max_queue_bytes: int = 64 * 2**20,
        journal: str | os.PathLike[str] | None = None,
        skip: Iterable[str] = ("ping",),
        confirm_timeout: float = 10.0,
        close_timeout: float = 10.0,
        linger: float = LINGER,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe the trail.

        Args:
            sinks: Where records go. The first owns the chain, and a record is safe once it is
                there; each of the others has its own pace.
            audit: Whether answers wait for their records.
            capture: What is kept of arguments: a keyed digest, also a redacted copy, or neither.
            capture_results: Whether a redacted copy of tools' results is kept.
            redactor: What redacts; a `Redactor()` by default.
            digest_keys: What digests are keyed with. By default each process makes a key of its
                own, and digests compare only within it.
            subject_keys: Keys under which that is put which identifies a subject or was said by
                it, so that it can be erased; see `sealed_body`. A call whose key cannot be had is
                recorded without it. The journal has the subjects of calls that run in plain.
            chain_keys: What the chain's hashes are keyed with, so that nobody without the key
                can make a trail; plain hashes by default.
            signer: What signs heads; without one the end of the trail is not vouched for.
            head_every: Entries after which a head is signed, 1 or more.
            head_interval: Seconds after which one is while there is something to sign, over 0.
            anchors: Where heads are kept besides; needs a *signer*.
            on_full: What happens to calls once *max_queue* records wait: they wait for room
                before they run, run without a record that is counted as lost, or are refused.
            max_queue: Records that may wait, 1 or more; twice as many from calls that ran
                already, before one is lost.
            max_queue_bytes: The same in bytes of arguments.
            journal: A file for the calls that run, of this process alone; None for none.
            skip: Methods that are not recorded.
            confirm_timeout: Seconds that an answer waits for its record where that is required;
                it is then refused, though the call has run.
            close_timeout: Seconds that the last records have to be written when the server
                stops.
            linger: Seconds that a batch waits for more, 0 or more.
            clock: Gives the time of day in seconds since 1970.

        Raises:
            ConfigurationError: There is no sink, an option is out of range, there are anchors
                and no signer, or records are required of a first sink that forgets them.
        """
        if not sinks:
            raise ConfigurationError(
                "Audit needs a sink: Audit(JsonLinesFile('audit.jsonl')), or SqlAudit(url)"
            )

        if not (min(head_every, max_queue, max_queue_bytes) >= 1 and head_interval > 0):
            raise ConfigurationError(
                "Audit: head_every, max_queue and max_queue_bytes are 1 or more, head_interval "
                "more than 0"
            )

        kept_heads = tuple(anchors)
        if kept_heads and signer is None:
            raise ConfigurationError("Audit(anchors=...) needs signer=..., for what they keep")

        self._durable = sinks[0].durable
        self._required = audit == "required"
        if self._required:
            self._check_durable("Audit(audit='required')")

        self._on_full: OnFull = on_full
        self._skip = frozenset(skip)
        self._journal_path = None if journal is None else Path(journal)
        self._confirm_timeout = confirm_timeout
        self._close_timeout = close_timeout
        self._clock = clock
        self._payloads = Payloads(redactor or Redactor())
        recorder = Recorder(
            capture=capture,
            capture_results=capture_results,
            payloads=self._payloads,
            key=(digest_keys or KeyRing.random()).current,
            subject_keys=subject_keys,
        )
        self._options = WriterOptions(
            sinks=sinks,
            recorder=recorder,
            chain_key=None if chain_keys is None else chain_keys.current,
            signer=signer,
            anchors=kept_heads,
            head_every=head_every,
            head_interval=head_interval,
            max_queue=max_queue,
            max_queue_bytes=max_queue_bytes,
            linger=linger,
            clock=clock,
        )
        self._kept: StateKey[Kept] = StateKey("audit.kept")
        self._served: dict[str, str] = {}
        self._journal: Journal | None = None
        self._writer: Writer | None = None

    def joined(self, server: Server) -> None:
        """Learn the server's name, for the trail."""
        self._served = {"server": server.name, "server_version": server.version}

    def prepare(self, target: Target) -> None:
        """Check that what *target* requires can be had, and build its redactor.

        Raises:
            ConfigurationError: It requires its records, and the first sink forgets them; or what
                it hides is no key and no pointer.
        """
        self._payloads.prepare(target)
        if "audit" in target.policies:
            self._check_durable(f"{target.kind.noun} {target.key!r}: audit='required'")

    async def __call__(self, next: Next) -> Result:
        """Note what came in, and run the rest of the chain.

        Raises:
            Unavailable: The record could not be kept, so the call is not begun.
        """
        call = next.call
        writer = self._writer
        if writer is None or call.method in self._skip or call.left(self._kept) is not None:
            return await next()  # also where a layer outside of this one tries again

        required = self._is_required(call)
        if writer.queue.full or (required and writer.first.failing):
            await self._make_room(writer, required)

        call.state[self._kept] = Kept(
            _encoded(call),
            0 if self._journal is None else self._journal.take(self._begun(call)),
            Ticket() if required else None,
        )
        return await next()

    def ended(self, call: Call, ending: Ending) -> None:
        """Put the record of a call in line."""
        writer = self._writer
        if writer is None or call.method in self._skip:
            return

        now = self._clock()
        kept = call.left(self._kept)
        if kept is None:  # it was turned away before it came here
            kept = Kept(_encoded(call), 0, None)

        if self._on_full == "drop_and_count" and kept.ticket is None and writer.queue.full:
            writer.queue.drop(now, kept.slot)
            return

        evidence = Evidence(call, ending, now, kept.arguments)
        kept.lost = not writer.queue.put(evidence, kept.ticket, kept.slot)

    async def confirm(self, call: Call, ending: Ending) -> None:
        """Wait until the record is safe, where that is required.

        Raises:
            Unavailable: It is not in time, or was lost because too many wait.
        """
        kept = call.left(self._kept)
        if kept is None or kept.ticket is None:
            return

        if not kept.lost:
            with anyio.move_on_after(self._confirm_timeout):
                await kept.ticket.safe.wait()
                return

        ran = "the call has ended, but its audit record is not safe"
        raise Unavailable(ran, policy=self.name)

    def readings(self) -> Iterable[Reading]:
        """Give how many records wait, for how long, and how the sinks fare."""
        return () if self._writer is None else self._writer.readings()

    async def __aenter__(self) -> object:
        """Open the journal and the sinks, and begin to write.

        Raises:
            ConfigurationError: Another process writes to one of them, or it is not what it
                should be.
            Exception: One cannot be reached.
        """
        journal = None
        if self._journal_path is not None:
            slots = 2 * self._options.max_queue + RUNNING
            journal = await to_thread.run_sync(Journal, self._journal_path, slots)

        try:
            writer = Writer(self._options, _no_slots if journal is None else journal.free)
            found = [] if journal is None else await to_thread.run_sync(journal.found)
            await writer.start(self._served, found)
        except BaseException:
            if journal is not None:
                journal.close()

            raise

        if journal is not None:
            journal.clear()

        self._journal, self._writer = journal, writer
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Write what is left, say that it is the end, and close the sinks."""
        writer, self._writer = self._writer, None
        journal, self._journal = self._journal, None
        try:
            if writer is not None:
                await writer.close(self._close_timeout)
        finally:
            if journal is not None:
                journal.close()

    def _check_durable(self, asked: str) -> None:
        if not self._durable:
            raise ConfigurationError(
                f"{asked} needs a first sink that outlives the process, such as JsonLinesFile, "
                "SqlAudit, or HttpAudit with a spool"
            )

    def _is_required(self, call: Call) -> bool:
        target = call.target
        return self._required or (target is not None and "audit" in target.policies)

    async def _make_room(self, writer: Writer, required: bool) -> None:
        """Wait until a record can be kept, or refuse the call."""
        failing = required and writer.first.failing
        if failing or self._on_full == "refuse" or (required and self._on_full != "block"):
            reason = "the audit trail takes no records now"
            raise Unavailable(reason, policy=self.name, retry_after=RETRY_AFTER)

        if self._on_full == "block":
            await writer.queue.room()

    def _begun(self, call: Call) -> dict[str, Any]:
        """Give what is known of a call that begins, in short: it should fit a slot."""
        told: dict[str, Any] = {
            "correlation_id": call.correlation_id,
            "method": call.method,
            "started_us": int(self._clock() * 1_000_000),
        }
        if call.target_name is not None:
            told["target"] = call.target_name

        if call.target is not None:
            told["target_kind"] = call.target.kind.noun

        if call.principal is not None:
            told["subject"] = call.principal.subject
            if call.principal.issuer is not None:
                told["issuer"] = call.principal.issuer

        if call.tenant is not None:
            told["tenant"] = call.tenant.id

        return told


def _encoded(call: Call) -> bytes:
    return orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS) if call.arguments else b""


def _no_slots(slot: int) -> None:
    """Free nothing, where there is no journal."""
