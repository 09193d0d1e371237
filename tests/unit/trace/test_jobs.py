"""Events of every age of the driver to jobs and phases, by hand-derived figures; and a pass's partition for any order."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.model.passes import Pass, Terms
from npuprof.trace.analyse import analyse
from npuprof.trace.events import TraceText, events_of, thread_of
from npuprof.trace.jobs import Job, Joiner
from npuprof.trace.passes import PassJoiner, waits_of
from npuprof.trace.phases import PHASES, partition, stages

CURRENT = """\
 python-3785 [001] ..... 1688.280601: amdxdna_debug_point: python:0 job received
 kworker/u9:1-77 [000] ..... 1688.280630: xdna_job: fence=(context:41, seqno:1), hwctx.3785.1 seq#:0 job run, op=0
 kworker/u9:1-77 [000] ..... 1688.280632: mbox_set_tail: xdna_mailbox.99 id 0x1d000001 opcode 0x18
 python-3785 [001] ..... 1688.280633: amdxdna_debug_point: hwctx.3785.1:0 job pushed
 kworker/u9:1-77 [000] ..... 1688.280634: xdna_job_queue: hwctx.3785.1 seq#:0 outstanding:1 sent to device
 <idle>-0 [000] ..... 1688.280828: mbox_irq_handle: xdna_mailbox.99
 kworker/u9:2-78 [000] ..... 1688.280833: mbox_rx_worker: xdna_mailbox.99
 kworker/u9:2-78 [000] ..... 1688.280835: xdna_job_queue: hwctx.3785.1 seq#:0 outstanding:0 job complete
 kworker/u9:2-78 [000] ..... 1688.280837: mbox_set_head: xdna_mailbox.99 id 0x1d000001 opcode 0x18
 kworker/u9:2-78 [000] ..... 1688.280839: xdna_job: fence=(context:41, seqno:1), hwctx.3785.1 seq#:0 job free, op=0
 kworker/u9:2-78 [000] ..... 1688.280840: amdxdna_debug_point: hwctx.3785.1:0 job release
 python-3785 [001] ..... 1688.280851: sys_exit_ioctl: 0x0
"""
OLD = """\
 kworker/1:1-40 [001] ..... 10.000100: mbox_set_tail: xdna_mailbox.5 id 0x1d000001 opcode 0x13
 kworker/1:1-40 [001] ..... 10.000110: xdna_job: fence=(context:7, seqno:1), hwctx.500.1 seq#:3 sent to device
 <idle>-0 [000] ..... 10.000300: mbox_irq_handle: xdna_mailbox.5
 kworker/1:2-41 [001] ..... 10.000320: xdna_job: fence=(context:7, seqno:1), hwctx.500.1 seq#:3 signaled fence
 kworker/1:2-41 [001] ..... 10.000330: xdna_job: fence=(context:7, seqno:1), hwctx.500.1 seq#:3 job free
"""
POLLING = """\
 python-9 [000] ..... 5.000000: amdxdna_debug_point: python:0 job received
 python-9 [000] ..... 5.000010: amdxdna_debug_point: ctx.9.2:4 job pushed
 kworker-3 [000] ..... 5.000020: xdna_job: fence=(context:1, seqno:2), ctx.9.2 seq#:4 job run
 kworker-3 [000] ..... 5.000030: mbox_set_tail: xdna_mailbox.1 id 0x1d000001 opcode 0xc
 kworker-3 [000] ..... 5.000130: mbox_poll_handle: xdna_mailbox.1
 kworker-3 [000] ..... 5.000140: xdna_job: fence=(context:1, seqno:2), ctx.9.2 seq#:4 signaling fence
 python-9 [000] ..... 5.000150: amdxdna_debug_point: ctx.9.2:4 job returned to user
"""
PERF = """\
python 3785 [001] 1688.280601: amdxdna:amdxdna_debug_point: python:0 job received
kworker/u9:1 77 [000] 1688.280630: amdxdna:xdna_job: fence=(context:41, seqno:1), hwctx.3785.1 seq#:0 job run, op=0
kworker/u9:1 77 [000] 1688.280632: amdxdna:mbox_set_tail: xdna_mailbox.99 id 0x1d000001 opcode 0x18
python 3785 [001] 1688.280633: amdxdna:amdxdna_debug_point: hwctx.3785.1:0 job pushed
swapper 0 [000] 1688.280828: amdxdna:mbox_irq_handle: xdna_mailbox.99
kworker/u9:2 78 [000] 1688.280835: amdxdna:xdna_job_queue: hwctx.3785.1 seq#:0 outstanding:0 job complete
python 3785 [001] 1688.280851: syscalls:sys_exit_ioctl: 0x0
"""


def launch_phases(job: Job) -> dict[str, float | None]:
    """ms by phase; None where the trace has not both ends."""
    found = {name: (b - a) / 1e6 for name, a, b in stages(job)}
    return {f"{p}_ms": found.get(p) for p in PHASES}


def joined(text: str) -> tuple[list[Job], Joiner]:
    joiner = Joiner()
    joiner.feed(events_of(text.splitlines()))
    jobs = [*joiner.jobs(), *joiner.end()]
    return jobs, joiner


@pytest.mark.parametrize(
    ("text", "us"),
    [
        (CURRENT, {"queue": 29, "submit": 2, "device": 196, "complete": 7, "wake": 16}),
        (
            CURRENT.replace("sys_exit_ioctl: 0x0", "sys_ioctl -> 0x0"),
            {"queue": 29, "submit": 2, "device": 196, "complete": 7, "wake": 16},
        ),
        (PERF, {"queue": 29, "submit": 2, "device": 196, "complete": 7, "wake": 16}),
        (OLD, {"queue": None, "submit": None, "device": 200, "complete": 20, "wake": None}),
        (POLLING, {"queue": 20, "submit": 10, "device": 100, "complete": 10, "wake": 10}),
    ],
)
def test_each_age_of_the_driver(text: str, us: dict[str, int | None]) -> None:
    [job], joiner = joined(text)
    assert launch_phases(job) == {f"{p}_ms": None if v is None else pytest.approx(v / 1000) for p, v in us.items()}
    assert sum(joiner.unjoined.values()) == 0
    assert joiner.timedout == 0


def test_the_wake_by_a_fence_and_key_value_fields() -> None:
    text = CURRENT.replace(
        "1688.280851: sys_exit_ioctl: 0x0",
        "1688.280855: dma_fence_wait_end: driver=amdxdna timeline=hwctx context=41 seqno=1",
    )
    [job], _ = joined(text)
    assert launch_phases(job)["wake_ms"] == pytest.approx(0.020)
    keyed = """\
 prog-5 [000] DBZff 7.000010: amdxdna_debug_point: (0x55) name="prog" number=0 str="job received"
 prog-5 [000] DBZff 7.000020: xdna_job: (0x55) name="hwctx.5.1" seq=8 str="job run"
 prog-5 [000] DBZff 7.000030: mbox_set_tail: (0x55) name="xdna_mailbox" chann=9 id=0x1d000001 opcode=0x18
 prog-5 [000] DBZff 7.000035: amdxdna_debug_point: (0x55) name="hwctx.5.1" number=8 str="job pushed"
 prog-5 [000] DBZff 7.000090: mbox_irq_handle: (0x55) name="xdna_mailbox" chann=9
 prog-5 [000] DBZff 7.000100: xdna_job_queue: (0x55) name="hwctx.5.1" seq=8 str="job complete"
"""
    [job], _ = joined(keyed)
    assert [launch_phases(job)[f"{p}_ms"] for p in PHASES[:4]] == [pytest.approx(v) for v in (0.01, 0.01, 0.06, 0.01)]
    assert (job.opcode, job.channel) == ("0x18", "xdna_mailbox.9")


def test_one_worker_run_serves_several_answers_of_two_processes() -> None:
    other = CURRENT.replace("3785", "4000").replace("context:41", "context:42").replace("u9:1-77", "u9:3-79")
    shared = [line for line in (CURRENT + other).splitlines() if "irq_handle" not in line]
    irq = next(line for line in CURRENT.splitlines() if "irq_handle" in line)
    jobs, joiner = joined("\n".join([*shared, irq]))
    assert {j.pid for j in jobs} == {3785, 4000}
    assert [launch_phases(j)["device_ms"] for j in jobs] == [pytest.approx(0.196)] * 2
    assert sum(joiner.unjoined.values()) == 0


def test_what_is_missing_is_counted_and_never_invented() -> None:
    lines = CURRENT.splitlines()
    lost_irq, _ = joined("\n".join(x for x in lines if "irq" not in x))
    assert launch_phases(lost_irq[0])["device_ms"] is None
    assert launch_phases(lost_irq[0])["complete_ms"] is None
    _, joiner = joined("\n".join(x for x in lines if "job pushed" not in x))
    assert joiner.unjoined == {"job received": 1}
    _, joiner = joined("\n".join(x for x in lines if "job run" not in x and "sent to device" not in x))
    assert joiner.unjoined == {"mbox_set_tail": 1}
    jobs, joiner = joined("\n".join(x for x in lines if "complete" not in x))
    assert joiner.unjoined == {"job without completion": 1}
    assert launch_phases(jobs[0])["device_ms"] is None
    late = "\n".join(x for x in lines if "complete" not in x and "irq" not in x)
    jobs, joiner = joined(late.replace("job free", "job timedout"))
    assert (joiner.timedout, jobs[0].timedout) == (1, True)
    before = CURRENT.replace("1688.280828", "1688.280631")
    [job], _ = joined(before)
    assert job.irq is None, "an interrupt before the doorbell is of another job"


def test_order_is_by_instants_and_losses_are_counted() -> None:
    lines = CURRENT.splitlines()
    [job], _ = joined("\n".join(reversed(lines)))
    assert launch_phases(job)["device_ms"] == pytest.approx(0.196)
    found = analyse(io.BytesIO(("CPU:0 [LOST 12 EVENTS]\n" + CURRENT + "junk\n\x00\xff").encode("latin-1")))
    assert (found["events"], found["lost"], found["unjoined"]) == (12, 12, 0)
    assert found["passes"] == []
    assert found["launches"][0]["name"] == "CHAIN_EXEC_NPU"
    assert found["launches"][0]["phases"]["device_ms"] == pytest.approx(0.196)
    assert found["launches"][0]["spread"]["device_ms"]["n"] == 1
    assert thread_of(" a b-c-12 (  34) [001] ..... 1.000001") == 12
    assert thread_of("comm 77 [000] 1.000001") == 77
    assert thread_of("nothing") == -1
    odd = TraceText().parse(" my: task-5 [000] ..... 1.000001: xdna_job: x")
    assert [(thread_of(e[0]), e[1]) for e in odd] == [(5, 1_000_001_000)]


def job_of(instants: list[int], context: str = "hwctx.1.1", seq: str = "0") -> Job:
    job = Job(context, seq)
    job.received, job.run, job.doorbell, job.irq, job.complete, job.wake = instants
    return job


@st.composite
def jobs_and_pass(draw: st.DrawFn) -> tuple[list[Job], int, int, list[tuple[int, int]]]:
    instant = st.integers(0, 1000)
    jobs = []
    for n in range(draw(st.integers(0, 6))):
        instants: list[int | None] = sorted(draw(st.lists(instant, min_size=6, max_size=6)))
        for i in draw(st.sets(st.integers(0, 5), max_size=5)):
            instants[i] = None
        jobs.append(job_of(instants, seq=str(n)))  # type: ignore[arg-type]
    borders = sorted(draw(st.sets(instant, min_size=2, max_size=8)))
    begin, end = borders[0], borders[-1]
    waits = [(a, b) for a, b in pairwise(borders) if draw(st.booleans())]
    return [j for j in jobs if j._known()], begin, end, waits


@given(jobs_and_pass())
def test_phases_of_a_pass_sum_to_its_device_wait(case: tuple[list[Job], int, int, list[tuple[int, int]]]) -> None:
    jobs, begin, end, waits = case
    found = partition(jobs, begin, end, waits)
    assert sum(found.phases.values()) == pytest.approx(sum(b - a for a, b in waits) / 1e6)
    assert found.device_wait_ms == pytest.approx(sum(found.phases.values()))
    assert all(v >= 0 for v in found.phases.values())
    # Instant by instant, the slow way.
    slow = dict.fromkeys(found.phases, 0)
    outside = 0
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].first)
    for t in range(begin, end):
        open_ones = []
        for rank, i in enumerate(order):
            j = jobs[i]
            instants = (j.received, j.run, j.doorbell, j.irq, j.complete, j.wake)
            for name, (a, b) in zip(PHASES, pairwise(instants), strict=True):
                if a is not None and b is not None and a <= t < b:
                    open_ones.append((rank, name))
        device = any(name == "device" for _, name in open_ones)
        name = "device" if device else min(open_ones)[1] if open_ones else "unseen"
        if any(a <= t < b for a, b in waits):
            slow[f"{name}_ms"] += 1
        elif open_ones:
            outside += 1
    assert {k: round(v * 1e6) for k, v in found.phases.items()} == slow
    assert round(found.before_wait_ms * 1e6) == outside


def test_passes_take_their_own_process_s_jobs_by_time() -> None:
    stamps = [["qkv", 100, 110, 120, 130, 900, 950], ["mlp", 1000, 1010, 1020, 1030, 1900, 1950]]
    p = Pass(
        0,
        "measure",
        "rows=2",
        "verify",
        2,
        0,
        2,
        1,
        100,
        0.0019,
        Terms(device_wait_ms=0.00164),
        launches=2,
        extra={"launch_stamps_ns": stamps},
    )
    assert waits_of(p) == [(130, 900), (1030, 1900)]
    mine = [
        job_of([112, 118, 125, 850, 860, 895], "hwctx.7.1", "0"),
        job_of([1012, 1018, 1025, 1850, 1860, 1895], "hwctx.7.1", "1"),
    ]
    foreign = job_of([200, 201, 202, 300, 301, 302], "hwctx.8.1", "0")
    joiner = PassJoiner([*mine, foreign], {7})
    outcome = joiner.of(p)
    assert outcome is not None
    phases, here = outcome
    assert len(here) == 2
    assert joiner.foreign == 1
    assert [x["name"] for x in joiner.launches.as_list()] == ["mlp", "qkv"]
    assert phases.phases["device_ms"] == pytest.approx((850 - 130 + 1850 - 1030) / 1e6)
    assert phases.before_wait_ms > 0
    plain = Pass(0, "measure", "step", "step", 1, 0, 1, 1, 1000, 3.0, Terms(1.0, 0.0, 0.5, 1.0, 0.1, 0.1, 0.3))
    assert waits_of(plain) == [(1_501_000, 2_501_000)]
    assert waits_of(Pass(0, "measure", "step", "step", 1, 0, 1, 1, 1000, 3.0)) == []
