"""Evidence: classing a million foreign lines against a bare loop, interleaved, and its memory; one snapshot of everything."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from memory import peak_mb

from collectors.base import Own
from collectors.evidence import Evidence
from collectors.kernel.report import report_file
from collectors.kernel.rules import load_rules
from npuprof.settings import built_in

CODE = """import sys
from collectors.kernel.report import report_file
from collectors.kernel.rules import load_rules
from npuprof.settings import built_in
report_file(open(sys.argv[1], 'rb'), load_rules([built_in() / 'kernel-messages.yaml']))"""
RULES = load_rules([built_in() / "kernel-messages.yaml"])
KINDS = (
    b"[%12.6f] usb 3-2: new high-speed USB device",
    b"[%12.6f] EXT4-fs (vda): mounted filesystem",
    b"[%12.6f] nvme 0000:01:00.0: 16/0/0 queues x",
    b"[%12.6f] audit: type=1400 apparmor=STATUS x",
)


def foreign(lines: int) -> bytes:
    return b"".join(KINDS[i % len(KINDS)] % (i / 1000) + b"\n" for i in range(lines))


def bare(data: bytes) -> int:
    return sum(b"amdxdna" in line for line in io.BytesIO(data))


def ours(data: bytes) -> int:
    count: int = report_file(io.BytesIO(data), RULES)["count"]
    return count


def snapshots(device: str, what: str) -> None:
    """The first one opens the log from boot on, the later ones read what is new."""
    evidence = Evidence(device, RULES)
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        evidence.snapshot(Own(frozenset({os.getpid()})), on_npu=True)
        times.append(1000 * (time.perf_counter() - begin))
    print(
        f"snapshot of all collectors, {what}: first {times[0]:.0f} ms, then median {median(times[1:]):.0f} ms (to reach: 150)"
    )


def main() -> None:
    if sys.argv[1:] == ["--standin"]:
        snapshots("accel0", "stand-in driver fakexdna")
        return
    data = foreign(1_000_000)
    assert bare(data) == ours(data) == 0
    times: dict[str, list[float]] = {"bare": [], "ours": []}
    for order in (("bare", "ours"), ("ours", "bare")) * 3:
        for name in order:
            begin = time.perf_counter()
            (bare if name == "bare" else ours)(data)
            times[name].append(time.perf_counter() - begin)
    a, b = median(times["bare"]), median(times["ours"])
    size = len(data) / 1e6
    print(
        f"a million foreign lines ({size:.0f} MB): bare loop {a:.2f} s, npuprof {b:.2f} s, ratio {b / a:.2f} (to reach: 5)"
    )
    print(
        f"memory: peak {peak_mb(CODE, data, 1):.0f} MB on {size:.0f} MB, {peak_mb(CODE, data, 3):.0f} MB on {3 * size:.0f} MB"
    )
    standin()


def standin() -> None:
    """The same in a process under the stand-in driver, built for the occasion."""
    source = Path(__file__).parents[1] / "tests/fakes/fakexdna"
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["make", "-C", str(source), f"O={out}", "all"], check=True, capture_output=True)
        env = {**os.environ, "LD_PRELOAD": f"{out}/libfakexdna.so"}
        subprocess.run([sys.executable, __file__, "--standin"], env=env, check=True)


if __name__ == "__main__":
    main()
