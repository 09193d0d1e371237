"""The campaign's end of the timed process: starts it under the hold, sends commands, reads reports."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from npuprof.campaign.hold import Held
from npuprof.campaign.schedule import Visit
from npuprof.campaign.under import die_with_parent
from npuprof.errors import Busy, DeviceProblem, NpuprofError, UsageProblem
from npuprof.model.passes import Pass
from npuprof.model.record import TargetInfo
from npuprof.model.request import Request

_PATIENCE_S = 120.0
_PASS = TypeAdapter(Pass)


class TimedProcess:
    """`prefix` is a site's own hold command, put before the process so that it runs under that hold instead."""

    def __init__(
        self,
        request: Request,
        held: Held | None,
        log: Path,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        profiles: Sequence[Path] = (),
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.log = log
        self.own_pids: frozenset[int] = frozenset()
        self._note = note
        self._log_file: IO[bytes] = log.open("wb")
        # A site's command may start us from a process of its own, which then is the parent that we cannot know.
        parent = 0 if prefix else os.getpid()
        command = [*prefix, sys.executable, "-m", "npuprof.campaign.worker", request.target, str(parent)]
        options = request.model_dump(include={"plan", "launch_stamps", "url", "log", "spawn"})
        options["launch_stamps"] = request.launch_stamps or request.phases
        command.append(json.dumps({**options, "profiles": [str(p) for p in profiles]}))
        # Only XRT's runtime can hold the interpreter for ever inside a call; what it answers has a deadline of its own.
        self._patience = _PATIENCE_S if request.target == "xrt" else None
        self._unread = b""
        fds = (held.fd,) if held is not None and held.fd is not None else ()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log_file,
                pass_fds=fds,
                # The terminal's Ctrl-C is for the campaign, which then ends this process between two passes.
                start_new_session=True,
                # Set before it is Python: a parent killed while it still loads must free the ticket at once, too.
                preexec_fn=None if prefix else partial(die_with_parent, parent),
                env={**(os.environ if environment is None else environment), **(held.environment() if held else {})},
            )
        except OSError as e:
            self._log_file.close()
            raise UsageProblem(f"hold.command {prefix[0]!r} cannot be started: {e.strerror}") from e
        self._under = prefix
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._reports = self._process.stdin, self._process.stdout

    def ready(self) -> tuple[TargetInfo, bool]:
        """What the target says it is, and whether it checks parity; blocks until it is loaded."""
        report = self._expect("ready")
        self.own_pids = frozenset(report["pids"])
        return TargetInfo.model_validate(report["target"]), bool(report["parity"])

    def parity(self, rows: int, start: int) -> dict[str, Any]:
        self.send({"do": "parity", "rows": rows, "start": start})
        return self._expect("parity")

    def visit(self, visits: Sequence[Visit]) -> Iterator[Pass]:
        """The passes of these visits as they end; stops early after `stop`."""
        self.send({"do": "visits", "visits": [v.as_dict() for v in visits]})
        while (report := self._read())["event"] == "pass":
            try:
                yield _PASS.validate_python(report["measured"])
            except ValidationError as e:
                first = e.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise DeviceProblem(f"the target gave a pass that cannot be kept: {where}: {first['msg']}") from None

    def stop(self) -> None:
        """The pass that is running is the last one."""
        self.send({"do": "stop"})

    def send(self, command: dict[str, Any]) -> None:
        # A process that has ended is noticed where its reports are read, with its reason.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Ends the process, by force if it does not end by itself within 10 s; empty logs are removed."""
        self.send({"do": "close"})
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reports.close()
        self._log_file.close()
        if self.log.stat().st_size == 0:
            self.log.unlink()

    def _expect(self, event: str) -> dict[str, Any]:
        report = self._read()
        if report["event"] != event:
            raise NpuprofError(f"the timed process answered {report['event']!r} instead of {event!r}; see {self.log}")
        return report

    def _read(self) -> dict[str, Any]:
        while b"\n" not in self._unread:
            if self._patience is not None and not select.select([self._reports], [], [], self._patience)[0]:
                self._process.kill()
                raise DeviceProblem(
                    f"the timed process said nothing for {self._patience:g} s and was killed: the device hangs; "
                    "look at npuprof errors, and reload the driver: sudo modprobe -r amdxdna; sudo modprobe amdxdna"
                )
            chunk = os.read(self._reports.fileno(), 65536)
            if not chunk:
                raise self._ended()
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        report: dict[str, Any] = json.loads(line)
        if report["event"] == "note":
            self._note(report["text"])
            return self._read()
        if report["event"] == "error":
            if report["usage"]:
                raise UsageProblem(report["text"])
            raise DeviceProblem(f"the target failed: {report['text']}; its traceback is in {self.log}")
        return report

    def _ended(self) -> NpuprofError:
        code = self._process.wait()
        if self._under and code == Busy.exit_code:
            return Busy(f"hold.command {self._under[0]!r} did not obtain the hold (exit {code})")
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return DeviceProblem(f"the timed process {how} in the middle of the campaign; what it printed is in {self.log}")
