"""Statistics for few, expensive passes on a drifting machine: pure functions, one a formula (docs/statistics.md)."""
