"""What a request may make the service's user run: narrow, and each refusal says by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npuprof.model.request import Request


class Forbidden(Exception):
    """`rule` is the setting that would have to allow it."""

    def __init__(self, rule: str, text: str) -> None:
        self.rule = rule
        super().__init__(text)


def admit(request: Request, targets: Sequence[str], directories: Sequence[Path]) -> None:
    """Forbidden for a command, a factory that is not listed, or a file outside the directories allowed."""
    if request.spawn is not None:
        raise Forbidden("no spawn", "--spawn: the daemon starts no servers; start yours, or use npuprof run")
    if ":" in request.target and request.target not in targets:
        raise Forbidden("daemon.targets", f"--target {request.target}: is not listed in the setting daemon.targets")
    if request.plan is not None:
        _inside("--plan", request.plan, directories)
    kind, _, name = (request.log or "").partition(":")
    if kind in ("file", "unix", "fifo"):
        _inside("--log", name, directories)


def _inside(flag: str, name: str, directories: Sequence[Path]) -> None:
    """Links are followed first: what they lead to is what would be opened."""
    path = Path(name)
    if not path.is_absolute():
        raise Forbidden("daemon.directories", f"{flag} {name}: must be an absolute path for the daemon")
    real = Path(path).resolve()
    if not any(real.is_relative_to(d.resolve()) for d in directories):
        allowed = ", ".join(map(str, directories)) or "none are"
        raise Forbidden("daemon.directories", f"{flag} {name}: lies outside the setting daemon.directories ({allowed})")
