"""Entries to classed lines and incidents, in one pass and bounded memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.kernel.entry import Entry
from collectors.kernel.rules import UNKNOWN, Rule, decide
from collectors.kernel.tags import ANY, Tagged, tag

LineClass = Literal["fatal", "taint", "benign", "info", "not-npu", "continuation"]

TOGETHER_S = 1.0
"""Lines of one device within this time of each other are one incident."""

_BLOCK_START = re.compile(r"BUG: |Oops\b|general protection fault|WARNING: |-+\[ cut here \]-+")
_BLOCK_FATAL = re.compile(r"BUG: |Oops\b|general protection fault")
_BLOCK_END = re.compile(r"-+\[ end trace")
_BLOCK_OURS = re.compile(r"\[amdxdna\]|\[amdxdna\(|Workqueue: amdxdna|at drivers/accel/amdxdna/")
_BLOCK_LINE = re.compile(
    r"\S+\+0x[0-9a-f]+/0x|RIP: |R[A-Z0-9]{2}: |RSP: |FS: |CS: |CR\d: |PKRU: |Code: |Call Trace:|CPU: |Hardware name: "
    r"|Workqueue: |<\/?(?:TASK|IRQ)>|Tainted: |\? |#PF: |PGD |irq event"
)
_MODULES = re.compile(r"Modules linked in:")
_BLOCK_LIMIT = 256
_SUPPRESSED = re.compile(r"(?P<function>\w+): (?P<n>\d+) callbacks suppressed$")
_FAULT_FUNCTION = "amd_iommu_report_page_fault"
_ANY_FAULT = re.compile(r"AMD-Vi: (?:Event logged \[)?IO_PAGE_FAULT")
_INITIALIZED = re.compile(r"\[drm\] Initialized amdxdna_accel_driver ")


@dataclass(frozen=True, slots=True)
class Line:
    """One physical line and its class. `kind` is the rule's; `own` and `unknown` are counted in the class too."""

    line_no: int
    line_class: LineClass
    kind: str = ""
    device: str = ""
    text: str = ""
    stamp: float | None = None
    own: bool = False
    unknown: bool = False
    incident: bool = False
    root: bool = False
    joins: bool = False


@dataclass
class Incident:
    """Lines of one device that belong together; its class is that of its worst line."""

    incident_class: Literal["fatal", "taint"]
    kind: str
    device: str
    first_line: int
    text: str
    lines: list[int] = field(default_factory=list)
    first_stamp: float | None = None
    last_stamp: float | None = None


class Classifier:
    """Feed it entries in the order of the log; it yields their lines, possibly later, always in order.

    `npus` are BDFs known beforehand; those that the driver's own lines name are learnt. A second "Initialized" of a device
    is a reload of the driver (taint), the first one is the boot's own.
    """

    def __init__(self, rules: Sequence[Rule], npus: Iterable[str] = ()) -> None:
        self._rules = rules
        self._npus = set(npus)
        self._initialized: set[str] = set()
        self._joined: Entry | None = None
        self._joined_lines: list[int] = []
        self._held: deque[Entry | Line] = deque()
        self._in_block = False
        self.incidents: list[Incident] = []
        self._open: dict[str, Incident] = {}

    def feed(self, entry: Entry) -> Iterator[Line]:
        """Lines that are decided now."""
        if self._continues(entry):
            assert self._joined is not None
            self._joined = replace(self._joined, text=f"{self._joined.text} {entry.text}".strip())
            self._joined_lines.append(entry.line_no)
            return
        yield from self._next()
        self._joined, self._joined_lines = entry, []

    def pass_over(self) -> None:
        """Lines that cannot concern the NPU stood here: whatever has no stamp is adjacent to nothing any more."""
        self._open = {d: i for d, i in self._open.items() if i.last_stamp is not None}

    def flush(self) -> Iterator[Line]:
        """The lines that were held back, at the log's end."""
        yield from self._next()
        yield from self._close()

    def _continues(self, entry: Entry) -> bool:
        """A bare line after a marked one was wrapped off it, unless it has a tag of its own."""
        if entry.marked or self._joined is None or not self._joined.marked or not entry.text:
            return False
        return self._tagged(entry) is None

    def _next(self) -> Iterator[Line]:
        entry, wrapped = self._joined, self._joined_lines
        self._joined, self._joined_lines = None, []
        if entry is None:
            return
        yield from self._whole(entry)
        for line_no in wrapped:
            yield from self._emit_or_hold(Line(line_no, "continuation"))

    def _whole(self, entry: Entry) -> Iterator[Line]:
        """An unwrapped entry: held while it may belong to a trace or a storm, otherwise decided."""
        if not entry.kern:
            yield from self._emit_or_hold(Line(entry.line_no, "not-npu"))
            return
        if self._held and self._too_late(entry):
            yield from self._close()
        starts = _BLOCK_START.match(entry.text) is not None
        if starts and self._in_block and not self._is_cut_here():
            yield from self._close()
        suppressed = _SUPPRESSED.match(entry.text)
        if starts or self._in_block or (suppressed is not None and suppressed["function"] == _FAULT_FUNCTION):
            self._in_block = self._in_block or starts
            self._held.append(entry)
            if (self._in_block and _BLOCK_END.match(entry.text)) or len(self._held) > _BLOCK_LIMIT:
                yield from self._close()
            return
        if self._held and _ANY_FAULT.search(entry.text):
            ours = self._tagged(entry)
            yield from self._close(storm=ours.device if ours else "")
        yield from self._emit_or_hold(self._decide(entry))

    def _is_cut_here(self) -> bool:
        last = self._held[-1]
        return isinstance(last, Entry) and "cut here" in last.text

    def _too_late(self, entry: Entry) -> bool:
        first = next((h for h in reversed(self._held) if isinstance(h, Entry)), None)
        return (
            first is not None
            and first.stamp is not None
            and entry.stamp is not None
            and entry.stamp - first.stamp > TOGETHER_S
        )

    def _emit_or_hold(self, line: Line) -> Iterator[Line]:
        if self._held:
            self._held.append(line)
        else:
            yield self._counted(line)

    def _close(self, storm: str | None = None) -> Iterator[Line]:
        """Decides what was held: a trace is ours if it names the module; suppressed faults are its whose storm it is."""
        held, self._held, self._in_block = self._held, deque(), False
        trace = [h for h in held if isinstance(h, Entry)]
        ours = any(_BLOCK_OURS.search(h.text) and not _MODULES.match(h.text) for h in trace)
        fatal = any(_BLOCK_FATAL.match(h.text) for h in trace)
        first = True
        modules = False
        for item in held:
            if isinstance(item, Line):
                yield self._counted(item)
                continue
            modules = bool(_MODULES.match(item.text)) or (modules and not _in_trace(item.text))
            suppressed = _SUPPRESSED.match(item.text)
            if suppressed is not None:
                yield self._counted(self._suppressed(item, int(suppressed["n"]), storm))
            elif ours and not modules and (_in_trace(item.text) or _BLOCK_START.match(item.text)):
                kind = "crash" if fatal else "kernel-warning"
                line_class: LineClass = "fatal" if fatal else "taint"
                yield self._counted(
                    Line(item.line_no, line_class, kind, ANY, item.text, item.stamp, incident=True, root=first)
                )
                first = False
            else:
                yield self._counted(self._decide(item))

    def _suppressed(self, entry: Entry, n: int, storm: str | None) -> Line:
        owner = storm if storm is not None else self._storm_before(entry)
        if not owner:
            return Line(entry.line_no, "not-npu")
        return Line(
            entry.line_no,
            "taint",
            "page-fault",
            owner,
            f"{n} page faults suppressed",
            entry.stamp,
            incident=True,
            root=True,
        )

    def _storm_before(self, entry: Entry) -> str:
        """The device whose page faults were still coming when the line was printed."""
        for device, incident in self._open.items():
            near = entry.stamp is None or incident.last_stamp is None or entry.stamp - incident.last_stamp <= TOGETHER_S
            if incident.kind == "page-fault" and near:
                return device
        return ""

    def _tagged(self, entry: Entry) -> Tagged | None:
        message = tag(entry.text, entry.device, self._npus)
        if message is not None and message.device != ANY:
            self._npus.add(message.device)
        return message

    def _decide(self, entry: Entry) -> Line:
        message = self._tagged(entry)
        if message is None:
            return Line(entry.line_no, "not-npu")
        suppressed = _SUPPRESSED.match(entry.text)
        if suppressed is not None:
            text = f"{suppressed['n']} messages of {suppressed['function']} suppressed"
            return Line(entry.line_no, "taint", "suppressed", message.device, text, entry.stamp, incident=True)
        if _INITIALIZED.match(entry.text):
            return self._initialization(entry, message)
        rule = decide(self._rules, message, entry.level)
        return Line(
            entry.line_no,
            rule.rule_class,
            rule.kind,
            message.device,
            message.text,
            entry.stamp,
            own=rule.own,
            unknown=rule is UNKNOWN,
            incident=rule.incident,
            root=rule.root,
            joins=rule.joins or rule is UNKNOWN,
        )

    def _initialization(self, entry: Entry, message: Tagged) -> Line:
        again = message.device in self._initialized
        self._initialized.add(message.device)
        kind, line_class = ("reload", "taint") if again else ("initialized", "info")
        return Line(entry.line_no, line_class, kind, message.device, message.text, entry.stamp)  # type: ignore[arg-type]

    def _counted(self, line: Line) -> Line:
        """The line's place among the incidents; what joins a fatal one becomes fatal itself."""
        if line.line_class == "not-npu":
            self.pass_over()
            return line
        if line.line_class == "continuation":
            return line
        device = self._open_device(line)
        current = self._open.get(device)
        together = current is not None and self._together(current, line)
        if line.joins and together and current is not None and current.incident_class == "fatal":
            line = replace(line, line_class="fatal", kind=current.kind, incident=True, unknown=False)
        if line.line_class not in ("fatal", "taint") or not line.incident:
            return line
        severity: Literal["fatal", "taint"] = "fatal" if line.line_class == "fatal" else "taint"
        if current is None or not together:
            current = Incident(severity, line.kind, line.device, line.line_no, line.text, first_stamp=line.stamp)
            self.incidents.append(current)
            self._open[device] = current
        elif severity == "fatal" and current.incident_class == "taint":
            current.incident_class = "fatal"
        current.lines.append(line.line_no)
        current.last_stamp = line.stamp
        return line

    def _open_device(self, line: Line) -> str:
        """A line that names no device belongs to whichever has an incident open."""
        if line.device in self._open or line.device != ANY or not self._open:
            return line.device
        return next(iter(self._open))

    def _together(self, current: Incident, line: Line) -> bool:
        if line.stamp is not None and current.last_stamp is not None:
            return abs(line.stamp - current.last_stamp) <= TOGETHER_S
        # Without stamps lines are adjacent, and a message with which incidents begin opens another, faults of a storm apart.
        return not line.root or (line.kind == "page-fault" and current.kind == "page-fault")


def _in_trace(text: str) -> bool:
    return _BLOCK_LINE.search(text) is not None or _BLOCK_END.match(text) is not None
