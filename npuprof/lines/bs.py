"""The `[bs]` pass line: one strict fast form, and a tolerant reader for every other order, key and padding.

The reference line is
`[bs] M= 5 start= 0 wall= 1067.9 | embed= 5.6 | layers= 975.2 (gemm pack= 0.1 ql= 48.55 wait= 878.0 rb= 1.0 sum= 927.6
host= 47.6 n=112) | epilogue= 87.1 (head= 87.1 sum= 84.4 host= 2.7)`, all times in milliseconds:
sum = pack + ql + wait + rb, layers = sum + host, head = its own sum + host, wall = embed + layers + epilogue + rest.
"""

from __future__ import annotations

import re

from npuprof.lines.items import read_items
from npuprof.lines.reconcile import HALF_UNITS, adds_up, half_unit
from npuprof.lines.unreadable import Broken
from npuprof.model.passes import PassLine, Terms, rest_of

MARKER = "[bs]"

_N = r"=\s*(\d{1,12}(?:\.\d{1,9})?)"
_FAST = re.compile(
    rf"\[bs\]\s*M=\s*(\d{{1,7}})\s+start=\s*(\d{{1,9}})\s+wall{_N}\s*\|\s*embed{_N}\s*\|\s*layers{_N}\s*"
    rf"\(\s*gemm\s+pack{_N}\s+ql{_N}\s+wait{_N}\s+rb{_N}\s+sum{_N}\s+host{_N}\s+n=\s*(\d{{1,7}})\s*\)\s*\|\s*"
    rf"epilogue{_N}\s*\(\s*head{_N}\s+sum{_N}\s+host{_N}\s*\)\s*\Z",
    re.ASCII,
)


def parse_line(text: str, line_no: int = 0) -> PassLine:
    """The pass that the `[bs]` marker in `text` begins; raises Broken with the offset where reading failed."""
    at = text.find(MARKER)
    if at < 0:
        raise Broken(0, "the [bs] marker is missing: the line's beginning was lost")
    fast = _FAST.match(text, at)
    if fast is None:
        return _tolerant(text, at, line_no)
    rows, start, launches = int(fast[1]), int(fast[2]), int(fast[12])
    if rows < 1:
        raise Broken(fast.start(1), "M must be 1 or more")
    figures = fast.group(3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)
    values = [float(f) for f in figures]
    wall, embed, layers, pack, ql, wait, rb, gemm_sum, host, epilogue, head, head_sum, head_host = values
    # half_unit() written out: this line is most of what reading a pass line costs.
    halves = [HALF_UNITS[len(f.partition(".")[2])] for f in figures]
    h_wall, h_embed, h_layers, h_pack, h_ql, h_wait, h_rb, h_sum, h_host, h_epi, h_head, h_hsum, h_hhost = halves
    launched = pack + ql + wait + rb
    h_launched = h_pack + h_ql + h_wait + h_rb + 1e-9
    rest = round(wall - (embed + launched + host + head), 6)
    consistent = (
        abs(gemm_sum - launched) <= h_sum + h_launched
        and abs(layers - gemm_sum - host) <= h_layers + h_sum + h_host + 1e-9
        and abs(epilogue - head) <= h_epi + h_head + 1e-9
        and abs(head - head_sum - head_host) <= h_head + h_hsum + h_hhost + 1e-9
        and rest >= -(h_wall + h_embed + h_launched + h_host + h_head) - 1e-9
    )
    terms = Terms(embed, pack, ql, wait, rb, host, head)
    return PassLine(rows, start, wall, terms, head_sum, rest, launches, line_no, {}, consistent)


_TERM_AT = {
    "embed": "embed_ms",
    "layers.pack": "pack_ms",
    "layers.ql": "quantise_launch_ms",
    "layers.wait": "device_wait_ms",
    "layers.rb": "readback_ms",
    "layers.host": "layers_host_ms",
    "epilogue.head": "lm_head_ms",
}
_COUNTS = {"M": 7, "start": 9, "layers.n": 7}
_TIMES = {*_TERM_AT, "wall", "layers", "layers.sum", "epilogue", "epilogue.sum", "epilogue.host"}
_GEMM = ("layers.pack", "layers.ql", "layers.wait", "layers.rb")
_PLAIN_TIME = re.compile(r"\d{1,12}(?:\.\d{1,9})?\Z", re.ASCII)
_NEGATIVE_ZERO = re.compile(r"-0(?:\.0{1,9})?\Z", re.ASCII)
_ANY_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?\Z", re.ASCII)


def _tolerant(text: str, at: int, line_no: int) -> PassLine:
    again = text.find(MARKER, at + len(MARKER))
    if again >= 0:
        raise Broken(again, "a second [bs] begins here: two lines run together")
    counts: dict[str, int] = {}
    times: dict[str, tuple[float, float]] = {}
    extra: dict[str, float | str] = {}
    groups: set[str] = set()
    for item in read_items(text, at + len(MARKER), groups):
        key, value, column = item
        if key in counts or key in times or key in extra:
            raise Broken(column, f"{key}= stands twice: two lines run together")
        if key in _COUNTS:
            if not (value.isascii() and value.isdigit() and len(value) <= _COUNTS[key]):
                raise Broken(column, f"{key}= is no whole number: {value[:40]!r}")
            counts[key] = int(value)
            if key == "M" and counts[key] < 1:
                raise Broken(column, "M must be 1 or more")
        elif key in _TIMES:
            if _NEGATIVE_ZERO.match(value):
                value = value[1:]
            if not _PLAIN_TIME.match(value):
                raise Broken(column, f"{key}= is no time in milliseconds: {value[:40]!r}")
            times[key] = (float(value), half_unit(value))
        else:
            extra[key] = float(value) if _ANY_NUMBER.match(value) else value
    for needed, there in (
        ("M", "M" in counts),
        ("start", "start" in counts),
        ("wall", "wall" in times),
        ("layers", "layers" in times and "layers" in groups),
        ("epilogue", "epilogue" in times and "epilogue" in groups),
    ):
        if not there:
            raise Broken(len(text), f"the line ends without {needed}=: cut short")
    return _assemble(counts, times, extra, line_no)


def _assemble(
    counts: dict[str, int], times: dict[str, tuple[float, float]], extra: dict[str, float | str], line_no: int
) -> PassLine:
    given = {term: times[key] for key, term in _TERM_AT.items() if key in times}
    terms = Terms(**{term: value for term, (value, _) in given.items()})
    wall = times["wall"]
    head_device = times.get("epilogue.sum")
    rest = rest_of(wall[0], terms)
    # An unknown key inside a group may be a share of that group's total: the known parts must then only fit into it.
    open_layers = any(k.startswith("layers.") for k in extra)
    open_epilogue = any(k.startswith("epilogue.") for k in extra)
    checks = [adds_up(wall, given.values(), exhaustive=False)]
    for total, parts, closed in (
        ("layers.sum", _GEMM, not open_layers),
        ("layers", ("layers.sum", "layers.host"), not open_layers),
        ("epilogue", ("epilogue.head",), not open_epilogue),
        ("epilogue.head", ("epilogue.sum", "epilogue.host"), not open_epilogue),
    ):
        if total in times and all(p in times for p in parts):
            checks.append(adds_up(times[total], [times[p] for p in parts], exhaustive=closed))
    checks.append(adds_up(wall, [times[k] for k in ("embed", "layers", "epilogue") if k in times], exhaustive=False))
    return PassLine(
        rows=counts["M"],
        start=counts["start"],
        wall_ms=wall[0],
        terms=terms,
        head_device_ms=None if head_device is None else head_device[0],
        rest_ms=rest,
        launches=counts.get("layers.n"),
        line_no=line_no,
        extra=dict(extra),
        consistent=all(checks),
    )


def format_line(rows: int, start: int, wall_ms: float, terms: Terms, head_device_ms: float, launches: int) -> str:
    """The published form of one pass. All seven terms must be given, ms; `launches` counts those of the layers."""
    embed, pack, ql, wait, rb, host, head = (v if v is not None else 0.0 for v in terms.values())
    gemm = pack + ql + wait + rb
    return (
        f"[bs] M={rows:2d} start={start:2d} wall= {wall_ms:.1f} | embed= {embed:.1f} | layers= {gemm + host:.1f} "
        f"(gemm pack= {pack:.1f} ql= {ql:.2f} wait= {wait:.1f} rb= {rb:.1f} sum= {gemm:.1f} host= {host:.1f} "
        f"n={launches}) | epilogue= {head:.1f} (head= {head:.1f} sum= {head_device_ms:.1f} "
        f"host= {head - head_device_ms:.1f})"
    )
