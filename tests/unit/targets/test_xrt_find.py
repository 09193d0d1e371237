"""Finding pyxrt, and telling apart why it cannot be used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npuprof.targets.xrt import find


def put(root: Path, name: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    return file


def says(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """What importing pyxrt will say, call by call; empty for a good import."""
    answers = iter(texts)
    monkeypatch.setattr(find, "_try_import", lambda found: next(answers))


def test_nothing_is_there(tmp_path: Path) -> None:
    found = find.find_pyxrt(tmp_path)
    assert found.problem == "no pyxrt was found"
    assert "apt-get install python3-xrt" in found.mend
    checks = {c["name"]: c for c in find.examine(tmp_path)}
    assert [checks[n]["status"] for n in ("xrt", "pyxrt")] == ["missing", "missing"]
    assert all(c["next"] for c in checks.values())


def test_a_build_for_another_python_is_told_with_what_mends_it(tmp_path: Path) -> None:
    other = "3.9" if find.OWN != "3.9" else "3.10"
    put(tmp_path, f"opt/xilinx/xrt/python/pyxrt.cpython-{other.replace('.', '')}-x86_64-linux-gnu.so")
    found = find.find_pyxrt(tmp_path)
    assert f"is built for Python {other}, and this is {find.OWN}" in found.problem
    assert found.mend == f"python{other} -m venv --system-site-packages .venv"


def test_where_amd_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = find.OWN.replace(".", "")
    put(tmp_path, f"opt/xilinx/xrt/python/pyxrt.cpython-{own}-x86_64-linux-gnu.so")
    library = put(tmp_path, "opt/xilinx/xrt/lib/libxrt_coreutil.so.2")
    says(monkeypatch, "No module named 'pyxrt'", "")
    found = find.find_pyxrt(tmp_path)
    assert not found.problem
    env = found.environment()
    assert env["PYTHONPATH"].startswith(str(tmp_path / "opt/xilinx/xrt/python"))
    assert env["LD_LIBRARY_PATH"].startswith(str(library.parent))
    assert find.has_library(tmp_path) == str(library)
    says(monkeypatch, "")
    assert {c["status"] for c in find.examine(tmp_path)} == {"ok"}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            "ImportError: libxrt_coreutil.so.2: cannot open shared object file",
            "its library libxrt_coreutil.so.2 is not",
        ),
        ("ImportError: Python version mismatch: module was compiled for Python 3.9", "built for another Python"),
        ("ImportError: file too short", "pyxrt cannot be imported: ImportError: file too short"),
        ("importing pyxrt crashed with signal 11", "crashed with signal 11"),
    ],
)
def test_why_an_import_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, problem: str) -> None:
    own = find.OWN.replace(".", "")
    put(tmp_path, f"usr/lib/python3/dist-packages/pyxrt.cpython-{own}-x86_64-linux-gnu.so")
    says(monkeypatch, said, said)
    found = find.find_pyxrt(tmp_path)
    assert problem in found.problem
    assert found.mend


def test_an_import_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*args: object, **more: object) -> None:
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(subprocess, "run", hang)
    assert "did not end within" in find._try_import(find.Found([], [], ""))
