"""The public names of the four packages, and what importing them costs."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

PUBLIC = {
    "stanchion": """
        ASSUMED_HTTP_VERSION AnyBlock AnyLayer AppNotFound Ask AskFailed Audio
        Background Block Bus CREDENTIAL_FIELDS Call CallError Chain ChainFrozen Change
        ClientNotification Completion ConfigurationError Connection Contents Cost
        Crashed Denied DuplicateTarget EVERY_REQUEST ElicitForm ElicitUrl Elicited
        EmbeddedResource Ending Era Event EventStore Fault First HEADER_PARAM_PREFIX
        HEADER_SESSION HEADER_VERSION HeaderMismatch Identifies Image InputNeeded
        InputRequired Inside InvalidArguments InvalidParams InvalidPolicy InvalidPrompt
        InvalidRequest InvalidResource InvalidResult InvalidTarget InvalidTool Kind
        LATEST_LEGACY_VERSION LATEST_MODERN_VERSION LEGACY_VERSIONS Layer LayerMisuse
        Limited Link ListRoots LogFloor LogLevel MAX_STATE_INTEGER MAX_STATE_VALUE_BYTES
        META_CONTENT META_DRY_RUN MODERN_VERSIONS MemoryBus MemoryEventStore Message
        MethodNotFound Middleware MissingCapability NO_REPLY Next NotSimulated
        Notification NotificationCounts OnShadow Once OrderViolation Outcome Outside
        OverBudget PERSONAL_DATA PageResult ParseError Peer Pending PlainResult
        Principal Prompt PromptArgument PromptMessage PromptResult ProtocolError Reading
        Redactor Refusal Reply Request RequestId Resource ResourceLink ResourceResult
        ResourceTemplate Response Result Root Rule SERVED_FROM_CACHE SUPPORTED_VERSIONS
        Sample Sampled ScopedState Seal Send Server Session SessionEnding SessionScope
        StanchionError State StateKey Strategy Stream Target Tenant TenantState Text
        Threads TimedOut Tool ToolError ToolResult Unauthenticated Unavailable
        UnenforcedPolicy UnknownTarget UnsupportedVersion UrlElicitationRequired
        call_error_in cost_of decode encode_error era_of_message escape_pointer
        fan_out_fan_in http_status is_cancellation json_depth json_size layer_name
        load_server parallel pipeline readings_of run_stand_in serve_stream
    """,
    "stanchion_middleware": """
        Anchor Anchored ApiKey ApiKeyVerifier Audit AuditSink Auth Authenticator
        BearerAuthenticator Bill Budget BudgetAlert CachedVerifier ChainConflict
        ChainReport Charge ClaimMapping ConsoleFormatter CorrelationFilter CostEntry
        CostRow CostStore CostTracking Credentials DEFAULT_POLICIES Entry
        EnvironmentCredentials Explanation FileAnchor FilePolicies FileSubjectKeys
        FileTenants Finding FirstOf Flaw FromHeader FromHost FromPrincipal Grant
        HeadSigner Hints Hold HttpAnchor HttpAudit Inherits IntrospectionVerifier
        InvalidToken JsonFormatter JsonLinesFile JwtVerifier KeyRing Kind LimitStorage
        Line LogAnchor Logging META_PLAN META_SIMULATED META_TRUNCATED MemoryCosts
        MemoryLimits MemorySink MemoryTenantState MoreAttributes MultiTenant OnAlert
        OnCrash OtlpAudit Patterns Place Plan Policy PolicyAdapter Price PriceOf Proof
        ProxySubject RBAC Rate RateLimit Recovery RedisCosts RedisLimits
        RedisTenantState Rule Sandbox Scopes ServerErrorCodes Simulation Spool SpoolFull
        SqlAudit SqlCosts SqlPolicies SqlTenants Standing Statement StaticTenants
        StaticVerifier SubjectKey SubjectKeys Telemetry TenantRecord TenantSource
        TenantStore Tip TokenVerifier Trail Validation Verification api_key_digest
        cloud_event configure_logging is_tenant_id new_api_key ocsf_event production
        verify_trail
    """,
    "stanchion_transports": "",
    "stanchion_testing": """
        Answer ContractBroken CostStoreBroken FakeClock InMemoryPeer Judge
        JumpingEventLoop Listening MockNext OpenTransport PeerError PromptAnswer
        ResourceAnswer StoreBroken TRANSPORT_CHECKS ToolAnswer TransportPeer Unanswered
        Unofficial check_audit_sink check_cost_store check_event_store
        check_limit_storage check_policy_adapter check_tenant_state check_tenant_store
        check_transport connect jumping_backend make_call mock_next
    """,
}
"""What users and packs import; a change here is a change of the public interface."""

NAMES = [(package, name) for package, names in PUBLIC.items() for name in names.split()]

DEAR = ("mcp_types", "starlette", "uvicorn", "rich", "typer", "jsonschema_rs", "trio", "mcp")
"""What `import stanchion` must not load, because most of its users never need it."""


def source_of(module):
    return ast.parse(Path(inspect.getfile(importlib.import_module(module))).read_text())


def exported(package):
    """Give `{name: module}` of the imports in the package's `__init__`."""
    return {
        alias.asname: f"{package}.{node.module}"
        for node in source_of(package).body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }


@pytest.mark.parametrize("package", PUBLIC)
def test_names(package):
    """Each package exports exactly these names, each from the module that defines it."""
    assert sorted(exported(package)) == sorted(PUBLIC[package].split())


@pytest.mark.parametrize("package", PUBLIC)
def test_spelling(package):
    """Public names are imported as `X as X`, which type checkers take for an export."""
    for node in source_of(package).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            assert [(alias.name, alias.asname) for alias in node.names] == [
                (alias.name, alias.name) for alias in node.names
            ]


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda part: part)
def test_docstrings(package, name):
    """Every public class and function says what it is, and so does all that is public on it."""
    thing = getattr(importlib.import_module(package), name)
    if inspect.isroutine(thing) or isinstance(thing, type):
        assert thing.__doc__

    for called, member in vars(thing).items() if isinstance(thing, type) else ():
        speaks = inspect.isfunction(member) or isinstance(member, property | classmethod)
        if speaks and not called.startswith("_"):
            assert inspect.getdoc(getattr(thing, called)), called


@pytest.mark.parametrize("package", PUBLIC)
def test_package_says_how_it_is_cut(package):
    """Each package opens with what it is, and is typed."""
    module = importlib.import_module(package)
    assert module.__doc__
    assert (Path(module.__file__).parent / "py.typed").exists()


def test_version():
    """The version is three numbers."""
    import stanchion

    assert [part.isdecimal() for part in stanchion.__version__.split(".")] == [True] * 3


def test_dear_imports():
    """`import stanchion` loads nothing that is dear and that most never need."""
    program = f"import sys, stanchion; print([m for m in {DEAR!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_typed_tool_without_dear_imports():
    """Nor does making a tool, nor a call of it, load them."""
    program = f"""
import sys
import anyio, stanchion
server = stanchion.Server("test")
@server.tool
async def add(a: int, b: list[str] = []) -> dict[str, int]:
    return {{"a": a}}
message = b'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add",' \\
    b'"arguments":{{"a":1}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",' \\
    b'"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}'
async def main():
    async with server:
        reply = await server.handle(message, stanchion.Connection("memory"))
        assert b"structuredContent" in reply.body, reply.body
anyio.run(main)
print([m for m in {DEAR!r} if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
