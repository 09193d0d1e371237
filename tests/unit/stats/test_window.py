"""What moved in the window, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from records import make_passes, usual_record, usual_walls

from npuprof.campaign.voiding import incident_windows, void_passes
from npuprof.model.record import Reading, Record, Snapshots, TargetInfo
from npuprof.render.window import window_lines
from npuprof.stats.derive import contradictions
from npuprof.stats.window import errors_of, live_sources, window_reasons

ON_NPU = TargetInfo(kind="fake", device="fake NPU", backend="fake", simulated=True, on_npu=True)
NO_ERROR = {"err_code": 0, "ts_us": 0, "ex_err_code": 0}


def live(**reading: Any) -> Reading:
    return Reading(status="live", reading=reading, at="2026-11-10T15:02:11.000Z")


def missing(why: str, status: Any = "not_available") -> Reading:
    return Reading(status=status, at="2026-11-10T15:02:11.000Z", detail=why)


def snapshot(**changed: Reading) -> dict[str, Reading]:
    window = {"lines": [], "benign": 2, "incidents": []}
    usual = {
        "kernel_log": live(source="journal", count=2561, by_class={"benign": 40}, lost="", window=window),
        "amdxdna": live(driver="0.6", firmware="1.1.2.65", contexts=[], async_error=NO_ERROR, problems={}),
        "foreign": live(foreign=[], hidden_contexts=0, own_pids=[7]),
        "fdinfo": live(processes=[], hidden=0),
        "power": live(power_mode="performance", clocks={"mp_npu_mhz": 1267, "h_mhz": 1800}, power_w=None),
        "host": live(load=[0.1, 0.1, 0.1], memory_available_mb=100, swapped_in_bytes=0, swapped_out_bytes=0),
    }
    return {**usual, **changed}


def codes(before: dict[str, Reading], after: dict[str, Reading], *between: Reading) -> list[str]:
    return [r.code for r in window_reasons(Snapshots(before=before, after=after, between=list(between)), [])]


def test_a_clean_window_costs_nothing() -> None:
    clean = Snapshots(before=snapshot(), after=snapshot())
    assert window_reasons(clean, make_passes(usual_walls())) == []
    assert live_sources(clean) == ["kernel_log", "async_error"]
    errors = errors_of(clean, True)
    assert errors is not None
    assert (errors.count_before, errors.count_after, errors.benign_after) == (2561, 2561, 40)
    assert errors_of(clean, False) is None


def log(**window: Any) -> Reading:
    full = {"lines": [], "benign": 0, "incidents": [], **window}
    return live(source="kmsg", count=2562, by_class={"benign": 40}, lost="", window=full)


CONTEXT = {"pid": 7, "submitted": 10, "completed": 10, "errors": 0}


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ({"kernel_log": log(lines=[{"class": "taint", "text": "IO_PAGE_FAULT"}])}, "kernel_messages"),
        ({"kernel_log": live(source="kmsg", count=1, by_class={}, lost="26 lost", window={})}, "lost_kernel_messages"),
        ({"amdxdna": missing("ENODEV")}, "device_lost"),
        ({"amdxdna": missing("hangs", "stale")}, "device_lost"),
        ({"amdxdna": live(async_error={**NO_ERROR, "ts_us": 5}, contexts=[])}, "async_error"),
        ({"amdxdna": live(async_error=NO_ERROR, contexts=[{**CONTEXT, "completed": 8}])}, "jobs_unfinished"),
        ({"amdxdna": live(async_error=NO_ERROR, contexts=[{**CONTEXT, "fatal_error_type": 3}])}, "firmware_fatal"),
        ({"foreign": live(foreign=[], hidden_contexts=2, own_pids=[7])}, "foreign_use"),
        ({"power": live(power_mode="turbo", clocks={"mp_npu_mhz": 1267, "h_mhz": 1800})}, "power_mode_changed"),
        ({"power": live(power_mode="performance", clocks={"mp_npu_mhz": 800, "h_mhz": 1800})}, "clocks_changed"),
    ],
)
def test_each_reason(after: dict[str, Reading], code: str) -> None:
    assert codes(snapshot(), snapshot(**after)) == [code]


def test_other_peoples_contexts_do_not_speak_against_our_jobs() -> None:
    theirs = {**CONTEXT, "pid": 8, "completed": 1, "fatal_error_type": 3}
    assert codes(snapshot(), snapshot(amdxdna=live(async_error=NO_ERROR, contexts=[theirs]))) == []


def test_the_contexts_error_field_is_no_evidence() -> None:
    """With neither log nor async slot the window is blind, whatever `errors` says."""
    blind = snapshot(kernel_log=missing("no log"), amdxdna=live(async_error=None, contexts=[CONTEXT], problems={}))
    [reason] = window_reasons(Snapshots(before=blind, after=blind), [])
    assert reason.code == "no_error_source"
    assert "no log" in reason.text
    assert codes({}, {}) == ["no_error_source"]


def test_a_mode_that_changed_and_changed_back_is_seen_between() -> None:
    idle = live(power_mode="powersaver", clocks={"mp_npu_mhz": 1267, "h_mhz": 1800})
    assert codes(snapshot(), snapshot(), idle) == ["power_mode_changed"]


def test_foreign_use_is_named() -> None:
    other = {"pid": 4242, "name": "llm", "since_boot_s": 12.0, "contexts": 1, "busy_ns": None}
    before = snapshot(foreign=live(foreign=[other], hidden_contexts=0, own_pids=[7]))
    [reason] = window_reasons(Snapshots(before=before, after=snapshot()), [])
    assert reason.text == "somebody else is on the device: pid 4242 (llm) since 12 s after boot, 1 contexts"


def test_busy_for_longer_than_the_terms_allow() -> None:
    passes = make_passes(usual_walls())
    allowed = [replace(p, extra={"busy_ms": p.wall_ms - 2.2}) for p in passes]
    clean = Snapshots(before=snapshot(), after=snapshot())
    assert window_reasons(clean, allowed) == []
    too_long = [replace(p, extra={"busy_ms": p.wall_ms + 2.0}) for p in passes]
    [reason] = window_reasons(clean, too_long)
    assert reason.code == "busy_exceeds_terms"
    assert f"in {len(passes)} passes" in reason.text


def record_of(before: dict[str, Reading], after: dict[str, Reading]) -> Record:
    snapshots = Snapshots(before=before, after=after)
    return usual_record(target=ON_NPU, snapshots=snapshots, errors=errors_of(snapshots, True))


def test_a_record_on_an_npu_is_judged_by_its_window_again_and_again() -> None:
    clean = record_of(snapshot(), snapshot())
    assert clean.trust.trusted
    tainted = record_of(snapshot(), snapshot(kernel_log=log(lines=[{"class": "fatal", "text": "TDR"}])))
    assert (tainted.trust.absolute, tainted.trust.ratios) == ("not_trusted", "not_trusted")
    assert contradictions(tainted)[1] == []


def test_passes_in_an_incidents_window_are_void() -> None:
    incident = {"class": "fatal", "kind": "timeout", "text": "TDR", "first_stamp_s": 3.0, "last_stamp_s": 3.5}
    unstamped = {**incident, "first_stamp_s": None, "last_stamp_s": None}
    errors = errors_of(
        Snapshots(before=snapshot(), after=snapshot(kernel_log=log(incidents=[incident, unstamped]))), True
    )
    windows = incident_windows(errors)
    assert [(w.from_ns, w.to_ns) for w in windows] == [(2_000_000_000, 4_500_000_000)]
    void = void_passes(make_passes(usual_walls()), windows)
    assert [p.seq for p in void if p.phase == "void"] == [2, 3, 4]
    assert incident_windows(None) == []


def test_the_reports_block() -> None:
    other = {"pid": 4242, "name": "", "since_boot_s": None, "contexts": 1, "busy_ns": None}
    after = snapshot(
        kernel_log=log(lines=[{"class": "taint", "text": "x"}]),
        amdxdna=live(
            driver="0.6", firmware="1", contexts=[], async_error={**NO_ERROR, "err_code": 5}, problems={"clocks": "x"}
        ),
        foreign=live(foreign=[other], hidden_contexts=1, own_pids=[7]),
        power=live(power_mode="turbo", clocks=None, power_w=2.5),
        fdinfo=missing("no /proc"),
        host=live(load=[0.2, 0, 0], memory_available_mb=90, swapped_in_bytes=5 << 20, swapped_out_bytes=0),
    )
    text = "\n".join(window_lines(record_of(snapshot(), after)))
    for part in (
        "amdxdna error count 2561 -> 2562 (benign 40 -> 40); error sources that could have moved: kernel_log, async_error",
        "kernel_log: kmsg, 1 fatal or taint, 0 benign lines in the window, 0 incidents",
        "last async error none -> 0x5 at 0 us; clocks not given",
        "SOMEBODY ELSE: pid 4242 (name not visible), 1 hidden contexts",
        "power_mode performance -> turbo, clocks 1267/1800 MHz -> not available, power_w not available -> 2.5",
        "fdinfo: not_available: no /proc",
        "load 0.1 -> 0.2, memory available 100 -> 90 MB, SWAPPED 5 MB",
    ):
        assert part in text
    lost = snapshot(kernel_log=live(source="kmsg", count=1, by_class={}, lost="26 lost", window={}))
    assert "LOST: 26 lost" in "\n".join(window_lines(record_of(snapshot(), lost)))
    none = record_of(snapshot(), snapshot(power=live(), amdxdna=live(driver="0", firmware="1", async_error=None)))
    assert "power: power_mode performance -> not available" in "\n".join(window_lines(none))
    blind = record_of({}, {})
    assert "could have moved: NONE" in window_lines(blind)[0]
