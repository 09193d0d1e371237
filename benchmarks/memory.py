"""The peak memory of a fresh Python process."""

from __future__ import annotations

import subprocess
import sys
import tempfile

# VmHWM begins anew with the process, which ru_maxrss does not: that one keeps what the parent had when it forked.
_PRINT = "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"


def peak_mb(code: str, data: bytes, times: int) -> float:
    """MB that `code` needed at most, with sys.argv[1] naming a file that holds `data` so many times."""
    with tempfile.NamedTemporaryFile() as f:
        for _ in range(times):
            f.write(data)
        f.flush()
        command = [sys.executable, "-c", f"{code}\n{_PRINT}", f.name]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024
