"""A fake target whose launches call the fake driver's trace functions, which uprobes turn into events. Its device sleeps."""

from __future__ import annotations

import ctypes
import fcntl
import os
import termios
import time

from npuprof.model.passes import Terms
from npuprof.model.record import TargetInfo
from npuprof.targets.base import Timing

LAUNCHES = 4
DEVICE_S = 0.002


class Traced:
    """Four launches a pass, each of a queue, a doorbell, a device that sleeps 2 ms, an interrupt and a completion."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(os.environ["FAKE_DRIVER"])
        self._context = f"hwctx.{os.getpid()}.1".encode()
        self._seq = 0
        self._pipe = os.pipe()
        self._silent = bool(os.environ.get("FAKE_DRIVER_SILENT"))
        self._timeout_at = int(os.environ.get("FAKE_DRIVER_TIMEOUT_AT", "-1"))

    def describe(self) -> TargetInfo:
        return TargetInfo(kind="fake", device="fake driver events, no device", backend="uprobes", simulated=True)

    def prepare(self, rows: int, start: int) -> None:
        pass

    def run_step(self) -> Timing:
        return self.run_pass()

    def run_pass(self) -> Timing:
        now = time.monotonic_ns
        begin = now()
        stamps = [self._launch(now) for _ in range(LAUNCHES)]
        end = now()
        wait = sum(s[5] - s[4] for s in stamps) / 1e6
        submit = sum(s[4] - s[1] for s in stamps) / 1e6
        host = (end - begin) / 1e6 - wait - submit
        terms = Terms(0.0, 0.0, submit, wait, 0.0, host, 0.0)
        return Timing(begin, end, terms, 0.0, LAUNCHES, extra={"launch_stamps_ns": [list(s) for s in stamps]})

    def _launch(self, now):  # type: ignore[no-untyped-def]
        d, context, seq = self._driver, self._context, self._seq
        self._seq += 1
        t0 = now()
        if not self._silent:
            d.fake_debug_point(b"python", 0, b"job received")
            d.fake_job(context, seq, b"job run")
            d.fake_set_tail(b"xdna_mailbox", 99, 0x1D000000 | seq % 256, 0x18)
            d.fake_debug_point(context, seq, b"job pushed")
        t3 = now()
        time.sleep(DEVICE_S)
        if self._silent:
            pass
        elif seq == self._timeout_at:
            d.fake_job(context, seq, b"job timedout")
            d.fake_job(context, seq, b"job free")
        else:
            d.fake_irq(b"xdna_mailbox", 99)
            d.fake_job_queue(context, seq, b"job complete")
            # Back from an ioctl, as XRT's wait for a syncobj is.
            fcntl.ioctl(self._pipe[0], termios.FIONREAD, b"\0" * 4)
        t4 = now()
        return ("gemm", t0, t0, t0, t3, t4, t4)

    def close(self) -> None:
        for fd in self._pipe:
            os.close(fd)


def make() -> Traced:
    return Traced()
