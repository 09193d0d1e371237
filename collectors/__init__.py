"""Read-only sources of evidence about a campaign's window: one a file, each quiet."""
