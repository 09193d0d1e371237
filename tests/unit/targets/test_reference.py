"""The reference transformer: exact parity, true terms, true lines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from npuprof.lines import parse_line
from npuprof.targets.base import ChecksParity
from npuprof.targets.reference.device import Device, Kernel, family_of
from npuprof.targets.reference.target import ReferenceTarget
from npuprof.targets.reference.weights import LAYERS, MAX_CONTEXT


@pytest.fixture(scope="module")
def target() -> Iterator[ReferenceTarget]:
    t = ReferenceTarget()
    yield t
    t.close()


def test_it_says_that_it_is_no_npu(target: ReferenceTarget) -> None:
    info = target.describe()
    assert info.simulated
    assert info.device == "reference transformer on the CPU, not an NPU"
    assert np.__version__ in info.backend
    assert [f.rows for f in info.families] == [16, 128]
    assert not info.on_npu


@pytest.mark.parametrize(("rows", "start"), [(2, 0), (5, 60), (17, 0), (3, 700)])
def test_parity_is_exact(target: ReferenceTarget, rows: int, start: int) -> None:
    assert isinstance(target, ChecksParity)
    found = target.check_parity(rows, start)
    assert found.agreed, found.detail
    assert found.ties == 0


@pytest.mark.parametrize("rows", [1, 5, 17])
def test_terms_sum_to_the_wall_and_the_line_says_the_same(target: ReferenceTarget, rows: int) -> None:
    target.prepare(rows, 0)
    timing = target.run_step() if rows == 1 else target.run_pass()
    total = timing.terms.total()
    assert total is not None
    assert 0 <= timing.wall_ms - total < 0.05 * timing.wall_ms
    assert min(v for v in timing.terms.values() if v is not None) >= 0
    assert timing.head_device_ms is not None
    assert timing.terms.lm_head_ms is not None
    assert 0 < timing.head_device_ms < timing.terms.lm_head_ms
    assert timing.launches == 4 * LAYERS
    assert timing.line is not None
    line = parse_line(timing.line)
    assert line.consistent
    assert (line.rows, line.start, line.launches) == (rows, 0, 112)
    assert line.wall_ms == pytest.approx(timing.wall_ms, abs=0.0501)


def test_a_pass_leaves_the_state_at_its_start(target: ReferenceTarget) -> None:
    target.prepare(5, 30)
    before = target._model.digest()
    target.run_pass()
    assert target._model.digest() == before
    target.prepare(5, 30)
    assert target._model.digest() == before


def test_a_cold_prefix_and_a_reused_one_give_the_same_state(target: ReferenceTarget) -> None:
    target.prepare(1, 200)
    cold = target._model.digest()
    target._model.rewind(0, [])
    target.prepare(1, 100)
    target.prepare(1, 200)
    assert target._model.digest() == cold


def test_what_it_cannot_do_is_refused(target: ReferenceTarget) -> None:
    assert (family_of(16), family_of(17)) == (16, 128)
    with pytest.raises(ValueError, match="up to 128 rows, not 129"):
        family_of(129)
    target.prepare(5, MAX_CONTEXT - 3)
    with pytest.raises(ValueError, match="context"):
        target._model.forward([1, 2, 3, 4, 5])


def test_a_failure_of_the_device_reaches_the_host() -> None:
    device = Device()
    device.submit(Kernel(np.zeros((2, 2), np.float32), np.float32(1)), 16)
    with pytest.raises(RuntimeError, match="reference device failed"):
        device.wait()
    device.close()
