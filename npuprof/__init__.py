"""npuprof: times LLM decode steps and M-row passes on AMD XDNA NPUs."""

__version__ = "0.1.0"
