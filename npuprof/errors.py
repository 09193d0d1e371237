"""The one error family. `npuprof.cli` is the one place that turns it into an exit code."""

from __future__ import annotations

OK = 0
INTERNAL = 1
USAGE = 2
DEVICE = 3
NOT_TRUSTED = 4
CHECK_FAILED = 5
BUSY = 75
INTERRUPTED = 130


class NpuprofError(Exception):
    """What happened, where, and what to type next, in one sentence; `exit_code` says of which sort it is."""

    exit_code = INTERNAL


class UsageProblem(NpuprofError):
    """A flag, a request or a configuration file is wrong."""

    exit_code = USAGE


class DeviceProblem(NpuprofError):
    """The device, its driver, the runtime, a server or the hold directory is not usable as asked."""

    exit_code = DEVICE


class DeviceHung(DeviceProblem):
    """A launch did not end within its deadline and is still in flight: its process must leave without running destructors."""


class Busy(NpuprofError):
    """The hold was not obtained in the time given."""

    exit_code = BUSY
