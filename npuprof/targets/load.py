"""A target by the name given to --target."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from npuprof.errors import UsageProblem
from npuprof.targets.base import Target

_METHODS = ("describe", "prepare", "run_step", "run_pass", "close")


def load_target(name: str, plan: str | None = None, launch_stamps: bool = False) -> Target:
    """`reference`, `xrt` with its plan, or what MODULE:FACTORY returns, sought in the current folder first.

    UsageProblem if there is no such module or factory, or if what it returns is no target; whatever the factory itself
    raises comes through.
    """
    if name == "reference":
        from npuprof.targets.reference.target import ReferenceTarget

        return ReferenceTarget()
    if name == "xrt":
        from npuprof.targets.xrt.target import make_xrt

        return make_xrt(str(plan), launch_stamps)
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
