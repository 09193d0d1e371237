"""A client of the stand-in driver: does what standard input says, one word a line, and prints one JSON a line.

Words: snapshot, blind (a snapshot that knows no own process), state, context (creates one), close.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import struct
import sys

from collectors.base import Own
from collectors.evidence import Evidence
from collectors.kernel.rules import load_rules
from npuprof.settings import built_in

CREATE_HWCTX = 0xC0386440


def create_context() -> int:
    """A context that stays until this process ends; returns its descriptor."""
    fd = os.open("/dev/accel/accel0", os.O_RDWR)
    qos = ctypes.create_string_buffer(struct.pack("=6I", 0, 0, 0, 0, 0, 0x180), 24)
    request = bytearray(struct.pack("=QQQ8I", 0, 0, ctypes.addressof(qos), 0, 0, 0, 4, 0, 0, 0, 0))
    fcntl.ioctl(fd, CREATE_HWCTX, request, True)
    return fd


def main() -> None:
    deadline = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    evidence = Evidence("accel0", load_rules([built_in() / "kernel-messages.yaml"]), deadline_s=deadline)
    for word in sys.stdin:
        answer: object = None
        if word.strip() == "context":
            answer = create_context()
        elif word.strip() == "state":
            answer = evidence.state().model_dump()
        elif word.strip() in ("snapshot", "blind"):
            pids = frozenset({os.getpid()}) if word.strip() == "snapshot" else frozenset()
            answer = {k: r.model_dump() for k, r in evidence.snapshot(Own(pids), on_npu=True).items()}
        print(json.dumps(answer), flush=True)
    # A call that hangs has a thread of its own, which must not keep this process.
    os._exit(0)


if __name__ == "__main__":
    main()
