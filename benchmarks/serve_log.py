"""From a written pass line to the reader of it, and what a busy server's other output costs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from collectors.serve_log import ServeLog
from npuprof.lines import format_line
from npuprof.model.passes import Terms

LINE = format_line(5, 0, 1067.9, Terms(5.6, 0.1, 48.55, 878.0, 1.0, 47.6, 87.1), 84.4, 112) + "\n"
OTHER = "2026-11-10T15:02:11 INFO server request served in 12 ms, 200 OK, slot 0, tokens 128, nothing to see\n"
LINES = 100
SECONDS = 5.0
PER_SECOND = 2000


def latency(path: Path, log: ServeLog) -> None:
    found = []
    with path.open("a", buffering=1) as f:
        for i in range(LINES):
            time.sleep(0.013 + 0.0007 * (i % 20))
            written = time.monotonic_ns()
            f.write(LINE)
            seen = log.take(5)
            assert seen is not None
            found.append((time.monotonic_ns() - written) / 1e6)
    print(
        f"written line to reader: median {median(found):.1f} ms, largest {max(found):.1f} ms of {LINES} (to reach: 100)"
    )


def cost(path: Path) -> None:
    """CPU time of this process's reading thread while a writer in another process logs other lines."""
    code = (
        "import sys, time\nf = open(sys.argv[1], 'a', buffering=1)\nend = time.monotonic() + float(sys.argv[3])\n"
        "while time.monotonic() < end:\n    f.write(sys.argv[2] * 20); time.sleep(20 / int(sys.argv[4]))\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(path), OTHER, str(SECONDS), str(PER_SECOND)])
    begin, wall = time.process_time(), time.monotonic()
    writer.wait()
    used, passed = time.process_time() - begin, time.monotonic() - wall
    size = path.stat().st_size / passed / 1e6
    print(f"a busy server's other output ({size:.2f} MB/s): {100 * used / passed:.2f} % of a core (to reach: 1)")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log"
        path.touch()
        log = ServeLog(f"file:{path}")
        latency(path, log)
        cost(path)
        log.close()
        for thread in threading.enumerate():
            if thread.name == "serve-log":
                thread.join(1)


if __name__ == "__main__":
    main()
