"""How long `npuprof --help` takes, beside the interpreter's own start, interleaved."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median


def main() -> None:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "npuprof --help": [str(Path(sys.executable).with_name("npuprof")), "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(20):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - begin)
    bare, ours = (median(t) for t in times.values())
    print(
        f"start-up: npuprof --help {ours:.3f} s (to reach: 0.2), python -c pass {bare:.3f} s, ratio {ours / bare:.1f}"
    )


if __name__ == "__main__":
    main()
