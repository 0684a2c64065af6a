"""The record of one call: who called what, when, from where, and what came of it.

Made by the writer, after the call, from what the engine knew at its end; nothing here runs while a
caller waits. `schema()` of `record_schema` describes its form.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import orjson

from stanchion import (
    SERVED_FROM_CACHE,
    Call,
    Ending,
    Outcome,
    Refusal,
    Target,
    call_error_in,
)

from ..costs.amount import from_minor
from ..costs.charged import CHARGED
from ..payloads import Payloads
from .canonical import canonical
from .capture import as_json
from .entry import Key, timestamp
from .journal import CUT
from .sealed_body import seal_body
from .subject_keys import SubjectKeys

Capture: TypeAlias = Literal["digest", "redacted", "none"]

MAX_NAME: Final = 512
"""Characters of a name, URI or reason that are kept."""

REFUSED: Final = frozenset(
    {
        Outcome.UNAUTHENTICATED,
        Outcome.DENIED,
        Outcome.LIMITED,
        Outcome.OVER_BUDGET,
        Outcome.INVALID,
        Outcome.UNAVAILABLE,
    }
)
"""The outcomes of calls that something decided against."""

JOURNALLED: Final = {
    "call": ("method", "target", "target_kind"),
    "actor": ("subject", "issuer", "tenant"),
}
"""Where in a record that belongs which the journal says."""

HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
}


class Evidence(NamedTuple):
    """What a record is made of.

    Attributes:
        call: The call.
        ending: How it ended.
        at: When that was, in seconds since 1970.
        arguments: Its arguments in JSON, as they came in; empty where there were none.
        target: What was called, in the server whose trail it is; None where nothing has the name.
        target_name: The name that was asked for, in that server.
        correlation_id: Under which log and answer speak of it.
    """

    call: Call
    ending: Ending
    at: float
    arguments: bytes
    target: Target | None
    target_name: str | None
    correlation_id: str

    @property
    def weight(self) -> int:
        """How many bytes of a peer's and a tool's it holds while it waits."""
        held = self.ending.reply_size if self.ending.result is not None else 0
        return len(self.arguments) + held


class Recorder:
    """Makes records.

    Never changes what it reads, and never raises for anything a caller may have sent.

    Attributes:
        subject_keys: What seals that which tells of a subject, or None.
    """

    def __init__(
        self,
        *,
        capture: Capture,
        capture_results: bool,
        payloads: Payloads,
        key: Key,
        subject_keys: SubjectKeys | None = None,
    ) -> None:
        """Describe what goes in.

        Args:
            capture: Whether arguments are digested, kept after redaction (and digested too), or
                left out.
            capture_results: Whether results of tools and plain ones are kept after redaction.
            payloads: What redacts, by the rules of each target.
            key: What digests are keyed with.
            subject_keys: What seals that which tells of a subject; None leaves it readable.
        """
        self.subject_keys = subject_keys
        self._capture: Capture = capture
        self._capture_results = capture_results
        self._payloads = payloads
        self._key = key

    def body(self, evidence: Evidence) -> dict[str, Any]:
        """Give the record of a call.

        Raises:
            Exception: The key of its subject cannot be had.
        """
        call, ending, at = evidence.call, evidence.ending, evidence.at
        outcome = ending.outcome
        body: dict[str, Any] = {
            "outcome": outcome.value,
            "decision": "refused" if outcome in REFUSED else "allowed",
            "started": timestamp(at - ending.duration),
            "duration_us": max(0, round(ending.duration * 1_000_000)),
            "call": self._call(evidence),
            "source": self._source(call),
            "correlation_id": line(evidence.correlation_id),
        }
        actor = self._actor(call)
        if actor:
            body["actor"] = actor

        body |= self._why(evidence)
        if ending.reply_size:
            body["result"] = self._result(evidence)

        body |= _marks(call, outcome)
        if self.subject_keys is None:
            return body

        who = call.principal
        named = (None, None) if who is None else (who.subject, who.issuer)
        return seal_body(body, self.subject_keys.key_of(*named))

    def interrupted(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Give what is recorded of a call whose process died.

        Args:
            told: What the journal says of it. A subject whose name may have been cut there is not
                kept, if it had to be sealed: nobody could erase it.

        Raises:
            Exception: The key of its subject cannot be had.
        """
        body = dict(told)
        for section, names in JOURNALLED.items():
            members = {name: body.pop(name) for name in names if name in body}
            if members:
                body[section] = members

        if self.subject_keys is None:
            return body

        actor = body.get("actor", {})
        subject, issuer = actor.pop("subject", None), actor.get("issuer")
        if _may_be_cut(subject) or _may_be_cut(issuer):
            subject = issuer = None

        if subject is not None:
            actor["subject"] = subject

        return seal_body(body, self.subject_keys.key_of(subject, issuer))

    def digest(self, value: bytes) -> str:
        """Give a keyed digest of *value*, behind the id of its key.

        A bare hash of what has few possible values, such as an account number, can be undone.
        """
        return f"{self._key.id}:{hmac.digest(self._key.secret, value, 'sha256').hex()}"

    def _actor(self, call: Call) -> dict[str, Any]:
        principal, tenant = call.principal, call.tenant
        actor: dict[str, Any] = {}
        if principal is not None:
            actor["subject"] = line(principal.subject)
            if principal.client is not None:
                actor["client"] = line(principal.client)

            if principal.issuer is not None:
                actor["issuer"] = line(principal.issuer)

            if principal.roles:
                actor["roles"] = sorted(map(line, principal.roles))

            if principal.actors:
                actor["acting"] = [line(each) for each in principal.actors]

        if tenant is not None:
            actor["tenant"] = line(tenant.id)

        return actor

    def _call(self, evidence: Evidence) -> dict[str, Any]:
        call, target = evidence.call, evidence.target
        told: dict[str, Any] = {"method": line(call.method), "request_id": line(str(call.id))}
        if evidence.target_name is not None:
            told["target"] = line(evidence.target_name)

        if target is not None:
            told["target_kind"] = target.kind.noun
            hints: Any = getattr(target, "annotations", None)
            if isinstance(hints, Mapping):
                told |= {name: hints[hint] is True for hint, name in HINTS.items() if hint in hints}

        if evidence.arguments:
            told |= self._arguments(evidence)

        return told

    def _arguments(self, evidence: Evidence) -> dict[str, Any]:
        encoded = evidence.arguments
        told: dict[str, Any] = {"arguments_size": len(encoded)}
        if self._capture == "none":
            return told

        arguments = orjson.loads(encoded)
        try:
            told["arguments_digest"] = self.digest(canonical(arguments))
        except ValueError:  # an integer that is no double; the same arguments still compare
            told["arguments_digest"] = self.digest(encoded)

        if self._capture == "redacted":
            told["arguments"] = as_json(
                self._payloads.value(evidence.call, arguments, evidence.target)
            )

        return told

    def _source(self, call: Call) -> dict[str, Any]:
        peer = call.peer
        source = {"transport": line(peer.transport), "protocol_version": line(peer.version)}
        if peer.address is not None:
            source["address"] = line(peer.address)

        if peer.session is not None:  # whoever has it is let in, so it is a secret
            source["session"] = self.digest(peer.session.encode())[:24]

        for name in ("name", "version"):
            if isinstance(told := peer.client.get(name), str):
                source[f"client_{name}"] = line(told)

        return source

    def _why(self, evidence: Evidence) -> dict[str, Any]:
        """Say what the call was refused or broken by; of an unexpected error its type alone."""
        raised = evidence.ending.error
        if raised is None:
            return {}

        error = call_error_in(raised) or raised
        why: dict[str, Any] = {"error": line(type(error).__name__)}
        if isinstance(error, Refusal):
            why["reason"] = line(self._payloads.text(evidence.call, error.reason, evidence.target))
            if error.policy is not None:
                why["policy"] = line(error.policy)

        return why

    def _result(self, evidence: Evidence) -> dict[str, Any]:
        ending = evidence.ending
        told: dict[str, Any] = {"size": ending.reply_size}
        if self._capture_results and ending.result is not None:
            content = self._payloads.result(evidence.call, ending.result, evidence.target)
            if content is not None:
                told["content"] = as_json(content)

        return told


def line(text: str) -> str:
    """Give *text* as it is kept: bounded, and Unicode that can be written."""
    short = text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}…"
    return short if short.isascii() else short.encode(errors="replace").decode()


def _may_be_cut(text: str | None) -> bool:
    return text is not None and (len(text) == CUT or "?" in text)


def _marks(call: Call, outcome: Outcome) -> dict[str, Any]:
    """Give what is only told where it is so."""
    marks: dict[str, Any] = {}
    if call.dry_run:
        marks["dry_run"] = True

    if call.left(SERVED_FROM_CACHE):
        marks["cached"] = True

    if outcome is Outcome.TIMEOUT and call.thread_abandoned:
        marks["outcome_unknown"] = True

    charged = call.left(CHARGED)
    if charged:
        marks["costs"] = [
            {"amount": f"{from_minor(each.amount):f}", "unit": line(each.unit)} for each in charged
        ]

    if call.trace_id is not None:
        marks["trace_id"] = call.trace_id

    if call.span_id is not None:
        marks["span_id"] = call.span_id

    return marks
