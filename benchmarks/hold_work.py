"""What a client of hold_soak.py does under the hold; on its own so that it starts quickly as a command, too."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path


def note(folder: str, **entry: object) -> None:
    """One line, appended in one write."""
    fd = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, json.dumps({"at": time.monotonic(), **entry}).encode() + b"\n")
    os.close(fd)


def is_working(pid: int) -> bool:
    """False once a process is gone or on its way out: the kernel then closes its descriptors, in an order of its own."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    exiting = 0x4
    return fields[0] not in "ZX" and not int(fields[6]) & exiting


def work(folder: str, client: int, number: int, seconds: float) -> None:
    witness = os.open(f"{folder}/witness", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = int(os.pread(witness, 20, 0) or 0)
        if is_working(other):
            note(folder, event="two holders", client=client, number=number, other=other)
        fcntl.flock(witness, fcntl.LOCK_EX)
    os.pwrite(witness, b"%-20d" % os.getpid(), 0)
    note(folder, event="in", client=client, number=number)
    time.sleep(seconds)
    note(folder, event="out", client=client, number=number)
    os.close(witness)


if __name__ == "__main__":
    _, where, who, ticket, long = sys.argv
    work(where, int(who), int(ticket), float(long))
