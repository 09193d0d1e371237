"""Everything about a plan that can be known before the ticket is taken: files, kernels, arguments, generation, memory.

`python -m npuprof.targets.xrt.verify PLAN` runs in XRT's environment, opens no device, and prints one JSON list.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from npuprof.targets.xrt.plan import Launch, Plan, files_of, load_plan, memory_bytes
from npuprof.yamlfile import Loc

FIXED_ARGUMENTS = 3
"""opcode, instructions, their count."""

_GENERATIONS = {"0x1502": "npu1", "0x17f0": "npu4"}
_HINTS = {
    "npu1": ("npu1", "phoenix", "1502", "phx"),
    "npu4": ("npu4", "npu5", "npu6", "strix", "17f0", "strx", "krackan"),
}

Problem = tuple[Loc, str]


def problems_of_files(plan: Plan, folder: Path) -> list[Problem]:
    """Files that are missing, empty or of an impossible size."""
    found: list[Problem] = []
    for loc, path in files_of(plan, folder):
        if not path.is_file():
            found.append((loc, f"{path} is missing"))
        elif path.stat().st_size == 0:
            found.append((loc, f"{path} is empty"))
        elif "insts" in loc and path.suffix != ".txt" and path.stat().st_size % 4:
            found.append((loc, f"{path} is no instruction stream: its size is no multiple of 4 bytes"))
    return found


def problems_of_memory(plan: Plan, folder: Path) -> list[Problem]:
    """Buffers against this process's memlock limit and the machine's available memory."""
    need = memory_bytes(plan, folder)
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    found: list[Problem] = []
    if soft not in (resource.RLIM_INFINITY, -1) and need > soft:
        text = (
            f"the plan needs {need >> 20} MiB of locked memory and the limit is {soft >> 20} MiB: ulimit -l unlimited"
        )
        found.append((("launches",), text))
    available = _available_bytes()
    if available is not None and need > available:
        found.append(
            (("launches",), f"the plan needs {need >> 20} MiB and {available >> 20} MiB of memory are available")
        )
    return found


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def generation_of_path(path: Path) -> str | None:
    """The generation that a file's folders or name speak of, if they speak of one."""
    text = str(path).lower()
    hinted = [g for g, words in _HINTS.items() if any(w in text for w in words)]
    return hinted[0] if len(hinted) == 1 else None


def generation_of_device(plan: Plan, root: Path = Path("/")) -> str | None:
    """Of the device that the plan names, by its PCI id; None if it cannot be told."""
    accel = root / "sys/class/accel"
    if isinstance(plan.device, int):
        sysfs = accel / f"accel{plan.device}" / "device"
    else:
        sysfs = root / "sys/bus/pci/devices" / plan.device
    try:
        return _GENERATIONS.get((sysfs / "device").read_text().strip())
    except OSError:
        return None


def problems_of_generation(plan: Plan, root: Path = Path("/")) -> list[Problem]:
    """An xclbin for another generation is accepted by user space and hangs or is refused later."""
    device = generation_of_device(plan, root)
    found: list[Problem] = []
    for i, family in enumerate(plan.families):
        path = family.xclbin or family.elf
        assert path is not None
        made_for = family.generation or generation_of_path(path)
        if device is not None and made_for is not None and made_for != device:
            found.append((("families", i), f"{path} is made for {made_for} and the device is {device}"))
    return found


def problems_of_kernels(plan: Plan, folder: Path, pyxrt: Any) -> list[Problem]:
    """Kernel names and argument counts: an argument past a kernel's last one crashes the process."""
    found: list[Problem] = []
    for i, family in enumerate(plan.families):
        if family.xclbin is None:
            continue
        try:
            kernels = {k.get_name(): k.get_num_args() for k in pyxrt.xclbin(str(folder / family.xclbin)).get_kernels()}
        except RuntimeError as e:
            found.append((("families", i, "xclbin"), f"{folder / family.xclbin}: {e}"))
            continue
        for part, launches in (("launches", plan.launches), ("head", plan.head)):
            for j, launch in enumerate(launches):
                if family.rows in launch.insts:
                    found += _kernel_problems((part, j), launch, launch.kernel or family.kernel, kernels, family.xclbin)
    return found


def _kernel_problems(at: Loc, launch: Launch, wanted: str, kernels: dict[str, int], xclbin: Path) -> list[Problem]:
    name = kernel_name(wanted, list(kernels))
    if name is None:
        have = ", ".join(kernels) or "none"
        return [((*at, "kernel"), f"{xclbin} has no kernel {wanted!r}; it has {have}")]
    needed = FIXED_ARGUMENTS + launch.buffers
    if kernels[name] < needed:
        text = f"kernel {name} of {xclbin} takes {kernels[name]} arguments, and launch {launch.name} would set {needed}"
        return [((*at, "kernel"), text)]
    return []


def kernel_name(wanted: str, names: list[str]) -> str | None:
    """The kernel of that name, or the one that begins with it (mlir-aie appends to MLIR_AIE)."""
    if wanted in names:
        return wanted
    return next((n for n in names if n.startswith(wanted)), None)


def main() -> int:
    """Prints [[key path, text], ...]; 0 also where there are problems, since they are the answer."""
    file = Path(sys.argv[1])
    plan, _ = load_plan(file)
    import pyxrt  # type: ignore[import-not-found]

    print(json.dumps(problems_of_kernels(plan, file.parent, pyxrt)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
