"""How many rounds a wished precision needs."""

from __future__ import annotations

from math import sqrt

from npuprof.stats.order import CONFIDENCE
from npuprof.stats.paired import MIN_BLOCKS
from npuprof.stats.student import t_quantile

TOO_MANY = 200


def blocks_needed(noise: float, half_width: float) -> int | None:
    """The smallest number of rounds B with t(B-1) * noise / sqrt(B) <= half_width, both relative.

    `noise` is the standard deviation of the per-round log differences, which is the CV of one pass. None above 200:
    the machine must be mended first.
    """
    for blocks in range(MIN_BLOCKS, TOO_MANY + 1):
        if t_quantile((1 + CONFIDENCE) / 2, blocks - 1) * noise / sqrt(blocks) <= half_width:
            return blocks
    return None
