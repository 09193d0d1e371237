"""A target by the name given to --target."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from npuprof.errors import UsageProblem
from npuprof.targets.base import Target

if TYPE_CHECKING:
    from npuprof.targets.serve.target import LineSource

_METHODS = ("describe", "prepare", "run_step", "run_pass", "close")


@dataclass(frozen=True)
class Options:
    """What targets need of a request; `lines` opens the server's log, given its standard error if that is where it logs."""

    plan: str | None = None
    launch_stamps: bool = False
    url: str | None = None
    spawn: str | None = None
    logs_to_stderr: bool = False
    lines: Callable[[IO[bytes] | None], LineSource | None] = lambda stderr: None
    say: Callable[[str], None] = lambda text: None


def load_target(name: str, options: Options | None = None) -> Target:
    """`reference`, `xrt`, `serve`, or what MODULE:FACTORY returns, sought in the current folder first.

    UsageProblem if there is no such module or factory, or if what it returns is no target; whatever the factory itself
    raises comes through.
    """
    given = options or Options()
    if name == "reference":
        from npuprof.targets.reference.target import ReferenceTarget

        return ReferenceTarget()
    if name == "xrt":
        from npuprof.targets.xrt.target import make_xrt

        return make_xrt(str(given.plan), given.launch_stamps)
    if name == "serve":
        return _serve(given)
    module_name, _, factory_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as e:
        raise UsageProblem(
            f"--target {name}: no module named {e.name!r}; it is sought in {here} and on PYTHONPATH"
        ) from e
    factory = getattr(module, factory_name, None)
    if not callable(factory):
        raise UsageProblem(f"--target {name}: {module_name} has no callable {factory_name!r}")
    target = factory()
    missing = [m for m in _METHODS if not callable(getattr(target, m, None))]
    if missing:
        raise UsageProblem(f"--target {name}: what {factory_name} returns has no {missing[0]}(); see docs/targets.md")
    return target  # type: ignore[no-any-return]


def _serve(given: Options) -> Target:
    """The server is started, if it is ours to start, before its log is opened, and stopped if nothing comes of it."""
    from npuprof.servers.processes import Server
    from npuprof.targets.serve.target import ServeTarget

    server = Server(given.spawn, copied=given.logs_to_stderr) if given.spawn else None
    try:
        lines = given.lines(server.stderr if server else None)
        return ServeTarget(str(given.url), server, lines, given.say)
    except BaseException:
        if server is not None:
            server.stop()
        raise
