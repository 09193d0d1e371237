"""Pass lines a second against a bare loop of one compiled regex and floats, interleaved; memory on 10 and 100 MB."""

from __future__ import annotations

import io
import re
import time
from statistics import median

from memory import peak_mb

from npuprof.lines import format_line, scan
from npuprof.model.passes import Terms

LINES = 20_000
CODE = "import sys; from npuprof.lines import scan\nfor _ in scan(open(sys.argv[1], 'rb')): pass"
BARE = re.compile(
    rb"\[bs\] M= *(\d+) start= *(\d+) wall= ([\d.]+) \| embed= ([\d.]+) \| layers= ([\d.]+) \(gemm pack= ([\d.]+) ql= ([\d.]+)"
    rb" wait= ([\d.]+) rb= ([\d.]+) sum= ([\d.]+) host= ([\d.]+) n=(\d+)\) \| epilogue= ([\d.]+) \(head= ([\d.]+)"
    rb" sum= ([\d.]+) host= ([\d.]+)\)"
)


def log(lines: int) -> bytes:
    rows = []
    for i in range(lines):
        wait = 870 + i % 97 / 10
        terms = Terms(5.6, 0.1, 48.55, wait, 1.0, 47.6, 87.1)
        rows.append(format_line(2 + i % 16, 0, (terms.total() or 0) + 0.3, terms, 84.4, 112))
    return ("\n".join(rows) + "\n").encode()


def bare(data: bytes) -> int:
    n = 0
    for line in io.BytesIO(data):
        found = BARE.search(line)
        if found:
            [float(g) for g in found.groups()]
            n += 1
    return n


def ours(data: bytes) -> int:
    return sum(1 for _ in scan(io.BytesIO(data)))


def main() -> None:
    data = log(LINES)
    assert bare(data) == ours(data) == LINES
    times: dict[str, list[float]] = {"bare": [], "ours": []}
    for order in (("bare", "ours"), ("ours", "bare")) * 5:
        for name in order:
            begin = time.perf_counter()
            (bare if name == "bare" else ours)(data)
            times[name].append(time.perf_counter() - begin)
    a, b = median(times["bare"]), median(times["ours"])
    speed = f"speed {a / b:.2f} of it (to reach: 0.2)"
    print(f"parsing: bare loop {a / LINES * 1e6:.1f} us a line, npuprof {b / LINES * 1e6:.1f} us; {speed}")
    size = len(data) / 1e6
    small, large = peak_mb(CODE, data, 2), peak_mb(CODE, data, 26)
    print(f"memory: peak {small:.0f} MB on a log of {2 * size:.0f} MB, {large:.0f} MB on {26 * size:.0f} MB")


if __name__ == "__main__":
    main()
