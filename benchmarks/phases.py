"""Analysing a trace: 40,000 events against a shell pipeline over two of the eleven, interleaved; a million's memory."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from memory import peak_mb

from npuprof.trace.analyse import analyse

EVENTS = 40_000
REPEATS = 9
CODE = "import sys; from npuprof.trace.analyse import analyse; analyse(open(sys.argv[1], 'rb'))"
# Submission and interrupt alone, paired line by line: what a script for the same device span does.
PIPELINE = r"""
egrep 'mbox_set_tail|mbox_irq_handle' "$1" | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) t = $i + 0
  if ($0 ~ /set_tail/) sent = t; else if (sent) { n++; sum += t - sent; sent = 0 } } END { printf "%.9f\n", sum / n }'
"""


def trace(jobs: int) -> str:
    """The current driver's eleven events a job."""
    lines = []
    at = 1688.0

    def say(task: str, after_us: float, event: str, payload: str) -> None:
        nonlocal at
        at += after_us * 1e-6
        lines.append(f"          {task} [000] ..... {at:.6f}: {event}: {payload}")

    for n in range(jobs):
        fence = f"fence=(context:41, seqno:{n + 1}), hwctx.3785.1 seq#:{n}"
        say("python-3785", 50, "amdxdna_debug_point", "python:0 job received")
        say("python-3785", 20, "amdxdna_debug_point", f"hwctx.3785.1:{n} job pushed")
        say("kworker/u9:1-77", 4, "xdna_job", f"{fence} job run, op=0")
        say("kworker/u9:1-77", 2, "mbox_set_tail", f"xdna_mailbox.99 id 0x{0x1D000000 | n % 256:x} opcode 0x18")
        say("kworker/u9:1-77", 2, "xdna_job_queue", f"hwctx.3785.1 seq#:{n} outstanding:1 sent to device")
        say("<idle>-0", 194, "mbox_irq_handle", "xdna_mailbox.99")
        say("kworker/u9:2-78", 5, "mbox_rx_worker", "xdna_mailbox.99")
        say("kworker/u9:2-78", 2, "xdna_job_queue", f"hwctx.3785.1 seq#:{n} outstanding:0 job complete")
        say("kworker/u9:2-78", 2, "mbox_set_head", f"xdna_mailbox.99 id 0x{0x1D000000 | n % 256:x} opcode 0x18")
        say("kworker/u9:2-78", 2, "xdna_job", f"{fence} job free, op=0")
        say("kworker/u9:2-78", 1, "amdxdna_debug_point", f"hwctx.3785.1:{n} job release")
    return "\n".join(lines) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.txt"
        text = trace(EVENTS // 11 + 1)
        file.write_text(text)
        ours, shell = [], []
        for _ in range(REPEATS):
            begin = time.monotonic()
            with file.open("rb") as stream:
                found = analyse(stream)
            ours.append(time.monotonic() - begin)
            begin = time.monotonic()
            subprocess.run(["sh", "-c", PIPELINE, "sh", str(file)], check=True, capture_output=True)
            shell.append(time.monotonic() - begin)
        span = f"{median(ours):.3f} s ({min(ours):.3f} to {max(ours):.3f})"
        print(f"{found['events']} events, {found['launches'][0]['n']} jobs: {span}")
        ratio = median(ours) / median(shell)
        print(f"egrep and awk over two of the eleven events: {median(shell):.3f} s; ours / theirs {ratio:.2f}")
        small_mb, large_mb = (peak_mb(CODE, text.encode(), times) for times in (1, 25))
        print(f"peak memory: {small_mb:.0f} MB for 40,000 events, {large_mb:.0f} MB for a million")


if __name__ == "__main__":
    main()
