"""One forward's clock as the terms of a pass."""

from __future__ import annotations

from npuprof.model.passes import Terms
from npuprof.targets.reference.model import Clocked


def terms_of(t: Clocked, end_ns: int) -> tuple[Terms, float]:
    """The seven terms and the head's own launches, ms. `end_ns`: when the tokens were chosen, the head's last work."""
    terms = Terms(
        embed_ms=t.embed / 1e6,
        pack_ms=t.pack / 1e6,
        quantise_launch_ms=t.quantise_launch / 1e6,
        device_wait_ms=t.wait / 1e6,
        readback_ms=t.readback / 1e6,
        layers_host_ms=(t.layers - t.pack - t.quantise_launch - t.wait - t.readback) / 1e6,
        lm_head_ms=(end_ns - t.head_begin) / 1e6,
    )
    return terms, t.head_device / 1e6
