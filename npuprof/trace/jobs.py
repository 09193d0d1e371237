"""Events to jobs: the instants of one launch on its way through the driver, whatever the driver's age calls them."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from npuprof.trace.events import Event, thread_of

_KEYED = re.compile(r'(\w+)=("[^"]*"|[^\s,()]+)')
_KEEP = 256
"""Completed jobs that wait for their wake-up; beyond, the oldest goes without."""
_COMPLETE = ("job complete", "signaled fence", "signaling fence")
_RUN = "job run"
_SENT = "sent to device"


class Job:
    """One launch. Instants in ns on the trace's clock, None where the trace does not have them."""

    __slots__ = (
        "channel",
        "complete",
        "context",
        "doorbell",
        "ended",
        "fence",
        "irq",
        "opcode",
        "received",
        "run",
        "seq",
        "thread",
        "timedout",
        "wake",
    )

    def __init__(self, context: str, seq: str) -> None:
        self.context = context
        self.seq = seq
        self.thread: int | None = None
        self.channel: str | None = None
        self.opcode: str | None = None
        self.fence: tuple[str, str] | None = None
        self.received: int | None = None
        self.run: int | None = None
        self.doorbell: int | None = None
        self.irq: int | None = None
        self.complete: int | None = None
        self.wake: int | None = None
        self.ended: int | None = None
        self.timedout = False

    @property
    def pid(self) -> int | None:
        """Of the process: `hwctx.PID.N` and `ctx.PID.N`."""
        parts = self.context.split(".")
        return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None

    @property
    def first(self) -> int:
        """The earliest instant known."""
        return min(self._known())

    @property
    def last(self) -> int:
        """The latest instant known."""
        return max(self._known())

    def _known(self) -> list[int]:
        instants = (self.received, self.run, self.doorbell, self.irq, self.complete, self.wake, self.ended)
        return [t for t in instants if t is not None]


class Joiner:
    """Fed events in order; `jobs()` gives what is finished. Counts what could not be joined, by what it was."""

    def __init__(self) -> None:
        self.unjoined: Counter[str] = Counter()
        self.timedout = 0
        self._open: dict[tuple[str, str], Job] = {}
        self._done: OrderedDict[tuple[str, str], Job] = OrderedDict()
        self._received: dict[int, int] = {}
        self._last_run: dict[int, Job] = {}
        self._tails: dict[int, tuple[int, str, str]] = {}
        self._irqs: dict[str, int] = {}
        self._finished: list[Job] = []
        self._handlers = {
            "amdxdna_debug_point": self._point,
            "xdna_job": self._job_event,
            "xdna_job_queue": self._queue_event,
            "mbox_set_tail": self._tail,
            "mbox_irq_handle": self._irq,
            "mbox_poll_handle": self._irq,
            "sys_exit_ioctl": self._exit,
            "dma_fence_wait_end": self._fence,
        }

    def feed(self, events: Iterable[Event]) -> None:
        handlers = self._handlers
        for task, at, name, payload in events:
            handlers[name](task, at, payload)

    def jobs(self) -> Iterator[Job]:
        """Finished ones since the last call."""
        finished, self._finished = self._finished, []
        yield from finished

    def end(self) -> Iterator[Job]:
        """The rest, when there are no more events: completed jobs, and open ones, which are counted as unjoined."""
        for job in self._done.values():
            self._finished.append(job)
        self._done.clear()
        for job in self._open.values():
            self.unjoined["job without completion"] += not job.timedout
            self._finished.append(job)
        self._open.clear()
        self.unjoined["mbox_set_tail"] += len(self._tails)
        self.unjoined["job received"] += len(self._received)
        self._tails.clear()
        self._received.clear()
        self.unjoined += Counter()
        yield from self.jobs()

    def _get(self, context: str, seq: str) -> Job:
        key = (context, seq)
        job = self._open.get(key)
        if job is None:
            job = self._open[key] = Job(context, seq)
        return job

    def _point(self, task: str, at: int, payload: str) -> None:
        if "=" in payload:
            fields = _keyed(payload)
            head, what = (
                f"{fields.get('name', '')}:{fields.get('number', fields.get('seq', ''))}",
                fields.get("str", ""),
            )
        else:
            head, _, what = payload.partition(" ")
        context, _, number = head.rpartition(":")
        if what == "job received":
            tid = thread_of(task)
            if tid in self._received:
                self.unjoined["job received"] += 1
            self._received[tid] = at
        elif what == "job pushed":
            tid = thread_of(task)
            job = self._get(context, number)
            job.thread = tid
            received = self._received.pop(tid, None)
            if received is None:
                self.unjoined["job pushed"] += 1
            job.received = received
        elif what == "job complete":
            self._completed(self._get(context, number), at)
        elif what == "job returned to user":
            job_or_none = self._done.get((context, number))
            if job_or_none is not None:
                job_or_none.wake = at
        elif what == "job release":
            self._freed(context, number)

    def _job_event(self, task: str, at: int, payload: str) -> None:
        if payload.startswith("fence=(context:"):
            fence, _, rest = payload.partition("), ")
            number, _, seqno = fence[15:].partition(", seqno:")
            context, _, rest = rest.partition(" seq#:")
            seq, _, what = rest.partition(" ")
            what = what.partition(",")[0]
        else:
            fields = _keyed(payload)
            number, seqno = (
                fields.get("fence_context", fields.get("context", "")),
                fields.get("fence_seqno", fields.get("seqno", "")),
            )
            context, seq, what = fields.get("name", ""), fields.get("seq", ""), fields.get("str", "")
        if what == _RUN:
            job = self._get(context, seq)
            job.fence = (number, seqno)
            job.run = at
            self._last_run[thread_of(task)] = job
        elif what == _SENT:
            job = self._get(context, seq)
            job.fence = (number, seqno)
            self._sent(task, at, job)
        elif what in _COMPLETE:
            self._completed(self._get(context, seq), at)
        elif what == "job timedout":
            late = self._get(context, seq)
            late.timedout, late.ended = True, at
            self.timedout += 1
        elif what == "job free":
            self._freed(context, seq)

    def _queue_event(self, task: str, at: int, payload: str) -> None:
        context, found, rest = payload.partition(" seq#:")
        if found:
            seq, _, rest = rest.partition(" ")
            what = rest.partition(" ")[2]
        else:
            fields = _keyed(payload)
            context, seq, what = fields.get("name", ""), fields.get("seq", ""), fields.get("str", "")
        if what == "job complete":
            self._completed(self._get(context, seq), at)
        elif what == _SENT:
            self._sent(task, at, self._get(context, seq))

    def _tail(self, task: str, at: int, payload: str) -> None:
        """It carries no sequence: it belongs to the job run just before it on the same thread."""
        channel = _channel(payload)
        opcode = _keyed(payload).get("opcode", "") if "=" in payload else payload.rpartition("opcode ")[2]
        tid = thread_of(task)
        job = self._last_run.pop(tid, None)
        if job is not None and job.doorbell is None:
            job.doorbell, job.channel, job.opcode = at, channel, opcode
            return
        if tid in self._tails:
            self.unjoined["mbox_set_tail"] += 1
        self._tails[tid] = (at, channel, opcode)

    def _sent(self, task: str, at: int, job: Job) -> None:
        """Drivers without "job run" print this behind the doorbell, on the same thread."""
        if job.doorbell is not None:
            return
        tail = self._tails.pop(thread_of(task), None)
        if tail is not None:
            job.doorbell, job.channel, job.opcode = tail
        elif job.run is None:
            job.run = at

    def _irq(self, task: str, at: int, payload: str) -> None:
        del task
        self._irqs[_channel(payload)] = at

    def _completed(self, job: Job, at: int) -> None:
        """The answer came with the last interrupt of its channel, which may have brought others too."""
        key = (job.context, job.seq)
        job.complete = at
        irq = None if job.channel is None else self._irqs.get(job.channel)
        if irq is not None and (job.doorbell is None or irq >= job.doorbell):
            job.irq = irq
        self._open.pop(key, None)
        self._done[key] = job
        if len(self._done) > _KEEP:
            self._finished.append(self._done.popitem(last=False)[1])

    def _freed(self, context: str, seq: str) -> None:
        """A job that was freed without completion ran out of time, or was torn down."""
        job = self._open.get((context, seq))
        if job is not None and job.timedout:
            self._finished.append(self._open.pop((context, seq)))

    def _exit(self, task: str, at: int, payload: str) -> None:
        """The first return from an ioctl of the thread that submitted, behind the completion."""
        del payload
        tid = thread_of(task)
        for job in self._done.values():
            if job.thread == tid and job.wake is None:
                job.wake = at

    def _fence(self, task: str, at: int, payload: str) -> None:
        del task
        fields = _keyed(payload)
        fence = (fields.get("context", ""), fields.get("seqno", ""))
        for job in self._done.values():
            if job.fence == fence and job.wake is None:
                job.wake = at


def _channel(payload: str) -> str:
    if "=" not in payload:
        return payload.partition(" ")[0]
    fields = _keyed(payload)
    return f"{fields.get('name', '')}.{fields.get('chann', fields.get('channel', fields.get('irq', '')))}"


def _keyed(payload: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in _KEYED.findall(payload)}
