"""The ways in: Streamable HTTP, HTTP+SSE, WebSocket, stdio and memory.

Each is a module with one noun. This package imports only what `stanchion` exports.
"""
