"""Audit: one record of every call, in a trail that shows whether anybody touched it since."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Final, Literal

import anyio
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
from .kept import Kept
from .keys import HeadSigner, KeyRing
from .queue import Ticket
from .record import Capture, Recorder
from .sink import AuditSink
from .subject_keys import SubjectKeys
from .writer import LINGER, Writer, WriterOptions

RUNNING: Final = 1024
"""Slots of the journal for calls that run, beside those for records that wait."""

RETRY_AFTER: Final = 1.0
"""Seconds after which a caller that was turned away may try again."""

OnFull = Literal["block", "drop_and_count", "refuse"]


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
        room_timeout: float = 10.0,
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
                before they run, and are refused after *room_timeout*; run without a record that
                is counted as lost; or are refused.
            max_queue: Records that may wait, 1 or more; twice as many from calls that ran
                already, before one is lost.
            max_queue_bytes: The same in bytes of arguments, and of results that are kept.
            room_timeout: Seconds that a call waits for room.
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
        self._capture_results = capture_results
        self._room_timeout = room_timeout
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
        if writer is None or call.method in self._skip or call.left(self._kept):
            return await next()  # kept already: a layer outside runs the rest once more

        kept = call.state[self._kept] = Kept(call)
        required = self._is_required(call)
        if writer.queue.full or (required and writer.first.failing):
            await self._make_room(writer, required)

        if required:
            kept.ticket = Ticket()

        if self._journal is not None:
            kept.slot = self._journal.take(kept.begun(call, self._clock()))

        return await next()

    def ended(self, call: Call, ending: Ending) -> None:
        """Put the record of a call in line."""
        writer = self._writer
        if writer is None or call.method in self._skip:
            return

        now = self._clock()
        kept = call.left(self._kept)
        if kept is None:  # it was turned away before it came here
            kept = Kept(call)
            if self._required:
                kept.ticket = Ticket()
                call.state[self._kept] = kept

        if self._on_full == "drop_and_count" and kept.ticket is None and writer.queue.full:
            writer.queue.drop(now, kept.slot)
            return

        evidence = kept.evidence(call, ending, now, with_result=self._capture_results)
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
            writer = Writer(self._options, journal)
            await writer.start(self._served)
        except BaseException:
            if journal is not None:
                journal.close()

            raise

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
        refuses = self._on_full == "refuse" or (required and self._on_full != "block")
        if not failing and not refuses:
            if self._on_full != "block":
                return

            with anyio.move_on_after(self._room_timeout):
                await writer.queue.room()
                return

        reason = "the audit trail takes no records now"
        raise Unavailable(reason, policy=self.name, retry_after=RETRY_AFTER)
