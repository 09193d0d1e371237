"""The kernel's messages of the NPU: how many since boot, and which in the window between two reads.

Cannot see: what the driver does not print (a job timeout on kernels 6.14 to 6.18 prints nothing), and page faults that
arrive after the last read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collectors.base import live, not_available
from collectors.kernel.report import Follower, incident_dict
from collectors.kernel.rules import Rule
from collectors.kernel.sources import Source, Unreadable, open_source
from npuprof.model.record import Reading

_SHOWN = 50


class KernelLog:
    """Follows one source from its first read on, so that a window is exact even if the ring wraps."""

    name = "kernel_log"

    def __init__(self, rules: Sequence[Rule], npus: Sequence[str], root: Path = Path("/")) -> None:
        self._root = root
        self._follower = Follower(rules, npus)
        self._source: Source | None = None
        self._reads = 0

    def read(self) -> Reading:
        """Counts since boot; from the second read on also the window's own lines and incidents."""
        try:
            if self._source is None:
                self._source = open_source(self._root)
            lines, incidents = self._follower.take(self._source.read())
        except Unreadable as e:
            return not_available(str(e))
        except OSError as e:
            return not_available(f"the kernel log became unreadable: {e.strerror}")
        self._reads += 1
        tally = self._follower.tally
        reading = {
            "source": self._source.name,
            "count": tally.count,
            "by_class": tally.as_dict(),
            "own": tally.own,
            "unknown": tally.unknown,
            "lost": self._source.lost,
        }
        if self._reads > 1:
            shown = [x for x in lines if x.line_class != "benign"][:_SHOWN]
            reading["window"] = {
                "lines": [{"class": x.line_class, "kind": x.kind, "text": x.text, "stamp_s": x.stamp} for x in shown],
                "benign": sum(x.line_class == "benign" for x in lines),
                "incidents": [
                    {**incident_dict(i), "first_stamp_s": i.first_stamp, "last_stamp_s": i.last_stamp}
                    for i in incidents
                ],
            }
        return live(reading, self._source.lost)
