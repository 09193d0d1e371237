"""The driver's tracepoints: out of saved text, joined to jobs, split into phases. Pure; who records them is a collector."""
