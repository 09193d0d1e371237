"""Inference servers as they are reached: over HTTP, and as processes on this machine."""
