"""Where this machine's XRT and pyxrt are, and why they cannot be used if they cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PYXRT_PLACES = (
    "opt/xilinx/xrt/python",
    "usr/lib/python3/dist-packages",
    "usr/lib/python3*/site-packages",
    "usr/lib64/python3*/site-packages",
    "usr/local/lib/python3*/dist-packages",
    "opt/xilinx/xrt/lib/python3*/site-packages",
)
_LIBRARY_PLACES = ("opt/xilinx/xrt/lib", "opt/xilinx/xrt/lib64", "usr/lib/*", "usr/lib64", "usr/lib", "usr/local/lib")
_CORE = "libxrt_coreutil.so*"
_IMPORT_TIMEOUT_S = 60

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True)
class Found:
    """`folders` to put before the Python path, `libraries` before the library path; `problem` and what mends it."""

    folders: list[str]
    libraries: list[str]
    detail: str
    problem: str = ""
    mend: str = ""

    def environment(self) -> dict[str, str]:
        """This process's environment with XRT's paths in it, for the timed process."""
        env = dict(os.environ)
        for name, extra in (("PYTHONPATH", self.folders), ("LD_LIBRARY_PATH", self.libraries)):
            parts = [*extra, *filter(None, [env.get(name)])]
            if parts:
                env[name] = os.pathsep.join(parts)
        return env


def find_pyxrt(root: Path = Path("/")) -> Found:
    """Looks where distributions and AMD put it, and imports it in a process of its own, since that may crash."""
    libraries = _libraries(root)
    trial = _try_import(Found([], libraries, ""))
    if not trial:
        return Found([], libraries, f"pyxrt for Python {OWN}, on the Python path")
    candidates = sorted({p for place in _PYXRT_PLACES for p in root.glob(f"{place}/pyxrt*.so")})
    if not candidates and ("No module named 'pyxrt'" in trial or "has no attribute 'device'" in trial):
        mend = "sudo apt-get install python3-xrt"
        return Found([], libraries, "", "no pyxrt was found", mend)
    tags = {p: m[1] if (m := re.search(r"cpython-(\d+)", p.name)) else "" for p in candidates}
    fitting = [p for p, t in tags.items() if t in ("", OWN.replace(".", ""))]
    if candidates and not fitting:
        versions = sorted({f"{t[0]}.{t[1:]}" for t in tags.values()})
        problem = f"{candidates[0]} is built for Python {', '.join(versions)}, and this is {OWN}"
        return Found([], libraries, "", problem, f"python{versions[-1]} -m venv --system-site-packages .venv")
    for path in fitting:
        found = Found([str(path.parent)], libraries, f"{path} for Python {OWN}")
        trial = _try_import(found)
        if not trial:
            return found
    return Found([], libraries, "", *_explained(trial))


def _libraries(root: Path) -> list[str]:
    """Folders with XRT's core library that the loader does not search by itself."""
    found = [str(p) for place in _LIBRARY_PLACES for p in root.glob(place) if list(p.glob(_CORE))]
    return [f for f in found if f.startswith(str(root / "opt")) or root != Path("/")]


def has_library(root: Path = Path("/")) -> str | None:
    """XRT's core library, if it is anywhere."""
    return next((str(p) for place in _LIBRARY_PLACES for p in sorted(root.glob(f"{place}/{_CORE}"))), None)


def _try_import(found: Found) -> str:
    """The last line of what importing said; empty if it went well."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import pyxrt; pyxrt.device"],
            env=found.environment(),
            capture_output=True,
            text=True,
            timeout=_IMPORT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"importing pyxrt did not end within {_IMPORT_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"importing pyxrt crashed with signal {-done.returncode}"
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"


def _explained(trial: str) -> tuple[str, str]:
    if library := re.search(r"(\S+\.so\S*): cannot open shared object file", trial):
        mend = "install XRT's libraries, or add their folder: export LD_LIBRARY_PATH=/opt/xilinx/xrt/lib"
        return f"pyxrt is there and its library {library[1]} is not", mend
    if "compiled for Python" in trial or "undefined symbol: _Py" in trial or "Python version mismatch" in trial:
        return (
            f"pyxrt is built for another Python than {OWN}: {trial}",
            "use the system's python3 for npuprof's environment",
        )
    return f"pyxrt cannot be imported: {trial}", "reinstall XRT and its Python binding"


def examine(root: Path = Path("/")) -> list[dict[str, str]]:
    """XRT and pyxrt as `doctor` reports them."""
    library = has_library(root)
    smi = "" if shutil.which("xrt-smi") else ", without xrt-smi on the PATH"
    xrt = (
        {"name": "xrt", "status": "ok", "detail": f"{library}{smi}", "next": ""}
        if library
        else {
            "name": "xrt",
            "status": "missing",
            "detail": "no XRT library was found",
            "next": "sudo apt-get install libxrt-npu2",
        }
    )
    found = find_pyxrt(root)
    status = "missing" if found.problem else "ok"
    return [xrt, {"name": "pyxrt", "status": status, "detail": found.problem or found.detail, "next": found.mend}]
