"""Text to passes: the `[bs]` grammar and other engines' line profiles."""

from npuprof.lines.bs import MARKER, format_line, parse_line
from npuprof.lines.profile import LineProfile, ProfileError, load_profiles
from npuprof.lines.scan import scan
from npuprof.lines.unreadable import Unreadable

__all__ = [
    "MARKER",
    "LineProfile",
    "ProfileError",
    "Unreadable",
    "format_line",
    "load_profiles",
    "parse_line",
    "scan",
]
