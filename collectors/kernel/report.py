"""What a log says in numbers: of a saved log in one pass, or of a running one bit by bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from collectors.kernel.classify import Classifier, Incident, Line
from collectors.kernel.entry import Entry, read_line
from collectors.kernel.hot import hot_lines
from collectors.kernel.rules import Rule

KEEP_OTHERS_UP_TO = 100_000
_KEEP_LINES = 10_000


@dataclass
class Tally:
    """Counts of lines by class; `own` and `unknown` are counted in their class too."""

    by_class: Counter[str] = field(default_factory=Counter)
    own: int = 0
    unknown: int = 0

    def add(self, line: Line) -> None:
        self.by_class[line.line_class] += 1
        self.own += line.own
        self.unknown += line.unknown

    @property
    def count(self) -> int:
        """Fatal and taint lines."""
        return self.by_class["fatal"] + self.by_class["taint"]

    def as_dict(self) -> dict[str, int]:
        return {name: self.by_class[name] for name in ("fatal", "taint", "benign", "info")}


class Follower:
    """A running log: `take` classes what is new and says what of it matters."""

    def __init__(self, rules: Sequence[Rule], npus: Iterable[str]) -> None:
        self._classifier = Classifier(rules, npus)
        self.tally = Tally()

    def take(self, entries: Iterable[Entry]) -> tuple[list[Line], list[Incident]]:
        """The new fatal, taint and benign lines, and the new incidents."""
        known = len(self._classifier.incidents)
        lines: list[Line] = []
        for entry in entries:
            lines += self._matter(self._classifier.feed(entry))
        lines += self._matter(self._classifier.flush())
        return lines, self._classifier.incidents[known:]

    def _matter(self, lines: Iterable[Line]) -> list[Line]:
        kept = []
        for line in lines:
            self.tally.add(line)
            if line.line_class in ("fatal", "taint", "benign"):
                kept.append(line)
        return kept


def report_file(stream: BinaryIO, rules: Sequence[Rule]) -> dict[str, Any]:
    """The JSON of `errors --file`, in constant memory.

    Lines of other devices are listed up to a log of 100,000 lines and left out beyond (`lines_complete` false).
    """
    classifier = Classifier(rules)
    tally = Tally()
    classes: dict[int, str] = {}
    total = 0

    def keep(lines: Iterable[Line]) -> None:
        for line in lines:
            tally.add(line)
            if line.line_class != "not-npu" and len(classes) < KEEP_OTHERS_UP_TO:
                classes[line.line_no] = line.line_class

    for item in hot_lines(stream):
        if isinstance(item, int):
            total += item
            keep(classifier.flush())
            classifier.pass_over()
        else:
            total = item[0]
            text = item[1].decode("utf-8", "replace").rstrip("\r")
            if text.strip():
                keep(classifier.feed(read_line(item[0], text)))
    keep(classifier.flush())
    complete = total <= KEEP_OTHERS_UP_TO
    numbers = range(1, total + 1) if complete else sorted(classes)
    return {
        "count": tally.count,
        "by_class": tally.as_dict(),
        "own": tally.own,
        "unknown": tally.unknown,
        "incidents": [incident_dict(i) for i in classifier.incidents],
        "lines": [{"line_no": n, "class": classes.get(n, "not-npu")} for n in numbers],
        "lines_complete": complete,
    }


def incident_dict(incident: Incident) -> dict[str, Any]:
    """An incident as records and JSON have it."""
    return {
        "class": incident.incident_class,
        "kind": incident.kind,
        "device": incident.device,
        "first_line": incident.first_line,
        "lines": incident.lines[:_KEEP_LINES],
        "text": incident.text,
    }
