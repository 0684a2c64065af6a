"""Our names are those of the conventions, as far as a package has them."""

from __future__ import annotations

import pytest
from opentelemetry.semconv._incubating.attributes import (
    client_attributes,
    error_attributes,
    exception_attributes,
    gen_ai_attributes,
    jsonrpc_attributes,
    mcp_attributes,
    network_attributes,
    rpc_attributes,
)
from opentelemetry.semconv._incubating.metrics import mcp_metrics

from stanchion_middleware.signals import conventions

OFFICIAL = {
    conventions.METHOD: mcp_attributes.MCP_METHOD_NAME,
    conventions.VERSION: mcp_attributes.MCP_PROTOCOL_VERSION,
    conventions.SESSION: mcp_attributes.MCP_SESSION_ID,
    conventions.RESOURCE: mcp_attributes.MCP_RESOURCE_URI,
    conventions.REQUEST: jsonrpc_attributes.JSONRPC_REQUEST_ID,
    conventions.STATUS_CODE: rpc_attributes.RPC_RESPONSE_STATUS_CODE,
    conventions.ERROR_TYPE: error_attributes.ERROR_TYPE,
    conventions.OTHER: error_attributes.ErrorTypeValues.OTHER.value,
    conventions.EXCEPTION_TYPE: exception_attributes.EXCEPTION_TYPE,
    conventions.OPERATION: gen_ai_attributes.GEN_AI_OPERATION_NAME,
    conventions.TOOL: gen_ai_attributes.GEN_AI_TOOL_NAME,
    conventions.PROMPT: gen_ai_attributes.GEN_AI_PROMPT_NAME,
    conventions.TOOL_ARGUMENTS: gen_ai_attributes.GEN_AI_TOOL_CALL_ARGUMENTS,
    conventions.EXECUTE_TOOL: gen_ai_attributes.GenAiOperationNameValues.EXECUTE_TOOL.value,
    conventions.TRANSPORT: network_attributes.NETWORK_TRANSPORT,
    conventions.PROTOCOL: network_attributes.NETWORK_PROTOCOL_NAME,
    conventions.PROTOCOL_VERSION: network_attributes.NETWORK_PROTOCOL_VERSION,
    conventions.CLIENT_ADDRESS: client_attributes.CLIENT_ADDRESS,
    conventions.CLIENT_PORT: client_attributes.CLIENT_PORT,
    conventions.OPERATION_DURATION: mcp_metrics.MCP_SERVER_OPERATION_DURATION,
    conventions.SESSION_DURATION: mcp_metrics.MCP_SERVER_SESSION_DURATION,
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_name_is_the_conventions_own(name):
    """As OpenTelemetry's generated package has it, though a release may drop that."""
    assert name == OFFICIAL[name]


def test_the_transports_are_known_values():
    """Of the registry of `network.transport`."""
    known = {each.value for each in network_attributes.NetworkTransportValues}
    assert {each[conventions.TRANSPORT] for each in conventions.NETWORK.values()} <= known
