"""The pass plan: which kernels a pass launches, in which order, with how many bytes. Its JSON schema is that of `Plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from npuprof.errors import UsageProblem
from npuprof.yamlfile import Loc, explain, load_yaml

Bytes = Annotated[int, Field(ge=0, le=1 << 36)]
RowCount = Annotated[int, Field(ge=1, le=65536)]
DType = Literal["int8", "bf16"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Family(_Part):
    """Kernels compiled for exactly `rows` rows; a pass is padded to the smallest family that holds it.

    Either an xclbin (instructions are files of the launches) or a full ELF (instructions are in it).
    """

    rows: RowCount
    xclbin: Path | None = None
    elf: Path | None = None
    kernel: str = "MLIR_AIE"
    generation: Literal["npu1", "npu4"] | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Family:
        if (self.xclbin is None) == (self.elf is None):
            raise ValueError("needs exactly one of xclbin and elf")
        return self


class Launch(_Part):
    """One launch. `insts` maps a family's rows to its instruction file (little-endian 32-bit words, or hex words in .txt).

    Arguments are opcode 3, instructions, their count, then the buffers in the order input, weights, output; one of 0 bytes
    is left out. `weights` is a file, `weights_bytes` a size filled with pseudo-random values.
    """

    name: str
    kernel: str | None = None
    insts: dict[int, Path] = {}
    in_bytes_per_row: Bytes
    out_bytes_per_row: Bytes
    weights: Path | None = None
    weights_bytes: Bytes = 0
    dtype: DType = "int8"

    @model_validator(mode="after")
    def _one_of(self) -> Launch:
        if self.weights is not None and self.weights_bytes:
            raise ValueError("has both weights and weights_bytes")
        if self.dtype == "bf16" and self.in_bytes_per_row % 2:
            raise ValueError("in_bytes_per_row of bf16 must be even")
        return self

    @property
    def buffers(self) -> int:
        """How many buffers it passes to the kernel."""
        return bool(self.in_bytes_per_row) + bool(self.weights or self.weights_bytes) + bool(self.out_bytes_per_row)


class Check(_Part):
    """Correct before timed: a golden output for a given input, or a GEMM that numpy computes again."""

    launch: str
    kind: Literal["int8_gemm", "bf16_gemm", "golden"]
    out: Literal["int32", "float32", "bf16"] = "int32"
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    input: Path | None = None
    golden: Path | None = None

    @model_validator(mode="after")
    def _golden(self) -> Check:
        if (self.kind == "golden") != (self.golden is not None and self.input is not None):
            raise ValueError("golden needs input and golden, and only that kind does")
        return self


class Noop(_Part):
    """A launch that does nothing, timed as the floor under every launch: an empty instruction stream of a family."""

    rows: RowCount
    insts: Path


class Wait(_Part):
    """`block`: run.wait, which holds the interpreter; `poll`: run.state every `grain_us`. `deadline_s` is for one launch."""

    mode: Literal["block", "poll"] = "block"
    grain_us: Annotated[float, Field(ge=0, le=1e6)] = 20.0
    deadline_s: Annotated[float, Field(gt=2, le=600)] = 20.0


class Embed(_Part):
    """The embedding table that a pass gathers its rows from."""

    rows: Annotated[int, Field(ge=1, le=1 << 22)]
    bytes_per_row: Annotated[int, Field(ge=4, multiple_of=4)]


class Plan(_Part):
    device: Annotated[int, Field(ge=0)] | str = 0
    families: Annotated[list[Family], Field(min_length=1)]
    layers: Annotated[int, Field(ge=1, le=1000)] = 1
    launches: Annotated[list[Launch], Field(min_length=1)]
    head: list[Launch] = []
    embed: Embed | None = None
    check: Check | None = None
    noop: Noop | None = None
    wait: Wait = Wait()

    @model_validator(mode="after")
    def _consistent(self) -> Plan:
        rows = [f.rows for f in self.families]
        if len(set(rows)) != len(rows):
            raise ValueError("families: two have the same rows")
        by_rows = {f.rows: f for f in self.families}
        for part, launches in (("launches", self.launches), ("head", self.head)):
            for i, launch in enumerate(launches):
                unknown = sorted(set(launch.insts) - set(rows))
                if unknown:
                    raise ValueError(f"{part}.{i}.insts: {unknown[0]}: there is no family of that many rows")
                missing = [r for r in rows if by_rows[r].xclbin and r not in launch.insts]
                if part == "launches" and missing:
                    raise ValueError(f"{part}.{i}.insts: has no instructions for the family of {missing[0]} rows")
                if part == "head" and not launch.insts and all(f.xclbin for f in self.families):
                    raise ValueError(f"{part}.{i}.insts: names no family")
        names = [x.name for x in self.launches]
        if self.check is not None and self.check.launch not in names:
            raise ValueError(f"check.launch: there is no launch {self.check.launch!r}; there are {', '.join(names)}")
        if self.noop is not None and (self.noop.rows not in by_rows or by_rows[self.noop.rows].xclbin is None):
            raise ValueError("noop.rows: there is no xclbin family of that many rows")
        return self

    def family_of(self, rows: int) -> Family:
        """The smallest family that holds so many rows. ValueError above the largest."""
        fitting = [f for f in self.families if f.rows >= rows]
        if not fitting:
            largest = max(f.rows for f in self.families)
            raise ValueError(f"the plan has kernels for up to {largest} rows, not {rows}")
        return min(fitting, key=lambda f: f.rows)


def load_plan(file: Path) -> tuple[Plan, dict[Loc, int]]:
    """The plan, its paths taken from its own folder, and the line of every key. UsageProblem names file, line and key."""
    data, lines = load_yaml(file)
    try:
        plan = Plan.model_validate(data)
    except ValidationError as e:
        raise _explained(e, file, lines) from None
    return plan, lines


def _explained(error: ValidationError, file: Path, lines: dict[Loc, int]) -> UsageProblem:
    """A problem of the plan as a whole says its key in its own text."""
    first = error.errors()[0]
    text = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        key = text.split(":")[0]
        loc: Loc = tuple(int(p) if p.isdigit() else p for p in key.split("."))
        while loc and loc not in lines:
            loc = loc[:-1]
        return UsageProblem(f"{file}:{lines.get(loc, 1)}: {text}")
    return explain(error, file, lines)


def files_of(plan: Plan, folder: Path) -> list[tuple[Loc, Path]]:
    """Every file that the plan names, with its key, resolved against the plan's folder."""
    found: list[tuple[Loc, Path]] = []
    for i, f in enumerate(plan.families):
        key, path = ("xclbin", f.xclbin) if f.xclbin is not None else ("elf", f.elf)
        assert path is not None
        found.append((("families", i, key), path))
    for part, launches in (("launches", plan.launches), ("head", plan.head)):
        for i, launch in enumerate(launches):
            found += [((part, i, "insts", str(rows)), path) for rows, path in launch.insts.items()]
            if launch.weights is not None:
                found.append(((part, i, "weights"), launch.weights))
    if plan.check is not None:
        for name, path in (("input", plan.check.input), ("golden", plan.check.golden)):
            if path is not None:
                found.append((("check", name), path))
    if plan.noop is not None:
        found.append((("noop", "insts"), plan.noop.insts))
    return [(loc, folder / path) for loc, path in found]


def memory_bytes(plan: Plan, folder: Path) -> int:
    """What the plan's buffers need: weights once a layer, instructions, inputs and outputs once a launch and family."""
    total = 0
    for launches, layers in ((plan.launches, plan.layers), (plan.head, 1)):
        for launch in launches:
            weights = launch.weights_bytes
            if launch.weights is not None and (folder / launch.weights).is_file():
                weights = (folder / launch.weights).stat().st_size
            total += layers * weights
            total += sum(f.rows for f in plan.families) * (launch.in_bytes_per_row + launch.out_bytes_per_row)
            total += sum((folder / p).stat().st_size for p in launch.insts.values() if (folder / p).is_file())
    return total
