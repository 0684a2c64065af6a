"""The tree of errors: what each carries, and that the tree is the one that is drawn."""

from __future__ import annotations

import inspect
import re

import pytest

import stanchion
from stanchion import (
    CallError,
    Crashed,
    Denied,
    Fault,
    InvalidArguments,
    InvalidPolicy,
    InvalidResult,
    InvalidTool,
    Limited,
    MethodNotFound,
    MissingCapability,
    OverBudget,
    ParseError,
    ProtocolError,
    Refusal,
    StanchionError,
    TimedOut,
    ToolError,
    Unauthenticated,
    Unavailable,
    UnenforcedPolicy,
    UnknownTarget,
    UnsupportedVersion,
    errors,
)

CLASSES = [
    class_
    for _, class_ in inspect.getmembers(errors, inspect.isclass)
    if issubclass(class_, StanchionError)
]


def test_tree_is_drawn():
    """The tree at the top of the file shows every class under its parent."""
    drawn = {}
    path = []
    for line in errors.__doc__.splitlines():
        if match := re.match(r" {4}([│├└─ ]*)([A-Z]\w+)", line):
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            drawn[match[2]] = path[depth - 1] if depth else "Exception"

    assert drawn == {class_.__name__: class_.__base__.__name__ for class_ in CLASSES}


@pytest.mark.parametrize("class_", CLASSES, ids=lambda class_: class_.__name__)
def test_every_class_is_public_and_says_when(class_):
    """Each class is exported, and its docstring says when it is raised."""
    assert getattr(stanchion, class_.__name__) is class_
    assert re.match(r"Raised |The root of ", class_.__doc__)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ParseError("x"), -32700),
        (MethodNotFound("x"), -32601),
        (UnknownTarget("tool", "x"), -32602),
        (MissingCapability({"sampling": {}}), -32021),
        (UnsupportedVersion("1", ["2"]), -32022),
        (Unauthenticated("x"), 401),
        (Denied("x"), 403),
        (Limited("x"), 429),
        (OverBudget("x"), 429),
        (Unavailable("x"), 503),
    ],
)
def test_codes(error, code):
    """Each protocol fault has the specification's code, each refusal the HTTP status like it."""
    assert error.code == code
    assert isinstance(error, ProtocolError if code < 0 else Refusal)


def test_application_codes_stay_out_of_the_reserved_range():
    """The codes of refusals lie outside what JSON-RPC reserves for itself."""
    for class_ in CLASSES:
        if issubclass(class_, Refusal):
            assert not -32768 <= class_.code <= -32000


def test_fields():
    """Each error carries its fields, and its message is made of them."""
    assert str(InvalidTool("t", "no")) == "tool 't': no"
    unenforced = UnenforcedPolicy("tool", "t", "roles", known=["a", "b"])
    assert (unenforced.target, unenforced.policy) == ("t", "roles")
    assert "a, b" in str(unenforced)
    invalid = InvalidPolicy("tool", "t", "timeout", "sandbox", "no number")
    assert (invalid.target, invalid.policy, invalid.layer) == ("t", "timeout", "sandbox")
    assert MethodNotFound("x").method == "x"
    missing = MissingCapability({"sampling": {}})
    assert missing.detail == {"requiredCapabilities": {"sampling": {}}}
    version = UnsupportedVersion("1", ["2", "3"])
    assert version.detail == {"supported": ["2", "3"], "requested": "1"}
    assert (version.requested, version.supported) == ("1", ("2", "3"))
    assert ToolError("own words").message == "own words"
    assert Crashed("id").correlation_id == "id"
    assert str(Crashed("id")) == "Internal error"


def test_what_came_is_cut():
    """A name of any length is repeated only in part."""
    assert len(str(MethodNotFound("x" * 10_000))) < 200
    assert len(UnknownTarget("tool", "x" * 10_000).name) == 128
    assert len(UnknownTarget("resource", "x" * 10_000).name) == 2048
    assert len(str(UnsupportedVersion("x" * 10_000, []))) < 100


def test_refusals():
    """A refusal carries reason, policy, when to try again, and HTTP fields."""
    refusal = Limited("too fast", policy="rate", retry_after=1.5, headers={"RateLimit": "x"})
    assert (refusal.reason, refusal.policy, refusal.retry_after) == ("too fast", "rate", 1.5)
    assert refusal.headers == {"RateLimit": "x"}
    assert Denied("no").headers == {}
    assert Denied("no", challenge="Bearer scope=x").headers == {
        "WWW-Authenticate": "Bearer scope=x"
    }
    assert Unauthenticated("no").headers == {"WWW-Authenticate": "Bearer"}


def test_faults():
    """Faults are listed with their places in the message; the whole value has a word of its own."""
    faults = [Fault("/a", "is bad"), Fault("", "is worse")]
    assert str(InvalidArguments(faults)) == "Invalid arguments: /a: is bad; (root): is worse"
    assert InvalidArguments(faults).faults == tuple(faults)
    assert "/a: is bad" in str(InvalidResult(faults))
    assert InvalidResult(faults).faults == tuple(faults)


@pytest.mark.parametrize("unknown", [True, False])
def test_timeouts_name_layer_and_limit(unknown):
    """T7: a timeout says whose limit passed, and whether the effect may still come."""
    error = TimedOut("sandbox", 2.5, outcome_unknown=unknown)
    assert "2.5 s" in str(error)
    assert "'sandbox'" in str(error)
    assert ("outcome unknown" in str(error)) is unknown
    assert (error.layer, error.limit, error.outcome_unknown) == ("sandbox", 2.5, unknown)


def test_configuration_errors_end_no_call():
    """What stops a start carries no outcome."""
    assert not issubclass(errors.ConfigurationError, CallError)
