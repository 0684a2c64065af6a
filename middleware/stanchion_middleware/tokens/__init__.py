"""Tokens: one file for each way to verify one, and what those share."""
