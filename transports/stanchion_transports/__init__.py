"""The ways in: Streamable HTTP, stdio and memory. Each is a module with one noun.

This package imports only what `stanchion` exports.
"""
