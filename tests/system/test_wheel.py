"""The package as users get it: a wheel, in an environment of its own, away from the sources."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    source = tmp_path_factory.mktemp("source") / "npuprof"
    # A copy of what is tracked: building must not leave anything in the tree, nor take anything stray from it.
    names = (
        subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    )
    for name in filter(None, names):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "-o", str(out), str(source)], check=True, capture_output=True
    )
    [found] = out.glob("*.whl")
    return found


def test_the_wheel_holds_the_configuration_and_no_pyxrt(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        metadata = z.read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert "npuprof/config/default.yaml" in names
    assert "npuprof/config/line-profiles/v12.yaml" in names
    assert "collectors/base.py" in names
    assert not any(n.startswith(("tests", "config/")) for n in names)
    assert "pyxrt" not in metadata.split("\n\n")[0]


def test_it_works_where_only_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    env = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    subprocess.run([str(env / "bin/pip"), "install", "-q", "--disable-pip-version-check", str(wheel)], check=True)
    npuprof = str(env / "bin/npuprof")

    def call(*args: str) -> str:
        return subprocess.run([npuprof, *args], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert str(env) in call("config", "path").splitlines()[0]
    assert "campaign.repeats = 6" in call("config", "show")
    assert call("selftest").count("ok ") == 6
    done = subprocess.run(
        [npuprof, "run", "--rows", "2", "--repeats", "1", "--quiet"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode in (0, 4), done.stderr
    assert "reference transformer on the CPU, not an NPU" in done.stdout
