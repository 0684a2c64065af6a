"""Every error that Stanchion raises, in one tree; one file over 400 lines because it is one tree.

    StanchionError
    ├── ConfigurationError            a server that would be wrong does not start
    │   ├── ChainFrozen               use() after the start
    │   ├── OrderViolation            two layers stand the wrong way round
    │   ├── UnenforcedPolicy          a target asks for what no layer gives
    │   ├── InvalidPolicy             a policy's value has the wrong type
    │   ├── InvalidTarget             a name, schema or signature that cannot be served
    │   │   ├── InvalidTool
    │   │   ├── InvalidResource       resources and templates
    │   │   └── InvalidPrompt
    │   ├── DuplicateTarget           the name is taken and replace= was not given
    │   └── AppNotFound               the command line names what is not there
    └── CallError                     ends a call; carries its Outcome
        ├── ProtocolError             the peer broke the protocol
        │   ├── ParseError            -32700
        │   ├── InvalidRequest        -32600
        │   ├── MethodNotFound        -32601
        │   ├── InvalidParams         -32602
        │   │   └── UnknownTarget     no such tool, resource or prompt
        │   ├── HeaderMismatch        -32020
        │   ├── MissingCapability     -32021
        │   ├── UrlElicitationRequired  -32042, legacy only
        │   └── UnsupportedVersion    -32022
        ├── Refusal                   a layer says no
        │   ├── Unauthenticated       401
        │   ├── Denied                403
        │   │   └── NotSimulated      a dry run reached the handler
        │   ├── Limited               429
        │   ├── OverBudget            429
        │   └── Unavailable           503
        ├── ToolError                 the tool's own words
        │   └── AskFailed             the client did not answer what it was asked
        ├── InvalidArguments          the arguments do not fit the tool
        ├── InvalidResult             what the tool returned cannot be sent
        ├── TimedOut                  a layer's limit has passed
        └── Crashed                   anything else

Middleware and handlers raise these as plain exceptions; `stanchion.edge` alone turns them
into the wire's errors and results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .outcome import Outcome
from .protocol import V2025_11_25

if TYPE_CHECKING:
    from .elicitation import ElicitUrl


class StanchionError(Exception):
    """The root of the tree; never raised itself."""


class ConfigurationError(StanchionError):
    """Raised before serving starts, when the server as written would misbehave.

    Attributes:
        exit_code: What the command line ends with.
    """

    exit_code: ClassVar[int] = 1


class ChainFrozen(ConfigurationError):
    """Raised when a layer is added to a server that has started."""


class OrderViolation(ConfigurationError):
    """Raised at start-up when the chain breaks an order rule of one of its layers.

    Attributes:
        layer: The name of the layer whose rule is broken.
        other: The name of the layer it conflicts with.
        reason: Why the rule exists, in the words of the layer's author.
    """

    def __init__(self, message: str, *, layer: str, other: str, reason: str) -> None:
        super().__init__(message)
        self.layer = layer
        self.other = other
        self.reason = reason


class UnenforcedPolicy(ConfigurationError):
    """Raised at start-up when a target carries a policy that no layer in its chain enforces.

    Attributes:
        target: The target's name or URI.
        policy: The policy's name, such as `roles`.
    """

    def __init__(self, noun: str, target: str, policy: str, *, known: Sequence[str]) -> None:
        offer = (
            f"the chain enforces: {', '.join(known)}" if known else "no layer enforces any policy"
        )
        super().__init__(
            f"{noun} {target!r} asks for the policy {policy!r}, which no layer of its chain "
            f"enforces; {offer}. Add the layer that enforces it, or remove the policy."
        )
        self.target = target
        self.policy = policy


class InvalidPolicy(ConfigurationError):
    """Raised at start-up when a policy's value does not have the type that its layer declares.

    Attributes:
        target: The target's name or URI.
        policy: The policy's name.
        layer: The layer that declares the type.
    """

    def __init__(self, noun: str, target: str, policy: str, layer: str, problem: str) -> None:
        super().__init__(f"{noun} {target!r}: policy {policy!r} of layer {layer!r}: {problem}")
        self.target = target
        self.policy = policy
        self.layer = layer


class InvalidTarget(ConfigurationError):
    """Raised when a target's name, URI, schema or signature cannot be served.

    Attributes:
        target: The target's name or URI.
        problem: What is wrong with it.
    """

    noun: ClassVar[str] = "target"

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(f"{self.noun} {target!r}: {problem}")
        self.target = target
        self.problem = problem


class InvalidTool(InvalidTarget):
    """Raised when a tool cannot be served."""

    noun = "tool"


class InvalidResource(InvalidTarget):
    """Raised when a resource or a template cannot be served."""

    noun = "resource"


class InvalidPrompt(InvalidTarget):
    """Raised when a prompt cannot be served."""

    noun = "prompt"


class DuplicateTarget(ConfigurationError):
    """Raised when a name or URI is taken and `replace=True` was not given.

    Attributes:
        noun: The kind of target, such as `tool`.
        target: The target's name or URI.
    """

    def __init__(self, noun: str, target: str) -> None:
        super().__init__(f"{noun} {target!r} exists already; pass replace=True to replace it")
        self.noun = noun
        self.target = target


class AppNotFound(ConfigurationError):
    """Raised where a command line names a server that is not there."""

    exit_code = 2


class CallError(StanchionError):
    """The root of everything that ends a call; never raised itself.

    Attributes:
        outcome: The outcome that a call ended by this error has.
    """

    outcome: ClassVar[Outcome] = Outcome.CRASHED


class ProtocolError(CallError):
    """The root of the faults that the specification gives a JSON-RPC code.

    Attributes:
        code: The JSON-RPC error code.
        message: One sentence for the peer.
        detail: What the error object carries as `data`, or None.
        request_id: The id to answer to where the message was too malformed to become a request.
    """

    outcome: ClassVar[Outcome] = Outcome.INVALID
    code: ClassVar[int] = -32600

    def __init__(
        self,
        message: str,
        *,
        detail: Mapping[str, Any] | None = None,
        request_id: str | int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.request_id = request_id


class ParseError(ProtocolError):
    """Raised when a message is not JSON, not UTF-8, or nested too deep to read."""

    code = -32700


class InvalidRequest(ProtocolError):
    """Raised when a message is JSON but not a JSON-RPC message that may come here now."""

    code = -32600


class MethodNotFound(ProtocolError):
    """Raised when the method does not exist in the peer's version, or nothing serves it.

    Attributes:
        method: The method that was asked for.
    """

    code = -32601

    def __init__(self, method: str) -> None:
        super().__init__(f"Method not found: {method[:128]}")
        self.method = method


class InvalidParams(ProtocolError):
    """Raised when `params` lacks a member, has one of the wrong type, or a cursor is unknown."""

    code = -32602


class UnknownTarget(InvalidParams):
    """Raised when no tool, resource or prompt has the name that was asked for.

    Attributes:
        kind: `tool`, `resource` or `prompt`.
        name: The name as it came, at most 128 characters of it; a URI, which clients compare with
            what they asked for, up to 2048.
    """

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"Unknown {kind}: {name[:128]}")
        self.kind = kind
        self.name = name[: 2048 if kind == "resource" else 128]


class HeaderMismatch(ProtocolError):
    """Raised when a required HTTP header is missing, malformed, or disagrees with the body."""

    code = -32020


class MissingCapability(ProtocolError):
    """Raised when a call needs a client capability that the peer did not declare.

    Attributes:
        required: The capabilities that are missing, such as `{"sampling": {}}`.
    """

    code = -32021

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__(
            f"The client does not declare: {', '.join(required)}",
            detail={"requiredCapabilities": dict(required)},
        )
        self.required = required


class UrlElicitationRequired(ProtocolError):
    """Raised by a handler whose user must open pages before the call can be done.

    A legacy client is told so, and calls again once they are open. A modern one, which has no such
    error, is asked to open them in an `input_required` round, and the handler runs again; if it
    raises this again, the client is asked again. A client that opens no pages is refused with
    `MissingCapability`.

    Source: MCP 2025-11-25, client/elicitation, "URL Elicitation Required Error".

    Attributes:
        pages: What is to be opened. Give each an id of your own, to tell its end with
            `Server.notify_elicitation_complete`.

    Raises:
        TypeError: There is no page.
    """

    code = -32042

    def __init__(self, *pages: ElicitUrl, message: str = "The user must open a page first") -> None:
        if not pages:
            raise TypeError("UrlElicitationRequired needs a page")

        wired = [page.params_for(V2025_11_25) for page in pages]
        super().__init__(message, detail={"elicitations": wired})
        self.pages = pages


class UnsupportedVersion(ProtocolError):
    """Raised when the peer asks for a protocol version that is not served.

    Attributes:
        requested: The version that was asked for.
        supported: The versions that are served.
    """

    code = -32022

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(
            f"Unsupported protocol version: {requested[:32]}",
            detail={"supported": list(supported), "requested": requested[:32]},
        )
        self.requested = requested
        self.supported = tuple(supported)


class Refusal(CallError):
    """The root of what layers raise to say no.

    Attributes:
        code: The error code on the wire, outside the range that JSON-RPC reserves.
        reason: Why, in words that the caller may read.
        policy: The name of the rule that decided, or None.
        retry_after: Seconds until another try makes sense, or None if it never does.
        headers: HTTP fields that an HTTP transport adds to the answer.
    """

    code: ClassVar[int] = 403

    def __init__(
        self,
        reason: str,
        *,
        policy: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.policy = policy
        self.retry_after = retry_after
        self.headers: Mapping[str, str] = headers or {}


class Unauthenticated(Refusal):
    """Raised when the caller has not proved who it is.

    Attributes:
        challenge: The value of `WWW-Authenticate` over HTTP.
    """

    outcome = Outcome.UNAUTHENTICATED
    code = 401

    def __init__(
        self, reason: str, *, policy: str | None = None, challenge: str = "Bearer"
    ) -> None:
        super().__init__(reason, policy=policy, headers={"WWW-Authenticate": challenge})
        self.challenge = challenge


class Denied(Refusal):
    """Raised when the caller may not do this.

    Attributes:
        challenge: The value of `WWW-Authenticate` where a scope is missing, else None; only
            then is the HTTP status 403.
        hidden: True makes the answer the same as that for a target which does not exist.
    """

    outcome = Outcome.DENIED
    code = 403

    def __init__(
        self,
        reason: str,
        *,
        policy: str | None = None,
        challenge: str | None = None,
        hidden: bool = False,
    ) -> None:
        headers = {"WWW-Authenticate": challenge} if challenge else None
        super().__init__(reason, policy=policy, headers=headers)
        self.challenge = challenge
        self.hidden = hidden


class NotSimulated(Denied):
    """Raised in the place of the handler where a dry run gets as far: no layer has simulated it.

    Nothing was run. A layer further out may catch it and answer the dry run itself.

    Attributes:
        target: The key of the target, or the name of the custom method, that was not run.
    """

    def __init__(self, target: str, cause: str) -> None:
        super().__init__(
            f"{target!r} was not run: a dry run was asked for, and {cause}. Leave out the dry run "
            "in _meta to run it for real",
            policy="dry_run",
        )
        self.target = target


class Limited(Refusal):
    """Raised when the caller calls too often."""

    outcome = Outcome.LIMITED
    code = 429


class OverBudget(Refusal):
    """Raised when the caller's budget does not cover the call."""

    outcome = Outcome.OVER_BUDGET
    code = 429


class Unavailable(Refusal):
    """Raised when the server cannot take the call now: draining, pool full, circuit open."""

    outcome = Outcome.UNAVAILABLE
    code = 503


class ToolError(CallError):
    """Raised by a tool to fail in its own words, which the model reads.

    Raises:
        TypeError: What it is given is no text.

    Attributes:
        message: The tool's words; they reach the peer unmasked.
    """

    outcome = Outcome.TOOL_ERROR

    def __init__(self, message: str) -> None:
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance] # users
            # str() of an arbitrary object would show the peer where it lies in memory.
            raise TypeError(f"ToolError needs text, and is given a {type(message).__name__}")

        super().__init__(message)
        self.message = message


class AskFailed(ToolError):
    """Raised where a handler asks the client, and the client gives an error or no fit answer.

    A handler that does not catch it fails in the client's own words.

    Attributes:
        code: The JSON-RPC error code of the client's answer, or None where it gave none.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(f"The client did not answer: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a value.

    Attributes:
        pointer: Where, as a JSON pointer (RFC 6901); the empty string is the whole value.
        message: What is wrong and what would be right, without the value itself.
    """

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '(root)'}: {self.message}"


class InvalidArguments(CallError):
    """Raised when the arguments do not fit the tool's schema or signature.

    Attributes:
        faults: Everything that is wrong, in the order of the schema.
    """

    outcome = Outcome.INVALID

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("Invalid arguments: " + "; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class InvalidResult(CallError):
    """Raised when what a tool returned cannot be sent, or does not fit its output schema.

    Attributes:
        faults: Everything that is wrong. They name places and types, never values.
    """

    outcome = Outcome.CRASHED

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("The result cannot be sent: " + "; ".join(map(str, faults)))
        self.faults = tuple(faults)


class TimedOut(CallError):
    """Raised by the layer whose limit has passed.

    Attributes:
        layer: The layer's name.
        limit: The limit in seconds.
        outcome_unknown: True if the tool runs in a thread that could not be stopped, so that
            its effect may still happen.
    """

    outcome = Outcome.TIMEOUT

    def __init__(self, layer: str, limit: float, *, outcome_unknown: bool = False) -> None:
        tail = (
            "; outcome unknown: the tool could not be stopped and may still take effect"
            if outcome_unknown
            else ""
        )
        super().__init__(f"Timed out after {limit:g} s (limit of layer {layer!r}){tail}")
        self.layer = layer
        self.limit = limit
        self.outcome_unknown = outcome_unknown


class Crashed(CallError):
    """Raised by the recovery layer in place of an exception that nobody expected.

    The original is `__cause__`. Nothing of it reaches the peer; the correlation id does.

    Attributes:
        correlation_id: The id under which the log has the details.
        message: What the peer reads.
    """

    outcome = Outcome.CRASHED

    def __init__(self, correlation_id: str, message: str = "Internal error") -> None:
        super().__init__(message)
        self.correlation_id = correlation_id
        self.message = message


def call_error_in(error: BaseException) -> CallError | None:
    """Give the error of the tree that *error* is, or that alone is wrapped in it.

    A task group wraps what one of its tasks raises; the group adds nothing to it. A group of
    several errors is none of them.
    """
    while isinstance(error, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(members) != 1:
            return None

        error = members[0]

    return error if isinstance(error, CallError) else None
