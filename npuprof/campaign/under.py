"""A command under the hold: it inherits the ticket, gets our signals, and dies with us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from npuprof.campaign.hold import Held

_PR_SET_PDEATHSIG = 1
_SENT_BY_KERNEL = 0x80
_FORWARDED = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
}
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when `parent`, which started it, ends; at once if that has happened."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def run_under(held: Held | None, command: Sequence[str]) -> int:
    """Runs the command and returns its exit code: 128 + N for signal N, 126 and 127 as a shell.

    Signals sent to this process are passed on; those of the terminal reach the command by themselves.
    """
    parent = os.getpid()
    waited = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)

    def in_child() -> None:
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    environment = {**os.environ, **(held.environment() if held else {})}
    fds = (held.fd,) if held and held.fd is not None else ()
    try:
        child = subprocess.Popen(list(command), pass_fds=fds, env=environment, preexec_fn=in_child)
        while child.poll() is None:
            info = signal.sigwaitinfo(waited)
            if info.si_signo != signal.SIGCHLD and info.si_code != _SENT_BY_KERNEL:
                child.send_signal(info.si_signo)
    except FileNotFoundError:
        print(f"npuprof: {command[0]}: command not found", file=sys.stderr)
        return 127
    except OSError as e:
        print(f"npuprof: {command[0]}: {e.strerror}", file=sys.stderr)
        return 126
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = child.returncode
    return 128 - code if code < 0 else code
