"""What the harness adds: its own time between passes, and its effect on the passes' median with and without live table.

The effect is measured in mirrored rounds of a bare loop, the harness alone, and the harness with the live table, on a
target whose device wait sleeps 50 ms. The table is drawn for a terminal of 140 columns whose output is read and dropped.
"""

from __future__ import annotations

import contextlib
import os
import pty
import sys
import tempfile
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median, quantiles

from rich.console import Console
from sleeper import make

from npuprof.campaign.process import TimedProcess
from npuprof.campaign.schedule import Visit
from npuprof.model.events import PassDone, Started
from npuprof.model.passes import Pass
from npuprof.model.request import Request
from npuprof.render.live import LiveTable
from npuprof.stats.paired import differences, ratio_of

PASSES = 6
ROUNDS = 10


def process(factory: str, folder: Path) -> TimedProcess:
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    p = TimedProcess(Request(target=f"sleeper:{factory}"), None, folder / f"{factory}.log")
    p.ready()
    return p


def visit(samples: int) -> list[Visit]:
    return [Visit("rows=5", 5, 0, "measure", 1, samples)]


def between_passes(folder: Path) -> None:
    timed = process("make_instant", folder)
    passes = list(timed.visit(visit(2000)))
    timed.close()
    gaps = [(b.at_ns - a.at_ns - a.wall_ms * 1e6) / 1e6 for a, b in pairwise(passes)]
    print(
        f"between passes: median {median(gaps):.3f} ms, 99th percentile {quantiles(gaps, n=100)[98]:.3f} ms (to reach: 0.5)"
    )


def dropped_terminal() -> Console:
    """A console on a pseudo-terminal whose other end is read and dropped."""
    ours, theirs = pty.openpty()

    def drain() -> None:
        with contextlib.suppress(OSError):  # the other end was closed
            while os.read(ours, 65536):
                pass

    threading.Thread(target=drain, daemon=True).start()
    return Console(file=os.fdopen(theirs, "w"), force_terminal=True, width=140, height=40, highlight=False)


def effect(folder: Path) -> None:
    timed = process("make", folder)
    bare_target = make()
    info = bare_target.describe()
    walls: dict[str, dict[int, list[float]]] = {"bare": {}, "harness": {}, "live table": {}}
    with LiveTable(dropped_terminal()) as table:
        table(Started("benchmark", Request(rows=[5]), info, ("step", "rows=5"), ROUNDS))

        def bare() -> list[float]:
            return [bare_target.run_pass().wall_ms for _ in range(PASSES)]

        def harness(observe: Callable[[Pass], None]) -> list[float]:
            found = []
            for p in timed.visit(visit(PASSES)):
                observe(p)
                found.append(p.wall_ms)
            return found

        runs: dict[str, Callable[[], list[float]]] = {
            "bare": bare,
            "harness": lambda: harness(lambda p: None),
            "live table": lambda: harness(lambda p: table(PassDone(p))),
        }
        random = Random(1)
        for number in range(ROUNDS):
            order = list(runs)
            random.shuffle(order)
            for name in [*order, *reversed(order)]:
                walls[name].setdefault(number, []).append(median(runs[name]()))
    timed.close()
    for of, to in (("harness", "bare"), ("live table", "bare"), ("live table", "harness")):
        ratio = ratio_of(differences(walls[of], walls[to]))
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        low, high = (ratio.low - 1) * 100, (ratio.high - 1) * 100
        print(
            f"median of a pass, {of} / {to}: {(ratio.value - 1) * 100:+.3f} % [{low:+.3f}, {high:+.3f}] (to reach: 0.2)"
        )


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as name:
        between_passes(Path(name))
        effect(Path(name))


if __name__ == "__main__":
    main()
