"""What may come in, by tables alone."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.errors import (
    Denied,
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    Limited,
    MethodNotFound,
    MissingCapability,
    ParseError,
    ProtocolError,
    Unauthenticated,
    Unavailable,
    UnsupportedVersion,
)
from stanchion.gate import (
    admit_legacy,
    admit_modern,
    admit_notification,
    check_params,
    decode_header,
    era_of_message,
    http_status,
    negotiate,
)
from stanchion.protocol import (
    CLIENT_REQUEST_METHODS,
    LEGACY_VERSIONS,
    LOG_LEVELS,
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_VERSION,
    SUPPORTED_VERSIONS,
    VERSIONS,
    Era,
    Method,
    Param,
)
from stanchion.wire import Notification, Request

MODERN = "2026-07-28"
META = {META_VERSION: MODERN, META_CAPABILITIES: {}}
SAMPLES = {str: "x", dict: {}, int: 1, float: 1.5}


def sample(param):
    """Give a value of the type that *param* wants."""
    return SAMPLES[param.type[0] if isinstance(param.type, tuple) else param.type]


def full_params(method):
    """Give params with every required member of *method*."""
    return {param.name: sample(param) for param in method.params if param.required}


def modern(method="tools/call", params=None, **meta):
    """Make a modern request; `meta` replaces keys of the envelope, None removes one."""
    params = {"name": "x"} if params is None else params
    envelope = {key: value for key, value in (META | meta).items() if value is not None}
    return Request(1, method, {**params, "_meta": envelope})


def headers(method="tools/call", name="x", version=MODERN):
    """Make the headers that go with a modern request."""
    fields = {"mcp-protocol-version": version, "mcp-method": method, "mcp-name": name}
    return {key: value for key, value in fields.items() if value is not None}


# The era of a message.


@pytest.mark.parametrize(
    ("params", "fields", "era"),
    [
        (None, None, Era.LEGACY),
        ({}, {}, Era.LEGACY),
        ({"_meta": {}}, None, Era.LEGACY),
        ({"_meta": 5}, None, Era.LEGACY),
        ({"_meta": {"progressToken": 1}}, {"mcp-protocol-version": "2025-11-25"}, Era.LEGACY),
        (None, {"mcp-protocol-version": "2025-06-18"}, Era.LEGACY),
        ({"_meta": {META_VERSION: MODERN}}, None, Era.MODERN),
        ({"_meta": {META_VERSION: 5}}, {}, Era.MODERN),
        (None, {"mcp-protocol-version": MODERN}, Era.MODERN),
        (None, {"mcp-protocol-version": "1999-01-01"}, Era.MODERN),
        (None, {"mcp-protocol-version": ""}, Era.MODERN),
    ],
)
def test_a_message_tells_its_era(params, fields, era):
    """A version in `_meta`, or a header that no legacy peer could send, makes it modern."""
    assert era_of_message(Request(1, "tools/list", params), fields) is era
    assert era_of_message(Notification("notifications/cancelled", params), fields) is era


# The modern ladder: `_meta`, headers, version, method, name, params.


@pytest.mark.parametrize("method", [m for m in CLIENT_REQUEST_METHODS if MODERN in m.versions])
def test_every_modern_method_is_let_in(method):
    """A whole request of each modern method passes, with and without headers."""
    params = full_params(method)
    request = modern(method.name, params)
    name = params.get(method.routed_by) if method.routed_by else None
    assert admit_modern(request, None) == (MODERN, method)
    assert admit_modern(request, headers(method.name, name)) == (MODERN, method)


@pytest.mark.parametrize("params", [None, {}, {"_meta": None}, {"_meta": 5}, {"_meta": []}])
def test_meta_is_required_and_an_object(params):
    """A modern request without `_meta`, or with another type there, is -32602."""
    with pytest.raises(InvalidParams, match=r"params\._meta is required and must be an object"):
        admit_modern(Request(1, "tools/list", params), None)


@pytest.mark.parametrize("key", [META_VERSION, META_CAPABILITIES])
@pytest.mark.parametrize("wrong", [None, 5, [], True])
def test_each_required_meta_key_is_checked(key, wrong):
    """A required key that is missing or of the wrong type is named."""
    with pytest.raises(InvalidParams, match=key):
        admit_modern(modern(**{key: wrong}), None)


@pytest.mark.parametrize(("key", "wrong"), [(META_CLIENT, "me"), (META_LOG_LEVEL, 5)])
def test_optional_meta_keys_have_their_type(key, wrong):
    """An optional key may be missing or null, but not of another type."""
    with pytest.raises(InvalidParams, match=key):
        admit_modern(modern(**{key: wrong}), None)

    request = modern()
    request.params["_meta"] = META | {key: None}
    assert admit_modern(request, None)[0] == MODERN


def test_a_log_level_is_one_of_eight():
    """Each level of the specification passes, and nothing else does."""
    for level in LOG_LEVELS:
        assert admit_modern(modern(**{META_LOG_LEVEL: level}), None)[0] == MODERN

    with pytest.raises(InvalidParams, match="no log level"):
        admit_modern(modern(**{META_LOG_LEVEL: "loud"}), None)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (headers(version=None), "mcp-protocol-version is required"),
        (headers(version="2025-11-25"), "mcp-protocol-version disagrees"),
        (headers(method=None), "mcp-method is required"),
        (headers(method="tools/list"), "mcp-method disagrees"),
        (headers(method="Tools/Call"), "mcp-method disagrees"),
        (headers(name=None), "mcp-name is required"),
        (headers(name="X"), "mcp-name disagrees"),
        (headers(name="=?base64?!?="), "cannot be decoded"),
        (headers(name="=?base64?/w==?="), "cannot be decoded"),
        (headers(name="ä"), "must be encoded"),
        (headers(name="a\tb"), "must be encoded"),
    ],
)
def test_headers_must_be_there_and_agree(fields, problem):
    """A routing header that is missing, malformed or different from the body is -32020."""
    with pytest.raises(HeaderMismatch, match=problem):
        admit_modern(modern(), fields)


def test_no_name_header_is_wanted_where_nothing_is_routed():
    """`tools/list` needs no `Mcp-Name`."""
    admitted = admit_modern(modern("tools/list", {}), headers("tools/list", None))
    assert admitted[1].name == "tools/list"


@pytest.mark.parametrize("version", ["2025-11-25", "2027-01-01", "", "x" * 5000])
def test_a_version_that_is_not_served_is_refused_with_those_that_are(version):
    """-32022 lists every version, and echoes no more than a version's length."""
    request = modern(**{META_VERSION: version})
    with pytest.raises(UnsupportedVersion) as refused:
        admit_modern(request, headers(version=version))

    assert refused.value.detail == {
        "supported": list(SUPPORTED_VERSIONS),
        "requested": version[:32],
    }


@pytest.mark.parametrize(
    "name",
    [
        *sorted(
            {method.name for method in CLIENT_REQUEST_METHODS if MODERN not in method.versions}
        ),
        "",
        "tools",
        "TOOLS/CALL",
        "rpc.discover",
        "notifications/cancelled",
    ],
)
def test_removed_and_unknown_methods_are_not_found(name):
    """What 2026-07-28 removed, and what never was, is -32601."""
    with pytest.raises(MethodNotFound):
        admit_modern(modern(name, {}), None)


def test_the_rungs_of_the_ladder_stand_in_their_order():
    """Of several faults the first in the specification's order is named."""
    bad_name = {"name": 5}
    faults = [
        (modern("nope", bad_name, **{META_CAPABILITIES: None, META_VERSION: "x"}), {}),
        (modern("nope", bad_name, **{META_VERSION: "x"}), {}),
        (modern("nope", bad_name, **{META_VERSION: "x"}), headers("nope", version="x")),
        (modern("nope", bad_name), headers("nope")),
        (modern("prompts/get", {"name": "x", "arguments": 5}), headers("prompts/get", "y")),
        (modern("prompts/get", {"name": "x", "arguments": 5}), headers("prompts/get", "x")),
    ]
    seen = []
    for request, fields in faults:
        with pytest.raises(ProtocolError) as refused:
            admit_modern(request, fields)

        seen.append(type(refused.value))

    assert seen == [
        InvalidParams,
        HeaderMismatch,
        UnsupportedVersion,
        MethodNotFound,
        HeaderMismatch,
        InvalidParams,
    ]


def test_a_name_of_the_wrong_type_is_a_fault_of_the_body():
    """Where the body's name is no string, the header cannot be what is wrong."""
    with pytest.raises(InvalidParams, match=r"params\.name must be a string"):
        admit_modern(modern(params={"name": 5}), headers())


# Names in headers.


@given(st.text(st.characters(codec="utf-8")))
def test_every_name_can_be_sent_as_base64(name):
    """Whatever Unicode a name has, its base64 form decodes to it."""
    encoded = base64.b64encode(name.encode()).decode()
    assert decode_header(f"=?base64?{encoded}?=") == name


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_ascii_is_taken_as_it_stands(name):
    """A plain value is itself, unless both markers make it base64."""
    if not (name.startswith("=?base64?") and name.endswith("?=")):
        assert decode_header(name) == name


@given(st.text())
def test_no_header_raises_anything_but_a_mismatch(value):
    """Any value decodes to Unicode text or is a `HeaderMismatch`."""
    with suppress(HeaderMismatch):
        decode_header(value).encode()


@pytest.mark.parametrize("value", ["=?base64?eA==", "eA==?=", "=?base64?=", "=?BASE64?eA==?="])
def test_half_a_marker_is_a_literal(value):
    """Without prefix or suffix, or in another case, a value is not base64."""
    assert decode_header(value) == value


@pytest.mark.parametrize("encoded", ["eA", "e A==", "eA==\u00e9", "_-8=", "gA=="])
def test_broken_base64_is_a_mismatch(encoded):
    """Wrong padding, spaces, the URL alphabet and bytes that are no UTF-8 are refused."""
    with pytest.raises(HeaderMismatch):
        decode_header(f"=?base64?{encoded}?=")


# The legacy handshake.


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_initialize_agrees_on_every_legacy_version(version):
    """A version that we serve is answered with itself."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}
    admitted, method = admit_legacy(Request(1, "initialize", params), None)
    assert admitted == version
    assert method.name == "initialize"


@pytest.mark.parametrize("version", ["1999-01-01", MODERN, "2030-01-01", ""])
def test_initialize_offers_the_latest_for_what_it_does_not_know(version):
    """An unknown version, or a modern one, is answered with our latest legacy version."""
    assert negotiate(version) == "2025-11-25"


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("wrong", [None, 5, [], True])
def test_initialize_needs_its_three_members(missing, wrong):
    """Each member of `initialize` must be there with its type."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    with pytest.raises(InvalidParams, match=missing):
        admit_legacy(Request(1, "initialize", params | {missing: wrong}), None)

    del params[missing]
    with pytest.raises(InvalidParams, match=f"{missing} is required"):
        admit_legacy(Request(1, "initialize", params), None)


def test_initialize_comes_once():
    """A second handshake on one connection is refused."""
    with pytest.raises(InvalidRequest, match="initialized already"):
        admit_legacy(Request(1, "initialize", {}), "2025-11-25")


@pytest.mark.parametrize("name", ["tools/list", "tools/call", "server/discover", "nope"])
def test_before_initialize_only_ping_is_let_in(name):
    """Whatever comes before the handshake is told both ways to begin."""
    with pytest.raises(InvalidRequest, match=r"send initialize first.*protocolVersion"):
        admit_legacy(Request(1, name, {"name": "x"}), None)

    assert admit_legacy(Request(1, "ping", None), None)[1].name == "ping"


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_each_legacy_version_has_its_methods_and_no_others(version):
    """A method is let in exactly in the versions that its row lists."""
    for method in CLIENT_REQUEST_METHODS:
        request = Request(1, method.name, full_params(method))
        if method.name == "initialize":
            continue

        if version in method.versions:
            assert admit_legacy(request, version) == (version, method)
        else:
            with pytest.raises(MethodNotFound):
                admit_legacy(request, version)


@pytest.mark.parametrize("meta", [5, "x", [], True])
def test_legacy_meta_is_an_object(meta):
    """`_meta` of another type is -32602, on the handshake as elsewhere; null is none."""
    for name, version in (("tools/list", "2025-11-25"), ("initialize", None), ("ping", None)):
        with pytest.raises(InvalidParams, match="_meta must be an object"):
            admit_legacy(Request(1, name, {"_meta": meta}), version)

    assert admit_legacy(Request(1, "ping", {"_meta": None}), None)[1].name == "ping"


# Members of params.


@pytest.mark.parametrize("method", CLIENT_REQUEST_METHODS, ids=lambda method: method.name)
def test_every_listed_member_is_checked(method):
    """Each member of each method is refused with a wrong type, and where required, if missing."""
    for param in method.params:
        for wrong in (True, [], 1.5j):
            params = full_params(method) | {param.name: wrong}
            with pytest.raises(InvalidParams, match=rf"params\.{param.name} must be"):
                check_params(method, params)

        params = full_params(method)
        params.pop(param.name, None)
        if param.required:
            with pytest.raises(InvalidParams, match=rf"params\.{param.name} is required"):
                check_params(method, params)
        else:
            check_params(method, params)
            check_params(method, params | {param.name: None})


def test_a_boolean_is_no_number_and_a_number_no_boolean():
    """JSON's types are told apart where Python's are not."""
    number = Method("m", VERSIONS, (Param("p", (int, float)),))
    boolean = Method("m", VERSIONS, (Param("p", bool),))
    check_params(number, {"p": 1})
    check_params(number, {"p": 1.5})
    check_params(boolean, {"p": False})
    with pytest.raises(InvalidParams, match="an integer or a number"):
        check_params(number, {"p": True})

    with pytest.raises(InvalidParams, match="a boolean"):
        check_params(boolean, {"p": 1})


# Notifications.


@pytest.mark.parametrize("id", [1, "1", 0, ""])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_cancellation_names_a_request(version, id):
    """A cancellation with a string or an integer id is let in, in every version."""
    notification = Notification("notifications/cancelled", {"requestId": id})
    assert admit_notification(notification, version).name == "notifications/cancelled"


@pytest.mark.parametrize("params", [None, {}, *({"requestId": id} for id in (None, True, 1.0, []))])
def test_a_malformed_notification_is_dropped(params):
    """A notification is never answered, so a bad one is None and no error."""
    notification = Notification("notifications/cancelled", params)
    assert admit_notification(notification, "2025-11-25") is None


@pytest.mark.parametrize("name", ["notifications/initialized", "notifications/roots/list_changed"])
def test_notifications_have_versions_too(name):
    """What the modern era removed is dropped there."""
    assert admit_notification(Notification(name, None), "2025-11-25").name == name
    assert admit_notification(Notification(name, None), MODERN) is None


# Codes over HTTP.


@pytest.mark.parametrize(
    ("error", "modern_status", "legacy_status"),
    [
        (ParseError("x"), 400, 400),
        (InvalidRequest("x"), 400, 400),
        (MethodNotFound("x"), 404, 200),
        (InvalidParams("x"), 400, 200),
        (HeaderMismatch("x"), 400, 200),
        (MissingCapability({"sampling": {}}), 400, 200),
        (UnsupportedVersion("x", ()), 400, 400),
        (-32603, 200, 200),
        (-32002, 200, 200),
        (Unauthenticated.code, 401, 401),
        (Denied.code, 200, 200),
        (Limited.code, 429, 200),
        (Unavailable.code, 503, 200),
    ],
)
def test_each_code_has_a_status_in_each_era(error, modern_status, legacy_status):
    """The status of an error follows from its code and the era alone."""
    assert http_status(error, Era.MODERN) == modern_status
    assert http_status(error, Era.LEGACY) == legacy_status


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_a_custom_method_is_admitted_where_the_table_has_no_row(version):
    """With its own row, in both eras; the handshake and the envelope are asked for all the same."""
    row = Method("vendor/thing", VERSIONS)
    custom = {row.name: row}
    if version is None:
        assert admit_modern(modern(row.name), None, custom) == (MODERN, row)
        with pytest.raises(InvalidParams):
            admit_modern(Request(1, row.name, {}), None, custom)
    else:
        assert admit_legacy(Request(1, row.name, {}), version, custom) == (version, row)
        with pytest.raises(InvalidRequest):
            admit_legacy(Request(1, row.name, {}), None, custom)

    assert admit_notification(Notification(row.name, None), version or MODERN, custom) is row
