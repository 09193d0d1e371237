"""Re-deriving stated figures from one another: a record's, a replay's, a verdict's, or those of a pasted text."""
