"""The one place that orchestrates a campaign, from the ticket to the record on disk."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collectors.base import Own
from collectors.evidence import Evidence
from npuprof.campaign import parity
from npuprof.campaign.clock import Clock, SystemClock
from npuprof.campaign.course import Course
from npuprof.campaign.hold import Claim, Held, Hold, default_device
from npuprof.campaign.process import TimedProcess
from npuprof.campaign.provenance import provenance
from npuprof.campaign.settings import Place
from npuprof.campaign.ticket import ticket_of
from npuprof.campaign.tracing import Tracing, phases_of
from npuprof.campaign.voiding import Window, incident_windows, void_passes
from npuprof.errors import DeviceProblem, NpuprofError
from npuprof.model.condition import conditions
from npuprof.model.events import Event, Finished, Note, Started, Waiting
from npuprof.model.instants import rfc3339
from npuprof.model.record import Ending, How, Reading, Record, Snapshots, TargetInfo
from npuprof.model.request import Request
from npuprof.stats.derive import derive
from npuprof.stats.window import errors_of
from npuprof.store.runs import keep_record, ready_store

_LATE_FAULTS = ("xrt", "serve")
"""Kinds of target whose page faults may be logged long after what caused them."""


@dataclass(frozen=True)
class Outcome:
    """The record, saved, and the problem that cut the campaign short, if one did."""

    record: Record
    problem: NpuprofError | None


def new_run_id(created: float) -> str:
    """`YYYYMMDDTHHMMSSZ-` and 6 hexadecimal digits."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(created))}-{secrets.token_hex(3)}"


class Campaign:
    """One campaign of a request. `observe` is called between passes only; `evidence` makes a device's collectors.

    `environment` is the timed process's, where it needs another than this one's (XRT's paths). `run_id` and `user` are
    those of a queue that asked for it.
    """

    def __init__(
        self,
        request: Request,
        place: Place,
        observe: Callable[[Event], None],
        evidence: Callable[[str], Evidence],
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        run_id: str | None = None,
        user: str | None = None,
    ) -> None:
        self.request = request.model_copy(update={"device": request.device or default_device()})
        self.seed = request.seed if request.seed is not None else secrets.randbits(32)
        self._place = place
        self._observe = observe
        self._clock = clock or SystemClock()
        self._environment = environment
        self._evidence = evidence(str(self.request.device))
        self._created = self._clock.wall_s()
        self.run_id = run_id or new_run_id(self._created)
        self._user = user
        self._course: Course | None = None
        self._process: TimedProcess | None = None
        self._interrupted = False

    def interrupt(self) -> bool:
        """First call: end after the running pass. Second: kill the timed process. False before anything is measured."""
        if self._course is None or self._process is None:
            return False
        if self._interrupted:
            self._process.kill()
        else:
            self._interrupted = True
            self._course.stop()
            self._observe(Note("interrupted: ending after the running pass; once more to end at once"))
        return True

    def run(self) -> Outcome:
        """Busy, UsageProblem or DeviceProblem if nothing could be started; otherwise there is a record."""
        ready_store(self._place.runs)
        held = self._take_hold()
        try:
            log = self._place.runs / f"{self.run_id}.log"
            self._process = TimedProcess(
                self.request,
                held,
                log,
                self._site_command(),
                self._environment,
                self._place.profiles,
                lambda text: self._observe(Note(text)),
            )
            try:
                info, checks_parity = self._process.ready()
                granted = self._clock.wall_s() if held is None else held.granted
                return self._measure(self._process, info, checks_parity, held, granted)
            finally:
                self._process.close()
        finally:
            if held is not None:
                held.release()

    def _take_hold(self) -> Held | None:
        """The ticket; None where the site has its own hold command, which is then put around the timed process."""
        if self._place.hold_command:
            return None
        hold = Hold(self._place.hold_directory, str(self.request.device))
        return hold.take(self.request.reason, self.request.hold_timeout, self._tell_waiting)

    def _tell_waiting(self, holder: Claim, ahead: int) -> None:
        device = str(self.request.device)
        self._observe(Waiting(device, holder.pid, holder.user, holder.since, holder.reason, ahead))

    def _site_command(self) -> list[str]:
        fill = {"device": str(self.request.device), "reason": self.request.reason}
        return [word.format_map(fill) for word in self._place.hold_command]

    def _measure(
        self, process: TimedProcess, info: TargetInfo, checks_parity: bool, held: Held | None, granted: float
    ) -> Outcome:
        names = tuple(c.name for c in conditions(self.request.rows, self.request.start))
        self._observe(Started(self.run_id, self.request, info, names, self.request.repeats))
        own = Own(process.own_pids)
        between: list[Reading] = []
        late = info.on_npu and info.kind in _LATE_FAULTS
        time.sleep(self._place.settle_s if late else 0)
        before = self._evidence.snapshot(own, on_npu=info.on_npu)
        self._require_power_mode(before, info)

        def after_idle() -> None:
            if info.on_npu:
                between.append(self._evidence.state())

        tracing = self._tracing(len(names)) if self.request.phases else None
        course = Course(
            self.request, self.seed, process, checks_parity, self._observe, self._clock, after_idle, tracing
        )
        self._course = course
        problem: NpuprofError | None = None
        phases: dict[str, Any] | None = None
        late_jobs: list[Window] = []
        try:
            if tracing is not None:
                tracing.watch(process.own_pids)
            course.run()
        except NpuprofError as e:
            problem = e
        finally:
            lost = {} if tracing is None else tracing.close()
        if tracing is not None:
            try:
                phases, late_jobs = phases_of(tracing.file, course.passes, process.own_pids, lost)
            except NpuprofError as e:
                problem = problem or e
        time.sleep(self._place.linger_s if late and not self._interrupted else 0)
        after = self._evidence.snapshot(own, on_npu=info.on_npu)
        how: How = "interrupted" if self._interrupted else "done" if problem is None else "failed"
        ending = Ending(
            how=how,
            rounds_planned=course.rounds_planned,
            rounds_done=course.rounds_done,
            detail="" if problem is None else str(problem),
        )
        snapshots = Snapshots(before=before, after=after, between=between)
        record = self._record(course, info, checks_parity, ending, snapshots, held, granted, phases, late_jobs)
        unsaved = keep_record(record, self._place.runs)
        self._observe(Finished(record))
        problem = problem or unsaved
        return Outcome(record, None if self._interrupted else problem)

    def _tracing(self, conditions_of_a_round: int) -> Tracing:
        return Tracing(self._place.runs / f"{self.run_id}.trace", 2 * conditions_of_a_round * self.request.steps)

    def _require_power_mode(self, before: dict[str, Reading], info: TargetInfo) -> None:
        wanted = self.request.require_power_mode
        if wanted is None:
            return
        if not info.on_npu:
            raise DeviceProblem(
                f"--require-power-mode {wanted}: the target runs on no NPU, which alone has a power mode"
            )
        mode = (before["power"].reading or {}).get("power_mode")
        if mode != wanted:
            is_now = mode or f"not known ({before['amdxdna'].detail})"
            raise DeviceProblem(f"the power mode is {is_now}, not {wanted}: sudo xrt-smi configure --pmode {wanted}")

    def _record(
        self,
        course: Course,
        info: TargetInfo,
        checks_parity: bool,
        ending: Ending,
        snapshots: Snapshots,
        held: Held | None,
        granted: float,
        phases: dict[str, Any] | None,
        late_jobs: list[Window],
    ) -> Record:
        agreed = parity.outcome(course.parity_rows, checks_parity)
        errors = errors_of(snapshots, info.on_npu)
        passes = void_passes(course.passes, [*incident_windows(errors), *late_jobs])
        summary, trust = derive(passes, self.request.start, self.seed, agreed, ending, info, snapshots, phases)
        asked = self._created if held is None else held.asked
        return Record(
            id=self.run_id,
            created=rfc3339(self._created),
            request=self.request,
            seed=self.seed,
            target=info,
            provenance={**provenance(snapshots.before), "pack": info.pack, "requested_by": self._user},
            ticket=ticket_of(
                self._place,
                str(self.request.device),
                held,
                self.request.reason,
                asked,
                granted,
                self._clock.wall_s(),
            ),
            snapshots=snapshots,
            errors=errors,
            passes=passes,
            summary=summary,
            parity=agreed,
            phases=phases,
            trust=trust,
            ending=ending,
        )
