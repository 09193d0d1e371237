"""The fixture of all verbs' tests."""

from verbs import verb

__all__ = ["verb"]
