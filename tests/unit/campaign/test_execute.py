"""The inner loop, on a fake clock."""

from __future__ import annotations

from fake_clock import FakeClock, FakeTarget

from npuprof.campaign.execute import Executor
from npuprof.campaign.schedule import Visit
from npuprof.model.passes import Pass


def run(target: FakeTarget, visits: list[Visit], stop_after: int | None = None) -> tuple[list[Pass], bool]:
    seen: list[Pass] = []
    executor = Executor(target, target.clock, seen.append, lambda: stop_after is not None and len(seen) >= stop_after)
    return seen, executor.run(visits)


def visit(rows: int, phase: str = "measure", samples: int = 1) -> Visit:
    name = "step" if rows == 1 else f"rows={rows}"
    return Visit(name, rows, 0, phase, 1, samples)  # type: ignore[arg-type]


def test_passes_carry_raw_stamps_terms_and_rest() -> None:
    target = FakeTarget(FakeClock())
    passes, done = run(target, [visit(1, samples=2), visit(5)])
    assert done
    assert [(p.seq, p.kind, p.rows, p.wall_ms, p.rest_ms) for p in passes] == [
        (0, "step", 1, 10.0, 1.0),
        (1, "step", 1, 10.0, 1.0),
        (2, "verify", 5, 50.0, 5.0),
    ]
    assert passes[1].at_ns - passes[0].at_ns == 10_000_000


def test_a_pause_over_five_seconds_makes_the_next_pass_a_warm_up() -> None:
    target = FakeTarget(FakeClock(), before={1: 5001.0, 3: 4999.0})
    passes, _ = run(target, [visit(1), visit(5), visit(8)])
    assert [(p.condition, p.phase, p.round) for p in passes] == [
        ("step", "measure", 1),
        ("rows=5", "warmup", None),
        ("rows=5", "measure", 1),
        ("rows=8", "measure", 1),
    ]
    assert passes[1].extra == {"after_idle_s": 5.001}


def test_a_pause_before_a_warm_up_needs_no_other() -> None:
    target = FakeTarget(FakeClock(), before={1: 9000.0})
    passes, _ = run(target, [visit(1, "warmup"), visit(5, "warmup")])
    assert [p.phase for p in passes] == ["warmup", "warmup"]


def test_a_suspended_machine_counts_as_a_pause_though_the_stamps_stand_still() -> None:
    target = FakeTarget(FakeClock())
    seen: list[Pass] = []
    executor = Executor(target, target.clock, seen.append, lambda: False)
    executor.run([visit(1)])
    target.clock.suspended_ns += 60 * 10**9
    executor.run([visit(1)])
    assert [p.phase for p in seen] == ["measure", "warmup", "measure"]


def test_a_suspend_during_a_pass_voids_it() -> None:
    target = FakeTarget(FakeClock(), suspended={1: 3000.0})
    passes, _ = run(target, [visit(1), visit(5), visit(8)])
    assert [(p.phase, p.void_reason) for p in passes[:3]] == [
        ("measure", None),
        ("void", "the machine was suspended during the pass"),
        ("measure", None),
    ]


def test_what_the_device_reports_as_failed_is_void_and_kept() -> None:
    target = FakeTarget(FakeClock(), void={0: "fake TIMEOUT"})
    passes, _ = run(target, [visit(5)])
    assert (passes[0].phase, passes[0].void_reason, passes[0].wall_ms) == ("void", "fake TIMEOUT", 50.0)


def test_stop_ends_between_two_passes() -> None:
    passes, done = run(FakeTarget(FakeClock()), [visit(1, samples=10)], stop_after=3)
    assert not done
    assert len(passes) == 3
