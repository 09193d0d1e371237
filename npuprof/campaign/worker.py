"""The timed process: loads the target, obeys commands on standard input, reports on standard output, one JSON a line.

Commands: {"do": "parity", "rows", "start"}, {"do": "visits", "visits": [...]}, {"do": "stop"}, {"do": "close"}.
Reports: ready, parity, pass, idle, closed, error. Whatever the target itself prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TextIO

from collectors.serve_log import ServeLog
from npuprof.campaign.clock import SystemClock
from npuprof.campaign.counters import npu_counters, process_counters
from npuprof.campaign.execute import Executor
from npuprof.campaign.schedule import Visit
from npuprof.campaign.under import die_with_parent
from npuprof.errors import DeviceHung, NpuprofError, UsageProblem
from npuprof.lines import load_profiles
from npuprof.model.passes import Pass
from npuprof.targets.base import ChecksParity, Target
from npuprof.targets.load import Options, load_target


class Worker:
    """One target, driven by the commands that arrive on `commands` (a descriptor)."""

    def __init__(self, target: Target, commands: int, reports: TextIO) -> None:
        self._target = target
        self._commands = commands
        self._reports = reports
        self._pending = b""
        self._stop = False
        self._info = target.describe()
        counters = npu_counters if self._info.on_npu else process_counters
        self._executor = Executor(target, SystemClock(), self._report_pass, self._stop_asked, counters)

    def serve(self) -> None:
        """Until told to close, or until the commands end."""
        own = getattr(self._target, "own_pids", None) or [os.getpid()]
        self.report("ready", pids=own, target=self._info.model_dump(), parity=isinstance(self._target, ChecksParity))
        while (command := self._next(block=True)) is not None and command["do"] != "close":
            self._obey(command)
        self.report("closed")

    def report(self, event: str, **data: Any) -> None:
        self._reports.write(json.dumps({"event": event, **data}) + "\n")
        self._reports.flush()

    def _obey(self, command: dict[str, Any]) -> None:
        if command["do"] == "parity":
            rows, start = command["rows"], command["start"]
            assert isinstance(self._target, ChecksParity)
            outcome = self._target.check_parity(rows, start)
            self.report("parity", **asdict(outcome))
        elif command["do"] == "visits":
            self._stop = False
            done = self._executor.run(Visit(**v) for v in command["visits"])
            self.report("idle", done=done)

    def _report_pass(self, measured: Pass) -> None:
        self.report("pass", measured=asdict(measured))

    def _stop_asked(self) -> bool:
        while not self._stop and (command := self._next(block=False)) is not None:
            self._stop = command["do"] in ("stop", "close")
        return self._stop

    def _next(self, *, block: bool) -> dict[str, Any] | None:
        while b"\n" not in self._pending:
            if not block and not select.select([self._commands], [], [], 0)[0]:
                return None
            chunk = os.read(self._commands, 65536)
            if not chunk:
                return {"do": "close"}
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        command: dict[str, Any] = json.loads(line)
        return command


def _options(given: dict[str, Any], reports: TextIO) -> Options:
    """The request's part for targets; a server's log is opened here, since targets do not know collectors."""

    def say(text: str) -> None:
        reports.write(json.dumps({"event": "note", "text": text}) + "\n")
        reports.flush()

    def lines(stderr: IO[bytes] | None) -> ServeLog | None:
        if given["log"] is None:
            return None
        profiles = list(load_profiles(Path(f) for f in given["profiles"]).values())
        try:
            return ServeLog(given["log"], profiles, stderr=stderr)
        except (OSError, ValueError) as e:
            raise UsageProblem(f"--log {given['log']}: {getattr(e, 'strerror', None) or e}") from e

    return Options(
        given["plan"], given["launch_stamps"], given["url"], given["spawn"], given["log"] == "stderr", lines, say
    )


def main() -> int:
    """`python -m npuprof.campaign.worker TARGET PARENT OPTIONS`: 0 when closed, 2 for a wrong target, 3 if it failed."""
    name, parent, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    if parent:
        die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    target: Target | None = None
    try:
        target = load_target(name, _options(options, reports))
        Worker(target, 0, reports).serve()
        return 0
    except Exception as e:  # noqa: BLE001 - whatever a target raises ends the campaign, with its words reported
        traceback.print_exc()
        usage = isinstance(e, UsageProblem)
        text = str(e) if isinstance(e, NpuprofError) else f"{type(e).__name__}: {e}"
        reports.write(json.dumps({"event": "error", "usage": usage, "text": text}) + "\n")
        reports.flush()
        if isinstance(e, DeviceHung):
            os._exit(DeviceHung.exit_code)
        return 2 if usage else 3
    finally:
        if target is not None:
            target.close()


if __name__ == "__main__":
    sys.exit(main())
