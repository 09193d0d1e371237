"""A small real inference server on the reference transformer: what `--target serve` expects, on the CPU."""
