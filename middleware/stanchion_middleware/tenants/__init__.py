"""Tenants: who they are, where their records lie, and what is kept for them; for `MultiTenant`."""

from __future__ import annotations
