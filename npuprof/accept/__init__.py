"""Acceptance: what a drafter's proposals are worth to a target, counted by rules that are printed by name."""
