"""The official conformance suite passes on one long-running server, with each HTTP parser.

Every scenario of both versions is listed, and a new one of a later suite fails until it is.
"""

from __future__ import annotations

import pytest

LEGACY = "2025-11-25"
MODERN = "2026-07-28"

IN_BOTH_ERAS = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "completion-complete",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)

ROUNDS = (
    "basic-elicitation",
    "basic-sampling",
    "basic-list-roots",
    "request-state",
    "multiple-input-requests",
    "multi-round",
    "missing-input-response",
    "result-type",
    "unsupported-methods",
    "tampered-state",
    "capability-check",
    "ignore-extra-params",
    "validate-input",
    "non-tool-request",
)
"""The scenarios of multi-round requests."""

SCENARIOS = [
    *[(LEGACY, scenario) for scenario in IN_BOTH_ERAS],
    (LEGACY, "server-initialize"),
    (LEGACY, "ping"),
    (LEGACY, "server-session-lifecycle"),
    (LEGACY, "logging-set-level"),
    (LEGACY, "tools-call-with-logging"),
    (LEGACY, "resources-subscribe"),
    (LEGACY, "resources-unsubscribe"),
    (LEGACY, "server-sse-polling"),
    (MODERN, "sep-2164-resource-not-found"),
    (MODERN, "caching"),
    (LEGACY, "tools-call-sampling"),
    (LEGACY, "tools-call-elicitation"),
    (LEGACY, "elicitation-sep1034-defaults"),
    (LEGACY, "elicitation-sep1330-enums"),
    *[(MODERN, scenario) for scenario in IN_BOTH_ERAS],
    *[(MODERN, f"input-required-result-{scenario}") for scenario in ROUNDS],
    (MODERN, "http-header-validation"),
    (MODERN, "http-custom-header-server-validation"),
]

WIRE_CHECK = "wire-schema-valid"
"""The check that every message fits the schema; each scenario has it beside its own."""

INFORMATIVE = {
    # tools/list is answered with JSON, which the suite notes: it would rather see streams.
    "server-sse-streams-functional",
    # What was sent and received, one after the other.
    "outgoing-request",
    "incoming-response",
    "incoming-sse-event",
    "stream-closed",
}
"""Checks that state a fact and require nothing."""

STATELESS_REQUIRED = {
    "sep-2575-request-meta-invalid-missing-meta",
    "sep-2575-request-meta-invalid-missing-protocol-version",
    "sep-2575-request-meta-invalid-missing-client-capabilities",
    "sep-2575-request-meta-client-info-optional",
    "sep-2575-http-server-meta-invalid-400",
    "sep-2575-server-implements-discover",
    "sep-2575-server-identifies-in-result-meta",
    "sep-2575-server-declares-prompts-in-discover",
    "sep-2575-discover-capabilities-match-handlers",
    "sep-2575-server-unsupported-version-error",
    "sep-2575-http-server-unsupported-version-400",
    "sep-2575-http-server-header-mismatch-400",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-method-not-found-404-initialize",
    "sep-2575-http-server-method-not-found-404-ping",
    "sep-2575-http-server-method-not-found-404-logging-setlevel",
    "sep-2575-http-server-method-not-found-404-resources-subscribe",
    "sep-2575-http-server-method-not-found-404-resources-unsubscribe",
    "sep-2575-http-server-method-not-found-404",
    "sep-2575-http-server-error-jsonrpc-id",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "sep-2575-http-server-no-independent-requests-on-stream",
}
"""The checks of `server-stateless` that must be made."""

pytestmark = pytest.mark.timeout(1500)
"""The first test waits for the installation and two runs, each with a limit of its own."""


@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_a_required_scenario_passes(reports, version, scenario):
    """Every check of the scenario succeeds; a skipped one counts as a failure."""
    checks = reports[version][scenario]
    failed = [
        check
        for check in checks
        if check.status != "SUCCESS" and not (check.status == "INFO" and check.id in INFORMATIVE)
    ]
    assert not failed, "\n".join(map(str, failed))
    assert any(check.id != WIRE_CHECK for check in checks)


def test_the_required_checks_of_server_stateless_pass(reports):
    """Every check is made and succeeds."""
    checks = reports[MODERN]["server-stateless"]
    failed = [check for check in checks if check.status != "SUCCESS"]
    assert not failed, "\n".join(map(str, failed))
    assert {check.id for check in checks} >= STATELESS_REQUIRED


@pytest.mark.parametrize(("version", "scenarios"), [(LEGACY, 33), (MODERN, 40)])
def test_every_scenario_is_required(reports, version, scenarios):
    """None of the suite's is left out here."""
    required = {scenario for of, scenario in SCENARIOS if of == version}
    if version == MODERN:
        required.add("server-stateless")

    assert set(reports[version]) == required
    assert len(required) == scenarios
