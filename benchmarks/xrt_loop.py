"""A pass of the XRT target against a bare loop over the same fake pyxrt with a 200 us command, interleaved.

The bare loop is what people write: prebuilt runs, arguments set once, start, wait. The fake holds the interpreter while it
waits, as the real one does; nothing here ran on an NPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from npuprof.stats.paired import differences, ratio_of

HERE = Path(__file__).parents[1]
LAYERS = 28
ROUNDS = 12
PLAN = """families:
  - {rows: 16, xclbin: fake.xclbin}
layers: 28
launches:
  - {name: a, insts: {16: insts.bin}, in_bytes_per_row: 0, out_bytes_per_row: 0}
  - {name: b, insts: {16: insts.bin}, in_bytes_per_row: 0, out_bytes_per_row: 0}
  - {name: c, insts: {16: insts.bin}, in_bytes_per_row: 0, out_bytes_per_row: 0}
  - {name: d, insts: {16: insts.bin}, in_bytes_per_row: 0, out_bytes_per_row: 0}
"""


def targets(folder: Path) -> tuple[Any, list[Any]]:
    """Ours, and the bare loop's runs on the same fake device."""
    from npuprof.targets.xrt.target import make_xrt

    (folder / "plan.yaml").write_text(PLAN)
    (folder / "fake.xclbin").write_text('FAKEXCLBIN\n{"uuid": "u", "kernels": {"MLIR_AIE": 8}}')
    (folder / "insts.bin").write_bytes(bytes(64))
    target = make_xrt(str(folder / "plan.yaml"), launch_stamps=False)
    target.prepare(1, 0)
    import pyxrt  # type: ignore[import-not-found]

    device = pyxrt.device(0)
    binary = pyxrt.xclbin(str(folder / "fake.xclbin"))
    context = pyxrt.hw_context(device, binary)
    kernel = pyxrt.kernel(context, "MLIR_AIE")
    instructions = pyxrt.bo(device, 64, pyxrt.bo.cacheable, kernel.group_id(1))
    runs = []
    for _ in range(4 * LAYERS):
        run = pyxrt.run(kernel)
        for i, v in enumerate((3, instructions, 64)):
            run.set_arg(i, v)
        runs.append(run)
    return target, runs


def bare(runs: list[Any]) -> float:
    begin = time.monotonic_ns()
    for run in runs:
        run.start()
        run.wait()
    return (time.monotonic_ns() - begin) / 1e6


def main() -> None:
    sys.path.insert(0, str(HERE / "tests/fakes/fake_pyxrt"))
    os.environ.pop("FAKE_PYXRT_CONTROL", None)
    with tempfile.TemporaryDirectory() as name:
        target, runs = targets(Path(name))
        rests: list[float] = []

        def ours() -> float:
            timing = target.run_pass()
            rests.append((timing.wall_ms - (timing.terms.total() or 0.0)) / timing.wall_ms)
            wall: float = timing.wall_ms
            return wall

        walls: dict[str, dict[int, list[float]]] = {"bare": {}, "ours": {}}
        random = Random(1)
        for number in range(ROUNDS):
            order = ["bare", "ours"]
            random.shuffle(order)
            for which in [*order, *reversed(order)]:
                found = median(bare(runs) if which == "bare" else ours() for _ in range(5))
                walls[which].setdefault(number, []).append(found)
        ratio = ratio_of(differences(walls["ours"], walls["bare"]))
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        middle = {k: median([w for ws in v.values() for w in ws]) for k, v in walls.items()}
        more = (middle["ours"] - middle["bare"]) * 1000 / (4 * LAYERS)
        print(
            f"{4 * LAYERS} launches of 200 us over a fake pyxrt: bare {middle['bare']:.2f} ms, ours {middle['ours']:.2f} ms, "
            f"ratio {ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}] (to reach: 1.01), {more:+.2f} us a launch (to reach: 2)"
        )
        print(f"rest of a pass: median {100 * median(rests):.3f} % of its wall (to reach: 0.5)")


if __name__ == "__main__":
    main()
