"""The device hold: a chain of file locks, first come first served, that the kernel releases when their holder dies.

One directory for the machine. A ticket is a numbered file whose exclusive lock lives as long as any process that
inherited its descriptor. Numbers are given out under a short mutex; each waiter blocks on the lock of its nearest live
predecessor, so a death anywhere in the chain wakes exactly the next one. There is no lease and nothing to expire.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pwd
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuprof.campaign.locks import is_locked, lock_exclusive, wait_unlocked
from npuprof.errors import Busy, DeviceProblem, UsageProblem
from npuprof.model.instants import rfc3339

VARIABLE = "NPUPROF_HOLD"
"""Set for a command under the hold to DEVICE/NUMBER, so that a campaign inside it does not wait for its own parent."""

_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TICKET = re.compile(r"([A-Za-z0-9_-]+)\.(\d{12,18})\.ticket\Z")
_CLAIM_SIZE = 4096
_REASON_LIMIT = 500


@dataclass(frozen=True)
class Claim:
    """One live ticket as others see it; `since` is when it was granted, or asked for while it waits."""

    pid: int
    user: str
    since: str
    reason: str


@dataclass(frozen=True)
class Held:
    """The hold, granted. `fd` is the descriptor to hand down; None where an ancestor holds it and did not."""

    device: str
    number: int
    fd: int | None
    asked: float
    granted: float
    inherited: bool

    def environment(self) -> dict[str, str]:
        return {VARIABLE: f"{self.device}/{self.number}"}

    def release(self) -> None:
        """Closes this process's descriptor; the hold ends when the last copy of it is closed."""
        if self.fd is not None:
            os.close(self.fd)


def default_device(accel: Path = Path("/dev/accel")) -> str:
    """The first /dev/accel/accelN, else `reference`."""
    nodes = sorted((p.name for p in accel.glob("accel*") if p.name[5:].isdigit()), key=lambda name: int(name[5:]))
    return nodes[0] if nodes else "reference"


def is_enforced(directory: Path, device: str, accel: Path = Path("/dev/accel")) -> bool:
    """Can only members of the hold directory's group open the device's node?"""
    with contextlib.suppress(OSError):
        node, held = (accel / device).stat(), directory.stat()
        return node.st_gid == held.st_gid and held.st_gid != 0 and not node.st_mode & 0o007
    return False


class Hold:
    """The tickets of one device in the machine's hold directory."""

    def __init__(self, directory: Path, device: str) -> None:
        if not _DEVICE.match(device):
            raise UsageProblem(f"--device {device!r}: a device is named like accel0 or reference")
        self.directory = directory
        self.device = device

    def take(self, reason: str, timeout: float | None, waiting: Callable[[Claim, int], None] | None = None) -> Held:
        """Waits for the hold. `timeout` seconds, 0 not to wait, None for ever; Busy when it is over.

        `waiting` is told the holder and how many are ahead, each time the nearest predecessor changes.
        """
        inherited = self._inherited()
        if inherited is not None:
            return inherited
        asked = time.time()
        deadline = None if timeout is None else time.monotonic() + timeout
        self._make_directory()
        claim = {"pid": os.getpid(), "reason": reason[:_REASON_LIMIT], "asked": asked, "granted": None}
        number, fd = self._draw(claim)
        try:
            while (ahead := self._live_below(number)) is not None:
                path, others = ahead
                if waiting is not None and timeout != 0:
                    holder = self.status()[0]
                    if holder is not None:
                        waiting(holder, others)
                self._outlast(path, deadline)
        except BaseException:
            os.close(fd)
            raise
        granted = time.time()
        _write(fd, {**claim, "granted": granted})
        return Held(self.device, number, fd, asked, granted, inherited=False)

    def status(self) -> tuple[Claim | None, list[Claim]]:
        """The holder and the waiters in their order, without taking a lock."""
        live = [claim for number in self._numbers() if (claim := self._read(number)) is not None]
        return (live[0], live[1:]) if live else (None, [])

    def _draw(self, claim: dict[str, Any]) -> tuple[int, int]:
        """A number and its locked descriptor. The file appears under its name only once it is locked and written."""
        mode = 0o660 if self.directory.stat().st_mode & stat.S_ISGID else 0o600
        with self._mutex(mode):
            for leftover in self.directory.glob(f".{self.device}.new"):
                leftover.unlink()
            numbers = self._numbers()
            number = (numbers[-1] if numbers else 0) + 1
            for old in numbers:
                if not self._is_live(old):
                    self._path(old).unlink(missing_ok=True)
            draft = self.directory / f".{self.device}.new"
            fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            os.fchmod(fd, mode)
            lock_exclusive(fd)
            _write(fd, claim)
            draft.rename(self._path(number))
        return number, fd

    @contextlib.contextmanager
    def _mutex(self, mode: int) -> Iterator[None]:
        path = self.directory / f"{self.device}.mutex"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            with contextlib.suppress(PermissionError):  # another member of the group made it
                os.fchmod(fd, mode)
            lock_exclusive(fd)
            yield
        finally:
            os.close(fd)

    def _live_below(self, number: int) -> tuple[Path, int] | None:
        """The nearest live predecessor and how many live ones are ahead in all."""
        live = [n for n in self._numbers() if n < number and self._is_live(n)]
        return (self._path(live[-1]), len(live)) if live else None

    def _outlast(self, path: Path, deadline: float | None) -> None:
        """Blocks until the ticket at `path` has no live lock, in a thread, so that this one hears signals and time."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        over = threading.Event()

        def wait() -> None:
            try:
                wait_unlocked(fd)
            finally:
                os.close(fd)
                over.set()

        threading.Thread(target=wait, name="hold-wait", daemon=True).start()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not over.wait(left):
            holder = self.status()[0]
            by = f" by pid {holder.pid} ({holder.user}) since {holder.since}" if holder else ""
            raise Busy(
                f"{self.device} is held{by}; see `npuprof hold status`, or wait longer with --hold-timeout SECONDS"
            )

    def _inherited(self) -> Held | None:
        """The hold that a wrapper of ours took for us: its descriptor is open here, or it is our live ancestor."""
        device, _, text = os.environ.get(VARIABLE, "").partition("/")
        if device != self.device or not text.isdigit():
            return None
        number = int(text)
        try:
            ticket = self._path(number).stat()
        except OSError:
            return None
        fd = _own_descriptor(ticket)
        claim = self._read(number)
        if fd is None and (claim is None or claim.pid not in _ancestors()):
            return None
        now = time.time()
        return Held(self.device, number, None if fd is None else os.dup(fd), now, now, inherited=True)

    def _make_directory(self) -> None:
        mend = (
            f"sudo install -d -m 2770 -g npuprof {self.directory}, with yourself in group npuprof "
            f"(sudo usermod -aG npuprof $USER)"
        )
        try:
            self.directory.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError as e:
            raise DeviceProblem(
                f"the hold directory {self.directory} cannot be made ({e.strerror}); type: {mend}"
            ) from e
        if not os.access(self.directory, os.R_OK | os.W_OK | os.X_OK) or not self.directory.is_dir():
            raise DeviceProblem(f"the hold directory {self.directory} is not usable by you; type: {mend}")

    def _numbers(self) -> list[int]:
        try:
            names = [p.name for p in self.directory.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as e:
            raise DeviceProblem(f"the hold directory {self.directory} cannot be read: {e.strerror}") from e
        found = [m for m in map(_TICKET.match, names) if m is not None and m[1] == self.device]
        return sorted(int(m[2]) for m in found)

    def _path(self, number: int) -> Path:
        return self.directory / f"{self.device}.{number:012d}.ticket"

    def _is_live(self, number: int) -> bool:
        try:
            # A stray FIFO must not make anybody wait.
            fd = os.open(self._path(number), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError as e:
            raise DeviceProblem(f"the ticket {self._path(number)} cannot be read: {e.strerror}") from e
        try:
            return stat.S_ISREG(os.fstat(fd).st_mode) and is_locked(fd)
        finally:
            os.close(fd)

    def _read(self, number: int) -> Claim | None:
        """The claim of a live ticket; its user is the file's owner, since what the file says is only a claim."""
        path = self._path(number)
        if not self._is_live(number):
            return None
        try:
            ticket = path.stat()
            said = json.loads(path.read_bytes()[:_CLAIM_SIZE])
            pid, since = int(said["pid"]), float(said["granted"] or said["asked"])
            reason = str(said["reason"])[:_REASON_LIMIT]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return Claim(0, "unknown", rfc3339(0), "unreadable ticket")
        if not Path(f"/proc/{pid}").exists():
            pid = _process_with(ticket) or pid
        return Claim(pid, _user(ticket.st_uid), rfc3339(since), reason)


def devices(directory: Path) -> list[str]:
    """Devices that have tickets or had them, by the hold directory."""
    try:
        return sorted({p.name.removesuffix(".mutex") for p in directory.glob("*.mutex")})
    except OSError as e:
        raise DeviceProblem(f"the hold directory {directory} cannot be read: {e.strerror}") from e


def _write(fd: int, claim: dict[str, Any]) -> None:
    # One write of one size: a reader sees the old claim or the new one.
    os.pwrite(fd, json.dumps(claim).encode().ljust(_CLAIM_SIZE), 0)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _same_file(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _own_descriptor(ticket: os.stat_result) -> int | None:
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if _same_file(os.fstat(int(entry.name)), ticket):
                return int(entry.name)
    return None


def _process_with(ticket: os.stat_result) -> int | None:
    """A process that has the ticket open, where we may look: what a wrapper that ended left running."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            entries = list((process / "fd").iterdir())
        except OSError:
            continue
        for entry in entries:
            with contextlib.suppress(OSError):
                if _same_file(entry.stat(), ticket) and int(process.name) != os.getpid():
                    return int(process.name)
    return None


def _ancestors() -> set[int]:
    found, pid = set(), os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            # The command's name may hold spaces and parentheses: fields count from the last one.
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ESRCH):
                raise
            break
    return found


def status_of(directory: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Holder, waiters in their order, and whether the hold is enforced, by device: what `hold status --json` prints."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        holder, waiters = Hold(directory, name).status()
        found[name] = {
            "holder": None if holder is None else vars(holder),
            "waiters": [{**vars(w), "position": i} for i, w in enumerate(waiters, 1)],
            "enforced": is_enforced(directory, name),
        }
    return found
