"""Instants as text: RFC 3339, UTC, with Z."""

from __future__ import annotations

from datetime import datetime, timezone


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch as `2026-11-10T15:02:11.123Z`."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
