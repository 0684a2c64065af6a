"""What `Telemetry` is made of: the traces and metrics of OpenTelemetry, as MCP has them.

conventions   the names, as tables
propagation   which trace a request belongs to, as its `_meta` says
operation     what is the same for all calls of one target, and how many targets are told apart
wire, route   how calls come, and what is the same for all of one operation that come so
errors        how calls fail, and which of that is the server's fault
description   what is told of one call
spans         a call as a span
metrics       all calls as numbers
published     what servers and layers measure of themselves, as instruments
failures      what is said where telling fails
"""
