"""Every benchmark, one after the other: `make benchmarks`. docs/benchmarks.md holds what they printed, and on what."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from npuprof.campaign.provenance import provenance

HERE = Path(__file__).parent
COMMANDS = (
    ["startup.py"],
    ["parsing.py"],
    ["harness.py"],
    ["acceptance.py"],
    ["daemon.py"],
    ["phases.py"],
    ["hold_soak.py", "--kills", "500"],
    ["coverage.py", "--campaigns", "600"],
)


def main() -> None:
    host = provenance()["host"]
    print(
        f"{host['cpu']}, {host['cpus']} CPUs, kernel {host['kernel']}, Python {platform.python_version()}\n", flush=True
    )
    for command in COMMANDS:
        print(f"$ python benchmarks/{' '.join(command)}", flush=True)
        subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], check=True)
        print(flush=True)


if __name__ == "__main__":
    main()
