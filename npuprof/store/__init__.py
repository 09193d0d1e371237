"""Run files: written whole or not at all, found by id, prefix, `latest` or path."""
