"""Ticket and evidence around work that is no campaign of passes: the same hold, the same snapshots before and after."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from collectors.base import Own
from collectors.evidence import Evidence
from npuprof.campaign.hold import Claim, Held, Hold, default_device
from npuprof.campaign.settings import Place
from npuprof.campaign.ticket import ticket_of
from npuprof.model.record import Reading, Reason, Snapshots, Ticket
from npuprof.stats.window import window_reasons


@dataclass
class Window:
    """Open while the work runs: `begin` once the server is known, `end` when it is done with."""

    device: str
    held: Held | None
    reason: str
    place: Place
    evidence: Evidence
    _own: Own = field(default_factory=lambda: Own(frozenset()))
    _on_npu: bool = False
    _before: dict[str, Reading] = field(default_factory=dict)
    _opened: float = field(default_factory=time.time)

    def begin(self, pids: list[int], *, on_npu: bool) -> dict[str, Reading]:
        """First snapshot; `pids` are the server's, which is no foreign use."""
        self._own, self._on_npu = Own(frozenset(pids)), on_npu
        time.sleep(self.place.settle_s if on_npu else 0)
        self._before = self.evidence.snapshot(self._own, on_npu=on_npu)
        return self._before

    def end(self) -> tuple[Ticket, Snapshots, list[Reason]]:
        """Last snapshot, and what moved between the two."""
        time.sleep(self.place.linger_s if self._on_npu else 0)
        snapshots = Snapshots(before=self._before, after=self.evidence.snapshot(self._own, on_npu=self._on_npu))
        reasons = window_reasons(snapshots, []) if self._on_npu else []
        now = time.time()
        asked, granted = (self._opened, self._opened) if self.held is None else (self.held.asked, self.held.granted)
        return ticket_of(self.place, self.device, self.held, self.reason, asked, granted, now), snapshots, reasons


@contextmanager
def window(
    place: Place,
    device: str | None,
    reason: str,
    timeout: float | None,
    evidence: Callable[[str], Evidence],
    waiting: Callable[[Claim, int], None],
) -> Iterator[Window]:
    """Holds the device for as long as the block runs, unless the site's own command does. Busy when it is not to be had."""
    name = device or default_device()
    held = None if place.hold_command else Hold(place.hold_directory, name).take(reason, timeout, waiting)
    try:
        yield Window(name, held, reason, place, evidence(name))
    finally:
        if held is not None:
            held.release()
